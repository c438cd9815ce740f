"""Draws of regression parameters given sums over the rows: compiled, for few features.

Rows are x ~ N(0, Sigma_x) and y ~ N(x'theta, sigma_y^2); S = X'X, z = X'y, u = y'y.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dpmc.linreg.types import Prior
from dpmc.numerics.small_matrices import (
    bartlett,
    cholesky,
    compiled,
    gram,
    solve_lower,
    solve_lower_matrix,
    solve_upper,
)
from dpmc.types import Array


class Beliefs(NamedTuple):
    """The prior, in the form in which conditionals read it.

    Parameters
    ----------
    precision : ndarray of shape (d, d)
        Of theta; of theta over sigma_y where the prior is conjugate.
    shift : ndarray of shape (d,)
        The precision times the prior mean.
    square : float
        The prior mean times `shift`.
    shape, rate : float
        Of the inverse gamma distribution of sigma_y^2.
    scale, dof : ndarray of shape (d, d), and float
        Of the inverse Wishart distribution of Sigma_x.
    conjugate : bool
        Whether the variance of theta scales with sigma_y^2.
    """

    precision: Array
    shift: Array
    square: float
    shape: float
    rate: float
    scale: Array
    dof: float
    conjugate: bool


def beliefs_of(prior: Prior, conjugate: bool, precision: float | None = None) -> Beliefs:
    """Return the prior as the conditionals read it.

    Parameters
    ----------
    conjugate : bool
        Whether the variance of theta scales with sigma_y^2.
    precision : float, optional
        Take this multiple of the identity in place of the inverse of the prior covariance.
    """
    if precision is None:
        inverse = np.linalg.solve(prior.covariance, np.eye(prior.dim))
        matrix = (inverse + inverse.T) / 2
    else:
        matrix = precision * np.eye(prior.dim)
    mean, scale = prior.mean.astype(np.float64), np.ascontiguousarray(prior.scale, np.float64)
    shift = matrix @ mean
    square, shape, rate = float(mean @ shift), float(prior.shape), float(prior.rate)
    return Beliefs(matrix, shift, square, shape, rate, scale, float(prior.dof), conjugate)


@compiled
def sum_cholesky(s: Any, scale: float, other: Any, factor: Any) -> bool:
    """Write the lower factor of ``scale * s + other``; return False if there is none."""
    for i in range(s.shape[0]):
        for k in range(i + 1):
            factor[i, k] = scale * s[i, k] + other[i, k]
    return bool(cholesky(factor, factor))


@compiled
def draw_features(s: Any, count: float, beliefs: Any, rng: Any, out: Any) -> bool:
    """Draw Sigma_x given S, the inverse Wishart of scale + S and dof + n, into `out`.

    With a lower Bartlett factor B of the standard Wishart distribution and L L' = scale + S, it is
    L (B B')^-1 L'. Returns false, and draws nothing, where the sum is not positive definite.
    """
    d = s.shape[0]
    factor, root, half = np.empty((d, d)), np.empty((d, d)), np.empty((d, d))
    if not sum_cholesky(s, 1.0, beliefs.scale, factor):
        return False
    bartlett(beliefs.dof + count, rng, root)
    for i in range(d):
        for k in range(d):
            half[i, k] = factor[k, i] if k >= i else 0.0
    solve_lower_matrix(root, half)
    gram(half, out)
    return True


@compiled
def draw_conjugate(
    s: Any, z: Any, u: float, count: float, beliefs: Any, rng: Any, theta: Any
) -> tuple[float, bool]:
    """Draw sigma_y^2, then theta into `theta`, under the normal inverse gamma prior.

    Returns
    -------
    variance : float
        sigma_y^2; NaN, and theta untouched, where S + precision is not positive definite.
    floored : bool
        Whether the rate of sigma_y^2 came out below that of the prior, and was raised to it.
    """
    d = theta.size
    factor = np.empty((d, d))
    if not sum_cholesky(s, 1.0, beliefs.precision, factor):
        return math.nan, False
    for i in range(d):
        theta[i] = z[i] + beliefs.shift[i]
    solve_lower(factor, theta)
    gain = 0.5 * (u + beliefs.square)
    for i in range(d):
        gain -= 0.5 * theta[i] * theta[i]
    variance = (beliefs.rate + max(0.0, gain)) / rng.standard_gamma(beliefs.shape + 0.5 * count)
    sd = math.sqrt(variance)
    for i in range(d):
        theta[i] += sd * rng.standard_normal()
    solve_upper(factor, theta)
    return variance, gain < 0.0


@compiled
def draw_independent(
    s: Any, z: Any, u: float, count: float, variance: float, beliefs: Any, rng: Any, theta: Any
) -> tuple[float, bool]:
    """Draw theta given sigma_y^2 into `theta`, then sigma_y^2, with a prior that has them apart.

    Returns as :func:`draw_conjugate`.
    """
    d = theta.size
    factor = np.empty((d, d))
    if not sum_cholesky(s, 1.0 / variance, beliefs.precision, factor):
        return math.nan, False
    for i in range(d):
        theta[i] = z[i] / variance + beliefs.shift[i]
    solve_lower(factor, theta)
    for i in range(d):
        theta[i] += rng.standard_normal()
    solve_upper(factor, theta)
    residual = u
    for i in range(d):
        residual -= 2.0 * theta[i] * z[i]
        for k in range(d):
            residual += theta[i] * s[i, k] * theta[k]
    rate = beliefs.rate + max(0.0, 0.5 * residual)
    return rate / rng.standard_gamma(beliefs.shape + 0.5 * count), residual < 0.0
