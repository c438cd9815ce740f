"""The tight bound for compositions of Gaussian releases with different noise."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dpmc.privacy import accounting
from dpmc.privacy.accountants._whole import mean_loss
from dpmc.types import check_epsilon
from dpmc.types.gaussian_curve import (
    affordable_mean_loss,
    delta_of_loss,
    epsilon_of_loss,
    log_delta,
)

if TYPE_CHECKING:
    from dpmc.privacy.events import Counts, Releases
    from dpmc.types import Budget

UPPER_BOUND = True
REMARK = (
    "tight for adaptive compositions of Gaussian releases whose sensitivity bound is attained; "
    "releases computed from a batch are refused"
)


def keeps(epsilon: float, delta: float, noise_multiplier: float) -> bool:
    """Whether one release has at most `delta` at `epsilon`, to as many digits as it takes.

    Parameters
    ----------
    epsilon : float
        At least `LEAST_EPSILON`.
    delta : float
        In (0, 1).
    noise_multiplier : float
        Finite and > 0.
    """
    import mpmath

    # The two terms agree in about as many digits as the multiplier has before its point.
    digits = 40 + 2 * max(0, math.frexp(noise_multiplier)[1])
    with mpmath.workdps(digits):
        s = 1 / mpmath.mpf(noise_multiplier)
        near, far = epsilon / s - s / 2, epsilon / s + s / 2
        upper = mpmath.erfc(near / mpmath.sqrt(2))
        lower = mpmath.exp(mpmath.mpf(epsilon)) * mpmath.erfc(far / mpmath.sqrt(2))
        return bool(upper - lower <= 2 * mpmath.mpf(delta))


def delta(counts: Counts, epsilon: float) -> float:
    """Smallest delta at `epsilon` (raisa2021dphmc, theorem 2.4)."""
    check_epsilon(epsilon, zero=True)
    return delta_of_loss(mean_loss(counts), epsilon)


def epsilon(counts: Counts, delta: float) -> float:
    """Smallest epsilon at `delta`, at most 1e-7 (relative) too large."""
    return epsilon_of_loss(mean_loss(counts), delta)


def max_iterations(releases: Releases, budget: Budget, num_chains: int) -> int:
    """Largest number of iterations per chain, by division.

    The initial releases are paid first; what is left of mu* is divided by the
    cost of one iteration.
    """
    target = math.log(budget.delta)

    def within(num_iterations: int) -> bool:
        mu = mean_loss(releases.counts(num_iterations, num_chains))
        return log_delta(budget.epsilon, mu) <= target

    initial = mean_loss(releases.counts(0, num_chains))
    cost = mean_loss(releases.counts(1, num_chains)) - initial
    left = affordable_mean_loss(budget.epsilon, budget.delta) - initial
    return accounting.settle(left / cost, within)
