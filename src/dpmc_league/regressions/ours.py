"""`dpmc.regression`, which is told no range: for one row, for a person, or for so many rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np

import dpmc
from dpmc import checks
from dpmc.privacy.budgets import GaussianBudget
from dpmc.types import Budget, Guarantee, Neighbours
from dpmc_league.contest import LINEAR, Estimate, Table

UNITS = ("row", "person", "rows")


@dataclass(frozen=True)
class Params:
    """Whose data are protected.

    Parameters
    ----------
    neighbours : {"replace", "add_remove"}
    unit : {"row", "person", "rows"}
        ``"person"`` by the sums of persons; ``"rows"`` by a smaller budget for a row, such that all
        rows of a person together have the budget.
    """

    neighbours: Neighbours = "replace"
    unit: str = "row"

    def __post_init__(self) -> None:
        checks.one_of("neighbours", self.neighbours, get_args(Neighbours))
        checks.one_of("unit", self.unit, UNITS)


def fit(
    tables: Sequence[Table], params: Params, budget: Budget, seeds: Sequence[int]
) -> list[Estimate]:
    """Fit each table."""
    return [_fit(table, params, budget, seed) for table, seed in zip(tables, seeds, strict=True)]


def _fit(table: Table, params: Params, budget: Budget, seed: int) -> Estimate:
    epsilon = budget.epsilon
    if params.unit == "rows":
        mu = GaussianBudget.of(epsilon, budget.delta).mu / table.per_person
        epsilon = GaussianBudget(mu).guarantee(budget.delta).epsilon
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # remarks that a budget is small
        found = dpmc.regression(
            table.x,
            table.y,
            likelihood=table.family,
            epsilon=epsilon,
            delta=budget.delta,
            neighbours=params.neighbours,
            unit=table.person if params.unit == "person" else None,
            seed=seed,
            progress=False,
        )
    draws = found.kept().reshape(-1, len(found.names))
    slopes = slice(1, -1 if table.family == LINEAR else None)
    guarantee: Guarantee = found.guarantee
    if params.unit == "rows":
        guarantee = replace(guarantee, epsilon=budget.epsilon, unit="person")
    return Estimate(np.mean(draws[:, slopes], axis=0), guarantee, np.std(draws[:, slopes], axis=0))
