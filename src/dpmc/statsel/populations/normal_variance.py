"""Records N(0, theta) with an unknown variance [alparslan2023thesis, example 4]."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

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
        A, finite and > 0: records are clipped to [-A, A].
    """

    bound: float

    def __post_init__(self) -> None:
        checks.positive("bound", self.bound)


@kept
def generate(theta: Any, z: Any) -> Any:
    """Return sqrt(theta) z."""
    return np.sqrt(theta) * z


@kept
def log_density(x: Any, theta: Any) -> Any:
    """Return log N(x; 0, theta)."""
    return -0.5 * (x * x / theta + np.log(theta)) - _LOG_SQRT_2_PI


@kept
def score(x: Any, theta: Any) -> Any:
    """Return (x^2 / theta - 1) / (2 theta)."""
    return (x * x / theta - 1.0) / (2.0 * theta)


def build(params: Params) -> Population:
    """Return the population."""
    support = (-params.bound, params.bound)
    return Population(
        "normal_variance",
        (0.0, math.inf),
        support,
        "normal",
        generate,
        log_density,
        score,
        odd=True,
    )
