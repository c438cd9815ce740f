"""What the methods of the thesis release, store and refuse."""

from __future__ import annotations

import numpy as np
import pytest

import dpmc
from dpmc import registry
from dpmc.mcmc.methods import dp_hmc, dp_mala, hmc, rwmh
from dpmc.mcmc.posterior import Posterior
from dpmc.privacy.calibration import Plan
from dpmc.privacy.ledger import Ledger
from dpmc.rng import Streams
from dpmc.types import Budget, DpmcError, Guarantee
from tests.support.posteriors import rows
from tests.support.running import PARAMS, START, START_3, banana_model, gaussian_model, run_method


def plan_of(method: str, num_iterations: int, num_chains: int) -> Plan:
    """Return a plan for 60 rows that no accountant was asked about."""
    module = registry.load("method", method)
    releases = module.releases(registry.parameters(module, PARAMS[method]), 60)
    budget = Budget(1.0, 1e-5, "none")
    return Plan(budget, releases, num_iterations, num_chains, Guarantee(1.0, 1e-5))


@pytest.mark.parametrize("method", PARAMS)
@pytest.mark.parametrize("num_chains", [1, 2])
def test_what_is_recorded_is_what_was_announced(method, num_chains):
    """Ledger, counts of rows and shapes of a run agree with its releases."""
    k, start = 23, np.tile(START, (num_chains, 1))
    plan = plan_of(method, k, num_chains)
    run, ledger = run_method(method, start=start, k=k, ledger=Ledger(plan))
    assert ledger.counts == plan.counts
    assert run.draws.shape == (k, num_chains, 2)
    assert run.totals["num_iterations"].tolist() == [k] * num_chains
    rows_per_ratio = PARAMS[method].get("batch_size", 60)
    assert run.totals["ratio_rows"].tolist() == [k * rows_per_ratio] * num_chains
    assert (run.totals["accepted"] == run.info["accepted"].sum(0)).all()
    assert ("gradient_rows" in run.totals) == ("gradient_clip_bound" in PARAMS[method])


@pytest.mark.parametrize("method", PARAMS)
def test_an_iteration_beyond_the_plan_is_refused(method):
    with pytest.raises(DpmcError, match=r"releases of .* must be at most .* by the plan"):
        run_method(method, k=24, ledger=Ledger(plan_of(method, 23, 1)))


@pytest.mark.parametrize(
    ("method", "accountant"),
    [("minibatch_penalty", "subsampled"), ("dp_mala", "gaussian")],
)
def test_a_fit_spends_what_its_plan_bought(method, accountant):
    """Two chains stopped at 30 iterations: the ledger is the plan, and within the budget."""
    loud = {"ratio_noise_multiplier": 50.0}
    loud["gradient_noise_multiplier"] = 50.0
    values = PARAMS[method] | {key: loud[key] for key in loud if key in PARAMS[method]}
    fit = dpmc.fit(
        gaussian_model(),
        rows("plan", 5000, 2),
        method=method,
        epsilon=3.0,
        delta=1e-5,
        accountant=accountant,
        max_iterations=30,
        num_chains=2,
        seed=1,
        progress=False,
        **values,
    )
    assert dict(fit.ledger) == fit.plan.releases
    assert fit.plan.num_iterations == 30
    assert fit.totals["num_iterations"].tolist() == [30, 30]
    assert fit.guarantee.epsilon <= 3.0
    assert fit.status == "complete"


@pytest.mark.parametrize(("reuse", "gradients"), [(False, 2), (True, 1)])
def test_langevin_releases_one_gradient_per_iteration_if_it_keeps_the_last(reuse, gradients):
    k = 17
    run, ledger = run_method("dp_mala", k=k, reuse_gradient=reuse)
    counts = dict(ledger.records())
    assert counts == {"gaussian(0.1)": k, "gaussian(0.2)": gradients * k + reuse}
    assert run.totals["gradient_rows"].tolist() == [gradients * k * 60]


