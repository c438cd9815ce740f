"""State of all S_j in a chain, their density given the rest, and the Wishart walk.

Given the rest, S_j has the density of Wishart(n_j, W^-1), W the precision of the features,
times the likelihood of Shat_j, each entry of whose upper triangle has noise of its own, times
that of zhat_j. :mod:`dpmc.linreg.gibbs.gaussian_moves` and :mod:`dpmc.linreg.gibbs.scale_moves`
have moves that mix where the walk of [alparslan2023thesis, Algorithm 14] does not.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dpmc.linreg.gibbs.conditionals import accepts, node_log_likelihood, probability
from dpmc.linreg.gibbs.whitened_nodes import WhitenedNodes
from dpmc.numerics.small_matrices import (
    bartlett,
    cholesky,
    compiled,
    copy_matrix,
    log_determinant,
    lower_product,
    self_product,
    shifted_cholesky,
    trace_product,
)


class StatisticsState(NamedTuple):
    """State of a chain, and what follows from it."""

    s: Any  # (J, d, d)
    theta: Any  # (d,)
    variance: Any  # (1,): sigma_y^2
    precision: Any  # (d, d): W
    total: Any  # (d, d): Lambda + sum_j S_j
    log_total: Any  # (1,): log |total|
    log_det: Any  # (J,): log |S_j|
    factors: Any  # (J, d, d): lower factor of M_j
    log_likelihood: Any  # (J,): of zhat_j
    terms: Any  # (J, d, d): S_j M_j^-1 S_j
    shifts: Any  # (J, d): S_j M_j^-1 zhat_j
    stale: Any  # (J,) bool: whether the two are to be computed anew

    @classmethod
    def of(cls, s: Any, theta: Any, variance: float) -> StatisticsState:
        """Allocate the state of a chain that starts here."""
        num, dim = s.shape[:2]
        return cls(
            np.array(s, dtype=np.float64, order="C"),
            np.array(theta, dtype=np.float64),
            np.array([variance], dtype=np.float64),
            np.eye(dim),
            np.eye(dim),
            np.zeros(1),
            np.zeros(num),
            np.zeros((num, dim, dim)),
            np.zeros(num),
            np.zeros((num, dim, dim)),
            np.zeros((num, dim)),
            np.ones(num, dtype=np.bool_),
        )


class StatisticsScratch(NamedTuple):
    """Room for one proposal of every node."""

    s: Any  # (J, d, d)
    factors: Any  # (J, d, d)
    log_likelihood: Any  # (J,)
    a: Any  # (d, d), as are b and c
    b: Any
    c: Any
    total: Any  # (d, d)
    theta: Any  # (d,), as are x and y
    x: Any
    y: Any
    nodes: WhitenedNodes  # those of changes of scale

    @classmethod
    def of(cls, num: int, dim: int) -> StatisticsScratch:
        """Allocate it."""
        nodes, matrices = np.zeros((2, num, dim, dim)), np.zeros((4, dim, dim))
        whitened = WhitenedNodes.of(num, dim)
        return cls._make([*nodes, np.zeros(num), *matrices, *np.zeros((3, dim)), whitened])


@compiled
def noise_log_likelihood(s: Any, s_hat: Any, s_variance: float) -> float:
    """Log-density of Shat given S up to a constant: its upper triangle once."""
    total = 0.0
    for i in range(s.shape[0]):
        for k in range(i + 1):
            total += (s_hat[i, k] - s[i, k]) ** 2
    return -0.5 * total / s_variance


@compiled
def node_log_density(
    released: Any, j: int, s: Any, log_det: float, log_likelihood: float, precision: Any
) -> float:
    """Log-density of S_j given the rest up to a constant."""
    exponent = 0.5 * (released.num_rows[j] - s.shape[0] - 1)
    prior = exponent * log_det - 0.5 * trace_product(precision, s)
    noise = noise_log_likelihood(s, released.s[j], released.s_variance)
    return float(prior + noise + log_likelihood)


@compiled
def settle(
    released: Any, j: int, log_proposal: float, state: Any, scratch: Any, rng: Any
) -> tuple[bool, float]:
    """Accept or reject the proposal ``scratch.s[j]``; return whether, and the probability."""
    s, factor, variance = scratch.s[j], scratch.factors[j], state.variance[0]
    if not cholesky(s, scratch.a):
        return False, 0.0
    if not shifted_cholesky(s, variance, released.z_variance, factor):
        return False, 0.0
    log_det = log_determinant(scratch.a)
    likelihood = node_log_likelihood(s, released.z[j], state.theta, factor, scratch.x)
    log_ratio = (
        log_proposal
        + node_log_density(released, j, s, log_det, likelihood, state.precision)
        - node_log_density(
            released, j, state.s[j], state.log_det[j], state.log_likelihood[j], state.precision
        )
    )
    accepted = accepts(log_ratio, rng)
    if accepted:
        copy_matrix(s, state.s[j])
        copy_matrix(factor, state.factors[j])
        state.log_det[j] = log_det
        state.log_likelihood[j] = likelihood
        state.stale[j] = True
    return accepted, probability(log_ratio)


@compiled
def inverse_square(factor: Any, scratch: Any) -> float:
    """Squared Frobenius norm of the inverse of a lower factor."""
    dim, total = factor.shape[0], 0.0
    for j in range(dim):
        for i in range(j, dim):
            entry = 1.0 if i == j else 0.0
            for k in range(j, i):
                entry -= factor[i, k] * scratch[k]
            scratch[i] = entry / factor[i, i]
            total += scratch[i] ** 2
    return total


@compiled
def wishart_log_ratio(factor: Any, dof: float, scratch: Any) -> float:
    """Log q(S | S') - log q(S' | S) of the Wishart walk S' = L A A' L' / dof.

    `factor`, shape (d, d): the Bartlett factor A; S = L L'. `dof`: alpha, above d - 1.
    """
    dim, square = factor.shape[0], 0.0
    for i in range(dim):
        for k in range(i + 1):
            square += factor[i, k] ** 2
    change = dim * math.log(dof) - log_determinant(factor)
    traces = square - dof * dof * inverse_square(factor, scratch)
    return float((dof - 0.5 * (dim + 1)) * change + 0.5 * traces)


@compiled
def wishart_move(
    released: Any, j: int, dof: float, state: Any, scratch: Any, rng: Any
) -> tuple[bool, float]:
    """Walk from S_j to S' ~ Wishart(dof, S_j / dof)."""
    if not cholesky(state.s[j], scratch.a):
        return False, 0.0
    bartlett(dof, rng, scratch.b)
    lower_product(scratch.a, scratch.b, 1.0 / math.sqrt(dof), scratch.c)
    self_product(scratch.c, scratch.s[j])
    log_proposal = wishart_log_ratio(scratch.b, dof, scratch.x)
    return settle(released, j, log_proposal, state, scratch, rng)
