"""Records that are 1 with probability theta, else 0 [alparslan2023thesis, example 6]."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpmc.numerics.compiled import kept
from dpmc.statsel.types import Population
from dpmc.types import NoParams

Params = NoParams


@kept
def generate(theta: Any, z: Any) -> Any:
    """Return 1 where z > 1 - theta, else 0: distributed as 1[z < theta], and increasing in z."""
    return (z > 1.0 - theta) * 1.0


@kept
def log_density(x: Any, theta: Any) -> Any:
    """Return x log theta + (1 - x) log(1 - theta)."""
    return x * np.log(theta) + (1.0 - x) * np.log1p(-theta)


@kept
def score(x: Any, theta: Any) -> Any:
    """Return (x - theta) / (theta (1 - theta))."""
    return (x - theta) / (theta * (1.0 - theta))


def build(params: Params) -> Population:
    """Return the population."""
    unit = (0.0, 1.0)
    return Population("bernoulli", unit, unit, "unit", generate, log_density, score)
