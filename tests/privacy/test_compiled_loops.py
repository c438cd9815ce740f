"""The noise of loops that are compiled, as their states show it: of its size, each number once.

Rows contribute next to nothing beside it, or the same to two runs whose noise alone differs.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np
import pytest

import dpmc
from dpmc.ep.mixture import engine as mixture_engine
from dpmc.ep.mixture.model import MixtureModel
from dpmc.ep.mixture.settings import MixtureSettings
from dpmc.ep.network import engine as network_engine
from dpmc.ep.network import variants
from dpmc.mcmc.methods import dp_sgld
from dpmc.mcmc.posterior import Posterior
from dpmc.mcmc.stochastic_gradient import BLOCK
from dpmc.privacy import discrete, events, single_releases
from dpmc.privacy.clipped import BarkerRatio
from dpmc.privacy.ledger import Ledger
from dpmc.rng import Streams
from tests.support.posteriors import gaussian_model, rows

pytestmark = pytest.mark.filterwarnings("ignore")
# Means of many independent terms are within so many standard deviations: one failure in 1e6 runs.
FAR = 5.0


def unit(noise: np.ndarray) -> bool:
    """Return whether numbers have the mean square of standard normal ones."""
    return bool(abs(np.mean(noise**2) - 1) < FAR * math.sqrt(2 / noise.size))


def unlike(one: np.ndarray, other: np.ndarray) -> bool:
    """Return whether two arrays of standard normal numbers are not correlated."""
    return bool(abs(np.mean(one * other)) < FAR / math.sqrt(one.size))


# --- Langevin dynamics -----------------------------------------------------------------------


def test_each_step_of_langevin_dynamics_has_noise_of_its_own():
    data = rows("loops", 50, 2)
    params = dp_sgld.Params(10, 1e-9, 1e-4, max_stored=10**6)
    number = 4 * BLOCK
    sampler = dp_sgld.sampler(Posterior(gaussian_model(), data), params)
    ledger = Ledger()
    run = sampler(np.zeros((1, 2)), number, [Streams.of(None, "loops")], ledger)
    batches = dp_sgld.batches(params, 50)
    states = np.vstack([np.zeros((1, 2)), run.draws[:, 0]])
    prior = np.array([gaussian_model().log_prior_gradient(theta) for theta in states[:-1]])
    added = np.diff(states, axis=0) - batches.step * prior
    ((event, count),) = ledger.counts.items()
    charged = event.event.noise_multiplier * batches.sensitivity
    noise = added / charged
    assert count == number
    assert unit(noise)
    assert unlike(noise[:, 0], noise[:, 1])
    for lag in (1, 2, BLOCK, 2 * BLOCK):
        assert unlike(noise[lag:], noise[:-lag])
    largest = max(np.unique(noise, return_counts=True)[1])
    assert largest == 1


# --- mixtures --------------------------------------------------------------------------------

STEP, LOUD = 0.5, 1e6
MIXTURE = MixtureModel.isotropic(1.0, np.zeros((2, 4)), 1.0)


def mixture_state(num_passes: int, seed: int, order: str) -> tuple[np.ndarray, Ledger]:
    settings = MixtureSettings(
        num_passes=num_passes,
        step=STEP,
        clip="joint",
        clip_bound=1.0,
        noise_multiplier=LOUD,
        order=order,
        repair="noise",
    )
    ledger, rng = Ledger(), np.random.default_rng(seed)
    fit = mixture_engine.fit(np.full((1, 4), 3.0), MIXTURE, settings, rng, ledger=ledger)
    assert fit.status == "complete"
    return np.ravel(fit.h), ledger


@pytest.mark.parametrize("order", ["independent", "permutation"])
def test_each_pass_over_a_mixture_has_noise_of_its_own(order):
    noise = []
    for seed in range(12):
        states = [np.zeros(8)] + [mixture_state(k, seed, order)[0] for k in range(1, 7)]
        noise.append([b - (1 - STEP) * a for a, b in itertools.pairwise(states)])
    passed = np.array(noise) / (2 * STEP * LOUD)
    assert unit(passed)
    for lag in (1, 2, 3):
        assert unlike(passed[:, lag:], passed[:, :-lag])
        assert unlike(passed[..., lag:], passed[..., :-lag])
    _, ledger = mixture_state(6, 0, order)
    ((event, count),) = ledger.counts.items()
    assert events.noise_of(event) == (LOUD, 1.0)
    assert count == 6


# --- networks --------------------------------------------------------------------------------


def network_state(multiplier: float, num_passes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return shifts of the weights, and shape and rate of the noise precision."""
    settings = variants.private(2, num_passes, 1.0, multiplier, None, step=STEP)
    fit = network_engine.fit(
        np.ones((1, 2)), np.ones(1), settings, np.random.default_rng(seed), ledger=Ledger()
    )
    shift = [np.ravel(m / v) for m, v in zip(fit.means, fit.variances, strict=True)]
    return np.concatenate(shift), np.array(fit.noise_gamma)


