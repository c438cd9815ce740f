"""Records N(theta, 1) with an unknown mean [alparslan2023thesis, example 3]."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dpmc import checks
from dpmc.numerics.compiled import kept
from dpmc.statsel.types import Population

_LOG_SQRT_2_PI = 0.5 * math.log(2 * math.pi)


@dataclass(frozen=True)
class Params:
    """Where records lie.

    Parameters
    ----------
    bound : float
        A, finite and > 0.
    symmetric : bool
        Records are clipped to [-A, A] and theta is in (-A, A), else [0, A] and (0, A). An odd
        power has twice the sensitivity then.
    """

    bound: float
    symmetric: bool = False

    def __post_init__(self) -> None:
        checks.positive("bound", self.bound)


@kept
def generate(theta: Any, z: Any) -> Any:
    """Return theta + z."""
    return theta + z


@kept
def log_density(x: Any, theta: Any) -> Any:
    """Return log N(x; theta, 1)."""
    return -0.5 * (x - theta) * (x - theta) - _LOG_SQRT_2_PI


@kept
def score(x: Any, theta: Any) -> Any:
    """Return x - theta."""
    return x - theta


def build(params: Params) -> Population:
    """Return the population."""
    support = (-params.bound if params.symmetric else 0.0, params.bound)
    return Population("normal_mean", support, support, "normal", generate, log_density, score)
