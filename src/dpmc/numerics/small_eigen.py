"""Eigenvalues of matrices of a few rows, compiled, and what to do with those too small."""

from __future__ import annotations

import math
from typing import Any

from dpmc.numerics.small_matrices import compiled, copy_matrix, shifted_cholesky

# Of rotations; four to six are enough for any matrix.
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
