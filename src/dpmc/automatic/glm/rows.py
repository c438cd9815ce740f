"""Private rows of a regression: the features first, the response last."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from dpmc.automatic.glm import kernels, residuals, shape
from dpmc.types import Array

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
    table : ndarray
        Means of clipped counts, see `clipped_counts`; written by a search.
    """

    x: Array
    location: Array
    scale: Array
    constant: bool
    kind: int
    table: Array = field(default_factory=lambda: np.zeros(len(residuals.RATES)))

    @property
    def dim(self) -> int:
        """Number of coefficients."""
        return len(self.location) + self.constant

    def _parts(self) -> Iterator[tuple[Array, Array, Array]]:
        inverse = 1 / self.scale
        for first in range(0, len(self.x), CHUNK):
            rows = np.ascontiguousarray(self.x[first : first + CHUNK], dtype=np.float64)
            yield rows, self.location, inverse

    def moments(self, bound: float) -> Array:
        """Return the sum of v v' over rows, v shortened to `bound`: shape (d, d)."""
        total = np.zeros((self.dim, self.dim))
        for rows, location, inverse in self._parts():
            kernels.moments(rows, location, inverse, int(self.constant), bound, total)
        return kernels.mirrored(total)

    def lengths(self, basis: Array) -> Array:
        """Return how many rows have whitened features of each length, see `Lengths`."""
        counts = np.zeros(len(shape.EDGES) + 1)
        squares = shape.EDGES**2 * self.dim
        for rows, location, inverse in self._parts():
            kernels.lengths(rows, location, inverse, basis, int(self.constant), squares, counts)
        return counts

    def residuals(self, beta: Array, numbers: Array, unit: float) -> Array:
        """Return how many rows have a residual of each size, see `Residuals`."""
        counts = np.zeros(len(residuals.EDGES) + 1)
        edges = residuals.EDGES * unit
        for rows, location, inverse in self._parts():
            kernels.residuals(
                rows, location, inverse, int(self.constant), beta, self.kind, numbers, edges, counts
            )
        return counts

    def scores(
        self, basis: Array, phi: Array, numbers: Array, curved: bool, meat: bool = False
    ) -> tuple[Array, Array, Array, Array]:
        """Return sums of weighted gradients, curvatures, squares of gradients, and the rest."""
        dim = self.dim
        gradient, extra = np.zeros(dim), np.zeros(4)
        curvature = np.zeros((dim, dim) if curved else (0, 0))
        squares = np.zeros((dim, dim) if meat else (0, 0))
        for rows, location, inverse in self._parts():
            kernels.scores(
                rows, location, inverse, basis, int(self.constant), phi, self.kind, numbers,
                self.table, gradient, curvature, squares, extra,
            )  # fmt: skip
        return gradient, kernels.mirrored(curvature), kernels.mirrored(squares), extra
