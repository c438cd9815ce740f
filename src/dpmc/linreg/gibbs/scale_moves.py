"""A common change of scale of all nodes, S_j -> T S_j T', with W integrated out.

Where noise hides a direction of the features, the total of the S_j and W follow each other in
steps of sqrt(2 / n) on a logarithmic scale, while their common scale is nearly free: draws
from the exact conditionals mix no faster than that. These moves go along that common scale,
one entry of T at a time, so that each has a step of its own.

With W integrated out, p(S_1, ..., S_J) is proportional to prod_j |S_j|^((n_j - d - 1) / 2) times
|Lambda + sum_j S_j|^(-(kappa + n) / 2). A transformation with |T| = t has the Jacobian
t^(J (d + 1)); with the first factor it makes t^n. Proposals of T and of its inverse are equally
likely [Liu and Sabatti 2000], so that no other factor enters in addition to the likelihood.

Where zhat_j says more of S_j theta than the prior does of theta, the two move against each
other: theta is taken along by every other sweep, so that S_j theta stays where it is known.
"""

from __future__ import annotations

import math
from typing import Any

from dpmc.linreg.gibbs.conditionals import (
    accepts,
    log_coefficient_prior,
    node_log_likelihood,
    probability,
)
from dpmc.linreg.gibbs.wishart_moves import noise_log_likelihood
from dpmc.numerics.small_matrices import (
    add_matrix,
    cholesky,
    compiled,
    copy_matrix,
    copy_vector,
    inner,
    log_determinant,
    multiply,
    shifted_cholesky,
)


@compiled
def transform(s: Any, left: Any, right: Any, stretch: float, image: Any, out: Any) -> None:
    """Write T S T' with T = I + stretch left right', given two vectors."""
    multiply(s, right, image)
    square = stretch * stretch * inner(right, image)
    for i in range(left.size):
        for k in range(i + 1):
            change = stretch * (left[i] * image[k] + image[i] * left[k])
            out[i, k] = s[i, k] + change + square * left[i] * left[k]
            out[k, i] = out[i, k]


@compiled
def propose_scale(
    released: Any, scale: Any, left: Any, right: Any, stretch: float, state: Any, scratch: Any
) -> float:
    """Transform all nodes into `scratch`; return the gain of the log-likelihood.

    That of ``scratch.theta`` over that of the state; minus infinity where rounding has left a
    matrix that is not positive definite.
    """
    gain, variance = 0.0, state.variance[0]
    copy_matrix(scale, scratch.total)
    for j in range(state.s.shape[0]):
        old, new = state.s[j], scratch.s[j]
        transform(old, left, right, stretch, scratch.x, new)
        add_matrix(new, scratch.total)
        if not shifted_cholesky(new, variance, released.z_variance, scratch.factors[j]):
            return -math.inf
        scratch.log_likelihood[j] = node_log_likelihood(
            new, released.z[j], scratch.theta, scratch.factors[j], scratch.x
        )
        gain += scratch.log_likelihood[j] - state.log_likelihood[j]
        gain += noise_log_likelihood(new, released.s[j], released.s_variance)
        gain -= noise_log_likelihood(old, released.s[j], released.s_variance)
    return gain


@compiled
def scale_move(
    released: Any,
    prior: Any,
    basis: Any,
    i: int,
    k: int,
    carry: float,
    sd: float,
    state: Any,
    scratch: Any,
    rng: Any,
) -> tuple[bool, float]:
    """Stretch along row i of an orthonormal basis, or shear along it by row k.

    Parameters
    ----------
    released : ReleasedStatistics
        Noisy S_j and z_j of all nodes.
    prior : PriorTerms
        Prior as the conditionals read it.
    basis : ndarray of shape (d, d)
        It must not depend on the state.
    i, k : int
        T = exp(step b_i b_k'): I + (exp(step) - 1) b_i b_i' if they are equal, else
        I + step b_i b_k'.
    carry : float
        theta becomes exp(-carry step b_k b_i') theta; 0 leaves it.
    sd : float
        Standard deviation of the step.
    state : StatisticsState
        State of the chain; updated in place.
    scratch : StatisticsScratch
        Room for one move; overwritten.
    rng : numpy.random.Generator
        Source of the random numbers.

    Returns
    -------
    accepted : bool
        Whether the proposal was accepted.
    probability : float
        Its acceptance probability.
    """
    step = sd * rng.standard_normal()
    stretch = math.expm1(step) if i == k else step
    along = inner(basis[i], state.theta)
    along *= math.expm1(-carry * step) if i == k else -carry * step
    for m in range(state.theta.size):
        scratch.theta[m] = state.theta[m] + along * basis[k, m]
    log_ratio = propose_scale(released, prior.scale, basis[i], basis[k], stretch, state, scratch)
    log_ratio += log_coefficient_prior(prior, scratch.theta)
    log_ratio -= log_coefficient_prior(prior, state.theta)
    if not log_ratio > -math.inf or not cholesky(scratch.total, scratch.a):
        return False, 0.0
    log_total, n = log_determinant(scratch.a), released.total_rows
    log_ratio -= 0.5 * (prior.dof + n) * (log_total - state.log_total[0])
    if i == k:
        log_ratio += (n - carry) * step
    accepted = accepts(log_ratio, rng)
    if accepted:
        copy_matrix(scratch.total, state.total)
        copy_vector(scratch.theta, state.theta)
        state.log_total[0] = log_total
        for j in range(state.s.shape[0]):
            copy_matrix(scratch.s[j], state.s[j])
            copy_matrix(scratch.factors[j], state.factors[j])
            state.log_likelihood[j] = scratch.log_likelihood[j]
            state.stale[j] = True
            if i == k:
                state.log_det[j] += 2.0 * step
    return accepted, probability(log_ratio)
