"""An autoregressive move of one S_j that is nearly an independent draw from its conditional.

It is made in the eigenbasis of W, in which the prior covariance of S_j is diagonal and that of
the noise nearly so. There S_j given the rest is nearly Gaussian, and a step that would be
reversible for that Gaussian distribution is accepted by the ratio of the densities to it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dpmc.linreg.gibbs.wishart_moves import settle
from dpmc.numerics.small_matrices import (
    cholesky,
    compiled,
    congruence,
    copy_matrix,
    multiply,
    solve_lower,
    solve_upper,
)


class Frame(NamedTuple):
    """The eigenbasis of W, and the Gaussian approximation of one node in it."""

    rows: Any  # (d, d): row i is eigenvector i
    columns: Any  # (d, d): its transpose
    values: Any  # (d,): eigenvalues of W
    overlap: Any  # (d, d): sum_l U_li^2 U_lk^2
    s: Any  # (d, d): S_j
    s_hat: Any  # (d, d): Shat_j
    spread: Any  # (d, d): variance of each entry, zhat_j not seen
    centre: Any  # (d, d): its mean
    mean: Any  # (d, d): the mean, zhat_j seen
    factor: Any  # (d, d): of the predictive covariance of zhat_j
    z: Any  # (d,): zhat_j
    z_spread: Any  # (d,): variance of zhat_j given S_j
    theta: Any  # (d,)

    @classmethod
    def of(cls, dim: int) -> Frame:
        """Allocate it."""
        matrices, vectors = np.zeros((9, dim, dim)), np.zeros((4, dim))
        return cls._make([*matrices[:2], vectors[0], *matrices[2:], *vectors[1:]])


@compiled
def set_frame(precision: Any, frame: Any) -> None:
    """Take the eigenbasis of W."""
    values, vectors = np.linalg.eigh(precision)
    dim = values.size
    least = 1e-15 * values[dim - 1]
    for i in range(dim):
        frame.values[i] = max(values[i], least)
        for k in range(dim):
            frame.rows[i, k] = vectors[k, i]
            frame.columns[k, i] = vectors[k, i]
    for i in range(dim):
        for k in range(dim):
            total = 0.0
            for m in range(dim):
                total += (frame.rows[i, m] * frame.rows[k, m]) ** 2
            frame.overlap[i, k] = total


@compiled
def approximate(released: Any, j: int, state: Any, frame: Any, scratch: Any) -> bool:
    """Fill the Gaussian approximation of S_j given the rest; return False if there is none.

    The prior has mean n / w_i on the diagonal and independent entries of variance
    n (1 + delta_ik) / (w_i w_k); the noise adds to their precisions the diagonal of its
    Hessian, which is (1 + 2 q_ik) / v off the diagonal and (1 + q_ii) / (2 v) on it, q the
    overlap; zhat_j is linear in S_j, with the covariance that the prior mean would give.
    It depends on W, theta and sigma_y^2, not on S_j: all that the step below asks for.
    """
    n, v, rows = released.num_rows[j], released.s_variance, frame.rows
    congruence(rows, state.s[j], scratch.a, frame.s)
    congruence(rows, released.s[j], scratch.a, frame.s_hat)
    multiply(rows, released.z[j], frame.z)
    multiply(rows, state.theta, frame.theta)
    dim = frame.z.size
    for i in range(dim):
        frame.z_spread[i] = state.variance[0] * n / frame.values[i] + released.z_variance
        for k in range(i + 1):
            prior = frame.values[i] * frame.values[k] / n
            noise = (1.0 + 2.0 * frame.overlap[i, k]) / v
            pull = noise * frame.s_hat[i, k]
            if i == k:
                prior, noise = 0.5 * prior, 0.5 * (1.0 + frame.overlap[i, i]) / v
                pull = noise * frame.s_hat[i, i] + prior * n / frame.values[i]
            spread = 1.0 / (prior + noise)
            frame.spread[i, k] = frame.spread[k, i] = spread
            frame.centre[i, k] = frame.centre[k, i] = spread * pull
    for i in range(dim):
        diagonal = frame.z_spread[i]
        for k in range(dim):
            scratch.b[i, k] = frame.spread[i, k] * frame.theta[i] * frame.theta[k]
            diagonal += frame.spread[i, k] * frame.theta[k] ** 2
        scratch.b[i, i] = diagonal
    if not cholesky(scratch.b, frame.factor):
        return False
    copy_matrix(frame.centre, frame.mean)
    multiply(frame.centre, frame.theta, scratch.x)
    for i in range(dim):
        scratch.x[i] = frame.z[i] - scratch.x[i]
    correct(frame, scratch.x, frame.mean)
    return True


@compiled
def correct(frame: Any, residual: Any, s: Any) -> None:
    """Add to S its regression on a residual of zhat_j: Cov(S, zhat_j) Cov(zhat_j)^-1 residual."""
    solve_lower(frame.factor, residual)
    solve_upper(frame.factor, residual)
    for i in range(residual.size):
        for k in range(i + 1):
            change = residual[i] * frame.theta[k]
            if i != k:
                change += residual[k] * frame.theta[i]
            s[i, k] += frame.spread[i, k] * change
            s[k, i] = s[i, k]


@compiled
def draw_deviation(frame: Any, residual: Any, rng: Any, out: Any) -> None:
    """Draw from the approximation, centred: its own draw, corrected for a draw of zhat_j."""
    dim = residual.size
    for i in range(dim):
        for k in range(i + 1):
            out[i, k] = math.sqrt(frame.spread[i, k]) * rng.standard_normal()
            out[k, i] = out[i, k]
    multiply(out, frame.theta, residual)
    for i in range(dim):
        residual[i] = -residual[i] - math.sqrt(frame.z_spread[i]) * rng.standard_normal()
    correct(frame, residual, out)


@compiled
def approximate_log_density(frame: Any, s: Any, residual: Any) -> float:
    """Log-density of the approximation at S up to a constant."""
    total = 0.0
    multiply(s, frame.theta, residual)
    for i in range(residual.size):
        total += (frame.z[i] - residual[i]) ** 2 / frame.z_spread[i]
        for k in range(i + 1):
            total += (s[i, k] - frame.centre[i, k]) ** 2 / frame.spread[i, k]
    return -0.5 * total


@compiled
def gaussian_move(
    released: Any, j: int, step: float, state: Any, frame: Any, scratch: Any, rng: Any
) -> tuple[bool, float]:
    """Propose mean + sqrt(1 - step^2) (S_j - mean) + step * deviation, for a step in (0, 1].

    Reversible for the Gaussian approximation, so that the ratio of the densities to it
    decides [Neal 1998]; at step 1 it is an independent draw.
    """
    if not approximate(released, j, state, frame, scratch):
        return False, 0.0
    new = scratch.b
    draw_deviation(frame, scratch.x, rng, new)
    kept = math.sqrt(1.0 - step * step)
    for i in range(new.shape[0]):
        for k in range(new.shape[0]):
            mean = frame.mean[i, k]
            new[i, k] = mean + kept * (frame.s[i, k] - mean) + step * new[i, k]
    log_proposal = approximate_log_density(frame, frame.s, scratch.x)
    log_proposal -= approximate_log_density(frame, new, scratch.x)
    congruence(frame.columns, new, scratch.a, scratch.s[j])
    return settle(released, j, log_proposal, state, scratch, rng)
