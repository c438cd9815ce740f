from __future__ import annotations

import math

import numpy as np
import pytest

import dpmc
from dpmc import registry
from dpmc.mcmc import fit as fitting
from dpmc.privacy.audit import audit
from dpmc.privacy.events import parse, text
from dpmc.types import SEED
from dpmc_papers.config import problems
from dpmc_papers.pipeline import run_chains as chain_runs
from tests.support import setups
from tests.support.posteriors import gaussian_model, rows

PENALTY = {"proposal_sd": 0.1, "ratio_noise_multiplier": 8.0, "ratio_clip_bound": 2.0}
HMC = {
    "step_size": 0.05,
    "num_leapfrog_steps": 3,
    "ratio_noise_multiplier": 15.0,
    "gradient_noise_multiplier": 30.0,
    "gradient_clip_bound": 1.0,
    "ratio_clip_bound": 2.0,
}
SGLD = {"batch_size": 50, "gradient_clip_bound": 1.0, "step_size": 0.05}
CASES = {
    "dp_penalty": PENALTY,
    "dp_hmc": HMC,
    "dp_sgld": SGLD,
    "dp_sgnht": SGLD | {"friction": 1.0},
}


def fit(method: str = "dp_penalty", **changes):
    given = {
        "epsilon": 4.0,
        "delta": 1e-5,
        "seed": 3,
        "progress": False,
        "num_chains": 2,
        **CASES[method],
        **changes,
    }
    return dpmc.fit(gaussian_model(), rows("fit", 500, 2), method=method, **given)


def test_the_audit_composes_events_in_the_order_of_their_records(monkeypatch):
    seen: list[list[str]] = []

    def recording(counts, delta):
        seen.append([text(event) for event in counts])
        return audit(counts, delta)

    monkeypatch.setattr(fitting, "audit", recording)
    fitting._audited.cache_clear()
    result = fit("dp_hmc", num_chains=1)
    assert seen == [[record for record, _ in result.ledger]]
    assert seen[0] == sorted(seen[0])
    assert len(seen[0]) > 1


@pytest.mark.parametrize("method", CASES)
def test_a_fit_has_draws_a_ledger_and_a_guarantee_within_its_budget(method):
    result = fit(method)
    k = result.plan.num_iterations
    assert k >= 1
    assert result.status == "complete"
    assert np.isfinite(result.draws).all()
    assert result.draws.shape[::2] == (2, 2)
    assert result.guarantee.epsilon <= 4.0
    assert result.guarantee.delta == 1e-5
    assert SEED in result.guarantee.outside
    audited = audit(parse(result.ledger), 1e-5)
    assert audited.epsilon == pytest.approx(result.guarantee.epsilon, rel=2e-3)
    assert sum(result.totals["num_iterations"]) == 2 * k


@pytest.mark.parametrize("reuse", [False, True])
def test_hmc_releases_what_its_theorem_counts(reuse):
    """k (L + 1) gradients of fresh starts, k L + 1 of reused ones, k ratios; for each chain."""
    result = fit("dp_hmc", reuse_gradient=reuse)
    k, counts = result.plan.num_iterations, dict(result.ledger)
    assert counts["gaussian(15.0)"] == 2 * k
    assert counts["gaussian(30.0)"] == 2 * (k * 3 + 1 if reuse else k * 4)


def test_a_cap_on_the_iterations_improves_the_guarantee():
    capped = fit(max_iterations=7, diagnostics="none")
    assert capped.plan.num_iterations == 7
    assert capped.draws.shape == (2, 7, 2)
    assert dict(capped.ledger) == {"gaussian(8.0)": 14}
    assert capped.guarantee.epsilon < 0.9 * fit().guarantee.epsilon
    np.testing.assert_array_equal(capped.draws, fit().draws[:, :7])
    diagnosed = dict(fit(max_iterations=7).ledger)
    assert len(diagnosed) == 2
    assert diagnosed["gaussian(8.0)"] == 14


