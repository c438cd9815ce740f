"""Linear regression from sums of products, once, with Gaussian or with Laplace noise.

With n public, rows (u, v) in [-1, 1] and products u_i u_j, u_i v and u_i, another row moves a
square by 1 and any other number by 2 at most. Laplace noise has to cover the sum of all these, for
pure epsilon; Gaussian noise the root of the sum of their squares.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpmc import checks
from dpmc.privacy.budgets import GaussianBudget
from dpmc.rng import stream
from dpmc.types import Budget, DpmcError, Guarantee
from dpmc_league.contest import LINEAR, SEEDED, Estimate, Table

LAWS = ("gaussian", "laplace")
LEAST = 1e-4  # of an eigenvalue, over the number of rows


@dataclass(frozen=True)
class Params:
    """The noise.

    Parameters
    ----------
    law : {"gaussian", "laplace"}
    """

    law: str = "gaussian"

    def __post_init__(self) -> None:
        checks.one_of("law", self.law, LAWS)


def fit(
    tables: Sequence[Table], params: Params, budget: Budget, seeds: Sequence[int]
) -> list[Estimate]:
    """Fit each table."""
    return [_fit(table, params.law, budget, s) for table, s in zip(tables, seeds, strict=True)]


def _fit(table: Table, law: str, budget: Budget, seed: int) -> Estimate:
    if table.family != LINEAR:
        raise DpmcError(f"`family` must be {LINEAR}, got {table.family!r}")
    x, y, unit = table.ranged()
    design = np.column_stack([np.ones(len(x)), x])
    moments, target = design.T @ design, design.T @ y
    rng = stream(seed, "league", "noisy statistics")
    dim = len(target)
    upper = np.triu_indices(dim)
    reach = np.where(upper[0] == upper[1], 1.0, 2.0)[1:]  # the first is the public n
    reach = np.concatenate([reach, np.full(dim, 2.0)])
    if law == "laplace":
        guarantee = Guarantee(budget.epsilon, 0.0, accountant="pure", outside=(SEEDED,))
        noise = rng.laplace(scale=reach.sum() / budget.epsilon, size=len(reach))
    else:
        given = GaussianBudget.of(budget.epsilon, budget.delta)
        guarantee = Guarantee(
            budget.epsilon, budget.delta, accountant="gaussian", outside=(SEEDED,)
        )
        noise = math.sqrt(np.sum(reach**2)) / given.mu * rng.standard_normal(len(reach))
    noisy = np.zeros((dim, dim))
    noisy[upper] = np.append(0.0, noise[: len(upper[0]) - 1])
    moments = moments + noisy + np.triu(noisy, 1).T
    values, vectors = np.linalg.eigh(moments)
    values = np.maximum(values, LEAST * len(x))
    theta = vectors @ ((vectors.T @ (target + noise[-dim:])) / values)
    return Estimate(theta[1:] * unit, guarantee)
