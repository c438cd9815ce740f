"""Noisy gradient ascent from zero on features in [-1, 1], the average of its later half."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpmc import checks
from dpmc.privacy.budgets import GaussianBudget
from dpmc.privacy.ledger import Ledger
from dpmc.rng import stream
from dpmc.rows.vectors import clipped_mean
from dpmc.types import Budget
from dpmc_league.contest import LOGISTIC, SEEDED, Estimate, Table


@dataclass(frozen=True)
class Params:
    """What a user has to choose.

    Parameters
    ----------
    num_steps : int
    clip_bound : float
        Of the gradient of a row.
    rate : float
        Length of a step, over the largest that is stable whatever the rows.
    """

    num_steps: int = 100
    clip_bound: float = 1.0
    rate: float = 1.0

    def __post_init__(self) -> None:
        checks.at_least("num_steps", self.num_steps, 2)
        checks.positive("clip_bound", self.clip_bound)
        checks.positive("rate", self.rate)


def fit(
    tables: Sequence[Table], params: Params, budget: Budget, seeds: Sequence[int]
) -> list[Estimate]:
    """Fit each table."""
    return [_fit(table, params, budget, seed) for table, seed in zip(tables, seeds, strict=True)]


def _fit(table: Table, params: Params, budget: Budget, seed: int) -> Estimate:
    x, y, unit = table.ranged()
    design = np.column_stack([np.ones(len(x)), x])
    given = GaussianBudget.of(budget.epsilon, budget.delta)
    ledger = Ledger(given)
    multiplier = params.num_steps**0.5 / given.mu * (1 + 1e-12)
    rng = stream(seed, "league", "gradient ascent")
    logistic = table.family == LOGISTIC
    rate = params.rate * (4 if logistic else 1) / design.shape[1]
    theta, points = np.zeros(design.shape[1]), []
    for _ in range(params.num_steps):
        expected = design @ theta
        if logistic:
            expected = 1 / (1 + np.exp(-expected))
        gradient = clipped_mean(design * (y - expected)[:, None], params.clip_bound)
        theta = theta + rate * ledger.release(gradient, multiplier, rng)
        points.append(theta)
    slopes = np.mean(points[params.num_steps // 2 :], axis=0)[1:]
    guarantee = replace(given.guarantee(budget.delta), outside=(SEEDED,))
    return Estimate(slopes * unit, guarantee)
