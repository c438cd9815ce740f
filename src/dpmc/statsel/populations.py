"""Distributions of one record; a new one is a function and an entry of ``TABLE``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpmc import checks
from dpmc.numerics.compiled import kept
from dpmc.statsel.types import Population

_LOG_SQRT_2_PI = 0.5 * math.log(2 * math.pi)


@kept
def _bit(theta: Any, z: Any) -> Any:
    """1 where z > 1 - theta, else 0: distributed as 1[z < theta], and increasing in z."""
    return (z > 1.0 - theta) * 1.0


@kept
def _log_of_bit(x: Any, theta: Any) -> Any:
    return x * np.log(theta) + (1.0 - x) * np.log1p(-theta)


@kept
def _score_of_bit(x: Any, theta: Any) -> Any:
    return (x - theta) / (theta * (1.0 - theta))


def bernoulli() -> Population:
    """Bits that are 1 with probability theta, else 0 [alparslan2023thesis, example 6]."""
    unit = (0.0, 1.0)
    return Population("bernoulli", unit, unit, "unit", _bit, _log_of_bit, _score_of_bit)


@kept
def _shifted(theta: Any, z: Any) -> Any:
    return theta + z


@kept
def _log_of_shifted(x: Any, theta: Any) -> Any:
    return -0.5 * (x - theta) * (x - theta) - _LOG_SQRT_2_PI


@kept
def _score_of_shifted(x: Any, theta: Any) -> Any:
    return x - theta


def normal_mean(bound: float, symmetric: bool = False) -> Population:
    """N(theta, 1) with an unknown mean [alparslan2023thesis, example 3].

    Parameters
    ----------
    bound : float
        A, finite and > 0.
    symmetric : bool
        Records are clipped to [-A, A] and theta is in (-A, A), else [0, A] and (0, A). An odd
        power has twice the sensitivity then.
    """
    checks.positive("bound", bound)
    support = (-bound if symmetric else 0.0, bound)
    return Population(
        "normal_mean", support, support, "normal", _shifted, _log_of_shifted, _score_of_shifted
    )


@kept
def _spread(theta: Any, z: Any) -> Any:
    return np.sqrt(theta) * z


@kept
def _log_of_spread(x: Any, theta: Any) -> Any:
    return -0.5 * (x * x / theta + np.log(theta)) - _LOG_SQRT_2_PI


@kept
def _score_of_spread(x: Any, theta: Any) -> Any:
    return (x * x / theta - 1.0) / (2.0 * theta)


def normal_variance(bound: float) -> Population:
    """N(0, theta) with an unknown variance [alparslan2023thesis, example 4].

    Parameters
    ----------
    bound : float
        A, finite and > 0: records are clipped to [-A, A].
    """
    checks.positive("bound", bound)
    return Population(
        "normal_variance",
        theta_domain=(0.0, math.inf),
        support=(-bound, bound),
        base="normal",
        generate=_spread,
        log_density=_log_of_spread,
        score=_score_of_spread,
        odd=True,
    )


@kept
def _widened(theta: Any, z: Any) -> Any:
    return theta * z


@kept
def _log_of_widened(x: Any, theta: Any) -> Any:
    """-log(2 theta), or -inf where |x| > theta; scalars alone."""
    return -np.log(2.0 * theta) if abs(x) <= theta else -np.inf


def uniform_width(bound: float) -> Population:
    """U(-theta, theta) with an unknown width [alparslan2023thesis, example 5].

    It has no score: its support moves with theta.

    Parameters
    ----------
    bound : float
        A, finite and > 0: records are in [-A, A], and theta in (0, A].
    """
    checks.positive("bound", bound)
    return Population(
        "uniform_width",
        theta_domain=(0.0, bound),
        support=(-bound, bound),
        base="symmetric",
        generate=_widened,
        log_density=_log_of_widened,
        odd=True,
        closed_above=True,
    )


TABLE = {
    "bernoulli": bernoulli,
    "normal_mean": normal_mean,
    "normal_variance": normal_variance,
    "uniform_width": uniform_width,
}
