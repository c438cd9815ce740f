"""Nodes that add their own noise: what the sum has of it, and what a guarantee says."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from scipy import stats

import dpmc
from dpmc.automatic.federated import FederatedRows
from dpmc.automatic.whitened import WhitenedRows
from dpmc.privacy import discrete
from dpmc.privacy.budgets import GaussianBudget
from dpmc.privacy.clipped import asserted
from dpmc.privacy.ledger import Ledger
from dpmc.privacy.nodes import ASSUMED, NodeNoise, NodeValues
from dpmc.rng import stream
from dpmc.types import Dataset, DpmcError
from tests.shards.folders import write
from tests.support.clipped import values
from tests.support.posteriors import gaussian_model

NUM_RELEASES = 4000
SENSITIVITY, MULTIPLIER = 3.0, 2.0
# Of each of the tests of a variance below, for a correct release.
ERROR_RATE = 1e-6


def generators(num_nodes: int) -> list[np.random.Generator]:
    return [stream(0, "federation", num_nodes, k) for k in range(num_nodes)]


def variance_p_value(noise: NodeNoise, num_nodes: int, expected: float) -> float:
    """Return how probable a sample variance as far from the expected one is, on either side."""
    value = NodeValues(
        tuple(asserted(np.full(NUM_RELEASES, 5.0), SENSITIVITY) for _ in range(num_nodes))
    )
    sums = noise.release(Ledger(), value, MULTIPLIER) - 5.0 * num_nodes
    statistic = float(np.sum(sums**2)) / expected
    below = stats.chi2.cdf(statistic, NUM_RELEASES)
    return 2 * min(below, 1 - below)


@pytest.mark.parametrize(
    ("sharing", "colluding", "factor"),
    [("secure", 0, 1.0), ("secure", 2, 5 / 3), ("secure", 4, 5.0), ("local", 0, 5.0)],
)
def test_the_noise_of_a_sum_is_what_its_sharing_says(sharing, colluding, factor):
    noise = NodeNoise(generators(5), sharing, colluding)
    assert math.isclose(noise.spread**2, factor)
    expected = (SENSITIVITY * MULTIPLIER) ** 2 * factor
    assert variance_p_value(noise, 5, expected) > ERROR_RATE
    # What honest nodes add is at least what one release needs, whatever the others tell.
    assert noise.share**2 * (5 - colluding) >= 1 - 1e-12


class Silent:
    """A node that forgets its noise."""

    def standard_normal(self, shape):
        return np.zeros(shape)


def test_a_node_that_forgets_its_noise_is_noticed():
    noise = NodeNoise([*generators(5)[:4], Silent()], "secure")
    assert variance_p_value(noise, 5, (SENSITIVITY * MULTIPLIER) ** 2) < ERROR_RATE


def test_a_release_of_nodes_is_recorded_once_and_refused_beyond_the_budget():
    ledger = Ledger(GaussianBudget(1.0))
    noise = NodeNoise(generators(3))
    three = NodeValues(tuple(asserted(one, 1.0) for one in (1.0, 2.0, 3.0)))
    noise.release(ledger, three, math.sqrt(2))
    assert math.isclose(ledger.spent, 0.5)
    noise.release(ledger, three, math.sqrt(2) * (1 + 1e-9))
    with pytest.raises(DpmcError):
        noise.release(ledger, three, 2.0)
    with pytest.raises(DpmcError, match="one value for each of 3 nodes, got 2"):
        noise.release(Ledger(), NodeValues(three.values[:2]), 2.0)


def held(values, sensitivity):
    """Return values of nodes that carry a sensitivity."""
    return NodeValues(tuple(asserted(one, sensitivity) for one in values))


@pytest.mark.parametrize(("sharing", "colluding"), [("secure", 1), ("local", 0)])
def test_discrete_messages_add_up_to_the_noise_of_a_sum(sharing, colluding):
    """Every message and sum lies on one public grid; the variance is that of continuous noise."""
    noise = NodeNoise(generators(5), sharing, colluding)
    values = held([np.full(NUM_RELEASES, 5.3) for _ in range(5)], SENSITIVITY)
    sums = noise.release(Ledger(noise="discrete"), values, MULTIPLIER)
    grid = discrete.grid_of(SENSITIVITY * MULTIPLIER * noise.share)
    np.testing.assert_array_equal(np.rint(sums / grid), sums / grid)
    spread = SENSITIVITY * MULTIPLIER * noise.spread
    statistic = float(np.sum((sums - 26.5) ** 2)) / spread**2
    assert 2 * min(stats.chi2.cdf(statistic, 4000), stats.chi2.sf(statistic, 4000)) > ERROR_RATE
    huge = held([1e308, -1e308, np.nan, 1e300, 0.0], 1.0)
    assert np.isfinite(noise.release(Ledger(noise="discrete"), huge, 2.0))


def test_nodes_have_the_sums_of_their_own_rows():
    x = stream(0, "federation", "rows").standard_normal((900, 2))
    model, theta, basis = gaussian_model(2), np.array([0.1, 0.2]), np.eye(2)
    parts = np.split(x, [100, 500])
    there = FederatedRows(model, dpmc.federation(parts))
    sums = values(there.gradient_sum(theta, basis, 0.5))
    for part, found in zip(parts, sums, strict=True):
        alone = WhitenedRows(model, Dataset.of("part", part))
        np.testing.assert_array_equal(found, values(alone.gradient_sum(theta, basis, 0.5)))
    counts = values(there.gradients_beyond(theta, basis, [1.0]))[1.0]
    whole = values(WhitenedRows(model, Dataset.of("rows", x)).gradients_beyond(theta, basis, [1.0]))
    assert sum(counts) == whole[1.0]
    assert len(values(there.large_sum(theta, basis, 0.5, 1.0))[2]) == 3


@pytest.mark.parametrize("sharing", ["secure", "local"])
def test_a_fit_of_nodes_finds_the_mean_of_all_rows(sharing, tmp_path):
    """At this budget the noise is a hundredth of what is asked for: an error rate below 1e-6."""
    x = np.array([1.0, -2.0]) + stream(0, "federation", "fit").standard_normal((20_000, 2))
    folder = write(tmp_path / "clinic", x[:5000], [2000], "parquet")
    nodes = dpmc.federation([dpmc.open_rows(folder), *np.split(x[5000:], 3)], sharing=sharing)
    result = dpmc.fit(gaussian_model(2), nodes, epsilon=4, delta=1e-6, seed=1, num_draws=500)
    assert np.abs(result.kept().mean(axis=(0, 1)) - x.mean(axis=0)).max() < 0.05
    assert result.guarantee.epsilon == 4
    assert (ASSUMED in result.guarantee.outside) == (sharing == "secure")
    assert result.plan.audit.epsilon <= 4 * (1 + 1e-6)


@pytest.mark.parametrize(
    ("nodes", "options", "text"),
    [
        ([], {}, "`nodes` must be at least one"),
        (None, {}, "`nodes` must be a list of rows, got a NoneType"),
        ("rows", {}, "`nodes` must be a list of rows, got a str"),
        ([np.zeros((3, 2)), np.zeros((3, 1))], {}, "must have 2 columns, as the first, got 1"),
        (
            [pl.DataFrame(np.zeros((3, 2)), schema=list(names)) for names in ("xy", "yx")],
            {},
            "must be those of the other nodes, ['x', 'y'], in this order, got ['y', 'x']",
        ),
        ([np.zeros((3, 2))] * 2, {"sharing": "open"}, "`sharing`"),
        ([np.zeros((3, 2))] * 2, {"colluding": 2}, "`colluding` must be an integer from 0 to 1"),
        ([np.zeros((3, 2))] * 2, {"sharing": "local", "colluding": 1}, "from 0 to 0"),
        ([Dataset.of("a", np.zeros((3, 2)))] * 2, {}, "different names, got 'a' twice"),
        (
            [np.zeros((3, 2)), Dataset.of("b", np.zeros((3, 2)), "zero")],
            {},
            "must be those of the first node",
        ),
    ],
)
def test_federations_are_checked(nodes, options, text):
    with pytest.raises(DpmcError) as caught:
        dpmc.federation(nodes, **options)
    assert text in str(caught.value)


def test_methods_that_hold_rows_in_memory_refuse_nodes():
    nodes = dpmc.federation([np.zeros((3, 2))])
    with pytest.raises(DpmcError, match="got a federation"):
        dpmc.fit(
            gaussian_model(2),
            nodes,
            method="dp_penalty",
            epsilon=1,
            delta=1e-6,
            ratio_clip_bound=1.0,
        )
