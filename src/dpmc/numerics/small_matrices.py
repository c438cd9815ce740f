"""Linear algebra of matrices so small that a library call costs more than the arithmetic.

Loops compiled by Numba. Of a symmetric matrix both halves are stored; of a lower factor the
lower half alone is read and written, what is above its diagonal means nothing. Functions that
factorise return False if the matrix is not positive definite.

Eigenvalues are those of matrices of a few rows.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpmc.numerics.compiled import kept
from dpmc.types import Array, DpmcError

compiled = kept


def psd(matrix: Array) -> Array:
    """Positive semi-definite matrix nearest in Frobenius norm, shape (..., d, d).

    The symmetric part with its negative eigenvalues set to zero [Higham 1988].
    """
    values, vectors = spectrum(matrix)
    nearest: Array = (vectors * values[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    return (nearest + np.swapaxes(nearest, -1, -2)) / 2


def spectrum(matrix: Array) -> tuple[Array, Array]:
    """Eigenvalues of the nearest positive semi-definite matrix and its vectors.

    Parameters
    ----------
    matrix : ndarray of shape (..., d, d)

    Returns
    -------
    values : ndarray of shape (..., d)
        Ascending, none below zero.
    vectors : ndarray of shape (..., d, d)
        Eigenvectors in columns.
    """
    if not np.isfinite(matrix).all():
        raise DpmcError("`matrix` must hold finite numbers only, got others")
    symmetric = (matrix + np.swapaxes(matrix, -1, -2)) / 2
    values, vectors = np.linalg.eigh(symmetric)
    return np.maximum(values, 0.0), vectors


# Assignments of slices would do, but each takes a second to compile where it stands.


@compiled
def clear(matrix: Any) -> None:
    """Write zeros."""
    for i in range(matrix.shape[0]):
        for k in range(matrix.shape[1]):
            matrix[i, k] = 0.0


@compiled
def copy_vector(source: Any, out: Any) -> None:
    """Write a copy."""
    for i in range(source.shape[0]):
        out[i] = source[i]


@compiled
def copy_matrix(source: Any, out: Any) -> None:
    """Write a copy."""
    for i in range(source.shape[0]):
        for k in range(source.shape[1]):
            out[i, k] = source[i, k]


@compiled
def add_matrix(source: Any, out: Any) -> None:
    """Add to a matrix."""
    for i in range(source.shape[0]):
        for k in range(source.shape[1]):
            out[i, k] += source[i, k]


@compiled
def cholesky(matrix: Any, factor: Any) -> bool:
    """Write the lower factor L of a matrix L L'; return False if it is not positive definite."""
    for i in range(matrix.shape[0]):
        for j in range(i + 1):
            total = matrix[i, j]
            for k in range(j):
                total -= factor[i, k] * factor[j, k]
            if i != j:
                factor[i, j] = total / factor[j, j]
            elif 0.0 < total < math.inf:
                factor[i, i] = math.sqrt(total)
            else:
                return False
    return True


@compiled
def shifted_cholesky(matrix: Any, scale: float, shift: float, factor: Any) -> bool:
    """Write the lower factor of ``scale * matrix + shift * I``; return False if there is none."""
    for i in range(matrix.shape[0]):
        for j in range(i + 1):
            factor[i, j] = scale * matrix[i, j]
        factor[i, i] += shift
    return bool(cholesky(factor, factor))


@compiled
def log_determinant(factor: Any) -> float:
    """Log |L L'|."""
    total, product = 0.0, 1.0
    for i in range(factor.shape[0]):
        product *= factor[i, i]
        if not 1e-200 < product < 1e200:
            total += math.log(product)
            product = 1.0
    return 2.0 * (total + math.log(product))


@compiled
def solve_lower(factor: Any, b: Any) -> None:
    """Replace the vector `b` by ``L^-1 b``."""
    for i in range(b.size):
        total = b[i]
        for k in range(i):
            total -= factor[i, k] * b[k]
        b[i] = total / factor[i, i]


@compiled
def solve_upper(factor: Any, b: Any) -> None:
    """Replace the vector `b` by ``L'^-1 b``."""
    for i in range(b.size - 1, -1, -1):
        b[i] /= factor[i, i]
        for k in range(i):
            b[k] -= factor[i, k] * b[i]


@compiled
def solve_lower_matrix(factor: Any, b: Any) -> None:
    """Replace the matrix `b` by ``L^-1 b``, whole rows at a time."""
    for i in range(b.shape[0]):
        for k in range(i):
            weight = factor[i, k]
            for j in range(b.shape[1]):
                b[i, j] -= weight * b[k, j]
        for j in range(b.shape[1]):
            b[i, j] /= factor[i, i]


@compiled
def solve_upper_matrix(factor: Any, b: Any) -> None:
    """Replace the matrix `b` by ``L'^-1 b``."""
    for i in range(b.shape[0] - 1, -1, -1):
        for j in range(b.shape[1]):
            b[i, j] /= factor[i, i]
        for k in range(i):
            weight = factor[i, k]
            for j in range(b.shape[1]):
                b[k, j] -= weight * b[i, j]


@compiled
def lower_product(left: Any, right: Any, scale: float, out: Any) -> None:
    """Write ``scale`` times the product of two lower factors, a lower factor again."""
    for i in range(left.shape[0]):
        for j in range(i + 1):
            out[i, j] = 0.0
        for k in range(i + 1):
            weight = scale * left[i, k]
            for j in range(k + 1):
                out[i, j] += weight * right[k, j]