def test_each_coordinate_of_a_step_of_a_network_has_noise_gamma_among_them():
    """Runs whose multipliers are z and 2 z differ by the noise of z, where no floor holds."""
    settings = variants.private(2, 1, 1.0, LOUD, None, step=STEP)
    sd = settings.sensitivity * LOUD
    shifts, gammas, later = [], [], []
    for seed in range(150):
        one, two = network_state(LOUD, 1, seed), network_state(2 * LOUD, 1, seed)
        shifts.append((two[0] - one[0]) / sd)
        gammas.append((two[1] - one[1]) / sd)
        if seed < 60:
            pair = network_state(LOUD, 2, seed)[0], network_state(2 * LOUD, 2, seed)[0]
            later.append((pair[1] - pair[0]) / sd)
    shift, gamma = np.array(shifts), np.array(gammas)
    assert unit(shift)
    assert unlike(shift[:, 1:], shift[:, :-1])
    # Below the prior a floor holds: what is seen is the upper half of the noise.
    for of_one in gamma.T:
        upper = of_one[of_one > 0]
        assert abs(upper.size / of_one.size - 0.5) < FAR * 0.5 / math.sqrt(of_one.size)
        assert unit(upper)
    assert not np.isclose(gamma[gamma > 0], np.abs(shift).max(axis=1).min()).all()
    both = (gamma > 0).all(axis=1)
    assert abs(np.mean(both) - 0.25) < FAR * math.sqrt(0.25 * 0.75 / len(both))
    # A second step leaves a part of the first, and has noise of its own.
    second = np.array(later) - (1 - STEP) * shift[:60]
    assert unit(second)
    assert unlike(second, shift[:60])


# --- what one row moves -----------------------------------------------------------------------


def mixture_step(row: float) -> np.ndarray:
    settings = MixtureSettings(
        num_passes=1, step=STEP, clip="joint", clip_bound=0.1, noise_multiplier=1e-9, repair="noise"
    )
    start = np.random.default_rng(1)
    one = MixtureModel.isotropic(1.0, np.zeros((1, 4)), 1.0)
    return np.ravel(mixture_engine.fit(np.full((1, 4), row), one, settings, start).h)


def network_step(target: float) -> np.ndarray:
    settings = variants.private(2, 1, 0.1, 1e-9, None, step=STEP)
    start = np.random.default_rng(1)
    fit = network_engine.fit(np.ones((1, 2)), np.array([target]), settings, start)
    shift = [np.ravel(m / v) for m, v in zip(fit.means, fit.variances, strict=True)]
    return np.concatenate([*shift, fit.noise_gamma])


def test_a_row_whose_residual_is_large_moves_the_noise_precision_within_the_same_bound():
    """Its part of a factor is clipped together with those of the weights, as one vector."""
    plain = network_step(0.0)
    for far in (5.0, 20.0, 1e3):
        assert np.linalg.norm(network_step(far) - plain) / (2 * STEP * 0.1) <= 1 + 1e-6


@pytest.mark.parametrize(("step", "far"), [(mixture_step, 1e6), (network_step, 2.0)])
def test_a_row_moves_a_step_by_no_more_than_twice_the_bound_and_some_do_by_most_of_it(step, far):
    moved = float(np.linalg.norm(step(far) - step(-far)))
    assert 0.6 < moved / (2 * STEP * 0.1) <= 1 + 1e-6


