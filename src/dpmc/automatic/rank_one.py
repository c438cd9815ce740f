"""Curvatures of rows that enter by one inner product: a number times an outer product.

No matrix is formed for a row then: the Frobenius norm of ``w z z'`` is ``|w| |z|^2``, and a sum of
such matrices, each times its clip, is one product of matrices. A row takes 2 d^2 multiplications
where differences of its gradient take 2 d^3.
"""

from __future__ import annotations

import numpy as np

from dpmc.numerics.row_products import gram, times
from dpmc.rows.compiled_gradients import RowGradients
from dpmc.rows.person_gradients import PersonGradients, add_squares
from dpmc.rows.vectors import clip_rows, pack
from dpmc.rows.vectors import norms as row_norms
from dpmc.types import Array

# Largest weight and largest squared norm: no product of the two, and no square, overflows. Rows
# beyond are clipped as matrices.
LARGEST_WEIGHT = 1e100
LARGEST_SQUARE = 1e150


def norms(
    gradients: RowGradients, features: Array, first: int, last: int, theta: Array, basis: Array
) -> Array:
    """Frobenius norms of the whitened curvatures of rows or persons, shape (last - first,).

    Infinite where a square overflows, NaN for a curvature that is none. In any order.
    """
    if isinstance(gradients, PersonGradients):
        features, several = _apart(gradients, first, last, theta, basis)
        ones = norms(gradients.rows, features, 0, features.shape[1], theta, basis)
        return np.concatenate([ones, row_norms(several)])
    weights, rows = _factors(gradients, features, first, last, theta, basis)
    with np.errstate(all="ignore"):
        found: Array = np.abs(weights) * _squares(rows)
    return found


def clipped_sum(
    gradients: RowGradients,
    features: Array,
    first: int,
    last: int,
    theta: Array,
    basis: Array,
    bound: float,
) -> Array:
    """Packed sum of whitened curvatures, each clipped to Frobenius norm `bound`.

    Parameters
    ----------
    gradients : RowGradients
        Of a model with a slope. A person with several rows has a sum of such curvatures.
    features, first, last, theta
        The rows and the parameter, see :class:`dpmc.rows.compiled_gradients.RowGradients`.
    basis : ndarray of shape (d, d)
    bound : float
        Finite and > 0.

    Returns
    -------
    ndarray of shape (d (d + 1) / 2,)
        See :func:`dpmc.rows.vectors.pack`.
    """
    if isinstance(gradients, PersonGradients):
        features, several = _apart(gradients, first, last, theta, basis)
        clip_rows(several, bound)
        count = features.shape[1]
        ones = clipped_sum(gradients.rows, features, 0, count, theta, basis, bound)
        return np.asarray(ones + several.sum(axis=0))
    weights, rows = _factors(gradients, features, first, last, theta, basis)
    with np.errstate(all="ignore"):
        squares = _squares(rows)
        ordinary = (np.abs(weights) < LARGEST_WEIGHT) & (squares < LARGEST_SQUARE)
        lengths = np.where(ordinary, np.abs(weights) * squares, 0.0)
        weights = np.where(lengths > bound, bound / lengths, 1.0) * weights
    if ordinary.all():
        return pack(gram(rows, weights))
    strange = rows[~ordinary]
    with np.errstate(all="ignore"):
        outer = strange[:, :, None] * strange[:, None, :]
        matrices = pack(weights[~ordinary, None, None] * outer)
    clip_rows(matrices, bound)
    found: Array = pack(gram(rows[ordinary], weights[ordinary])) + matrices.sum(axis=0)
    return found


def _apart(
    gradients: PersonGradients, first: int, last: int, theta: Array, basis: Array
) -> tuple[Array, Array]:
    """Features of the rows of persons who have one, and packed curvatures of other persons.

    These are sums over the rows of each, as they are.
    """
    features, alone = gradients.alone(first, last)
    dim = gradients.dim
    total = np.zeros((last - first, dim * (dim + 1) // 2))
    if not alone.all():
        ends = gradients.starts[first + 1 : last + 1]
        for part, low, high, place in gradients.pieces(first, last):
            weights, rows = _factors(gradients.rows, part, low, high, theta, basis)
            add_squares(weights, rows, ends, place, total)
    return features, total[~alone]


def _factors(
    gradients: RowGradients, features: Array, first: int, last: int, theta: Array, basis: Array
) -> tuple[Array, Array]:
    """Number and a whitened vector for each row, shapes (m,) and (m, d)."""
    with np.errstate(all="ignore"):
        weights = gradients.curvatures(features, theta, first, last)
        rows = np.ascontiguousarray(features[-gradients.dim :, first:last].T)
        return weights, times(rows, basis)


def _squares(rows: Array) -> Array:
    squares: Array = np.einsum("ij,ij->i", rows, rows)
    return squares