@pytest.mark.parametrize("reuse", [False, True])
def test_stored_points_are_the_paths_of_the_same_chain(reuse):
    """Each path starts at the state before, and ends where an accepted proposal is."""
    k, steps = 40, 4
    values = {"num_leapfrog_steps": steps, "reuse_gradient": reuse, "step_size": 0.3}
    start = np.tile(START, (2, 1))
    states, _ = run_method("dp_hmc", start=start, k=k, **values)
    points, _ = run_method("dp_hmc", start=start, k=k, store="points", **values)
    assert points.draws.shape == (k * (steps + 1), 2, 2)
    paths = points.draws.reshape(k, steps + 1, 2, 2)
    before = np.concatenate([start[None], states.draws[:-1]])
    np.testing.assert_array_equal(paths[:, 0], before)
    accepted = states.info["accepted"][..., None]
    np.testing.assert_array_equal(np.where(accepted, paths[:, -1], before), states.draws)
    assert 0 < accepted.sum() < accepted.size
    for name, values in states.totals.items():
        np.testing.assert_array_equal(points.totals[name], values)
    for name, values in states.info.items():
        np.testing.assert_array_equal(points.info[name], np.repeat(values, steps + 1, axis=0))


def test_a_path_that_diverges_stays_where_it_was_last_finite():
    values = {"step_size": 1e60, "num_leapfrog_steps": 8, "jitter": "none", "store": "points"}
    run, _ = run_method("dp_hmc", banana_model(), start=START_3, k=5, **values)
    assert run.totals["diverged"].tolist() == [5]
    assert np.isfinite(run.draws).all()
    np.testing.assert_array_equal(run.draws.reshape(5, 9, 3)[:, 0], np.tile(START_3, (5, 1)))


@pytest.mark.parametrize("move_length", ["euclidean", "component_sum"])
@pytest.mark.parametrize("method", ["rwmh", "hmc"])
def test_clip_bounds_are_proportional_to_the_length_that_is_asked_for(
    monkeypatch, method, move_length
):
    posterior = Posterior(gaussian_model(), rows("methods", 60, 2))
    bounds = []
    plain = posterior.sums.ratio

    def recording(theta, theta_new, bound):
        move = theta_new - theta
        bounds.append((bound, np.linalg.norm(move), abs(move.sum())))
        return plain(theta, theta_new, bound)

    monkeypatch.setattr(posterior.sums, "ratio", recording)
    if method == "rwmh":
        sampler = rwmh.sampler(posterior, rwmh.Params(0.1, 1.5, move_length=move_length))
    else:
        params = hmc.Params(0.05, 3, ratio_clip_bound=1.5, move_length=move_length)
        sampler = hmc.sampler(posterior, params)
    sampler(START, 20, [Streams.of(2, "length")], Ledger())
    bound, norm, total = np.array(bounds).T
    np.testing.assert_allclose(bound, 1.5 * (norm if move_length == "euclidean" else total))
    assert np.abs(norm - total).max() > 1e-3


@pytest.mark.parametrize("reuse", [False, True])
@pytest.mark.parametrize("mass", [1.0, [0.5, 2.0], [[1.0, 0.3], [0.3, 0.8]]])
def test_langevin_is_one_leapfrog_step(reuse, mass):
    """The same decisions on the same streams, and positions that agree to rounding."""
    k, common = 200, {"reuse_gradient": reuse, "mass": mass}
    values = PARAMS["dp_mala"] | common
    posterior = Posterior(gaussian_model(2, 0.5), rows("methods", 60, 2))
    one = dp_mala.sampler(posterior, dp_mala.Params(**values))
    other = dp_hmc.sampler(posterior, dp_hmc.Params(**values, num_leapfrog_steps=1, jitter="none"))
    a, b = (s(START, k, [Streams.of(3, "langevin")], Ledger()) for s in (one, other))
    np.testing.assert_allclose(a.draws, b.draws, rtol=1e-9, atol=1e-12)
    assert a.info["accepted"].tolist() == b.info["accepted"].tolist()
    assert 0.1 < a.totals["accepted"][0] / k < 1


