"""Simulated rows of regressions: rare outcomes, rare features, and variances that are wrong."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

import exact_regressions as regressions
from dpmc.families.regression import LINEAR, LOGISTIC, POISSON, STUDENT_T
from dpmc.rng import stream
from dpmc.types import Array
from exact_regressions import Prior
from real_tables import Rows

FEATURE = "feature"
# Shares of ones, means of counts, shares of rows with a binary feature.
RARE = [
    *((LOGISTIC, share) for share in (0.5, 0.3, 0.1, 0.03, 0.01)),
    *((POISSON, mean) for mean in (3.0, 0.3, 0.03)),
    *((FEATURE, share) for share in (0.1, 0.03, 0.01, 0.003)),
]
# Those that have a scale, for which nothing is rare: the share is not used.
SCALED = [(LINEAR, 1.0), (STUDENT_T, 1.0)]
# Points on each axis of a grid that stands for all rows.
GRID = 101
# What a model without a square leaves out.
BEND = 2.0


def _rows(family: str, x: Array, y: Array) -> Rows:
    width = np.ones(x.shape[1])
    nobody = (np.empty((0, x.shape[1])), np.empty(0))
    names = tuple(f"x{j + 1}" for j in range(x.shape[1]))
    return Rows("simulated", family, True, x, y, *nobody, -width, width, (0, 1), names)


def _chance(predictor: Array) -> Array:
    return 1 / (1 + np.exp(-predictor))


def _logit(share: float) -> float:
    return math.log(share / (1 - share))


@functools.lru_cache(maxsize=1)
def rare(kind: str, share: float, num_rows: int) -> Rows:
    """Return rows with one uniform feature and, if the kind is so, a rare binary one."""
    rng = stream(0, "rare", kind, share, num_rows)
    x = rng.uniform(-1, 1, (num_rows, 1))
    predictor = 0.5 * x[:, 0]
    if kind == POISSON:
        return _rows(POISSON, x, rng.poisson(share * np.exp(predictor)).astype(float))
    if kind in (LINEAR, STUDENT_T):
        noise = rng.standard_normal(num_rows) if kind == LINEAR else rng.standard_t(4, num_rows)
        return _rows(kind, x, predictor + noise)
    ones = share
    if kind == FEATURE:
        ones = 0.3
        x = np.column_stack([x, rng.random(num_rows) < share])
        predictor = predictor + x[:, 1]
    y = rng.random(num_rows) < _chance(_logit(ones) + predictor)
    return _rows(LOGISTIC, x, y.astype(float))


@functools.lru_cache(maxsize=1)
def drawn(family: str, right: bool, num_rows: int, seed: int) -> tuple[Rows, Array]:
    """Return rows, and theta that intervals should hold, NaN for what is not judged.

    Two uniform features with standard normal slopes. Logistic rows have a share of ones between 1
    and 50 % at the middle, counts a mean between 0.1 and 10. What a wrong model leaves out:
    deviations of errors that are four times larger at one end of a feature than at the other; a
    negative binomial distribution of dispersion 1; of a logistic regression, whose variance follows
    from its mean, the square of a feature: theta is then that of the nearest model.
    """
    rng = stream(1, "coverage", family, right, num_rows, seed)
    x = rng.uniform(-1, 1, (num_rows, 2))
    theta = rng.standard_normal(3)
    if family == LOGISTIC:
        theta[0] = _logit(math.exp(rng.uniform(math.log(0.01), math.log(0.5))))

        def chance(x: Array) -> Array:
            bend = 0.0 if right else BEND * (x[:, 0] ** 2 - 1 / 3)
            return _chance(theta[0] + x @ theta[1:] + bend)

        y = rng.random(num_rows) < chance(x)
        return _rows(family, x, y.astype(float)), theta if right else _nearest(chance)
    if family == POISSON:
        theta[0] = rng.uniform(math.log(0.1), math.log(10))
        rate = np.exp(theta[0] + x @ theta[1:])
        if not right:
            rate = rate * rng.exponential(1.0, num_rows)
        return _rows(family, x, rng.poisson(rate).astype(float)), theta
    noise = rng.standard_t(4, num_rows) if family == STUDENT_T else rng.standard_normal(num_rows)
    spread = 1.0 if right else 2 ** x[:, 0]
    y = theta[0] + x @ theta[1:] + spread * noise
    return _rows(family, x, y), np.append(theta, np.nan)


def _nearest(chance: Callable[[Array], Array]) -> Array:
    axis = (2 * np.arange(GRID) + 1) / GRID - 1
    x = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    design = np.column_stack([np.ones(len(x)), x])
    flat = Prior.fixed(LOGISTIC, 3, 1e6)
    return regressions.mode(LOGISTIC, design, chance(x), flat)[0]
