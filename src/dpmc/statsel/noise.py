"""Noise scales, guarantees and densities shared by several mechanisms."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dpmc import checks
from dpmc.numerics.compiled import kept
from dpmc.privacy.accountants.gaussian import delta_of_loss, epsilon_of_loss
from dpmc.types import NO_GUARANTEE, DpmcError, Guarantee, check_epsilon

_LOG_SQRT_2_PI = 0.5 * math.log(2 * math.pi)


def of_mean(sensitivity: float, n: int, epsilon: float) -> float:
    """Return D / (n epsilon), the scale of noise on the mean of n records."""
    checks.at_least("n", int(n), 1)
    return of_record(sensitivity, n, epsilon) / n


def of_record(sensitivity: float, n: int, epsilon: float) -> float:
    """Return D / epsilon, the scale of noise on one record.

    Raises
    ------
    DpmcError
        If the sensitivity is not finite and >= 0, or epsilon not > 0.
    """
    if not 0 <= sensitivity < math.inf:
        raise DpmcError(f"`sensitivity` must be finite and >= 0, got {sensitivity}")
    check_epsilon(epsilon, infinite=True)
    return sensitivity / epsilon


def gaussian_guarantee(epsilon: float, delta: float | None = None) -> Guarantee:
    """Return what a release that is epsilon-GDP has [dong2022, corollary 2.13].

    Parameters
    ----------
    epsilon : float
        mu, the sensitivity over the standard deviation of the noise.
    delta : float, optional
        Where to give epsilon; without it, delta at this very epsilon, 0.127 at 1.

    Returns
    -------
    Guarantee
        None at epsilon = inf.

    Raises
    ------
    DpmcError
        If epsilon or delta is out of range.
    """
    if math.isinf(epsilon) and epsilon > 0:
        return NO_GUARANTEE
    check_epsilon(epsilon)
    mean_loss = epsilon**2 / 2
    if delta is None:
        return Guarantee(epsilon, delta_of_loss(mean_loss, epsilon), "replace", "gaussian")
    return Guarantee(epsilon_of_loss(mean_loss, delta), delta, "replace", "gaussian")


def pure_guarantee(name: str) -> Callable[..., Guarantee]:
    """Return the guarantee of an epsilon-DP mechanism, as a function of epsilon.

    Parameters
    ----------
    name : str
        What proves it.
    """

    def guarantee(epsilon: float, delta: float | None = None) -> Guarantee:
        if math.isinf(epsilon) and epsilon > 0:
            return NO_GUARANTEE
        check_epsilon(epsilon)
        return Guarantee(epsilon, 0.0, "replace", name)

    return guarantee


@kept
def gaussian_log_density(v: Any, scale: Any) -> Any:
    """Return log N(v; 0, scale^2)."""
    r = v / scale
    return -0.5 * r * r - np.log(scale) - _LOG_SQRT_2_PI


@kept
def laplace_log_density(v: Any, scale: Any) -> Any:
    """Return -|v| / scale - log(2 scale): the thesis prints neither factor right [def. 8]."""
    return -np.abs(v) / scale - np.log(2.0 * scale)
