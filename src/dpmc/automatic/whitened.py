"""Row gradients and curvatures in coordinates where the posterior is round.

A step ``z`` moves the parameter by ``basis @ z``. With a basis that whitens the posterior a step of
length 1 is one posterior standard deviation in any direction, and what a row may contribute is
bounded in the same unit: a norm clip wastes nothing on directions that the data do not tell apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from dpmc.numerics.compile_cache import compile_once
from dpmc.rows.clipping import clip_vector, exact, ordinary
from dpmc.rows.row_gradients import row_gradients_kernel
from dpmc.rows.sums import feature_rows
from dpmc.types import Array, Dataset, Model

# Numbers that a block of rows may take in one array.
BLOCK = 1 << 20
# Half the distance, in whitened units, over which gradients are differenced: rounding and
# curvature of the curvature are both far below the noise of any release.
HALF_STEP = 1e-4


class WhitenedRows:
    """Sums over private rows, each clipped in the coordinates of a basis.

    Parameters
    ----------
    model : Model
        The posterior, written for one row.
    dataset : Dataset
        The private rows.

    Raises
    ------
    DpmcError
        If the model is refused on public probes, see :mod:`dpmc.rows.model_checks`.
    """

    def __init__(self, model: Model, dataset: Dataset) -> None:
        self.dim = model.dim
        self.num_rows = dataset.num_rows
        self._tempering = model.tempering
        self._features = feature_rows(model, dataset, "features")
        self._coefficients: Any = (
            (lambda theta: theta)
            if model.coefficients is None
            else compile_once(model.coefficients)
        )
        count = len(self._coefficients(np.zeros(model.dim)))
        self._kernel = row_gradients_kernel(model.gradient, model.dim, count, len(self._features))

    def gradient_norms(self, theta: Array, basis: Array) -> Array:
        """Return the norm of the whitened gradient of each row, shape (n,).

        Infinite where a square overflows; NaN for a row that will count as zero.
        """
        blocks = self._blocks(self.dim)
        return np.concatenate([_norms(self._whitened(theta, basis, *block)) for block in blocks])

    def gradient_sum(self, theta: Array, basis: Array, bound: float) -> Array:
        """Return the sum of whitened row gradients, each clipped to norm `bound`, shape (d,)."""
        total = np.zeros(self.dim)
        for block in self._blocks(self.dim):
            rows = self._whitened(theta, basis, *block)
            clip_rows(rows, bound)
            total += rows.sum(axis=0)
        return total

    def large_sum(
        self, theta: Array, basis: Array, low: float, high: float
    ) -> tuple[int, int, Array]:
        """Return how many whitened row gradients exceed two norms, and the sum of directions.

        Each beyond the lower norm contributes a vector of length 1 to the sum, shape (d,).
        """
        beyond, far_beyond, total = 0, 0, np.zeros(self.dim)
        for block in self._blocks(self.dim):
            rows = self._whitened(theta, basis, *block)
            large = rows[~(_norms(rows) <= low)]
            large = large[~np.isnan(large).any(axis=1)]
            beyond += len(large)
            far_beyond += int(np.count_nonzero(~(_norms(large) <= high)))
            with np.errstate(all="ignore"):
                large /= low
            clip_rows(large, 1.0)
            total += large.sum(axis=0)
        return beyond, far_beyond, total

    def slope_sum(self, theta: Array, direction: Array, bound: float) -> float:
        """Return the sum of row slopes along a direction of theta, each clipped to `bound`."""
        column = np.ascontiguousarray(direction[:, None])
        total = 0.0
        for block in self._blocks(self.dim):
            rows = self._whitened(theta, column, *block)
            clip_rows(rows, bound)
            total += float(rows.sum())
        return total

    def curvature_norms(self, theta: Array, basis: Array) -> Array:
        """Return the Frobenius norm of the whitened curvature of each row, shape (n,)."""
        blocks = self._blocks(self.dim**2)
        return np.concatenate([_norms(self._curvature(theta, basis, *block)) for block in blocks])

    def curvature_sum(self, theta: Array, basis: Array, bound: float) -> Array:
        """Return the packed sum of whitened row curvatures, each clipped to Frobenius norm `bound`.

        A curvature is the negative Hessian of the log-likelihood of a row, by differences of
        its gradient. Shape (d (d + 1) / 2,), see `pack`.
        """
        total = np.zeros(self.dim * (self.dim + 1) // 2)
        for block in self._blocks(self.dim**2):
            rows = self._curvature(theta, basis, *block)
            clip_rows(rows, bound)
            total += rows.sum(axis=0)
        return total

    def _blocks(self, numbers_per_row: int) -> Iterator[tuple[int, int]]:
        size = max(1, BLOCK // numbers_per_row)
        for first in range(0, self.num_rows, size):
            yield first, min(first + size, self.num_rows)

    def _gradients(self, theta: Array, first: int, last: int) -> Array:
        rows = np.empty((last - first, self.dim))
        self._kernel(self._features, self._coefficients(theta), first, last, rows)
        if self._tempering != 1:
            rows *= self._tempering
        return rows

    def _whitened(self, theta: Array, basis: Array, first: int, last: int) -> Array:
        with np.errstate(all="ignore"):
            product: Array = self._gradients(theta, first, last) @ basis
        return product

    def _curvature(self, theta: Array, basis: Array, first: int, last: int) -> Array:
        columns = np.empty((last - first, self.dim, self.dim))
        with np.errstate(all="ignore"):
            for k in range(self.dim):
                step = HALF_STEP * basis[:, k]
                change = self._gradients(theta - step, first, last)
                change -= self._gradients(theta + step, first, last)
                columns[:, k] = change @ basis / (2 * HALF_STEP)
            return pack(columns)


def pack(matrices: Array) -> Array:
    """Return the symmetric part of matrices as vectors of the same Euclidean norm.

    Parameters
    ----------
    matrices : ndarray of shape (..., d, d)

    Returns
    -------
    ndarray of shape (..., d (d + 1) / 2)
        The upper triangle, entries off the diagonal times the square root of 2.

    Examples
    --------
    >>> pack(np.array([[1.0, 2.0], [2.0, 3.0]])).round(3).tolist()
    [1.0, 2.828, 3.0]
    """
    i, j, weight = _triangle(matrices.shape[-1])
    packed: Array = 0.5 * (matrices[..., i, j] + matrices[..., j, i]) * weight
    return packed


def unpack(vector: Array, dim: int) -> Array:
    """Return the symmetric matrix, shape (d, d), of a packed one."""
    i, j, weight = _triangle(dim)
    matrix = np.zeros((dim, dim))
    matrix[i, j] = matrix[j, i] = vector / weight
    return matrix


def _triangle(dim: int) -> tuple[Any, Any, Array]:
    i, j = np.triu_indices(dim)
    return i, j, np.where(i == j, 1.0, math.sqrt(2.0))


def _norms(rows: Array) -> Array:
    with np.errstate(all="ignore"):
        norms: Array = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return norms


@exact
def clip_rows(rows: Any, bound: float) -> int:
    """Clip each row in place to a Euclidean norm, whatever floats it holds; return how many.

    Parameters
    ----------
    rows : ndarray of shape (m, d)
        A row with a NaN becomes zero.
    bound : float
        Finite and > 0.
    """
    changed = 0
    for i in range(rows.shape[0]):
        squared = 0.0
        for k in range(rows.shape[1]):
            squared += rows[i, k] * rows[i, k]
        if not (ordinary(squared) and squared <= bound * bound):
            changed += clip_vector(rows[i], bound)
    return changed
