"""Statistics of nodes that keep their rows, and the noise on their sum."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import dpmc
from dpmc.linreg import nodes
from dpmc.linreg.release_terms import Terms
from dpmc.privacy.nodes import NodeNoise
from dpmc.rng import stream
from dpmc.types import DpmcError

BOUNDS = (1.5, 4.0)
BUDGET = {"epsilon": 2.0, "delta": 1e-6, "x_bound": 1.5, "y_bound": 4.0}
SHORT = {"num_draws": 300, "num_chains": 2, "progress": False}


@pytest.fixture(scope="module")
def rows():
    rng = stream(0, "regression of nodes")
    x = rng.uniform(-1, 1, (6000, 2))
    y = x @ [1.0, -2.0] + 0.5 * rng.standard_normal(6000)
    return np.column_stack([x, y])


def test_local_nodes_release_what_parts_of_one_table_release(rows):
    federation = dpmc.federation(np.split(rows, 3), sharing="local")
    apart = dpmc.linear_regression(federation, **BUDGET, **SHORT, seed=1)
    parts = dpmc.linear_regression(rows[:, :2], rows[:, 2], num_nodes=3, **BUDGET, **SHORT, seed=1)
    np.testing.assert_array_equal(apart.draws, parts.draws)
    assert apart.guarantee == parts.guarantee
    assert apart.plan == parts.plan


def test_rows_in_files_give_the_bytes_of_rows_in_memory(rows, tmp_path):
    for number, part in enumerate(np.split(rows, [1000, 4321])):
        np.save(tmp_path / f"{number}.npy", part)
    in_files = dpmc.linear_regression(dpmc.open_rows(tmp_path), **BUDGET, **SHORT, seed=1)
    in_memory = dpmc.linear_regression(rows[:, :2], rows[:, 2], **BUDGET, **SHORT, seed=1)
    np.testing.assert_array_equal(in_files.draws, in_memory.draws)


def test_the_posterior_of_a_sum_knows_of_all_shares(rows):
    """With two of three colluding the sum has three times the variance that the budget asks for."""
    fits = {
        colluding: dpmc.linear_regression(
            dpmc.federation(np.split(rows, 3), colluding=colluding), **BUDGET, **SHORT, seed=1
        )
        for colluding in (0, 2)
    }
    one = dpmc.linear_regression(rows[:, :2], rows[:, 2], **BUDGET, **SHORT, seed=1)
    noise = [fit.plan.details["s_sd"] for fit in (one, fits[0], fits[2])]
    assert noise[1:] == pytest.approx([noise[0], np.sqrt(3) * noise[0]], rel=1e-6)
    for fit in fits.values():
        assert fit.guarantee.epsilon == pytest.approx(2.0)
        assert any("secure aggregation" in entry for entry in fit.guarantee.outside)
        assert fit.plan.details["num_nodes"] == 3
        np.testing.assert_allclose(fit.kept().mean(axis=(0, 1))[:2], [1.0, -2.0], atol=0.3)


def released(statistics, shares, count):
    terms = Terms(2.0, 1e-6)
    exact = np.concatenate([statistics.z.sum(axis=0), statistics.u.sum(keepdims=True)])
    found = []
    for _ in range(count):
        noisy = nodes.release_sum(statistics, *BOUNDS, terms, shares, with_u=True)
        found.append((np.append(noisy.z[0], noisy.u) - exact) / noisy.s_sd)
    return np.concatenate(found)


def test_noise_on_a_sum_has_the_variance_that_is_told(rows):
    """Two-sided chi-squared test of 3,000 entries, error rate 1e-6; a share too many is found."""
    statistics = nodes.statistics_of_nodes(dpmc.federation(np.split(rows, 3)), BOUNDS)
    generators = [np.random.default_rng(k) for k in range(3)]

    def tail(noise):
        squares = np.sum(noise**2)
        return 2 * min(stats.chi2.cdf(squares, noise.size), stats.chi2.sf(squares, noise.size))

    for colluding in (0, 1, 2):
        shares = NodeNoise(generators, colluding=colluding)
        noise = released(statistics, shares, 1000)
        assert tail(noise) > 1e-6
        assert tail(noise * np.sqrt(3 / 2)) < 1e-6
    with pytest.raises(DpmcError, match="one value for each of 2 nodes"):
        released(statistics, NodeNoise(generators[:2]), 1)


def test_sums_of_nodes_are_those_of_their_rows(rows):
    federation = dpmc.federation([rows[:1000], rows[1000:1500], rows[1500:]])
    found = nodes.statistics_of_nodes(federation, BOUNDS)
    assert found.num_rows.tolist() == [1000, 500, 4500]
    clipped = rows.copy()
    clipped[:, 2] = np.clip(clipped[:, 2], -4, 4)
    for node, part in enumerate(np.split(clipped, [1000, 1500])):
        np.testing.assert_allclose(found.s[node], part[:, :2].T @ part[:, :2], rtol=1e-12)
        np.testing.assert_allclose(found.z[node], part[:, :2].T @ part[:, 2], rtol=1e-10)
        np.testing.assert_allclose(found.u[node], part[:, 2] @ part[:, 2], rtol=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_nodes": 3}, "`num_nodes` must be left out for a federation of 3 nodes, got 3"),
        ({"y": [1.0]}, "`y` must be left out beside a federation, .*, got list"),
    ],
)
def test_what_does_not_go_with_a_federation_is_refused(rows, change, message):
    federation = dpmc.federation(np.split(rows, 3))
    with pytest.raises(DpmcError, match=message):
        dpmc.linear_regression(federation, **BUDGET, **change)


def test_data_augmentation_is_told_what_rows_were_clipped_to():
    """Responses are cut below half of their spread: who does not know takes slopes for small."""
    rng = stream(0, "clipped responses")
    x = 0.5 * rng.standard_normal((400, 2))
    y = x @ [1.0, -2.0] + 0.5 * rng.standard_normal(400)
    budget = BUDGET | {"epsilon": 20.0, "y_bound": 0.5}
    options = {"num_draws": 1500, "num_chains": 2, "progress": False, "seed": 1}
    apart = {}
    for method in ("data_augmentation", "mcmc_bs"):
        draws = dpmc.linear_regression(x, y, method=method, **budget, **options).kept()[..., :2]
        errors = draws.mean(axis=(0, 1)) - [1.0, -2.0]
        apart[method] = np.abs(errors / draws.std(axis=(0, 1))).max()
    assert apart["data_augmentation"] < 4.5
    assert apart["mcmc_bs"] > 10
