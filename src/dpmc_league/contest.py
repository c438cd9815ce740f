"""Slopes of a regression under a budget, against those that the rows alone say.

A method of :mod:`dpmc_league.regressions` gets tables and returns slopes with standard deviations.
The posterior that it is compared with is normal, at the mode and with the curvature of the
likelihood: with at least 60 responses of either kind its mean is within a seventh of a standard
deviation of the exact one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from dpmc.types import Array, Guarantee

SEEDED = "a known seed"
LOGISTIC, LINEAR = "logistic", "linear"
STEPS, RIDGE = 40, 1e-6
NINETY = 1.6448536269514722


@dataclass(frozen=True, eq=False)
class Table:
    """Private rows of a regression, and what is public of them.

    Parameters
    ----------
    x : ndarray of shape (n, p)
    y : ndarray of shape (n,)
        0 and 1 where `family` is ``"logistic"``.
    person : ndarray of shape (n,)
        Whose row each is.
    per_person : int
        The most rows of a person, public.
    low, high : ndarray of shape (p + 1,)
        Public ranges of the features, and of a linear response. They hold all rows.
    family : {"linear", "logistic"}
    levels : tuple of ndarray, optional
        Public values that each feature has; without them it may have any.
    """

    x: Array
    y: Array
    person: Array
    per_person: int
    low: Array
    high: Array
    family: str
    levels: tuple[Array, ...] | None = None

    def ranged(self) -> tuple[Array, Array, Array]:
        """Features and responses in [-1, 1], and what slopes of those have to be multiplied by."""
        middle, half = (self.high + self.low) / 2, (self.high - self.low) / 2
        x = np.clip((self.x - middle[:-1]) / half[:-1], -1, 1)
        if self.family == LOGISTIC:
            return x, self.y, 1 / half[:-1]
        return x, np.clip((self.y - middle[-1]) / half[-1], -1, 1), half[-1] / half[:-1]


@dataclass(frozen=True, eq=False)
class Estimate:
    """What a method says of a table.

    Parameters
    ----------
    slopes : ndarray of shape (p,)
    guarantee : Guarantee
    sd : ndarray of shape (p,), optional
        Standard deviations that it states.
    """

    slopes: Array
    guarantee: Guarantee
    sd: Array | None = field(default=None)


class Exact(NamedTuple):
    """Slopes and standard deviations without privacy, each of shape (p,)."""

    slopes: Array
    sd: Array


class Scored(NamedTuple):
    """What an estimate is worth.

    Parameters
    ----------
    slope_error : float
        Root mean square error of the slopes in standard deviations of the posterior without
        privacy.
    against_nothing : float
        The same over that of slopes of zero: above 1 an estimate is worse than none.
    width_ratio : float
        Geometric mean of stated standard deviations over those without privacy; NaN without any.
    coverage_90 : float
        Share of the true slopes within 1.64 stated standard deviations; NaN without any.
    """

    slope_error: float
    against_nothing: float
    width_ratio: float
    coverage_90: float


def exact(table: Table) -> Exact:
    """Mode of the likelihood and its curvature, by Newton steps."""
    centre, scale = table.x.mean(axis=0), table.x.std(axis=0)
    design = np.column_stack([np.ones(len(table.x)), (table.x - centre) / scale])
    theta = np.zeros(design.shape[1])
    ridge = RIDGE * np.eye(len(theta))
    for _ in range(STEPS):
        if table.family == LOGISTIC:
            chance = 1 / (1 + np.exp(-design @ theta))
            weight, residual = chance * (1 - chance), table.y - chance
        else:
            weight, residual = np.ones(len(design)), table.y - design @ theta
        curvature = design.T @ (weight[:, None] * design) + ridge
        theta = theta + np.linalg.solve(curvature, design.T @ residual - RIDGE * theta)
    noise = 1.0 if table.family == LOGISTIC else math.sqrt(np.mean((table.y - design @ theta) ** 2))
    sd = noise * np.sqrt(np.diagonal(np.linalg.inv(curvature)))
    return Exact(theta[1:] / scale, sd[1:] / scale)


def score(estimate: Estimate, found: Exact, truth: Array) -> Scored:
    """Score an estimate by what the rows say, and its intervals by the truth."""
    error = _root_mean_square((estimate.slopes - found.slopes) / found.sd)
    nothing = _root_mean_square(found.slopes / found.sd)
    if estimate.sd is None:
        return Scored(error, error / nothing, math.nan, math.nan)
    width = float(np.exp(np.mean(np.log(estimate.sd / found.sd))))
    covered = np.abs(estimate.slopes - truth) <= NINETY * estimate.sd
    return Scored(error, error / nothing, width, float(np.mean(covered)))


def _root_mean_square(values: Array) -> float:
    return float(np.sqrt(np.mean(np.square(values))))
