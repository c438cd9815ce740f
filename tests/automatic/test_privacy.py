"""The automatic fit as an attacker sees it: no row costs more than the budget, whatever it is."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dpmc
from dpmc.automatic import whitened
from dpmc.models import logistic, poisson
from dpmc.rng import stream
from dpmc.rows import passes
from tests.automatic.replay import search
from tests.support.posteriors import gaussian_model

MU = 0.8
# Rows that a neighbour has in place of its last: none of them is bounded by anything.
HOSTILE = {
    "huge": (1e300, -1e300),
    "largest": (1.7e308, 1.7e308),
    "tiny": (1e-300, 0.0),
    "far": (1e6, -1e6),
    "outlier": (30.0, 30.0),
}


def gaussian_rows(num_rows: int = 300) -> np.ndarray:
    return stream(0, "automatic", "privacy").standard_normal((num_rows, 2))


def neighbour(x: np.ndarray, row: tuple[float, ...]) -> np.ndarray:
    other = x.copy()
    other[-1] = row
    return other


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("seed", range(3))
def test_no_row_costs_more_than_the_budget(kind, seed):
    x = gaussian_rows()
    y = neighbour(x, HOSTILE[kind])
    for first, second in ((x, y), (y, x)):
        _, seen = search(gaussian_model(), first, MU, seed)
        _, other = search(gaussian_model(), second, MU, seed, seen)
        assert 0 < seen.cost(other) <= MU**2 * (1 + 1e-9)


@pytest.mark.parametrize("count", [1e300, 1e9, 50.0])
def test_a_count_that_overflows_costs_no_more(count):
    rng = stream(0, "automatic", "counts")
    features = rng.uniform(-1, 1, size=(400, 1))
    x = np.column_stack([features, rng.poisson(np.exp(0.5 + features[:, 0]))])
    y = neighbour(x, (1.0, count))
    model = poisson.build(poisson.Params(1))
    _, seen = search(model, x, MU, 0)
    _, other = search(model, y, MU, 0, seen)
    assert 0 < seen.cost(other) <= MU**2 * (1 + 1e-9)


def test_a_row_that_is_not_finite_costs_no_more():
    x = gaussian_rows()
    y = neighbour(x, (math.nan, math.inf))
    _, seen = search(gaussian_model(), x, MU, 0, invalid_rows="zero")
    _, other = search(gaussian_model(), y, MU, 0, seen, invalid_rows="zero")
    assert 0 < seen.cost(other) <= MU**2 * (1 + 1e-9)


def canary(monkeypatch: pytest.MonkeyPatch, name: str) -> float:
    """Return the largest cost over searches of one broken variant, over mu^2."""
    if name == "half the sensitivity":
        original = whitened.row_sum
        monkeypatch.setattr(
            whitened, "row_sum", lambda total, bound, of: original(total, bound / 2, of)
        )
    elif name == "no clip":
        original = passes.RowGradients.clipped_sum

        def unclipped(self, features, theta, first, last, basis, bound):
            return original(self, features, theta, first, last, basis, 1e100)

        monkeypatch.setattr(passes.RowGradients, "clipped_sum", unclipped)
    x = gaussian_rows()
    costs = []
    for seed in range(3):
        # As unlike as two rows can be: what moves a quantile too.
        a, b = neighbour(x, (30.0, 30.0)), neighbour(x, (-30.0, -30.0))
        _, seen = search(gaussian_model(), a, MU, seed)
        _, other = search(gaussian_model(), b, MU, seed, seen)
        costs.append(seen.cost(other))
    return max(costs) / MU**2


@pytest.mark.parametrize("broken", ["half the sensitivity", "no clip"])
def test_a_broken_variant_costs_more(monkeypatch, broken):
    assert canary(monkeypatch, broken) > 1.05


def test_the_worst_pair_comes_near_the_budget(monkeypatch):
    # Without power against two opposite rows the tests above would prove little.
    assert 0.5 < canary(monkeypatch, "none") <= 1 + 1e-9


@pytest.mark.slow
def test_the_audit_does_not_find_the_fit_guilty():
    """A correct fit is found guilty with a probability of at most 1e-3; the seed is fixed.

    The budget is large, because few runs cannot tell a small one from none.
    """
    mu = 4.5
    x = gaussian_rows(300)
    pair = neighbour(x, (30.0, 30.0)), neighbour(x, (-30.0, -30.0))
    model = gaussian_model()

    def mechanism(data, rng):
        seed = int(rng.integers(2**32))
        _, seen = search(model, data, mu, seed)
        there = pair[1] if data is pair[0] else pair[0]
        _, other = search(model, there, mu, seed, seen)
        loss = seen.loss(other)
        return loss if data is pair[0] else -loss

    result = dpmc.audit(
        mechanism,
        *pair,
        mu=mu,
        delta=1e-3,
        confidence=0.999,
        num_runs=200,
        statistic=float,
        seed=1,
    )
    assert not result.violates_claim
    # The same runs would be found guilty of a quarter of the claim.
    assert result.mu_lower > 0.25 * mu


def test_logistic_rows_of_another_label_cost_no_more():
    rng = stream(0, "automatic", "labels")
    x = np.column_stack([rng.uniform(-1, 1, (500, 2)), rng.integers(0, 2, 500)])
    y = neighbour(x, (1.0, 1.0, 1.0))
    x[-1] = (1.0, 1.0, 0.0)
    model = logistic.build(logistic.Params(2))
    _, seen = search(model, x, MU, 4)
    _, other = search(model, y, MU, 4, seen)
    assert 0 < seen.cost(other) <= MU**2 * (1 + 1e-9)
