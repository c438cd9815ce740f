"""Attacks on the last digits of noise: they break floating-point noise and not that on a grid.

The value to be released is 0 for one data set and 1 for the other. An attack is an event of the
output, and the pair of its frequencies a lower bound on epsilon. Confidence: a bound exceeds the
truth once in a million runs at most.
"""

import math

import numpy as np
import pytest
from scipy import stats

from dpmc.privacy import GaussianBudget, add_gaussian, add_laplace

pytestmark = pytest.mark.slow

LEVEL = 1e-6
RUNS = 20_000
MEANS = 0.0, 1.0
DELTA = 1e-6


def epsilon_bound(event, other, delta=0.0):
    """Return the epsilon that the frequencies of an event under two data sets prove."""
    hits, false = int(np.count_nonzero(event)), int(np.count_nonzero(other))
    least = stats.beta.ppf(LEVEL / 2, hits, RUNS - hits + 1) if hits else 0.0
    most = stats.beta.ppf(1 - LEVEL / 2, false + 1, RUNS - false)
    return math.log((least - delta) / most) if least > delta else -math.inf


def cannot_be(released, mean, scale):
    """Return where a release is not ``mean + scale * x`` for any Laplace number x of NumPy.

    These are logarithms of what is made from multiples of 2**-53. All multiples near the right
    one are tried.
    """
    x = (released - mean) / scale
    half = np.exp(-np.abs(x)) / 2
    nearest = np.rint(np.where(x < 0, half, 1 - half) * 2.0**53)
    reached = np.zeros(released.shape, dtype=bool)
    for shift in range(-20, 21):
        uniform = (nearest + shift) * 2.0**-53
        argument = np.where(x < 0, uniform + uniform, 2.0 - uniform - uniform)
        size = np.array([math.log(u) if u > 0 else -math.inf for u in argument])
        reached |= mean + scale * np.where(x < 0, size, -size) == released
    return ~reached


def floating_laplace(mean, scale):
    return mean + scale * np.random.default_rng().laplace(size=RUNS)


def test_laplace_numbers_of_floating_point_give_a_row_away_and_those_on_a_grid_do_not():
    """The claim is epsilon = 1."""
    scale = 1.0
    first, second = (cannot_be(floating_laplace(mean, scale), MEANS[1], scale) for mean in MEANS)
    assert epsilon_bound(first, second) > 5
    released = [add_laplace(np.full(RUNS, mean), scale, 1.0) for mean in MEANS]
    first, second = (cannot_be(one, MEANS[1], scale) for one in released)
    assert epsilon_bound(first, second) <= 1
    assert epsilon_bound(second, first) <= 1
    assert epsilon_bound(~first, ~second) <= 1


def low_bits(released, bits):
    """Return where a small number has digits below 2**-bits."""
    scaled = released * 2.0**bits
    return (np.abs(released) < 0.5) & (scaled != np.rint(scaled))


def test_trailing_zeros_of_floating_point_give_a_row_away_and_those_on_a_grid_do_not():
    """The claim is that of one Gaussian release with a noise multiplier of 1."""
    claim = GaussianBudget(1.0).guarantee(DELTA).epsilon
    rng = np.random.default_rng()
    first, second = (low_bits(mean + rng.standard_normal(RUNS), 53) for mean in MEANS)
    assert epsilon_bound(first, second, DELTA) > claim
    released = [add_gaussian(np.full(RUNS, mean), 1.0, 1.0) for mean in MEANS]
    for bits in range(1, 60):
        first, second = (low_bits(one, bits) for one in released)
        assert epsilon_bound(first, second, DELTA) <= claim
        assert epsilon_bound(second, first, DELTA) <= claim


def test_every_integer_of_the_grid_comes_from_either_row():
    """What comes of one row lies on the same grid as what comes of the other, all of it."""
    released = [add_laplace(np.full(RUNS, mean), 1.0, 1.0) for mean in MEANS]
    step = 2.0 ** (math.frexp(1.0)[1] - 1 - 24)
    for one in released:
        assert (one / step == np.rint(one / step)).all()
        odd = int(np.count_nonzero(one / step % 2))
        assert abs(odd - RUNS / 2) < 5.1 * math.sqrt(RUNS / 4)
