"""Noise and its multipliers as the public code of the paper has them, faults included.

For the reproduction of published numbers. They are no privacy option: see
`dpmc.privacy.schedules.epsilon_of_blocks` for what the noise is worth.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.special import log_ndtr, ndtr

from dpmc import checks
from dpmc.privacy.accountants import _renyi
from dpmc.types import Array, DpmcError, check_delta, check_epsilon_delta

_GRID = 0.001  # of the public code
_GRID_END = 2.0  # where both arguments below are equal: every delta is crossed before


_LARGEST_ORDER = 256


def autodp_published_epsilon(
    noise_multiplier: float, delta: float, num_rows: int, num_releases: int
) -> float:
    """Epsilon of the accountant of the public code. It is no privacy option.

    The code composes 2 T N releases, one for each of two blocks, as if each drew a row of
    its own; and its steps do not draw rows independently. The bound itself, for releases
    that do, is the smaller of two at every integer order: that of the release without
    sampling, and Theorem 9 of Wang, Balle and Kasiviswanathan (2019) with terms
    ``2 q**j C(a, j) exp((j - 1) e(j))`` that do not vanish as the noise grows; converted
    by Mironov (2017), proposition 3. Without sampling every order > 2 is at hand.

    Parameters
    ----------
    noise_multiplier : float
    delta : float
    num_rows : int
        One over the sampling fraction.
    num_releases : int
        k, as the code counts them.
    """
    checks.positive("noise_multiplier", noise_multiplier)
    check_delta(delta)
    checks.at_least("num_rows", num_rows, 2)
    checks.at_least("num_releases", num_releases, 1)
    order = _renyi.orders(_LARGEST_ORDER)
    whole = order / (2 * noise_multiplier**2)
    smaller = np.minimum(whole, _renyi.amplified(1 / num_rows, whole))
    log_inverse = -math.log(delta)
    sampled = float(np.min(num_releases * smaller + log_inverse / (order - 1)))
    if noise_multiplier * math.sqrt(2 * log_inverse / num_releases) < 1:  # the best order < 2
        return sampled
    unsampled = num_releases / (2 * noise_multiplier**2)
    return min(sampled, unsampled + math.sqrt(2 * num_releases * log_inverse) / noise_multiplier)


def autodp_published(epsilon: float, delta: float, num_rows: int, num_releases: int) -> float:
    """Noise multiplier of the public code, for the reproduction of its numbers.

    It is no privacy option: see `autodp_published_epsilon`, and `epsilon_of_blocks` for what
    the noise is worth.

    Parameters
    ----------
    epsilon, delta : float
        What the code asks for: (1, 1e-5) for networks; for a mixture 4/5 of both for the
        means and 1/5 for the covariances.
    num_rows, num_releases : int
        See `autodp_published_epsilon`: 2 T N for networks, T N for each part of a mixture.
    """
    from scipy.optimize import brentq

    check_epsilon_delta(epsilon, delta)
    at = partial(
        autodp_published_epsilon, delta=delta, num_rows=num_rows, num_releases=num_releases
    )
    low = high = 1.0
    while at(high) > epsilon:
        high *= 2
    while at(low) <= epsilon:
        low /= 2
    return float(brentq(lambda sigma: at(sigma) - epsilon, low, high, xtol=1e-12, rtol=1e-12))


def published_multiplier(epsilon: float, delta: float) -> float:
    """Multiplier of the public code of the thesis, which is NOT (epsilon, delta)-DP.

    The code takes sqrt(epsilon) u for sqrt(epsilon u) in Algorithm 1 of [Balle and Wang
    2018] and stops on a grid. The difference of two normal probabilities then changes sign,
    so that delta hardly matters: 1.4866 at (1, 1/7655), where 3.1185 is needed. For the
    reproduction of published numbers only; `dpmc.privacy.gaussian_noise.true_epsilon` says what
    the noise is worth.

    Parameters
    ----------
    epsilon : float
        Finite and > 0.
    delta : float
        In (0, 1/2 - exp(epsilon) Phi(-2 sqrt(epsilon))), the branch of Algorithm 1 that
        small deltas take.
    """
    check_epsilon_delta(epsilon, delta)
    largest = 0.5 - math.exp(epsilon + float(log_ndtr(-2 * math.sqrt(epsilon))))
    if delta >= largest:
        raise DpmcError(
            f"`delta` must be below {largest:.6g} for calibration 'published', got {delta}"
        )
    u = np.arange(round(_GRID_END / _GRID) + 1) * _GRID
    first = ndtr(-math.sqrt(epsilon) * u)
    crossed = first - np.exp(epsilon + log_ndtr(-np.sqrt(epsilon * (u + 2)))) <= delta
    half = float(u[np.argmax(crossed)]) / 2
    return (math.sqrt(1 + half) + math.sqrt(half)) / math.sqrt(2 * epsilon)


def legacy_normals(
    rng: np.random.RandomState, num_steps: int, dim: int
) -> tuple[Array, Callable[[int], None]]:
    """Noise of one pass of the public code, and how to give back what it leaves.

    The guarantee of such noise is none: the seed of the generator is known.

    Parameters
    ----------
    rng : numpy.random.RandomState
    num_steps : int
        The most steps that add noise.
    dim : int
        Normals of one step.

    Returns
    -------
    (ndarray of shape (num_steps, dim), callable ``(int) -> None``)
        Standard normals; the function is passed how many steps added noise and leaves `rng`
        after the normals of those.
    """
    before = rng.get_state(legacy=False)
    normals = rng.standard_normal((num_steps, dim))

    def give_back(used: int) -> None:
        if used < num_steps:
            rng.set_state(before)
            rng.standard_normal(used * dim)

    return normals, give_back
