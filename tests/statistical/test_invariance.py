"""Each kernel leaves its target invariant; kernels broken on purpose do not.

The test is exact: chains that start from independent exact draws of the target are,
after any number of steps, independent exact draws again. In coordinates in which the
target is standard normal, each component is compared with it by a Kolmogorov-Smirnov test
and its sum of squares with the chi-square law, each at level 1e-7; with at most six tests
in each of forty cases the error rate of the file is below 3e-5. Every broken variant has
to fail at that same level.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from dpmc import registry
from dpmc.mcmc import barker_correction, moves, noisy_hmc
from dpmc.mcmc.batch_ratios import BatchRatios
from dpmc.mcmc.methods import dp_hmc
from dpmc.mcmc.posterior import Posterior
from dpmc.privacy.ledger import Ledger
from dpmc.rng import Streams, stream
from dpmc.types import Dataset
from tests.support import posteriors
from tests.support.clipped import less
from tests.support.posteriors import rows

pytestmark = pytest.mark.slow

# One model for all tests: its functions are compiled once.
gaussian_model = functools.cache(posteriors.gaussian_model)
banana_model = functools.cache(posteriors.banana_model)

LEVEL = 1e-7
CHAINS = 3000
ROWS = 40

# Clip bounds far above every ratio and gradient: the kernels are exact without clipping.
CASES = {
    "rwmh": ("rwmh", {"proposal_sd": 0.25}),
    "hmc": ("hmc", {"step_size": 0.2, "num_leapfrog_steps": 4, "jitter": "halton"}),
    "penalty": (
        "dp_penalty",
        {"proposal_sd": 0.3, "ratio_noise_multiplier": 0.03, "ratio_clip_bound": 60.0},
    ),
    "one_component": (
        "dp_penalty",
        {
            "proposal_sd": 0.25,
            "ratio_noise_multiplier": 0.03,
            "ratio_clip_bound": 60.0,
            "one_component": True,
        },
    ),
    "guided": (
        "dp_penalty",
        {
            "proposal_sd": 0.25,
            "ratio_noise_multiplier": 0.03,
            "ratio_clip_bound": 60.0,
            "guided": True,
        },
    ),
    "guided_one_component": (
        "dp_penalty",
        {
            "proposal_sd": 0.5,
            "ratio_noise_multiplier": 0.03,
            "ratio_clip_bound": 60.0,
            "guided": True,
            "one_component": True,
        },
    ),
    "fresh": (
        "dp_hmc",
        {
            "step_size": 0.15,
            "num_leapfrog_steps": 3,
            "ratio_noise_multiplier": 0.02,
            "gradient_noise_multiplier": 0.05,
            "gradient_clip_bound": 60.0,
            "ratio_clip_bound": 60.0,
        },
    ),
}
CASES["reused"] = ("dp_hmc", CASES["fresh"][1] | {"reuse_gradient": True})
LANGEVIN = {
    "step_size": 0.2,
    "ratio_noise_multiplier": 0.02,
    "gradient_noise_multiplier": 0.05,
    "gradient_clip_bound": 60.0,
    "ratio_clip_bound": 60.0,
}
CASES["langevin"] = ("dp_mala", LANGEVIN | {"reuse_gradient": False})
CASES["langevin_reused"] = ("dp_mala", LANGEVIN)
# Half of the rows in a batch, whose variance of 1 to 3 is estimated to within a few percent.
BATCH = {
    "proposal_sd": 0.05,
    "batch_size": 200,
    "ratio_noise_multiplier": 0.002,
    "ratio_clip_bound": 60.0,
    "finite_population": True,
}
CASES["batch"] = ("minibatch_penalty", BATCH)
CASES["batch_guided"] = (
    "minibatch_penalty",
    BATCH | {"guided": True, "one_component": True, "proposal_sd": 0.08},
)
# Clipped at 5 standard deviations of a row ratio, with a posterior as wide as a few moves.
CASES["barker"] = ("dp_barker", {"proposal_sd": 0.1, "batch_size": 200})
SIZES = {"batch": 400, "batch_guided": 400, "barker": 800}
TEMPERING = {"barker": 0.02}


# More noise, so that a fault in its correction shows within a few steps.
LOUD: dict[str, dict[str, float]] = {
    "penalty": {"ratio_noise_multiplier": 0.05},
    "guided": {"ratio_noise_multiplier": 0.05},
    "fresh": {"ratio_noise_multiplier": 0.08},
    "langevin": {"ratio_noise_multiplier": 0.08},
    "batch": {"ratio_noise_multiplier": 0.015},
    "barker": {},
}


class HalfNoise(Ledger):
    """A ledger that adds half of the noise that it records."""

    def release(self, clipped, noise_multiplier, rng, batch=None):
        return super().release(less(clipped), noise_multiplier, rng, batch)


def straight(model_name: str, draws: np.ndarray) -> np.ndarray:
    """Return coordinates in which the target is Gaussian."""
    out = draws.copy()
    if model_name == "banana":
        out[:, 1] += 1.5 * (draws[:, 0] + 0.1) ** 2 + 0.2
    return out


def p_values(
    case: str,
    model_name: str,
    steps: int,
    ledger: Callable[[], Ledger] = Ledger,
    params: dict | None = None,
) -> np.ndarray:
    """Return p-values of the last states against the target, two for each component."""
    tempering = TEMPERING.get(case, 1.0)
    banana = model_name == "banana"
    model = banana_model(3, tempering) if banana else gaussian_model(2, tempering)
    dataset = rows("invariance", SIZES.get(case, ROWS), model.dim)
    start = model.reference(dataset, CHAINS, stream(11, "start", case, model_name))
    method, values = CASES[case]
    module = registry.load("method", method)
    settings = registry.parameters(module, values | (params or {}))
    streams = [Streams.of(12, case, model_name, c) for c in range(CHAINS)]
    sampler = module.sampler(Posterior(model, dataset), settings)
    run = sampler(start, steps, streams, ledger())
    rate = run.totals["accepted"].sum() / run.totals["num_iterations"].sum()
    assert 0.1 < rate < 0.98, "a kernel that hardly moves or always accepts tests nothing"
    exact = straight(model_name, model.reference(dataset, 200_000, stream(13, "exact", model_name)))
    mean, sd = exact.mean(0), exact.std(0)
    last = (straight(model_name, run.draws[-1]) - mean) / sd
    squares = stats.chi2(CHAINS).cdf((last**2).sum(0))
    return np.array(
        [stats.kstest(column, "norm").pvalue for column in last.T]
        + [2 * min(tail, 1 - tail) for tail in squares]
    )


@pytest.mark.parametrize("model_name", ["gaussian", "banana"])
@pytest.mark.parametrize("case", CASES)
def test_target_is_invariant(case, model_name):
    assert (p_values(case, model_name, 6) > LEVEL).all()


@pytest.mark.parametrize("case", ["penalty", "guided", "fresh", "langevin", "batch"])
def test_without_the_penalty_it_is_not(case, monkeypatch):
    monkeypatch.setattr(moves, "penalty", lambda noise_std: 0.0)
    assert (p_values(case, "gaussian", 15, params=LOUD[case]) < LEVEL).any()


@pytest.mark.parametrize("case", ["penalty", "guided"])
def test_with_less_noise_than_recorded_it_is_not(case):
    assert (p_values(case, "gaussian", 25, HalfNoise, LOUD[case]) < LEVEL).any()


def test_without_the_variance_of_the_batch_it_is_not(monkeypatch):
    estimate = BatchRatios.estimate
    monkeypatch.setattr(
        BatchRatios, "estimate", lambda *args: estimate(*args)._replace(variance=0.0)
    )
    assert (p_values("batch", "gaussian", 15) < LEVEL).any()


def test_a_whole_logistic_draw_beside_the_noise_is_not_barker(monkeypatch):
    monkeypatch.setattr(barker_correction.Correction, "draw", lambda self, rng: rng.logistic())
    assert (p_values("barker", "gaussian", 15) < LEVEL).any()


@pytest.mark.parametrize("case", LOUD)
def test_with_that_much_noise_it_still_is(case):
    """The settings and numbers of steps under which the broken variants fail."""
    assert (p_values(case, "gaussian", 15, params=LOUD[case]) > LEVEL).all()


def gradient_p_values(monkeypatch: pytest.MonkeyPatch, case: str, broken: bool) -> np.ndarray:
    """Test the law of the kept noisy gradient given the position, after some steps.

    The chain with reuse leaves pi(theta) N(G; g(theta), s^2) invariant, so the kept
    gradient, less the true one at its position and over s, is standard normal.
    """
    model, dataset = gaussian_model(2, 1.0), rows("invariance", ROWS, 2)
    method, values = CASES[case]
    module = registry.load("method", method)
    ends: list[moves.Trajectory] = []
    name = "leapfrog" if method == "dp_hmc" else "langevin"
    propose = getattr(moves, name)

    def recording(*args):
        ends.append(propose(*args))
        return ends[-1]

    monkeypatch.setattr(noisy_hmc, "chain_sampler", lambda kernel: kernel)
    monkeypatch.setattr(moves, name, recording)
    posterior = Posterior(model, dataset)
    kernel = module.sampler(posterior, registry.parameters(module, values))
    start = model.reference(dataset, CHAINS, stream(11, "start", "gradient"))
    residuals = []
    for c in range(CHAINS):
        streams, ledger = Streams.of(14, "gradient", c), Ledger()
        state = kernel.init(start[c], 5, ledger, streams)
        for _ in range(5):
            state, info = kernel.step(state, ledger, streams)
            if broken and not info.accepted:
                state = state._replace(gradient=ends[-1].gradient)
        true, _ = posterior.sums.gradient(state.theta, np.inf)
        true += posterior.log_prior_gradient(state.theta)
        s = 2 * values["gradient_clip_bound"] * values["gradient_noise_multiplier"]
        residuals.append((state.gradient - true) / s)
    squares = stats.chi2(CHAINS).cdf((np.array(residuals) ** 2).sum(0))
    return np.array(
        [stats.kstest(column, "norm").pvalue for column in np.array(residuals).T]
        + [2 * min(tail, 1 - tail) for tail in squares]
    )


REUSED = ["reused", "langevin_reused"]


@pytest.mark.parametrize("case", REUSED)
def test_the_reused_gradient_keeps_its_law(monkeypatch, case):
    assert (gradient_p_values(monkeypatch, case, broken=False) > LEVEL).all()


@pytest.mark.parametrize("case", REUSED)
def test_keeping_the_new_gradient_after_a_rejection_breaks_it(monkeypatch, case):
    """The fault that the docstring of the kernel warns of."""
    assert (gradient_p_values(monkeypatch, case, broken=True) < LEVEL).any()


def test_a_langevin_ratio_with_the_drift_of_another_release_breaks_it(monkeypatch):
    """The fault that the docstring of dp_mala warns of: the drift at the end worked out anew."""
    langevin = moves.langevin

    def plain(theta, momentum, gradient, noisy, step_size, mass):
        end = langevin(theta, momentum, gradient, noisy, step_size, mass)
        another = noisy(end.theta)
        return end._replace(momentum=end.momentum + 0.5 * step_size * (another - end.gradient))

    monkeypatch.setattr(moves, "langevin", plain)
    assert (gradient_p_values(monkeypatch, "langevin_reused", broken=False) < LEVEL).any()


def test_penalty_without_noise_is_metropolis_hastings():
    """On the same stream, decision by decision; the noise is below rounding of the bound."""
    model, dataset = banana_model(3, 1.0), rows("same", 60, 3)
    start, k = np.array([[0.1, 0.2, 0.3]]), 400
    plain = registry.load("method", "rwmh")
    noisy = registry.load("method", "dp_penalty")
    a = plain.sampler(Posterior(model, dataset), plain.Params(0.3, ratio_clip_bound=0.8))
    b = noisy.sampler(Posterior(model, dataset), noisy.Params(0.3, 1e-13, ratio_clip_bound=0.8))
    one = a(start, k, [Streams.of(5, "same")], Ledger())
    two = b(start, k, [Streams.of(5, "same")], Ledger())
    np.testing.assert_array_equal(one.draws, two.draws)
    assert one.totals["ratio_clipped"].tolist() == two.totals["ratio_clipped"].tolist()
    assert 0.2 < one.totals["accepted"].sum() / k < 0.9


@pytest.mark.parametrize("reuse", [False, True])
def test_hmc_without_noise_has_the_exact_moments(reuse):
    """Mean and covariance of one long chain against the closed form, to 5 standard errors.

    The standard errors come from batch means; by the Student law of 50 batches the
    error rate of each of the five comparisons is below 1e-5.
    """
    model, dataset, k = gaussian_model(2, 1.0), rows("moments", 60, 2), 10_000
    params = dp_hmc.Params(0.25, 5, 1e-13, 1e-13, 1e3, 1e3, jitter="halton", reuse_gradient=reuse)
    sampler = dp_hmc.sampler(Posterior(model, dataset), params)
    draws = sampler(np.zeros((1, 2)), k, [Streams.of(6, "moments")], Ledger()).draws[:, 0]
    precision = np.linalg.inv(0.5 * np.eye(2) + 0.5)
    covariance = np.linalg.inv(60 * precision + np.eye(2) / 4)
    mean = covariance @ (60 * precision @ dataset.x.mean(0) + 0.3 / 4)
    centred = draws - mean
    products = [centred[:, 0], centred[:, 1]]
    products += [
        centred[:, i] * centred[:, j] - covariance[i, j] for i, j in ((0, 0), (0, 1), (1, 1))
    ]
    for product in products:
        batches = product.reshape(50, -1).mean(1)
        assert abs(batches.mean()) < 5 * batches.std(ddof=1) / np.sqrt(50)


def test_clipping_biases_a_skewed_posterior_and_is_counted():
    """Few clipped ratios shift the mean when the rows are skewed: exactness needs no clipping.

    The same kernel on the same rows, clipped and not, differs by more than 8 standard
    errors; unclipped it does not differ from the closed form by 5.
    """
    rng = stream(8, "skewed")
    x = rng.exponential(size=(400, 1)) - 1
    model = gaussian_model(1)
    module = registry.load("method", "rwmh")
    shifts, clipped = [], []
    exact_mean = 400 * x.mean() / (400 + 0.25) + 0.25 * 0.3 / (400 + 0.25)
    for bound in (None, 2.5):
        sampler = module.sampler(Posterior(model, Dataset("skewed", x)), module.Params(0.1, bound))
        run = sampler(np.zeros((1, 1)), 40_000, [Streams.of(9, "skewed", bound)], Ledger())
        batches = run.draws[:, 0, 0].reshape(50, -1).mean(1)
        error = batches.std(ddof=1) / np.sqrt(50)
        shifts.append((batches.mean() - exact_mean) / error)
        clipped.append(run.totals["ratio_clipped"].sum() / run.totals["ratio_rows"].sum())
    assert abs(shifts[0]) < 5
    assert clipped[0] == 0
    assert abs(shifts[1]) > 8
    assert 0 < clipped[1] < 0.1


def test_barker_that_clips_almost_all_samples_another_distribution():
    """Without tempering the bound is sqrt(b) / n: of skewed rows little more than signs is left.

    The mean of draws is then near the median of the rows, more than two deviations of the posterior
    and 8 standard errors away from where it should be.
    """
    x = stream(8, "skewed").exponential(size=(400, 1)) - 1
    module = registry.load("method", "dp_barker")
    posterior = Posterior(gaussian_model(1), Dataset("skewed", x))
    sampler = module.sampler(posterior, module.Params(0.2, 20))
    run = sampler(np.zeros((1, 1)), 40_000, [Streams.of(9, "barker")], Ledger())
    batches = run.draws[:, 0, 0].reshape(50, -1).mean(1)
    error = batches.std(ddof=1) / np.sqrt(50)
    shift = batches.mean() - (400 * x.mean() + 0.25 * 0.3) / 400.25
    assert shift < -max(8 * error, 2 / np.sqrt(400))
    assert run.totals["ratio_clipped"].sum() > 0.8 * run.totals["ratio_rows"].sum()