@compiled
def self_product(factor: Any, out: Any) -> None:
    """Write L L'."""
    for i in range(factor.shape[0]):
        for j in range(i + 1):
            total = 0.0
            for k in range(j + 1):
                total += factor[i, k] * factor[j, k]
            out[i, j] = total
            out[j, i] = total


@compiled
def gram(rows: Any, out: Any) -> None:
    """Write ``rows' rows`` of a full matrix."""
    clear(out)
    for k in range(rows.shape[0]):
        for i in range(out.shape[0]):
            weight = rows[k, i]
            for j in range(i + 1):
                out[i, j] += weight * rows[k, j]
    mirror(out)


@compiled
def mirror(matrix: Any) -> None:
    """Copy the lower half of a matrix to the upper one."""
    for i in range(matrix.shape[0]):
        for j in range(i):
            matrix[j, i] = matrix[i, j]


@compiled
def congruence(left: Any, matrix: Any, scratch: Any, out: Any) -> None:
    """Write ``left matrix left'`` of a symmetric matrix; `scratch` holds ``left matrix``."""
    for i in range(left.shape[0]):
        for j in range(left.shape[0]):
            scratch[i, j] = 0.0
        for k in range(left.shape[0]):
            weight = left[i, k]
            for j in range(left.shape[0]):
                scratch[i, j] += weight * matrix[k, j]
        for j in range(i + 1):
            total = 0.0
            for k in range(left.shape[0]):
                total += scratch[i, k] * left[j, k]
            out[i, j] = total
            out[j, i] = total


@compiled
def multiply(matrix: Any, vector: Any, out: Any) -> None:
    """Write the product of a full matrix and a vector."""
    for i in range(matrix.shape[0]):
        total = 0.0
        for k in range(matrix.shape[1]):
            total += matrix[i, k] * vector[k]
        out[i] = total


@compiled
def inner(a: Any, b: Any) -> float:
    """Inner product of two vectors."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@compiled
def trace_product(a: Any, b: Any) -> float:
    """Tr(a b) of two symmetric matrices."""
    total = 0.0
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            total += a[i, k] * b[i, k]
    return total


@compiled
def row_products(rows: Any, out: Any) -> None:
    """Write ``rows rows'`` of a full matrix."""
    for i in range(rows.shape[0]):
        for j in range(i + 1):
            total = 0.0
            for k in range(rows.shape[1]):
                total += rows[i, k] * rows[j, k]
            out[i, j] = total
            out[j, i] = total


@compiled
def bartlett(dof: float, rng: Any, factor: Any) -> None:
    """Draw a lower factor A with A A' ~ Wishart(dof, I), for real dof > d - 1 [Bartlett 1933]."""
    for i in range(factor.shape[0]):
        for j in range(i):
            factor[i, j] = rng.standard_normal()
        factor[i, i] = math.sqrt(2.0 * rng.standard_gamma(0.5 * (dof - i)))


# Most sweeps of rotations; four to six are enough for any matrix.
SWEEPS = 30


@compiled
def diagonalise(matrix: Any, vectors: Any) -> None:
    """Turn a symmetric matrix into its eigenvalues, by rotations; write the eigenvectors.

    The cyclic method of Jacobi [Golub and Van Loan 2013, section 8.5].
    """
    dim = matrix.shape[0]
    for i in range(dim):
        for k in range(dim):
            vectors[i, k] = 1.0 if i == k else 0.0
    for _ in range(SWEEPS):
        outside, total = 0.0, 0.0
        for i in range(dim):
            for k in range(dim):
                total += matrix[i, k] ** 2
                if i != k:
                    outside += matrix[i, k] ** 2
        if outside <= 1e-32 * total:
            return
        for p in range(dim - 1):
            for q in range(p + 1, dim):
                if matrix[p, q] != 0.0:
                    rotate(matrix, vectors, p, q)


@compiled
def rotate(matrix: Any, vectors: Any, p: int, q: int) -> None:
    """Make entry (p, q) of a symmetric matrix zero."""
    ratio = (matrix[q, q] - matrix[p, p]) / (2.0 * matrix[p, q])
    tangent = 1.0 / (abs(ratio) + math.sqrt(1.0 + ratio * ratio))
    if ratio < 0.0:
        tangent = -tangent
    cosine = 1.0 / math.sqrt(1.0 + tangent * tangent)
    sine = tangent * cosine
    for k in range(matrix.shape[0]):
        left, right = matrix[k, p], matrix[k, q]
        matrix[k, p], matrix[k, q] = cosine * left - sine * right, sine * left + cosine * right
        left, right = vectors[k, p], vectors[k, q]
        vectors[k, p], vectors[k, q] = cosine * left - sine * right, sine * left + cosine * right
    for k in range(matrix.shape[0]):
        left, right = matrix[p, k], matrix[q, k]
        matrix[p, k], matrix[q, k] = cosine * left - sine * right, sine * left + cosine * right


@compiled
def raise_eigenvalues(matrix: Any, threshold: float, floor: float, a: Any, b: Any) -> bool:
    """Put `floor` for the eigenvalues up to a threshold; return whether there are any."""
    if shifted_cholesky(matrix, 1.0, -threshold, a):
        return False
    copy_matrix(matrix, a)
    diagonalise(a, b)
    raised = False
    for i in range(a.shape[0]):
        if a[i, i] <= threshold:
            a[i, i] = floor
            raised = True
    for i in range(a.shape[0]):
        for k in range(i + 1):
            total = 0.0
            for m in range(a.shape[0]):
                total += b[i, m] * a[m, m] * b[k, m]
            matrix[i, k] = total
            matrix[k, i] = total
    return raised
