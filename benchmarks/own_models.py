"""Models as users write them, for `dpmc.fit`: waiting times, and a curve."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import dpmc
from dpmc import priors
from dpmc.rng import stream
from dpmc.types import Array, Model
from real_tables import Rows

WAITING, CURVE = "waiting", "curve"
OWN = WAITING, CURVE
# Shape of gamma distributed waiting times whose variance is not that of exponential ones.
SHAPE = 0.5


def _waiting(p: Any, row: Any) -> Any:
    x, y = row
    eta = p.a + p.b * x
    return -eta - y * np.exp(-eta)


def _curve(p: Any, row: Any) -> Any:
    x, y = row
    return -np.log(p.sigma) - 0.5 * ((y - np.exp(p.a + p.b * x)) / p.sigma) ** 2


def model(family: str) -> Model:
    """Return a model with a feature and a response in each row."""
    coefficients = {name: priors.normal(0, 1) for name in "ab"}
    if family == WAITING:
        return dpmc.model(_waiting, coefficients, num_columns=2)
    return dpmc.model(_curve, coefficients | {"sigma": priors.half_normal(2)}, num_columns=2)


def drawn_own(family: str, right: bool, num_rows: int, seed: int) -> tuple[Rows, Array]:
    """Return rows, and theta that intervals should hold, NaN for what is not judged.

    One uniform feature. What a wrong model leaves out: a gamma distribution of shape `SHAPE`, which
    is twice as variable as the exponential one; deviations of errors that are four times larger at
    one end of the feature than at the other.
    """
    rng = stream(1, "coverage", family, right, num_rows, seed)
    x = rng.uniform(-1, 1, (num_rows, 1))
    theta = rng.normal(0, 0.5, 2)
    mean = np.exp(theta[0] + theta[1] * x[:, 0])
    if family == WAITING:
        shape = 1.0 if right else SHAPE
        y = mean * rng.gamma(shape, 1 / shape, num_rows)
    else:
        y = mean + 0.5 * (1.0 if right else 2 ** x[:, 0]) * rng.standard_normal(num_rows)
        theta = np.append(theta, math.nan)
    width = np.ones(1)
    nobody = (np.empty((0, 1)), np.empty(0))
    rows = Rows("own", family, True, x, y, *nobody, -width, width, (0, 1), ("x",))
    return rows, theta
