"""Full conditionals of private distributed regression, compiled [alparslan2023thesis, 5.2.3].

With S_j = X_j'X_j and z_j = X_j'y_j of node j, released with noise as Shat_j and zhat_j, the
model is zhat_j ~ N(S_j theta, M_j), M_j = sigma_y^2 S_j + v_z I. What is here concerns theta,
sigma_y^2 and the precision W of the features; :mod:`dpmc.linreg.gibbs.wishart_moves` moves the S_j.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dpmc.linreg.types import NoisyStatistics, Prior
from dpmc.numerics.small_matrices import (
    bartlett,
    cholesky,
    clear,
    compiled,
    copy_vector,
    gram,
    inner,
    log_determinant,
    multiply,
    row_products,
    solve_lower,
    solve_lower_matrix,
    solve_upper,
    solve_upper_matrix,
)
from dpmc.types import Array

# Best acceptance rate of a walk in one dimension.
WALK_ACCEPTANCE = 0.44
# Steps of an adaptation shrink as i^-0.6: their sum is infinite, that of their squares is not.
DECAY = 0.6


class ReleasedStatistics(NamedTuple):
    """A release as compiled code reads it."""

    num_rows: Any  # (J,) float64
    total_rows: float
    s: Any  # (J, d, d)
    z: Any  # (J, d)
    s_variance: float
    z_variance: float

    @classmethod
    def of(cls, noisy: NoisyStatistics) -> ReleasedStatistics:
        """Copy what is needed, contiguous."""
        return cls(
            np.array(noisy.num_rows, dtype=np.float64),
            float(np.sum(noisy.num_rows)),
            np.array(noisy.s, dtype=np.float64, order="C"),
            np.array(noisy.z, dtype=np.float64, order="C"),
            float(noisy.s_sd) ** 2,
            float(noisy.z_sd) ** 2,
        )


class PriorTerms(NamedTuple):
    """A prior as compiled code reads it."""

    precision: Any  # (d, d): C^-1
    shift: Any  # (d,): C^-1 m
    shape: float
    rate: float
    scale: Any  # (d, d): Lambda
    dof: float

    @classmethod
    def of(cls, prior: Prior) -> PriorTerms:
        """Invert the covariance by its Cholesky factor."""
        root = np.linalg.inv(np.linalg.cholesky(prior.covariance))
        precision = root.T @ root
        shift = root.T @ (root @ np.asarray(prior.mean, dtype=np.float64))
        scale = np.array(prior.scale, dtype=np.float64, order="C")
        return cls(precision, shift, float(prior.shape), float(prior.rate), scale, float(prior.dof))


def coefficient_posterior(
    s: Array, z: Array, variance: float, z_variance: float, prior: Prior
) -> tuple[Array, Array]:
    """Mean and covariance of theta given S_j and sigma_y^2.

    The precision is P = C^-1 + sum_j S_j M_j^-1 S_j and the mean P^-1 (C^-1 m + sum_j S_j
    M_j^-1 zhat_j) [alparslan2023thesis, Proposition 3, with C^-1 m inside of the bracket].

    Parameters
    ----------
    s : ndarray of shape (J, d, d)
        Positive semi-definite.
    z : ndarray of shape (J, d)
        Noisy z_j of each node.
    variance, z_variance : float
        sigma_y^2, and the variance of the noise on z.

    Returns
    -------
    mean : ndarray of shape (d,)
        Mean of theta.
    covariance : ndarray of shape (d, d)
        Covariance of theta.
    """
    terms = PriorTerms.of(prior)
    noise = np.linalg.cholesky(variance * s + z_variance * np.eye(prior.dim))
    white = np.linalg.solve(noise, s)
    data = np.linalg.solve(noise, z[..., None])[..., 0]
    precision = terms.precision + np.einsum("jki,jkl->il", white, white)
    shift = terms.shift + np.einsum("jki,jk->i", white, data)
    root = np.linalg.inv(np.linalg.cholesky(precision))
    mean: Array = root.T @ (root @ shift)
    covariance: Array = root.T @ root
    return mean, covariance


@compiled
def node_terms(s: Any, z: Any, factor: Any, scratch: Any, precision: Any, shift: Any) -> None:
    """Write S M^-1 S and S M^-1 zhat of one node, given the factor of its M."""
    dim = z.size
    white = np.empty(dim)
    for i in range(dim):
        white[i] = z[i]
        shift[i] = 0.0
        for k in range(dim):
            scratch[i, k] = s[i, k]
    solve_lower(factor, white)
    solve_lower_matrix(factor, scratch)
    gram(scratch, precision)
    for k in range(dim):
        for i in range(dim):
            shift[i] += scratch[k, i] * white[k]


@compiled
def node_log_likelihood(s: Any, z: Any, theta: Any, factor: Any, residual: Any) -> float:
    """Log N(zhat; S theta, M) up to a constant, given the factor of M."""
    multiply(s, theta, residual)
    for i in range(z.size):
        residual[i] = z[i] - residual[i]
    solve_lower(factor, residual)
    return -0.5 * (log_determinant(factor) + inner(residual, residual))


@compiled
def coefficient_mean(precision: Any, shift: Any, factor: Any, mean: Any) -> bool:
    """Write the factor of P and the mean P^-1 r; return False if P is not positive definite."""
    if not cholesky(precision, factor):
        return False
    copy_vector(shift, mean)
    solve_lower(factor, mean)
    solve_upper(factor, mean)
    return True


@compiled
def draw_coefficients(mean: Any, factor: Any, rng: Any, theta: Any) -> None:
    """Draw theta ~ N(mean, P^-1), given the factor of P."""
    for i in range(mean.size):
        theta[i] = rng.standard_normal()
    solve_upper(factor, theta)
    for i in range(mean.size):
        theta[i] += mean[i]


@compiled
def log_coefficient_prior(prior: Any, theta: Any) -> float:
    """Log-density of the Gaussian prior up to a constant."""
    total = 0.0
    for i in range(theta.size):
        for k in range(theta.size):
            total -= 0.5 * prior.precision[i, k] * theta[i] * theta[k]
        total += prior.shift[i] * theta[i]
    return total


@compiled
def log_variance_prior(variance: float, shape: float, rate: float) -> float:
    """Log-density of the inverse gamma prior up to a constant."""
    return -(shape + 1.0) * math.log(variance) - rate / variance


@compiled
def propose_variance(variance: float, sd: float, log_move: bool, rng: Any) -> tuple[float, float]:
    """Random-walk proposal and its log-Jacobian.

    The walk is on log sigma_y^2, whose density is that of sigma_y^2 times sigma_y^2, or on
    sigma_y^2 itself, where a proposal may be negative: its prior density is zero
    [alparslan2023thesis, Algorithm 15].
    """
    step = sd * rng.standard_normal()
    if log_move:
        return variance * math.exp(step), step
    return variance + step, 0.0


@compiled
def draw_precision(total: Any, dof: float, rng: Any, factor: Any, scratch: Any, out: Any) -> bool:
    """Draw W = Sigma_x^-1 ~ Wishart(dof, total^-1); return False if `total` has no factor.

    With total = Lambda + sum_j S_j and dof = kappa + n [alparslan2023thesis, Proposition 2].
    """
    if not cholesky(total, factor):
        return False
    clear(scratch)
    bartlett(dof, rng, scratch)
    solve_upper_matrix(factor, scratch)
    row_products(scratch, out)
    trace = 0.0
    for i in range(out.shape[0]):
        trace += out[i, i]
    return trace < math.inf


@compiled
def accepts(log_ratio: float, rng: Any) -> bool:
    """Draw whether to accept; NaN, which compares false, is a rejection."""
    return math.log1p(-rng.random()) < log_ratio


@compiled
def probability(log_ratio: float) -> float:
    """Probability of acceptance, zero for NaN."""
    if log_ratio >= 0.0:
        return 1.0
    return math.exp(log_ratio) if log_ratio > -700.0 else 0.0


@compiled
def adapted(log_step: float, excess: float, count: int) -> float:
    """Logarithm of a step after a Robbins-Monro update [Andrieu and Thoms 2008].

    Parameters
    ----------
    log_step : float
        Logarithm of the step so far.
    excess : float
        Acceptance less its target: positive lengthens the step.
    count : int
        Number of this update, from 1.
    """
    return float(log_step + excess * count**-DECAY)


@compiled
def finite(theta: Any, variance: float) -> bool:
    """Whether a state is a number in every component."""
    total = variance
    for i in range(theta.size):
        total += theta[i]
    return -math.inf < total < math.inf


class Beliefs(NamedTuple):
    """The prior, in the form in which conditionals read it."""

    precision: Array  # (d, d): of theta; of theta over sigma_y where the prior is conjugate
    shift: Array  # (d,): the precision times the prior mean
    square: float  # The prior mean times `shift`
    # shape, rate: of the inverse gamma distribution of sigma_y^2.
    shape: float
    rate: float
    # scale, dof: of the inverse Wishart distribution of Sigma_x.
    scale: Array
    dof: float
    conjugate: bool  # Whether the variance of theta scales with sigma_y^2


def beliefs_of(prior: Prior, conjugate: bool, precision: float | None = None) -> Beliefs:
    """Prior as the conditionals read it.

    `conjugate`: whether the variance of theta scales with sigma_y^2. `precision`: take this
    multiple of the identity in place of the inverse of the prior covariance.
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
