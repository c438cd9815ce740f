"""What clipping takes from a sum, predicted from noisy counts and directions of large rows."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import dpmc
from dpmc.automatic.tail import APART_EXCESS, LEAST_EXPONENT, POWER, Tail
from dpmc.models import linear
from dpmc.rng import stream

RATIO = 2**0.75
EYE = np.eye(3)
AXIS = np.array([0.0, 1.0, 0.0])


def seen(near: float, far: float, pull: np.ndarray, noise: float = 0.0, basis=EYE) -> Tail:
    return Tail.unknown(3, RATIO).seen(near, far, pull, noise, basis, 1.0)


@pytest.mark.parametrize("exponent", [2.0, 3.0, 5.0])
def test_the_excess_of_a_power_law_is_found(exponent):
    """Of a million rows; the limit is four standard errors of the widest excess."""
    rng = stream(0, "tail", int(exponent))
    lengths = rng.pareto(exponent, 1_000_000) + 1
    bound = float(np.sort(lengths)[-2000])
    near, far = (np.count_nonzero(lengths > bound / RATIO**k) for k in (1, 2))
    tail = seen(near, far, far * AXIS)
    exponential = (1 / RATIO - 1 / RATIO**2) / (exponent * np.log(RATIO))
    between = (exponent - 1) ** -POWER * exponential ** (1 - POWER)
    assert tail.excess == pytest.approx(between, rel=0.15)
    assert exponential < tail.excess < 1 / (exponent - 1)
    taken, apart = tail.taken(2000 * bound, EYE)
    np.testing.assert_allclose(taken, tail.excess * 2000 * bound * AXIS)
    assert apart == pytest.approx(0, abs=1e-6)


def test_the_direction_is_one_of_theta_whatever_the_basis():
    rng = stream(0, "tail", "basis")
    first, second = rng.standard_normal((2, 3, 3))
    pull = first.T @ [1.0, 2.0, -1.0]
    tail = seen(500.0, 1000.0, 750 * pull / np.linalg.norm(pull), basis=first)
    for basis in (first, second):
        taken, _ = tail.taken(2.0, basis)
        along = basis.T @ [1.0, 2.0, -1.0]
        np.testing.assert_allclose(taken / np.linalg.norm(taken), along / np.linalg.norm(along))
    assert np.linalg.norm(tail.taken(2.0, first)[0]) == pytest.approx(0.875 * 2.0 * tail.excess)


def test_a_direction_that_drowns_in_noise_is_none():
    tail = seen(50.0, 100.0, np.full(3, 50.0), noise=60.0)
    taken, apart = tail.taken(2.0, EYE)
    np.testing.assert_array_equal(taken, 0)
    assert apart == pytest.approx((2.0 * APART_EXCESS) ** 2 / 3)


def test_releases_are_averaged_by_their_cost():
    tail = Tail.unknown(3, RATIO)
    tail = tail.seen(10.0, 40.0, 6 * AXIS, 4.0, EYE, 1.0)
    tail = tail.seen(50.0, 80.0, 14 * AXIS, 4.0, EYE, 3.0)
    assert (tail.near, tail.far, tail.cost) == (40.0, 70.0, 4.0)
    np.testing.assert_allclose(tail.pull, 12 * AXIS)
    assert tail.noise == pytest.approx(np.hypot(1.0, 3.0))


@pytest.mark.parametrize(("near", "far"), [(-1e9, -1e9), (1e9, 50.0), (5.0, 1e30)])
def test_absurd_counts_give_an_excess_within_limits(near, far):
    excess = seen(near, far, np.zeros(3), 1.0).excess
    assert 0 < excess <= 1 / (LEAST_EXPONENT - 1)


def pulls() -> np.ndarray:
    """Return errors of log sigma in standard deviations of the fit, of five fits."""
    rng = stream(0, "tail", "residuals")
    x = rng.uniform(-1, 1, 6000)
    y = 0.5 * x + 0.3 * rng.standard_t(5, 6000)
    design = np.column_stack([np.ones(6000), x])
    residuals = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    exact = 0.5 * np.log(np.mean(residuals**2))
    found = []
    for seed in range(5):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dpmc.PosteriorWarning)
            fit = dpmc.fit(
                linear.build(linear.Params(1)),
                np.column_stack([x, y]),
                epsilon=4,
                delta=1e-6,
                num_draws=500,
                seed=seed,
            )
        draws = fit.draws[:, :, -1]
        found.append((draws.mean() - exact) / draws.std())
    return np.array(found)


def test_residuals_of_heavy_tails_do_not_hide_their_noise(monkeypatch):
    """Fixed seeds. Not all is known: fits of larger budgets see more of a tail."""
    assert abs(pulls().mean()) < 2.5
    # Without the tail the noise is underestimated by several deviations.
    monkeypatch.setattr(Tail, "taken", lambda self, clipped, basis: (np.zeros(3), 0.0))
    assert pulls().mean() < -3.5
