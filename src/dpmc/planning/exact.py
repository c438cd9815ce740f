"""Posteriors of public rows without privacy, by Newton steps from near their mode."""

from __future__ import annotations

import numpy as np

from dpmc.automatic.prior import Prior
from dpmc.automatic.whitened import WhitenedRows
from dpmc.rows.vectors import unpack
from dpmc.types import Array, Dataset, Model

# Steps at most, the longest in deviations of the start, and the length of one that ends the search.
STEPS, LONGEST, NEAR = 20, 3.0, 0.01
# A clip bound that no row of the public ones exceeds.
FREE = 1e100


class Exact:
    """The likelihood of public rows of a model.

    Parameters
    ----------
    model : Model
    rows : ndarray of shape (n, p)
        Public.
    """

    def __init__(self, model: Model, rows: Array) -> None:
        self.rows = WhitenedRows(model, Dataset.of("rows", rows))

    def posterior(self, prior: Prior, start: Array, basis: Array) -> tuple[Array, Array]:
        """Mode and standard deviations of a posterior, shape (d,) each.

        Parameters
        ----------
        prior : Prior
        start : ndarray of shape (d,)
        basis : ndarray of shape (d, d)
            Whose columns are about a deviation each.
        """
        theta = start
        for _ in range(STEPS):
            gradient = self.rows.gradient_sum(theta, basis, FREE).value
            packed = self.rows.curvature_sum(theta, basis, FREE).value
            gradient = gradient + basis.T @ prior.gradient(theta)
            precision = unpack(packed, len(theta)) + basis.T @ prior.precision(theta) @ basis
            sizes, vectors = np.linalg.eigh(precision)
            vectors = vectors / np.sqrt(np.maximum(np.abs(sizes), 1e-3))
            step = vectors @ (vectors.T @ gradient)
            length = float(np.linalg.norm(step))
            if not np.isfinite(length):
                return start, np.linalg.norm(basis, axis=1)
            theta = theta + basis @ step * min(1.0, LONGEST / max(length, 1e-12))
            if length < NEAR:
                break
        return theta, np.linalg.norm(basis @ vectors, axis=1)


def normal(mean: Array, precision: Array) -> Prior:
    """Normal prior."""

    def log_density(theta: Array) -> float:
        return -0.5 * float((theta - mean) @ precision @ (theta - mean))

    return Prior(log_density, lambda theta: precision @ (mean - theta), len(mean))
