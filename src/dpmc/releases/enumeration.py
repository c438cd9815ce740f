"""Exact likelihoods of counts: all tables that a release may come from are added up."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, xlogy

from dpmc.numerics.compiled import kept
from dpmc.releases.problem import Problem
from dpmc.types import Array

# Products that are added up for one theta: beyond them it takes seconds.
MOST_PRODUCTS = 5_000_000
# Logarithms of factorials have too few digits for more.
MOST_RECORDS = 1e9
# Terms below the largest of a cell by more count for nothing.
NEGLIGIBLE = 1e-30


@dataclass(frozen=True, eq=False)
class Tables:
    """Counts of cells that each were released with noise.

    Given the number of records, counts are multinomial: Poisson ones, given their sum. So their
    likelihood is a coefficient of a product of one polynomial for each cell.

    Parameters
    ----------
    problem : Problem
    cells : ndarray of shape (v, k)
        Which possible record is in which cell, if any.
    first : ndarray of shape (k,)
        Least count that is tried.
    tables : ndarray of shape (k, w)
        Log-density of the release for each count from there.
    """

    problem: Problem
    cells: Array
    first: npt.NDArray[np.int64]
    tables: Array

    @classmethod
    def of(cls, problem: Problem) -> Tables | None:
        """Counts of a problem, or None if it has others, or too many to add up."""
        records = problem.records
        if records.values is None or problem.randomised:
            return None
        cells = records.sums_of(records.values)
        if not (np.isin(cells, (0.0, 1.0)).all() and (cells.sum(axis=1) <= 1).all()):
            return None
        most = problem.num_records
        if most is not None and most >= MOST_RECORDS:
            return None
        first, width = np.zeros(cells.shape[1], dtype=np.int64), np.zeros(cells.shape[1])
        for place, one, mechanism in problem.each():
            low, high = mechanism.ends(one.value)
            # A clamp leaves all counts below: as far as the noise might reach down from them.
            # Values that no count is near to come from the nearest ones.
            end = np.full(one.size, np.inf if most is None else float(most))
            reach = mechanism.reach()
            low = np.where(np.isinf(low), 0.0, np.floor(np.minimum(low, end) - reach))
            high = np.where(np.isinf(high), np.inf, np.ceil(np.maximum(high, 0.0) + reach))
            end = np.minimum(high, end)
            first[place] = np.maximum(low, 0.0)
            width[place] = np.maximum(end - first[place] + 1, 1)
        if not np.isfinite(width).all() or width @ np.cumsum(width) > MOST_PRODUCTS:
            return None
        tables = np.full((len(first), int(width.max())), -np.inf)
        for place, one, mechanism in problem.each():
            counts = first[place, None] + np.arange(tables.shape[1], dtype=float)
            found = mechanism.log_density(one.value, counts.T).T
            tables[place] = np.where(
                np.arange(tables.shape[1]) < width[place, None], found, -np.inf
            )
        return cls(problem, cells, first, tables)

    def log_likelihood(self, x: Array) -> Array:
        """Log-density of the releases for states, shape (m, dim)."""
        theta, number = self.problem.split(x)
        weights = self.problem.records.weights(theta)
        cells = weights @ self.cells
        rest = np.where(self.cells.sum(axis=1) > 0, 0.0, weights).sum(axis=1)
        possible = np.isfinite(cells).all(axis=1) & (number >= 1) & (number < MOST_RECORDS)
        found = np.full(len(x), -np.inf)
        n = number[possible]
        expected = n[:, None] * cells[possible]
        sums = coefficients(expected, n * rest[possible], n, self.first, self.tables)
        found[possible] = sums - (xlogy(n, n) - n - gammaln(n + 1))
        return found


@kept
def coefficients(  # type: ignore[no-untyped-def]
    expected, rest, number, first, tables
):  # pragma: no cover
    """Logarithms of coefficients, shape (m,), see `Tables`.

    Parameters
    ----------
    expected : ndarray of shape (m, k)
        Means of Poisson counts of the cells.
    rest : ndarray of shape (m,)
        Of all other records.
    number : ndarray of shape (m,)
        Which coefficient.
    first : ndarray of shape (k,)
    tables : ndarray of shape (k, w)
    """
    num_states, num_cells = expected.shape
    width = tables.shape[1]
    found = np.empty(num_states)
    for m in range(num_states):
        product, start, size, scale = np.ones(1), 0, 1, 0.0
        for k in range(num_cells):
            mean = expected[m, k]
            terms = np.full(width, -np.inf)
            for w in range(width):
                count = first[k] + w
                terms[w] = tables[k, w] - mean - math.lgamma(count + 1.0)
                if count > 0:
                    terms[w] += count * math.log(mean)
            largest = terms.max()
            if not largest > -math.inf:
                scale = -math.inf
                break
            terms = np.exp(terms - largest)
            low, high = 0, width
            while terms[low] < NEGLIGIBLE:
                low += 1
            while terms[high - 1] < NEGLIGIBLE:
                high -= 1
            larger = np.zeros(size + high - low - 1)
            for i in range(size):
                for w in range(low, high):
                    larger[i + w - low] += product[i] * terms[w]
            peak = larger.max()
            product, size = larger / peak, len(larger)
            start += first[k] + low
            scale += largest + math.log(peak)
        if scale == -math.inf:
            found[m] = -math.inf
            continue
        total = 0.0
        for i in range(size):
            others = number[m] - start - i
            if others < 0 or (rest[m] <= 0 and others > 0):
                continue
            log_weight = 0.0
            if others > 0:
                log_weight = others * math.log(rest[m])
            total += product[i] * math.exp(log_weight - rest[m] - math.lgamma(others + 1.0))
        found[m] = scale + math.log(total) if total > 0 else -math.inf
    return found


@dataclass(frozen=True, eq=False)
class Answers:
    """Counts of answers by randomised response, which are multinomial by themselves.

    Parameters
    ----------
    problem : Problem
    level : int
        Rule of integration for the shares of categories.
    """

    problem: Problem
    level: int

    def log_likelihood(self, x: Array) -> Array:
        """Log-probability of the answers for states, shape (m, dim), up to a constant."""
        ((_, release, mechanism),) = self.problem.each()
        theta, number = self.problem.split(x)
        shares = self.problem.records.moments(theta, self.level)[0]
        counts, truth = release.value, float(mechanism.scale)
        if release.size == 1:  # yes or no
            shares = np.column_stack([shares, 1 - shares])
            counts = np.array([counts[0], number[0] - counts[0]])
        answers = shares * truth + (1 - shares) * (1 - truth) / (len(counts) - 1)
        with np.errstate(invalid="ignore", divide="ignore"):
            found = xlogy(counts, answers).sum(axis=1)
        return np.where(np.isnan(found), -np.inf, found)