# --- mixtures and networks as they are called ----------------------------------------------


def call_mixture(seed: int | None) -> Any:
    return dpmc.mixture(
        rows("loops", 30, 1).x,
        MixtureModel.isotropic(1.0, [[-1.0], [1.0]], 0.1),
        epsilon=4,
        delta=1e-4,
        num_passes=2,
        clip_bound=1.0,
        num_chains=1,
        num_draws=20,
        seed=seed,
        progress=False,
    )


def call_network(seed: int | None) -> Any:
    x = rows("loops", 30, 1).x
    return dpmc.network(
        x,
        np.sin(x[:, 0]),
        epsilon=4,
        delta=1e-4,
        x_range=(-3, 3),
        y_range=(-1, 1),
        hidden=2,
        num_passes=2,
        num_chains=1,
        num_draws=20,
        seed=seed,
        progress=False,
    )


@pytest.mark.parametrize(
    ("engine", "call", "released"),
    [
        (mixture_engine, call_mixture, lambda fit: np.ravel(fit.h)),
        (network_engine, call_network, lambda fit: np.array(fit.noise_gamma)),
    ],
)
def test_two_calls_without_a_seed_release_other_numbers(engine, call, released, monkeypatch):
    found = []
    fit = engine.fit

    @functools.wraps(fit)
    def fitting(*arguments, **more):
        found.append(fit(*arguments, **more))
        return found[-1]

    monkeypatch.setattr(engine, "fit", fitting)
    outside = [call(seed).guarantee.outside for seed in (None, None, 0, 0)]
    first, second, third, fourth = map(released, found)
    assert (first != second).any()
    assert (third == fourth).all()
    assert (first != third).any()
    named = [any("seed" in text for text in one) for one in outside]
    assert named == [False, False, True, True]


# --- the grid of discrete noise ---------------------------------------------------------------


@pytest.fixture
def grids(monkeypatch) -> list[tuple[float, float]]:
    """Return the scales and grids of the noise that is drawn."""
    seen: list[tuple[float, float]] = []
    scale = discrete._scale

    def seeing(noise_scale, grid):
        seen.append((noise_scale, grid))
        return scale(noise_scale, grid)

    monkeypatch.setattr(discrete, "_scale", seeing)
    return seen


def test_the_grid_of_barker_does_not_tell_the_variance_of_the_batch(grids):
    event = events.barker(2.0, 1.41, 50, 1000)
    ledger, rng = Ledger(noise="discrete"), np.random.default_rng()
    for variance in (0.0, 1.0, 1.41**2):
        ledger.release_barker(BarkerRatio(0.1, variance, event), rng)
    scales, steps = zip(*grids, strict=True)
    assert len(set(steps)) == 1
    expected = [math.sqrt(2.0 - variance) for variance in (0.0, 1.0, 1.41**2)]
    np.testing.assert_allclose(scales, expected, rtol=1e-8)


def test_the_grid_of_smooth_sensitivity_does_not_tell_the_scale(grids):
    for scale in (1e-6, 1e-3, 1.0):
        single_releases.smooth_laplace(0.3, scale, 2.0, np.random.default_rng(), "discrete")
    scales, steps = zip(*grids, strict=True)
    assert len(set(steps)) == 1
    np.testing.assert_allclose(scales, (1e-6, 1e-3, 1.0), rtol=1e-8)


def test_discrete_noise_covers_the_rounding_of_what_it_is_added_to(grids):
    """Too little for any audit to see: the scale itself is compared."""
    rng = np.random.default_rng()
    single_releases.laplace(0.3, 2.0, rng, "discrete", 0.25)
    single_releases.gaussian(0.3, 2.0, 3.0, rng, Ledger(), "discrete", 0.25)
    expected = [2.0 * 1.25 * (1 + discrete.SLACK), 2.0 * 3.0 * 1.25 * (1 + discrete.SLACK)]
    np.testing.assert_allclose([scale for scale, _ in grids], expected, rtol=1e-14)
    step = 2.0**-20
    more = discrete.on_grid(1.0, step, 9) - (1 + discrete.SLACK)
    assert more == pytest.approx(3 * step, rel=1e-9)
