"""Vectors, one for each row: norms, clips, and symmetric matrices packed as vectors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpmc.numerics.compiled import njit
from dpmc.privacy.clipped import Clipped, row_mean
from dpmc.rows.clipping import clip_vector, ordinary
from dpmc.types import Array


def pack(matrices: Array) -> Array:
    """Symmetric part of matrices as vectors of the same Euclidean norm.

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
    dim = matrices.shape[-1]
    packed = np.empty((*matrices.shape[:-2], dim * (dim + 1) // 2))
    _pack(
        np.ascontiguousarray(matrices).reshape(-1, dim, dim), packed.reshape(-1, packed.shape[-1])
    )
    return packed


@njit
def _pack(matrices: Any, packed: Any) -> None:
    """Write the upper triangles, row by row: by indices NumPy takes several times as long."""
    root = math.sqrt(2.0)
    for one in range(matrices.shape[0]):
        place = 0
        for i in range(matrices.shape[1]):
            packed[one, place] = matrices[one, i, i]
            place += 1
            for j in range(i + 1, matrices.shape[1]):
                packed[one, place] = 0.5 * (matrices[one, i, j] + matrices[one, j, i]) * root
                place += 1


def unpack(vector: Array, dim: int) -> Array:
    """Symmetric matrix, shape (d, d), of a packed one."""
    i, j, weight = _triangle(dim)
    matrix = np.zeros((dim, dim))
    matrix[i, j] = matrix[j, i] = vector / weight
    return matrix


def _triangle(dim: int) -> tuple[Any, Any, Array]:
    i, j = np.triu_indices(dim)
    return i, j, np.where(i == j, 1.0, math.sqrt(2.0))


def norms(rows: Array) -> Array:
    """Euclidean norms of rows: infinite where a square overflows, NaN where one is."""
    with np.errstate(all="ignore"):
        found: Array = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return found


@njit
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


def clipped_mean(rows: Array, bound: float) -> Clipped[Array]:
    """Mean of rows, shape (m, d), each clipped in place to norm `bound`."""
    clip_rows(rows, bound)
    return row_mean(rows.mean(axis=0), bound, len(rows))