def test_draws_convert_to_arviz():
    result = fit("dp_penalty", epsilon=20.0)
    inference_data = result.to_arviz()
    length = result.draws.shape[1]
    kept = inference_data.posterior["theta"]
    assert kept.shape == (2, length - (length - 1) // 2, 2)
    np.testing.assert_array_equal(kept[1, -1], result.draws[1, -1])
    assert "outside" in inference_data.attrs["guarantee"]


def test_the_same_seed_gives_the_same_draws_and_none_gives_others():
    np.testing.assert_array_equal(fit().draws, fit().draws)
    assert (fit(seed=None).draws != fit(seed=None).draws).any()
    assert SEED not in fit(seed=None).guarantee.outside


def test_a_method_without_privacy_is_never_called_private():
    result = dpmc.fit(
        gaussian_model(),
        rows("fit", 500, 2),
        method="rwmh",
        num_iterations=50,
        proposal_sd=0.1,
        progress=False,
    )
    assert math.isinf(result.guarantee.epsilon)
    assert "no privacy guarantee" in str(result.guarantee)
    assert result.ledger == ()


def test_hmc_that_diverges_is_rejected_and_counted():
    """A step far beyond stability leaves the finite numbers: no NaN reaches the draws."""

    def steep(theta):
        return -(theta**5) * 1e150

    model = dpmc.Model(
        "steep",
        2,
        gaussian_model().log_likelihood,
        gaussian_model().gradient,
        lambda theta: 0.0,
        steep,
        coefficients=gaussian_model().coefficients,
        linear=True,
    )
    result = dpmc.fit(
        model,
        rows("fit", 500, 2),
        method="hmc",
        num_iterations=30,
        num_chains=1,
        step_size=50.0,
        num_leapfrog_steps=20,
        start=np.ones(2),
        seed=1,
        progress=False,
    )
    assert result.totals["diverged"].sum() > 0
    assert np.isfinite(result.draws).all()


PROBLEM = {
    "name": "small",
    "data": {
        "name": "gaussian_rows",
        "params": {"num_rows": 400, "mean": [0.0, 3.0], "covariance": [[1.0, 0.2], [0.2, 1.0]]},
    },
    "model": {
        "name": "gaussian_mean",
        "params": {"dim": 2, "covariance": [[1.0, 0.2], [0.2, 1.0]], "prior_variance": 100.0},
    },
    "start": {"rule": "around_truth", "scale": "reference"},
}


def chain_settings(**changes):
    budget = {"epsilon": 4.0, "delta": 1e-5, "accountant": "gaussian", "split": "chains"}
    given = {"problem": PROBLEM, "method": "dp_penalty", "params": PENALTY, "budget": budget}
    return setups.chain({**given, "num_chains": 3, **changes})


def run_chains(settings, replicates):
    dataset = problems.make_data(setups.problem(PROBLEM), 5)
    reference = problems.make_reference(setups.problem(PROBLEM), dataset, 5, 100, 2)
    return dict(chain_runs.run_chains(settings, dataset, reference, replicates))


def test_a_replicate_is_the_same_in_any_batch():
    together = run_chains(chain_settings(), range(4))
    alone = run_chains(chain_settings(), [2])
    np.testing.assert_array_equal(together[2].draws, alone[2].draws)
    assert (together[1].draws != together[2].draws).any()


def test_starts_are_shared_by_methods_and_budgets_and_streams_are_not(monkeypatch):
    starts, run = [], fitting.run

    def recording(sampler, plan, iterations, points, *rest):
        starts.append(points.copy())
        return run(sampler, plan, iterations, points, *rest)

    monkeypatch.setattr(fitting, "run", recording)
    small = run_chains(chain_settings(), [0])[0]
    budget = {"epsilon": 8.0, "delta": 1e-5, "accountant": "gaussian", "split": "chains"}
    large = run_chains(chain_settings(budget=budget), [0, 1])[0]
    run_chains(chain_settings(method="dp_hmc", params=HMC), [0])
    first, again, other, of_hmc = starts
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(first, of_hmc)
    assert (first != other).all()
    shared = min(small.draws.shape[1], large.draws.shape[1])
    assert (small.draws[:, :shared] != large.draws[:, :shared]).any()


TRUTH, REFERENCE = np.array([1.0, -2.0]), np.arange(12.0).reshape(1, 6, 2)


def starts_by(rule, replicates=(0, 1), truth=TRUTH, **given):
    problem = setups.problem({**PROBLEM, "start": {"rule": rule, **given}})
    return problems.start_points(problem, truth, REFERENCE, 5, replicates, 3)


def test_starts_around_the_truth_are_those_of_the_published_runs():
    """Each from its own stream, keyed by problem, replicate and chain."""
    from dpmc.rng import stream

    points = starts_by("around_truth", scale="reference", replicates=[4])
    sd = float(np.mean(np.std(REFERENCE[0], axis=0)))
    draws = [stream(5, "init", "small", 4, chain).standard_normal(2) for chain in range(3)]
    np.testing.assert_array_equal(points[0], TRUTH + sd * np.stack(draws))


def test_starts_around_a_centre_are_those_around_the_truth_moved():
    about = starts_by("around", centre=[0, 1], scale=0.5)
    assert about.shape == (2, 3, 2)
    np.testing.assert_allclose(about - [0, 1], starts_by("around_truth", scale=0.5) - TRUTH)
    assert len(np.unique(about)) == about.size


def test_starts_at_a_point_are_exactly_there():
    np.testing.assert_array_equal(starts_by("at_truth"), np.broadcast_to(TRUTH, (2, 3, 2)))
    np.testing.assert_array_equal(starts_by("at", centre=[0, 1]) - [0, 1], np.zeros((2, 3, 2)))


def test_starts_that_use_the_posterior_are_named_with_the_guarantee():
    """Those around a centre by a public scale use nothing of the rows."""
    named = "start points scaled by the exact posterior"
    for scale, expected in (("reference", True), (0.5, False)):
        problem = PROBLEM | {"start": {"rule": "around", "centre": [0, 3], "scale": scale}}
        result = run_chains(chain_settings(problem=problem, max_iterations=1), [0])[0]
        assert (named in result.guarantee.outside) == expected
    result = run_chains(chain_settings(max_iterations=1), [0])[0]
    assert (
        "start points around the truth, scaled by the exact posterior" in result.guarantee.outside
    )


def test_the_published_accountant_gives_a_guarantee_below_its_claim():
    """The rule of the public code is loose: what was run at epsilon 4 really has less."""
    result = fit("dp_sgld", accountant="poisson_pair", epsilon=4.0)
    assert result.guarantee.accountant == "subsampled"
    assert result.guarantee.epsilon < 3.9


@pytest.mark.parametrize("method", ["dp_penalty", "dp_hmc", "dp_sgld"])
def test_a_chain_job_holds_the_data_once(method, tmp_path, monkeypatch):
    """Reading and running allocate the rows plus 10 %, for two million rows of two columns.

    Planning is left out: its memory depends on the budget and not on the rows.
    """
    import tracemalloc

    from dpmc_papers.pipeline import store

    n = 2_000_000
    problem = {
        "name": "large",
        "data": {
            "name": "banana_rows",
            "params": {"num_rows": n, "theta": [0, 3], "variances": [20, 2.5], "curvature": 2},
        },
        "model": {
            "name": "banana",
            "params": {"curvature": 2, "variances": [20, 2.5], "prior_variance": 10},
        },
        "start": {"rule": "around_truth", "scale": 0.01},
    }
    params = {"dp_penalty": PENALTY, "dp_hmc": HMC, "dp_sgld": SGLD | {"max_stored": 10}}[method]
    settings = chain_settings(problem=problem, method=method, params=params, num_chains=1)
    store.write_dataset(tmp_path / "rows.parquet", problems.make_data(setups.problem(problem), 1))
    plan = fitting.allocate(
        registry.load("method", "dp_penalty"),
        registry.parameters(registry.load("method", "dp_penalty"), PENALTY),
        n, 1, None, 20.0, 1e-5, None, 10,
    )[0]  # fmt: skip
    if method != "dp_penalty":
        plan = None  # the ledger then records without a limit
    monkeypatch.setattr(fitting, "allocate", lambda *args: (plan, 10))
    reference = np.zeros((1, 2, 2))
    few = setups.problem(problem).with_data("large", {"num_rows": 100})
    small = problems.make_data(few, 1)
    list(chain_runs.run_chains(settings, small, reference, [0]))  # compile before measuring
    tracemalloc.start()
    try:
        dataset = store.read_dataset(tmp_path / "rows.parquet", chain_runs.row_order(settings))
        size = dataset.x.nbytes
        for _, result in chain_runs.run_chains(settings, dataset, reference, [0]):
            assert result.draws.shape[1] == 10
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.1 * size + 8e6  # what compiling the loop takes, whatever the rows
