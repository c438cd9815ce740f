"""Covariance matrices named in a configuration: written out, or drawn at random from a seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpmc.rng import stream
from dpmc.types import Array, DpmcError

Covariance = Sequence[Sequence[float]] | Mapping[str, Any]


def random_covariance(dim: int, rng: np.random.Generator) -> Array:
    """Draw a covariance with Gamma(1/2, 1) eigenvalues and oriented eigenvectors, shape (d, d).

    The eigenvectors are the orthonormal factor of a matrix of independent uniform
    entries [raisa2021dphmc, section 4].
    """
    eigenvalues = rng.gamma(0.5, 1.0, size=dim)
    basis, _ = np.linalg.qr(rng.uniform(size=(dim, dim)))
    covariance: Array = basis * eigenvalues @ basis.T
    return (covariance + covariance.T) / 2


def resolve(covariance: Covariance, dim: int) -> Array:
    """Matrix that a configuration names, shape (d, d).

    Parameters
    ----------
    covariance : nested sequence of float, or mapping ``{"seed": int}``
        The matrix itself, or the seed of one draw of :func:`random_covariance`.
    dim : int
        Dimension d.
    """
    if isinstance(covariance, Mapping):
        if set(covariance) != {"seed"}:
            raise DpmcError(f"`covariance` must have the key seed alone, got {sorted(covariance)}")
        return random_covariance(dim, stream(int(covariance["seed"]), "covariance", dim))
    matrix = np.asarray(covariance, dtype=np.float64)
    if matrix.shape != (dim, dim):
        raise DpmcError(f"`covariance` must have shape ({dim}, {dim}), got {matrix.shape}")
    if not np.allclose(matrix, matrix.T, rtol=0, atol=1e-8):
        raise DpmcError("`covariance` must be symmetric")
    smallest = np.linalg.eigvalsh(matrix)[0]
    if not smallest > 0:
        raise DpmcError(f"`covariance` must have positive eigenvalues, got {smallest:.3g}")
    return (matrix + matrix.T) / 2
