"""Gaussian noise for a given (epsilon, delta), and the true epsilon of given noise.

A noise multiplier is the standard deviation of the noise over the sensitivity.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Literal, get_args

from dpmc import checks
from dpmc.privacy.accountants.gaussian import keeps
from dpmc.privacy.published_noise import published_multiplier
from dpmc.types import check_epsilon, check_epsilon_delta
from dpmc.types.gaussian_curve import affordable_mean_loss, delta_of_loss, epsilon_of_loss

Calibration = Literal["analytic", "published"]
CALIBRATIONS: tuple[Calibration, ...] = get_args(Calibration)

_ROUNDING = 1e-12  # the inverse of the accountant errs by less


def analytic_multiplier(epsilon: float, delta: float) -> float:
    """Least noise multiplier that is (epsilon, delta)-DP [Balle and Wang 2018].

    The privacy loss of a Gaussian release is N(mu, 2 mu) with mu = 1 / (2 sigma^2); the
    tight accountant gives the largest mu that the budget affords.

    Parameters
    ----------
    epsilon : float
        Finite and > 0.
    delta : float
        In (0, 1).

    Returns
    -------
    float
        At most 1e-9 (relative) above the least one, and never below: checked with many digits.
    """
    check_epsilon_delta(epsilon, delta)
    found = math.sqrt(0.5 / affordable_mean_loss(epsilon, delta)) * (1 + _ROUNDING)
    while not keeps(epsilon, delta, found):
        found *= 1 + 10 * _ROUNDING
    return found


@lru_cache(maxsize=256)
def multiplier(calibration: Calibration, epsilon: float, delta: float) -> float:
    """Noise multiplier of a calibration by name."""
    checks.one_of("calibration", calibration, CALIBRATIONS)
    rule = analytic_multiplier if calibration == "analytic" else published_multiplier
    return rule(epsilon, delta)


def true_epsilon(noise_multiplier: float, delta: float) -> float:
    """Epsilon that one Gaussian release really has.

    Parameters
    ----------
    noise_multiplier : float
        Finite and > 0.
    delta : float
        In (0, 1).

    Returns
    -------
    float
        At most 1e-7 (relative) too large; ``inf`` beyond 4e8.
    """
    checks.positive("noise_multiplier", noise_multiplier)
    return epsilon_of_loss(0.5 / noise_multiplier**2, delta)


def true_delta(noise_multiplier: float, epsilon: float) -> float:
    """Delta that one Gaussian release really has at `epsilon`."""
    checks.positive("noise_multiplier", noise_multiplier)
    check_epsilon(epsilon, zero=True)
    return delta_of_loss(0.5 / noise_multiplier**2, epsilon)
