"""Regressions whose columns have few values: the table of all cells, and data sets made from it.

A row is one cell of the product of all levels, the response last. Methods that make synthetic data
release numbers of rows in margins, the sums over all columns but one or two. A substituted row
leaves one bin of each margin for another.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from dpmc.types import Array, DpmcError
from dpmc_league.contest import LOGISTIC, NINETY, RIDGE, Table

MOST_CELLS = 4096
STEPS, LONGEST = 25, 5.0  # Newton steps on a synthetic data set, and how far one may go


@dataclass(frozen=True, eq=False)
class Cells:
    """All cells that a row may be in.

    Parameters
    ----------
    sizes : tuple of int
        Number of levels of each column.
    index : ndarray of int, shape (C, p + 1)
        Which level of each column a cell has.
    values : ndarray of shape (C, p + 1)
        The levels themselves.
    """

    sizes: tuple[int, ...]
    index: npt.NDArray[np.int64]
    values: Array

    @classmethod
    def of(cls, table: Table) -> Cells:
        """Cells of a logistic regression with public levels.

        Raises
        ------
        DpmcError
            If it is of another family, has no levels, or has more than 4096 cells.
        """
        if table.family != LOGISTIC or table.levels is None:
            raise DpmcError("`table` must be of a logistic regression with public levels")
        levels = [*table.levels, np.array([0.0, 1.0])]
        sizes = tuple(len(one) for one in levels)
        if math.prod(sizes) > MOST_CELLS:
            raise DpmcError(
                f"`levels` must give at most {MOST_CELLS} cells, got {math.prod(sizes)}"
            )
        index = np.array(list(itertools.product(*map(range, sizes))), dtype=np.int64)
        values = [one[at] for one, at in zip(levels, index.T, strict=True)]
        return cls(sizes, index, np.column_stack(values))

    def numbers(self, table: Table) -> Array:
        """Number of rows in each cell, shape (C,): a row counts as in the nearest one."""
        columns = np.column_stack([table.x, table.y])
        found = np.zeros(len(columns), dtype=np.int64)
        for column, size, values, index in zip(
            columns.T, self.sizes, self.values.T, self.index.T, strict=True
        ):
            levels = np.array([values[index == level][0] for level in range(size)])
            nearest = np.argmin(np.abs(column[:, None] - levels), axis=1)
            found = found * size + nearest
        return np.bincount(found, minlength=len(self.index)).astype(np.float64)

    def margin(self, columns: Sequence[int]) -> Array:
        """Which bin of the margin of some columns each cell is in, as 0 and 1: shape (C, bins)."""
        sizes = [self.sizes[k] for k in columns]
        place = np.ravel_multi_index(tuple(self.index[:, k] for k in columns), sizes)
        found: Array = np.eye(math.prod(sizes))[place]
        return found

    def pairs(self) -> list[tuple[int, int]]:
        """Each two columns."""
        return list(itertools.combinations(range(len(self.sizes)), 2))

    def regress(self, numbers: Array) -> tuple[Array, Array]:
        """Slopes and their variances of data sets that have so many rows in each cell.

        Parameters
        ----------
        numbers : ndarray of shape (m, C)

        Returns
        -------
        slopes, variances : ndarray of shape (m, p)
        """
        design = np.column_stack([np.ones(len(self.values)), self.values[:, :-1]])
        y, ridge = self.values[:, -1], RIDGE * np.eye(design.shape[1])
        theta = np.zeros((len(numbers), design.shape[1]))
        for _ in range(STEPS):
            chance = 1 / (1 + np.exp(-theta @ design.T))
            weight = numbers * chance * (1 - chance)
            curvature = np.einsum("mc,ci,cj->mij", weight, design, design, optimize=True) + ridge
            slope = (numbers * (y - chance)) @ design - RIDGE * theta
            step = np.linalg.solve(curvature, slope[:, :, None])[:, :, 0]
            length = np.linalg.norm(step, axis=1, keepdims=True)
            theta = theta + step * np.minimum(1, LONGEST / np.maximum(length, LONGEST))
        variances = np.diagonal(np.linalg.inv(curvature), axis1=1, axis2=2)
        return theta[:, 1:], variances[:, 1:]


def rubin(estimates: Array, variances: Array) -> tuple[Array, Array]:
    """Mean of synthetic data sets, and half of a 90 % interval over 1.64.

    The rules for data sets that are all synthetic [Raghunathan, Reiter and Rubin 2003]: of m data
    sets, the variance between them B and their mean variance U, the variance of the mean is
    T = (1 + 1 / m) B - U, with (m - 1) (1 - U / ((1 + 1 / m) B))^2 degrees of freedom, here at
    least one. Where T is not above 0 it is U, with normal quantiles [Reiter 2002].

    Parameters
    ----------
    estimates, variances : ndarray of shape (m, p)

    Returns
    -------
    mean, sd : ndarray of shape (p,)
    """
    sets = len(estimates)
    within = variances.mean(axis=0)
    between = (1 + 1 / sets) * estimates.var(axis=0, ddof=1)
    total = between - within
    positive = total > 0
    freedom = (sets - 1) * (1 - within / np.where(positive, between, 2 * within)) ** 2
    freedom = np.maximum(freedom, 1)
    wide = np.sqrt(np.where(positive, total, within))
    quantile = np.where(positive, stats.t.ppf(0.95, freedom), NINETY)
    return estimates.mean(axis=0), wide * quantile / NINETY
