"""Rows of metrics of chains."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpmc.diagnostics.autocorrelation import autocorrelation_times
from dpmc.diagnostics.mmd import Reference
from dpmc.fits import Fit
from dpmc.types import NO_GUARANTEE, DpmcError, swapped
from dpmc.types.results import first_half
from dpmc_papers.pipeline import chain_metrics
from tests.reference.mmd import brute_force
from tests.support import setups


def make_fit(draws, **totals):
    chains = draws.shape[1]
    base = {"num_iterations": np.full(chains, len(draws))}
    counts = {key: np.full(chains, value) for key, value in totals.items()}
    ledger = (("gaussian(53.75)", 10), ("sampled_gaussian(7.5, batch_size=1, num_rows=2)", 1))
    warm_up = first_half(len(draws))
    return Fit(swapped(draws), {}, base | counts, "complete", ledger, NO_GUARANTEE, warm_up=warm_up)


def make_spec(**changes):
    spec = {
        "problem": {"name": "toy", "data": {"name": "toy_rows", "params": {}}},
        "method": "dp_penalty",
        "variant": "as_published",
        "params": {"ratio_clip_bound": 0.15},
        "budget": {"epsilon": 4, "delta": 1e-6, "accountant": "gaussian"},
        "num_chains": 4,
    }
    return setups.chain(spec | changes)


def evaluate(runs, reference, point="eps=4", label="dp_penalty"):
    """Evaluate (setup, replicate, fit) at one point."""
    named = [(setup, point, replicate, fit) for setup, replicate, fit in runs]
    return chain_metrics.evaluate(named, reference, 1, experiment="comparison", label=label)


def test_evaluate_names_and_measures_every_run():
    rng = np.random.default_rng(9)
    reference = rng.normal(size=(3, 500, 2))
    fits = [make_fit(rng.normal(size=(201, 4, 2)), accepted=50, ratio_clipped=1, ratio_rows=20)]
    runs = [(make_spec(), 7, fits[0])]
    table = evaluate(runs, reference)
    assert list(table.columns) == list(chain_metrics.COLUMNS)
    row = table.iloc[0]
    assert (row["experiment"], row["problem"], row["point"]) == ("comparison", "toy", "eps=4")
    assert (row["label"], row["algorithm"]) == ("dp_penalty", "dp_penalty")
    assert (row["replicate"], row["num_iterations"], row["num_draws"]) == (7, 201, 404)
    assert (row["clip_bound"], row["noise_multipliers"]) == (0.15, "7.5, 53.75")
    assert math.isnan(row["gradient_clip_bound"])
    assert math.isnan(row["gradient_clip_fraction"])
    assert row["ratio_clip_fraction"] == 0.05
    assert row["acceptance_rate"] == pytest.approx(50 / 201)
    assert row["guarantee_epsilon"] == math.inf
    assert row["mmd"] == math.sqrt(abs(row["mmd_u"]))
    kept = swapped(fits[0].kept())
    mean = kept.reshape(-1, 2).mean(axis=0)
    assert row["mean_error"] == pytest.approx(np.linalg.norm(mean - reference[0].mean(axis=0)))
    assert row["mean_norm"] == pytest.approx(np.linalg.norm(mean))
    # Exact draws: null level of the discrepancy. Error rate below 1e-6 (U has sd 5e-4 here).
    assert abs(row["mmd_u"]) < 0.005
    assert row["variance_ratio"] == pytest.approx(1, abs=0.5)
    assert row["tail_fraction"] == pytest.approx(0.05, abs=0.06)


@pytest.mark.parametrize("num", [1, 2, 3, 4, 6, 7, 8, 20])
def test_chains_of_a_few_draws_are_measured_as_far_as_they_can_be(num):
    """Budgets of the thesis buy from 1 iteration on, for one chain."""
    rng = np.random.default_rng(num)
    draws = rng.normal(size=(num, 1, 2))
    reference = rng.normal(size=(200, 2))
    row = evaluate([(make_spec(num_chains=1), 0, make_fit(draws))], reference).iloc[0]
    kept = draws[max(0, (num - 1) // 2) :, 0]
    assert (row["num_iterations"], row["num_draws"]) == (num, len(kept))
    of_two = ["mmd", "mmd_u", "mmd_fixed", "mmd_white", "mean_error", "mean_norm", "variance_ratio"]
    assert row[of_two].notna().all() == (num >= 2)
    assert math.isnan(row["rhat"]) == math.isnan(row["ess_bulk"]) == (len(kept) < 4)
    if num >= 2:
        prepared = Reference.of(reference)
        expected = brute_force(kept, reference, prepared.width)
        assert row["mmd_fixed"] == pytest.approx(math.sqrt(abs(expected)), rel=1e-9)
        assert row["mean_norm"] == pytest.approx(np.linalg.norm(kept.mean(axis=0)))


def test_points_and_bounds_of_every_kind_of_method():
    draws = np.random.default_rng(11).normal(size=(20, 4, 2))
    reference = np.random.default_rng(12).normal(size=(100, 2))
    hmc = make_spec(method="hmc", budget=None, params={"ratio_clip_bound": 0.5})
    sgld = make_spec(method="dp_sgld", params={"gradient_clip_bound": 0.2})
    bare = make_spec(
        method="rwmh", budget=None, params={"ratio_clip_bound": None, "proposal_sd": 1}
    )
    kinds = [
        (hmc, make_fit(draws, ratio_clipped=0, ratio_rows=1)),
        (sgld, make_fit(draws, gradient_clipped=1, gradient_rows=4)),
        (bare, make_fit(draws, ratio_clipped=0, ratio_rows=1)),
    ]
    table = evaluate([(setup, 0, fit) for setup, fit in kinds], reference)
    np.testing.assert_array_equal(table["clip_bound"], [0.5, math.nan, math.nan])
    np.testing.assert_array_equal(table["gradient_clip_bound"], [math.nan, 0.2, math.nan])
    assert table["gradient_clip_fraction"][1] == 0.25


def test_runs_without_usable_draws_are_kept_as_rows():
    reference = np.random.default_rng(13).normal(size=(100, 2))
    draws = np.full((20, 4, 2), np.nan)
    none = Fit(None, {}, {}, "diverged", (), NO_GUARANTEE, {})
    table = evaluate([(make_spec(), 0, make_fit(draws)), (make_spec(), 1, none)], reference)
    assert table["mmd"].isna().all()
    assert list(table["status"]) == ["complete", "diverged"]
    with pytest.raises(DpmcError, match=r"`draws` must have dimension 2, .*, got 3"):
        evaluate([(make_spec(), 0, make_fit(np.zeros((20, 4, 3))))], reference)


def test_baselines_are_rows_of_the_same_table():
    reference = np.random.default_rng(16).normal(size=(4, 200, 2))
    table = chain_metrics.baselines(reference, 0, "toy")
    assert list(table["replicate"]) == [0, 1, 2]
    assert set(table["label"]) == set(table["algorithm"]) == {"reference"}
    assert list(table["mean_norm"]) == pytest.approx(
        np.linalg.norm(reference.mean(axis=1), axis=1)[1:]
    )
    assert list(table.columns) == list(chain_metrics.COLUMNS)
    # Error rate below 1e-6: null level of U at 200 points has an sd of about 2e-3.
    assert table["mmd_u"].abs().max() < 0.02


def test_the_autocorrelation_time_is_that_of_the_slowest_component_and_each_is_there():
    rng = np.random.default_rng(4)
    draws = rng.normal(size=(4000, 2, 2))
    draws[:, 1, 0] = np.repeat(draws[::20, 1, 0], 20)  # worth one draw in twenty
    reference = rng.normal(size=(50, 2))
    row = evaluate([(make_spec(), 0, make_fit(draws))], reference).iloc[0]
    chains = [chain.split(" ") for chain in row["iac_components"].split("; ")]
    times = np.array(chains, dtype=float)
    assert times.shape == (2, 2)
    assert row["iac"] == pytest.approx(times[1, 0], rel=1e-3)
    kept = swapped(make_fit(draws).kept())
    assert row["iac"] == autocorrelation_times(kept).max()
    assert 10 < row["iac"] < 40
    assert (np.delete(times.ravel(), 2) < 2).all()
