"""Whitening of features, and how long they may be: from noisy second moments and lengths."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpmc.types import Array

# Second moments of features in their units, relative to 1: what is expected before any row is seen.
EXPECTED = 0.5
# Eigenvalues of second moments below this, for the largest 1, are those of equal columns.
SMALLEST = 1e-6
# Lengths over sqrt(d), by fourths of octaves.
EDGES = 2.0 ** (np.arange(-8, 25) / 4)
# By how much the linear predictor of a model that is not right is off, one way.
MISSPECIFIED = 0.2
# T over R.
LONGER = 2.0 ** (np.arange(13) / 4)
# Deviations of noise below which a count is none.
CLEAR = 4.0


@dataclass(frozen=True)
class Whitening:
    """Second moments of features in units, and what whitens them.

    Parameters
    ----------
    moments : ndarray of shape (d, d)
        Of a row, shrunk to what noise lets know.
    basis : ndarray of shape (d, d)
        The symmetric inverse root: `basis @ v` has second moments of about 1.
    whitened : ndarray of shape (d, d)
        Second moments of whitened features: 1 where noise does not hide them, less elsewhere.
    values, vectors : ndarray
        Eigenvalues and eigenvectors of the moments.
    noise : float
        Of an eigenvalue.
    """

    moments: Array
    basis: Array
    whitened: Array
    values: Array
    vectors: Array
    noise: float

    @classmethod
    def of(cls, noisy: Array, noise: float, num_rows: float) -> Whitening:
        """Whitening for noisy second moments, a sum over rows, with noise of one diagonal entry."""
        dim = len(noisy)
        moments, spread = noisy / num_rows, noise / num_rows
        known = EXPECTED**2 / (EXPECTED**2 + spread**2 / 2)
        shrunk = known * moments + (1 - known) * np.eye(dim)
        largest = known * spread * math.sqrt(2 * dim)
        values, vectors = np.linalg.eigh(shrunk)
        floor = max(min(largest, 1.0), SMALLEST * float(values.max()))
        kept = np.maximum(values, floor)
        root = (vectors * kept**-0.5) @ vectors.T
        whitened = (vectors * (np.maximum(values, 0.0) / kept)) @ vectors.T
        moments = (vectors * kept) @ vectors.T
        return cls(moments, (root + root.T) / 2, whitened, values, vectors, largest)


@dataclass(frozen=True)
class Lengths:
    """Lengths of whitened features: noisy counts, as shares of all rows.

    Parameters
    ----------
    shares, sizes : ndarray of shape (k,)
        Of rows, and the length of their features.
    """

    shares: Array
    sizes: Array

    @classmethod
    def of(cls, counts: Array, noise: float, dim: int) -> Lengths:
        """Lengths; those of a normal distribution where noise hides the counts."""
        middles = np.append(EDGES[0] / 2, EDGES * 2 ** (1 / 8)) * math.sqrt(dim)
        clear = np.where(counts > CLEAR * noise, counts, 0.0)
        if clear.sum() < 5 * noise:
            return cls(np.ones(1), np.array([math.sqrt(dim)]))
        return cls(clear / clear.sum(), middles)

    def bounds(
        self, num_rows: int, dim: int, variance: float, noise: Callable[[float, float], float]
    ) -> tuple[float, float]:
        """R and T of the weights w: those of least error of the mode.

        Its square, for each direction, has three parts. What weights lose of the rows, under a
        model that is right. Noise. And an allowance for a model that is not right: if the linear
        predictor of rows is off by m, and off the same way in what weights take of them, the mode
        moves by ``m mean((1 - w) |u|) / sqrt(d)`` over the share of the curvature that is left.
        Noise falls with n and mu, and the allowance stays: bounds grow with the budget until they
        cover all rows.

        Parameters
        ----------
        num_rows, dim : int
        variance : float
            Of a residual score.
        noise : callable
            Gives that of a gradient for R and T.
        """
        best, found = math.inf, (1.0, 1.0)
        squares = self.sizes**2
        whole = float(self.shares @ squares) / dim
        for reach in EDGES * math.sqrt(dim):
            for longest in reach * LONGER:
                weights = self._weights(reach, longest)
                first = float(self.shares @ (weights * squares)) / dim
                second = float(self.shares @ (weights**2 * squares)) / dim
                apart = (second / first**2 - 1 / whole) / (num_rows * variance)
                taken = float(self.shares @ ((1 - weights) * self.sizes)) / math.sqrt(dim)
                bias = MISSPECIFIED * taken / first
                noisy = noise(reach, longest) / (num_rows * variance * first)
                error = apart + bias**2 + noisy**2
                if error < best * (1 - 1e-6):
                    best, found = error, (float(reach), float(longest))
        return found

    def _weights(self, reach: float, longest: float) -> Array:
        weights = np.minimum(1.0, reach / self.sizes)
        return weights * np.minimum(1.0, longest / np.maximum(self.sizes, longest))

    def kept(self, reach: float, longest: float, dim: int) -> tuple[float, float]:
        """Mean of w |u|^2 / d, and of w^2 |u|^2 / d over it."""
        weights = self._weights(reach, longest)
        first = float(self.shares @ (weights * self.sizes**2)) / dim
        second = float(self.shares @ (weights**2 * self.sizes**2)) / dim
        return first, second / first
