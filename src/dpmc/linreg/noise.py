"""How much Gaussian noise (epsilon, delta) takes, and what noise is worth.

A noise multiplier is the standard deviation of the noise over the sensitivity.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
from scipy.special import log_ndtr, ndtr

from dpmc import checks
from dpmc.privacy import accounting
from dpmc.privacy.accountants.gaussian import affordable_mean_loss, log_delta
from dpmc.types import DpmcError, check_epsilon_delta

Calibration = Literal["analytic", "published"]
CALIBRATIONS: tuple[Calibration, ...] = get_args(Calibration)

_ROUNDING = 1e-12  # the inverse of the accountant errs by less
_GRID = 0.001  # of the public code
_GRID_END = 2.0  # where both arguments below are equal: every delta is crossed before


def analytic_multiplier(epsilon: float, delta: float) -> float:
    """Return the least noise multiplier that is (epsilon, delta)-DP [Balle and Wang 2018].

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
        At most 1e-11 (relative) above the least one.

    Raises
    ------
    DpmcError
        If epsilon or delta is out of range.
    """
    check_epsilon_delta(epsilon, delta)
    return math.sqrt(0.5 / affordable_mean_loss(epsilon, delta)) * (1 + _ROUNDING)


def published_multiplier(epsilon: float, delta: float) -> float:
    """Return the multiplier of the public code of the thesis, which is NOT (epsilon, delta)-DP.

    The code takes sqrt(epsilon) u for sqrt(epsilon u) in Algorithm 1 of [Balle and Wang
    2018] and stops on a grid. The difference of two normal probabilities then changes sign,
    so that delta hardly matters: 1.4866 at (1, 1/7655), where 3.1185 is needed. For the
    reproduction of published numbers only; `true_epsilon` tells what the noise is worth.

    Parameters
    ----------
    epsilon : float
        Finite and > 0.
    delta : float
        In (0, 1/2 - exp(epsilon) Phi(-2 sqrt(epsilon))), the branch of Algorithm 1 that
        small deltas take.

    Raises
    ------
    DpmcError
        If epsilon or delta is out of range.
    """
    check_epsilon_delta(epsilon, delta)
    largest = 0.5 - math.exp(epsilon + float(log_ndtr(-2 * math.sqrt(epsilon))))
    if delta >= largest:
        raise DpmcError(f"delta: {delta}, allowed below {largest:.6g} for calibration 'published'")
    u = np.arange(round(_GRID_END / _GRID) + 1) * _GRID
    first = ndtr(-math.sqrt(epsilon) * u)
    crossed = first - np.exp(epsilon + log_ndtr(-np.sqrt(epsilon * (u + 2)))) <= delta
    half = float(u[np.argmax(crossed)]) / 2
    return (math.sqrt(1 + half) + math.sqrt(half)) / math.sqrt(2 * epsilon)


@lru_cache(maxsize=256)
def multiplier(calibration: Calibration, epsilon: float, delta: float) -> float:
    """Return the noise multiplier of a calibration by name."""
    checks.one_of("calibration", calibration, CALIBRATIONS)
    rule = analytic_multiplier if calibration == "analytic" else published_multiplier
    return rule(epsilon, delta)


def true_epsilon(noise_multiplier: float, delta: float) -> float:
    """Return the epsilon that one Gaussian release really has.

    Parameters
    ----------
    noise_multiplier : float
        Finite and > 0.
    delta : float
        In (0, 1).

    Returns
    -------
    float
        At most 1e-7 (relative) too large; ``inf`` beyond 1e4.

    Raises
    ------
    DpmcError
        If an argument is out of range.
    """
    checks.positive("noise_multiplier", noise_multiplier)
    mean_loss = 0.5 / noise_multiplier**2
    return accounting.smallest_epsilon(lambda value: math.exp(log_delta(value, mean_loss)), delta)


def true_delta(noise_multiplier: float, epsilon: float) -> float:
    """Return the delta that one Gaussian release really has at `epsilon`.

    Raises
    ------
    DpmcError
        If the multiplier is not finite and > 0, or epsilon not finite and >= 0.
    """
    checks.positive("noise_multiplier", noise_multiplier)
    accounting.check_epsilon(epsilon)
    return math.exp(log_delta(epsilon, 0.5 / noise_multiplier**2))
