"""Records U(-theta, theta) with an unknown width [alparslan2023thesis, example 5]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmc import checks
from dpmc.numerics.compiled import kept
from dpmc.statsel.types import Population


@dataclass(frozen=True)
class Params:
    """Where records lie.

    Parameters
    ----------
    bound : float
        A, finite and > 0: records are in [-A, A], and theta in (0, A].
    """

    bound: float

    def __post_init__(self) -> None:
        checks.positive("bound", self.bound)


@kept
def generate(theta: Any, z: Any) -> Any:
    """Return theta z."""
    return theta * z


@kept
def log_density(x: Any, theta: Any) -> Any:
    """Return -log(2 theta), or -inf where |x| > theta; scalars alone."""
    return -np.log(2.0 * theta) if abs(x) <= theta else -np.inf


def build(params: Params) -> Population:
    """Return the population, which has no score: its support moves with theta."""
    return Population(
        "uniform_width",
        (0.0, params.bound),
        (-params.bound, params.bound),
        "symmetric",
        generate,
        log_density,
        odd=True,
        closed_above=True,
    )