def test_stored_points_are_leapfrog_steps_that_run_backwards_too():
    """Without noise, points obey the symmetric recursion of the leapfrog, to rounding.

    theta_{j+1} - 2 theta_j + theta_{j-1} = eta^2 M^-1 g(theta_j) reads the same from
    either end; a path with the gradient of another point does not obey it.
    """
    eta, mass, steps, k = 0.2, np.array([0.5, 2.0]), 5, 20
    model, dataset = gaussian_model(), rows("methods", 60, 2)
    run, _ = run_method(
        "dp_hmc",
        model,
        dataset,
        k=k,
        step_size=eta,
        mass=mass.tolist(),
        num_leapfrog_steps=steps,
        jitter="none",
        store="points",
        ratio_noise_multiplier=1e-13,
        gradient_noise_multiplier=1e-13,
        gradient_clip_bound=1e3,
    )
    precision = np.linalg.inv(0.5 * np.eye(2) + 0.5)

    def force(theta):
        likelihood = (dataset.x.sum(0) - 60 * theta) @ precision
        return (likelihood + (0.3 - theta) / 4) / mass

    for path in run.draws[:, 0].reshape(k, steps + 1, 2):
        bend = path[2:] - 2 * path[1:-1] + path[:-2]
        expected = eta**2 * np.array([force(theta) for theta in path[1:-1]])
        np.testing.assert_allclose(bend, expected, rtol=1e-6, atol=1e-8)
        assert np.abs(bend - np.roll(expected, 1, axis=0)).max() > 1e-3


@pytest.mark.parametrize(
    ("method", "changes", "message"),
    [
        (
            "dp_barker",
            {"noise_variance": 0.0},
            r"`noise_variance` must be positive and below pi\^2/3 = 3.2899, the variance",
        ),
        (
            "dp_barker",
            {"noise_variance": 3.3},
            r"`noise_variance` must be positive and below pi\^2/3 = 3.2899, the variance",
        ),
        ("dp_barker", {"clip_scale": 0.0}, "`clip_scale` must be positive and finite, got 0.0"),
        (
            "dp_barker",
            {"clip_scale": 1.5},
            r"`clip_scale` must be below sqrt\(noise_variance\) = 1.414, got",
        ),
        (
            "dp_barker",
            {"clip_scale": 1.0, "noise_variance": 1.0},
            r"`clip_scale` must be below sqrt\(noise_variance\) = 1, got 1.0",
        ),
        ("dp_barker", {"batch_size": 0}, "`batch_size` must be an integer of at least 1, got 0"),
        (
            "dp_barker",
            {"proposal_sd": -1.0},
            "`proposal_sd` must be a positive number or a list of them, got -1.0",
        ),
        (
            "minibatch_penalty",
            {"batch_size": 2.5},
            "`batch_size` must be an integer, got 2.5",
        ),
        ("dp_mala", {"step_size": "1e-3"}, "`step_size` must be a number, got '1e-3'"),
        ("minibatch_penalty", {"variance_factor": 1}, "`variance_factor` must be 2 or 3, got 1"),
        (
            "minibatch_penalty",
            {"ratio_noise_multiplier": 0},
            "`ratio_noise_multiplier` must be positive and finite, got 0",
        ),
        ("minibatch_penalty", {"one_component": 2}, "`one_component` must be true or false, got 2"),
        (
            "minibatch_penalty",
            {"finite_population": "no"},
            "`finite_population` must be true or false, got 'no'",
        ),
        ("dp_mala", {"step_size": 0}, "`step_size` must be positive and finite, got 0"),
        ("dp_mala", {"jitter": "some"}, "`jitter` must be 'halton' or 'none', got 'some'"),
        (
            "dp_mala",
            {"num_leapfrog_steps": 2},
            "`num_leapfrog_steps` must be a parameter",
        ),
        ("dp_hmc", {"store": "all"}, "`store` must be 'states' or 'points', got 'all'"),
    ],
)
def test_parameters_out_of_range_are_refused(method, changes, message):
    module = registry.load("method", method)
    with pytest.raises(DpmcError, match=message):
        registry.parameters(module, PARAMS[method] | changes)


@pytest.mark.parametrize("module", [rwmh, hmc])
def test_an_unknown_length_is_refused(module):
    with pytest.raises(
        DpmcError, match="`move_length` must be 'euclidean' or 'component_sum', got 'max'"
    ):
        module.Params(0.1, 1, move_length="max")


def test_components_without_a_standard_deviation_are_refused():
    with pytest.raises(DpmcError, match="`proposal_sd` must have 1 or 2 entries, got 3"):
        run_method("minibatch_penalty", proposal_sd=[0.1, 0.2, 0.3])


def test_a_clip_bound_is_asked_for_where_the_model_has_none():
    with pytest.raises(
        DpmcError,
        match=r"`ratio_clip_bound` must be positive, got None \(model 'gaussian_mean' declares no",
    ):
        run_method("minibatch_penalty", ratio_clip_bound=None)
