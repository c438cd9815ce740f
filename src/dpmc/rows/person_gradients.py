"""The gradient of every person of a model: the sum over the rows of each."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmc.numerics.compiled import njit
from dpmc.rows import fused_sums
from dpmc.rows.compiled_gradients import RowGradients
from dpmc.rows.persons import Persons
from dpmc.types import Array, Model

# Numbers of features that are kept: of more rows they are made anew in each pass.
KEPT = 1 << 23


class PersonGradients(RowGradients):
    """What `RowGradients` is of rows, of persons: `first` and `last` are those of persons.

    A person may have any number of rows: no array holds a number for each of more than `piece` of
    them, but the features, if they are few. The features that are given are not read.

    Parameters
    ----------
    model, num_columns
        As of `RowGradients`.
    persons : Persons
    """

    def __init__(self, model: Model, persons: Persons) -> None:
        super().__init__(model, persons.num_columns)
        self.rows = RowGradients(model, persons.num_columns)
        self.starts, self._x = persons.starts, persons.rows.x
        free = self.model.features is None and self._x.T.flags.c_contiguous
        self._kept: Array | None = None
        if self.count * len(self._x) <= KEPT or (free and self._x.dtype == np.float64):
            self._kept = self.features(self._x, False)

    def __call__(self, features: Array, theta: Array, first: int, last: int) -> Array:
        """Gradients of persons, tempered, as they are: shape (last - first, d)."""
        total = self._summed(theta, first, last)
        if self.model.tempering != 1:
            total *= self.model.tempering
        return total

    def clipped_sum(
        self, features: Array, theta: Array, first: int, last: int, basis: Array, bound: float
    ) -> Array:
        """Sum of gradients of persons times `basis`, each clipped to norm `bound`."""
        total, summed = np.empty(basis.shape[1]), self._summed(theta, first, last)
        basis = np.ascontiguousarray(basis * self.model.tempering)
        fused_sums.sum_kernel(_copied)(summed, theta, 0, len(summed), basis, bound, total)
        return total

    def beyond(
        self, features: Array, theta: Array, first: int, last: int, basis: Array, lengths: Array
    ) -> Array:
        """Number of gradients of persons, times `basis`, that are longer than each length."""
        counts, summed = np.empty(len(lengths)), self._summed(theta, first, last)
        basis = np.ascontiguousarray(basis * self.model.tempering)
        fused_sums.beyond_kernel(_copied)(summed, theta, 0, len(summed), basis, lengths, counts)
        return counts

    def alone(self, first: int, last: int) -> tuple[Array, NDArray[np.bool_]]:
        """Features of the rows of persons who have one, and who these persons are."""
        counts = np.diff(self.starts[first : last + 1])
        alone = counts == 1
        places = self.starts[first:last][alone]
        if self._kept is not None:
            return np.ascontiguousarray(self._kept[:, places]), alone
        return self.features(self._x[places], False), alone

    def pieces(self, first: int, last: int) -> Iterator[tuple[Array, int, int, int]]:
        """Rows of persons, `piece` of them at most: features, where in them, and the first row."""
        begin, end = int(self.starts[first]), int(self.starts[last])
        for low in range(begin, end, self.piece):
            high = min(low + self.piece, end)
            if self._kept is not None:
                yield self._kept, low, high, low
            else:
                yield self.features(self._x[low:high], False), 0, high - low, low

    def _summed(self, theta: Array, first: int, last: int) -> Array:
        """Sums of gradients over the rows of each person, not tempered, shape (last - first, d)."""
        total, coefficients = np.zeros((last - first, self.dim)), self._coefficients(theta)
        ends = self.starts[first + 1 : last + 1]
        for features, low, high, place in self.pieces(first, last):
            rows = np.empty((high - low, self.dim))
            self._kernel(features, coefficients, low, high, rows)
            add_up(rows, ends, place, total)
        return total


@njit
def add_up(rows: Any, ends: Any, place: int, total: Any) -> None:
    """Add rows, of which the first has a place among those of all persons, to their persons.

    Parameters
    ----------
    rows : ndarray of shape (m, k)
    ends : ndarray of shape (n,)
        Place behind the last row of each person.
    place : int
    total : ndarray of shape (n, k)
        Written.
    """
    person = np.searchsorted(ends, place, side="right")
    for i in range(rows.shape[0]):
        while place + i >= ends[person]:
            person += 1
        for k in range(rows.shape[1]):
            total[person, k] += rows[i, k]


@njit
def add_squares(weights: Any, rows: Any, ends: Any, place: int, total: Any) -> None:
    """Add a number times the outer product of each row with itself, packed, to their persons.

    Parameters
    ----------
    weights : ndarray of shape (m,)
    rows : ndarray of shape (m, d)
    ends, place, total
        As of `add_up`.
    """
    root = math.sqrt(2.0)
    person = np.searchsorted(ends, place, side="right")
    for i in range(rows.shape[0]):
        while place + i >= ends[person]:
            person += 1
        k = 0
        for a in range(rows.shape[1]):
            value = weights[i] * rows[i, a]
            total[person, k] += value * rows[i, a]
            k += 1
            for b in range(a + 1, rows.shape[1]):
                total[person, k] += root * value * rows[i, b]
                k += 1


@njit
def _copied(features: Any, coefficients: Any, start: int, stop: int, out: Any) -> None:
    """Gradients that were summed before, as a kernel of them."""
    for j in range(stop - start):
        for k in range(features.shape[1]):
            out[j, k] = features[start + j, k]
