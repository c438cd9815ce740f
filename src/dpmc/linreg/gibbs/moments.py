"""Moments of sums of products of Gaussian rows, and the distance of the sums from normal.

A row w = (x, y) of p = d + 1 numbers is N(0, G). The sum T of w w' over n rows holds every
statistic of linear regression, and is Wishart(n, G); by the central limit theorem it is
close to normal [alparslan2023thesis, section 7.1.2; Bernstein and Sheldon 2019].
Compiled functions take and return ndarrays; symmetric matrices are filled on both sides.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpmc.numerics.small_matrices import cholesky, compiled, log_determinant


@compiled
def joint_covariance(theta: Any, variance: float, features: Any, joint: Any) -> None:
    """Write G, the covariance of (x, y).

    Parameters
    ----------
    theta : ndarray of shape (d,)
        Regression coefficients.
    variance : float
        sigma_y^2.
    features : ndarray of shape (d, d)
        Sigma_x.
    """
    d = theta.size
    last = variance
    for i in range(d):
        cross = 0.0
        for k in range(d):
            joint[i, k] = features[i, k]
            cross += features[i, k] * theta[k]
        joint[i, d] = cross
        joint[d, i] = cross
        last += theta[i] * cross
    joint[d, d] = last


@compiled
def pack(matrix: Any, out: Any) -> None:
    """Write the upper triangle of a matrix, row by row, into `out` of shape (p (p + 1) / 2,)."""
    position = 0
    for i in range(matrix.shape[0]):
        for k in range(i, matrix.shape[0]):
            out[position] = matrix[i, k]
            position += 1


@compiled
def unpack(vector: Any, out: Any) -> None:
    """Fill the symmetric matrix `out` whose upper triangle, row by row, is `vector`."""
    position = 0
    for i in range(out.shape[0]):
        for k in range(i, out.shape[0]):
            out[i, k] = vector[position]
            out[k, i] = vector[position]
            position += 1


@compiled
def product_covariance(joint: Any) -> Any:
    """Return the covariance of all products of one row, shape (D, D) with D = p (p + 1) / 2.

    Products are w_i w_k with i <= k in the order of :func:`pack`. By the theorem of Isserlis
    Cov(w_i w_k, w_l w_m) = G_il G_km + G_im G_kl.
    """
    p = joint.shape[0]
    size = p * (p + 1) // 2
    covariance = np.empty((size, size))
    row = 0
    for i in range(p):
        for k in range(i, p):
            column = 0
            for left in range(p):
                for right in range(left, p):
                    covariance[row, column] = (
                        joint[i, left] * joint[k, right] + joint[i, right] * joint[k, left]
                    )
                    column += 1
            row += 1
    return covariance


@compiled
def log_density_ratio(sums: Any, count: float, factor: Any) -> float:
    """Return the log-density ratio of a Wishart to the normal distribution of equal moments.

    Parameters
    ----------
    sums : ndarray of shape (p, p)
        A T A' / n with A G A' = I: the identity on average.
    count : float
        Rows n of the sum.
    factor : ndarray of shape (p, p)
        Work space.

    Returns
    -------
    float
        Zero at the identity, -inf where `sums` is not positive definite.
    """
    if not cholesky(sums, factor):
        return -math.inf
    p = sums.shape[0]
    trace, squares = 0.0, 0.0
    for i in range(p):
        trace += sums[i, i] - 1.0
        for k in range(p):
            deviation = sums[i, k] - (1.0 if i == k else 0.0)
            squares += deviation * deviation
    log_ratio = 0.5 * (count - p - 1) * log_determinant(factor)
    return float(log_ratio - 0.5 * count * trace + 0.25 * count * squares)
