"""The gradient of every row of a model, compiled, and what is formed of it in one loop."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpmc.numerics.compiled import compile_once
from dpmc.rows import fused_sums, row_functions
from dpmc.rows.model_checks import check_rows
from dpmc.rows.sums import part_features
from dpmc.rows.wide_gradients import curvatures_kernel, gradients_kernel, slope_of
from dpmc.types import Array, Model

# Numbers of features that are made at once, so that they stay in the second-level cache.
PIECE = 1 << 17
# Fewest and most rows of a piece: what Python adds to each is felt by few rows.
LEAST_ROWS = 1 << 10
MOST_ROWS = 1 << 14
# The largest number of coordinates for which steps of a sum are fused: beyond it the library of
# linear algebra whitens faster.
FUSED = 24


class RowGradients:
    """The gradient of every row of a model, compiled.

    Parameters
    ----------
    model : Model
    num_columns : int
        Columns p of the rows.
    """

    def __init__(self, model: Model, num_columns: int) -> None:
        self.model = row_functions.without_errors(model)
        self.dim = model.dim
        self.count = len(check_rows(self.model, num_columns).features)
        self._coefficients: Any = (
            (lambda theta: theta)
            if model.coefficients is None
            else compile_once(model.coefficients)
        )
        length = len(self._coefficients(np.zeros(model.dim)))
        self._kernel = gradients_kernel(self.model, length, self.count)
        self.slope = slope_of(self.model)
        fitting = PIECE // max(self.count, 1)
        self.piece = min(max(1 << fitting.bit_length() >> 1, LEAST_ROWS), MOST_ROWS)

    def features(self, x: Array, nan_rows: bool) -> Array:
        """Features of rows, shape (q, m), `piece` rows at a time.

        Rows that begin at a multiple of `piece` have the same features alone as among others.
        """
        if len(x) <= self.piece or (self.model.features is None and x.dtype == np.float64):
            return part_features(self.model, x, nan_rows)
        out = np.empty((self.count, len(x)))
        for first in range(0, len(x), self.piece):
            last = first + self.piece
            out[:, first:last] = part_features(self.model, x[first:last], nan_rows)
        return out

    def __call__(self, features: Array, theta: Array, first: int, last: int) -> Array:
        """Gradients of rows, tempered, as they are: shape (last - first, d)."""
        rows = np.empty((last - first, self.dim))
        self._kernel(features, self._coefficients(theta), first, last, rows)
        if self.model.tempering != 1:
            rows *= self.model.tempering
        return rows

    def curvatures(self, features: Array, theta: Array, first: int, last: int) -> Array:
        """Curvatures of rows along their inner products, tempered, by differences.

        The curvature of a row, the negative Hessian of its log-likelihood, is this number times
        the outer product of its last d features with themselves. Shape (last - first,).

        Raises
        ------
        TypeError
            If the model has no slope.
        """
        if self.slope is None:
            raise TypeError("the model must have a slope")
        out = np.empty(last - first)
        curvatures_kernel(self.slope, self.count - self.dim)(features, theta, first, last, out)
        out *= self.model.tempering
        return out

    def clipped_sum(
        self, features: Array, theta: Array, first: int, last: int, basis: Array, bound: float
    ) -> Array:
        """Sum of gradients of rows times `basis`, each clipped to norm `bound`.

        Parameters
        ----------
        features, theta, first, last
            As to a call.
        basis : ndarray of shape (d, k)
        bound : float
            Finite and > 0.

        Returns
        -------
        ndarray of shape (k,)
        """
        total = np.empty(basis.shape[1])
        kernel = fused_sums.sum_kernel(self._kernel)
        c, basis = self._coefficients(theta), np.ascontiguousarray(basis * self.model.tempering)
        kernel(features, c, first, last, basis, bound, total)
        return total

    def beyond(
        self, features: Array, theta: Array, first: int, last: int, basis: Array, lengths: Array
    ) -> Array:
        """Number of gradients of rows, times `basis`, that are longer than each length.

        Parameters
        ----------
        features, theta, first, last, basis
            As `clipped_sum` has them.
        lengths : ndarray of shape (l,)
            Increasing, > 0.

        Returns
        -------
        ndarray of shape (l,)
            A square that overflows is beyond all, a gradient that is none beyond none.
        """
        counts = np.empty(len(lengths))
        kernel = fused_sums.beyond_kernel(self._kernel)
        c, basis = self._coefficients(theta), np.ascontiguousarray(basis * self.model.tempering)
        kernel(features, c, first, last, basis, lengths, counts)
        return counts
