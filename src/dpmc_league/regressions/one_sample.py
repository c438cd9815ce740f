"""One draw from the posterior of a logistic regression, sharpened no more than pure epsilon allows.

The exponential mechanism with the log-likelihood for its score [Wang, Fienberg and Smola 2015].
Features are in [-1, 1] and coefficients (constant, slopes) in a ball of radius R, so that the
log-likelihood of a row is within a range of 2 s = 2 R sqrt(p + 1) about its middle, at most s wide:
log(1 + e^s) - log(1 + e^-s) = s. A draw from the likelihood to the power epsilon / (2 s) is
epsilon-private. It is drawn by importance resampling of a Student law about the mode, whose error
no guarantee covers: [approximate sampling with noise on top, 2310.14661] would be farther.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpmc import checks
from dpmc.rng import stream
from dpmc.types import Array, Budget, DpmcError, Guarantee
from dpmc_league.contest import LOGISTIC, SEEDED, Estimate, Table

PROPOSALS, FREEDOM, STEPS = 1000, 5, 30
SAMPLER = "the error of a sampler"


@dataclass(frozen=True)
class Params:
    """What is assumed of the coefficients.

    Parameters
    ----------
    radius : float
        The largest norm of constant and slopes, of features in [-1, 1]; public.
    """

    radius: float = 4.0

    def __post_init__(self) -> None:
        checks.positive("radius", self.radius)


def fit(
    tables: Sequence[Table], params: Params, budget: Budget, seeds: Sequence[int]
) -> list[Estimate]:
    """Fit each table."""
    return [_fit(table, params, budget, seed) for table, seed in zip(tables, seeds, strict=True)]


def _fit(table: Table, params: Params, budget: Budget, seed: int) -> Estimate:
    if table.family != LOGISTIC:
        raise DpmcError(f"`family` must be {LOGISTIC}, got {table.family!r}")
    x, y, unit = table.ranged()
    design = np.column_stack([np.ones(len(x)), x])
    power = budget.epsilon / (2 * params.radius * math.sqrt(design.shape[1]))
    rng = stream(seed, "league", "one sample")
    theta = _draw(design, y, power, params.radius, rng)
    outside = (SEEDED, SAMPLER)
    return Estimate(
        theta[1:] * unit, Guarantee(budget.epsilon, 0.0, accountant="pure", outside=outside)
    )


def _draw(design: Array, y: Array, power: float, radius: float, rng: np.random.Generator) -> Array:
    """Draw from the likelihood to a power within the ball."""
    dim = design.shape[1]
    mode, curvature = np.zeros(dim), np.eye(dim)
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(-design @ mode))
        curvature = design.T @ ((chance * (1 - chance))[:, None] * design)
        mode = mode + np.linalg.solve(curvature, design.T @ (y - chance))
    factor = np.linalg.cholesky(np.linalg.inv(power * curvature))
    normal = rng.standard_normal((PROPOSALS, dim))
    normal /= np.sqrt(rng.chisquare(FREEDOM, PROPOSALS) / FREEDOM)[:, None]
    thetas = mode + normal @ factor.T
    expected = design @ thetas.T
    score = power * (y @ expected - np.logaddexp(0, expected).sum(axis=0))
    score += 0.5 * (FREEDOM + dim) * np.log1p(np.sum(normal**2, axis=1) / FREEDOM)
    score[np.linalg.norm(thetas, axis=1) > radius] = -math.inf
    if not np.isfinite(score).any():
        raise DpmcError("`radius` must hold the mode, got one that does not")
    weight = np.exp(score - score.max())
    drawn: Array = thetas[rng.choice(PROPOSALS, p=weight / weight.sum())]
    return drawn
