"""Private rows of a regression: the features first, the response last."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from dpmc.automatic.counted import Counted
from dpmc.automatic.glm import counts, kernels, residuals, shape
from dpmc.privacy.clipped import (
    Clipped,
    row_count,
    row_histogram,
    row_matrices,
    row_span,
    row_sum,
)
from dpmc.rows.vectors import pack
from dpmc.types import Array, Neighbours


class Sums(NamedTuple):
    """Sums over rows at a point, each with what one row moves it by; private.

    Parameters
    ----------
    gradient : Clipped
        Of weighted scores of the coefficients, shape (d,).
    curvature, squares : Clipped
        Packed; of no rows where they were not asked for.
    scale : Clipped
        Scores of the logarithm of the scale.
    dispersion : Clipped
        Squares of scores less the variance that the model says they have.
    mean : Clipped
        Residual scores.
    far : Clipped
        Rows with a residual far beyond the scale.
    """

    gradient: Clipped[Array]
    curvature: Clipped[Array]
    squares: Clipped[Array]
    scale: Clipped[float]
    dispersion: Clipped[float]
    mean: Clipped[float]
    far: Clipped[float]


# Rows that are read at once, a fixed number: sums do not depend on where rows come from.
CHUNK = 1 << 14


@dataclass(frozen=True)
class Rows:
    """Rows, and the units of their features.

    Parameters
    ----------
    x : ndarray of shape (n, p + 1)
        Private.
    location, scale : ndarray of shape (p,)
        Of the features, public or released.
    constant : bool
        Whether there is an intercept.
    kind : int
        The likelihood, as in `kernels`.
    counted : Counted
        How many rows there are.
    neighbours : {"replace", "add_remove"}
    table : ndarray
        Of clipped counts, see `clipped_counts`; written by a search.
    """

    x: Array
    location: Array
    scale: Array
    constant: bool
    kind: int
    counted: Counted
    neighbours: Neighbours = "replace"
    table: Array = field(default_factory=lambda: np.zeros((3, len(counts.RATES))))

    @property
    def dim(self) -> int:
        """Number of coefficients."""
        return len(self.location) + self.constant

    def one_of(self, several: int, seed: int) -> Rows:
        """One row of so many, see `Counted.one_of`."""
        if several == 1:
            return self
        x, counted = self.counted.one_of(several, seed, self.x)
        return replace(self, x=x, counted=counted)

    def _parts(self) -> Iterator[tuple[Array, Array, Array]]:
        # Sums add up row by row, in chunks or not: the number of rows shows in rounding alone.
        inverse = 1 / self.scale
        for first in range(0, len(self.x), CHUNK):
            rows = np.ascontiguousarray(self.x[first : first + CHUNK], dtype=np.float64)
            yield rows, self.location, inverse

    def ones(self) -> Clipped[float]:
        """Number of responses that are 1."""
        return row_count(int(np.sum(self.x[:, -1] == 1)), self.neighbours)

    def responses(self, cap: float) -> Clipped[float]:
        """Sum of responses, clipped to the numbers from 0 to `cap`."""
        total = float(np.nansum(np.clip(self.x[:, -1], 0.0, cap)))
        return row_span(total, cap, self.neighbours)

    def moments(self, bound: float) -> Clipped[Array]:
        """Packed sum of v v' over rows, v shortened to `bound`."""
        total = kernels.padded(np.zeros((self.dim, self.dim)))
        for rows, location, inverse in self._parts():
            kernels.moments(rows, location, inverse, int(self.constant), bound, total)
        return packed_sum(total, bound**2, self.neighbours)

    def lengths(self, basis: Array) -> Clipped[Array]:
        """Number of rows that have whitened features of each length, see `Lengths`."""
        found = np.zeros(len(shape.EDGES) + 1)
        squares, basis = shape.EDGES**2 * self.dim, kernels.padded(basis)
        for rows, location, inverse in self._parts():
            kernels.lengths(rows, location, inverse, basis, int(self.constant), squares, found)
        return row_histogram(found, self.neighbours)

    def residuals(self, beta: Array, numbers: Array, unit: float) -> Clipped[Array]:
        """Number of rows that have a residual of each size, see `Residuals`."""
        found = np.zeros(len(residuals.EDGES) + 1)
        edges = residuals.EDGES * unit
        for rows, location, inverse in self._parts():
            kernels.residuals(
                rows, location, inverse, int(self.constant), beta, self.kind, numbers, edges, found
            )
        return row_histogram(found, self.neighbours)

    def scores(
        self, basis: Array, phi: Array, numbers: Array, curved: bool, meat: bool = False
    ) -> Sums:
        """Sums over rows at a point, by the bounds that stand in `numbers`."""
        dim = self.dim
        basis, extra = kernels.padded(basis), np.zeros(4)
        gradient = np.zeros(basis.shape[1])
        curvature = np.zeros(basis.shape if curved else (0, 0))
        squares = np.zeros(basis.shape if meat else (0, 0))
        for rows, location, inverse in self._parts():
            kernels.scores(
                rows, location, inverse, basis, int(self.constant), phi, self.kind, numbers,
                self.table, gradient, curvature, squares, extra,
            )  # fmt: skip
        steepest, reach = float(numbers[kernels.GRADIENT]), float(numbers[kernels.LENGTH])
        largest, relation = float(numbers[kernels.CURVATURE]), self.neighbours
        spread = max(steepest**2, reach**2 * largest)
        return Sums(
            row_sum(gradient[:dim], steepest, relation),
            packed_sum(curvature, reach * float(numbers[kernels.LONGEST]) * largest, relation),
            packed_sum(squares, steepest**2, relation),
            row_span(float(extra[kernels.SCALE]), float(numbers[kernels.SCORE]), relation),
            row_sum(float(extra[kernels.DISPERSION]), spread, relation),
            row_sum(float(extra[kernels.MEAN]), float(numbers[kernels.RESIDUAL]), relation),
            row_count(int(extra[kernels.FAR]), relation),
        )


def packed_sum(upper: Array, bound: float, neighbours: Neighbours) -> Clipped[Array]:
    """Padded sum of squares as a packed one, each of Frobenius norm at most `bound`."""
    packed = pack(kernels.mirrored(upper)[None])[0] if upper.size else np.zeros(0)
    return row_matrices(packed, bound, neighbours)
