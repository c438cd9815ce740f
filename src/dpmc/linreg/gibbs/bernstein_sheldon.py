"""Chain of MCMC-B&S: its state is the sums of products of all nodes.

One iteration draws the parameters given the sums, updates the sums of every node given the
parameters, and moves the two together.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dpmc import checks
from dpmc.linreg.gibbs.conditionals import draw_conjugate, draw_features, draw_independent
from dpmc.linreg.gibbs.covariance_moves import move_jointly
from dpmc.linreg.gibbs.latent_sums import (
    ReleasedSums,
    joint_covariance,
    update_augmented,
    update_direct,
)
from dpmc.linreg.types import NoisyStatistics
from dpmc.numerics.compiled import kept
from dpmc.numerics.small_matrices import compiled, spectrum
from dpmc.types import Array, DpmcError

COMPLETE = "complete"
# Why a chain ends early, by the code that compiled code returns.
ENDS = (
    COMPLETE,
    "the prior scale plus S is not positive definite",
    "the prior precision plus S is not positive definite",
    "a draw is not finite",
    "the covariance of a row is not positive definite",
)
# Places of counts, after those that updates of nodes count.
PROJECTED, FLOORED, NUM_TALLIES = 2, 3, 4


class SumChainSettings(NamedTuple):
    """Settings of the chain."""

    exact: bool  # Whether the distribution of the sums is Wishart, or normal with repairs
    augmented: bool  # Which update of the sums of a node to take
    project: bool  # Replace the sum of all S_j by its nearest positive semi-definite matrix
    ridge: float  # Multiple of the identity that is added to it
    joint_moves: int  # Moves of sums and parameters together, per iteration
    # num_iterations and burn_in: iterations in all, and those not stored.
    num_iterations: int
    burn_in: int


def released_sums(noisy: NoisyStatistics) -> ReleasedSums:
    """Release of all nodes as sums of products of (x, y)."""
    if noisy.u is None:
        raise DpmcError("`u` must be released, got a release without y'y")
    for name in ("s_sd", "z_sd", "u_sd"):
        checks.positive(name, getattr(noisy, name))
    d = noisy.dim
    sums = np.empty((noisy.num_nodes, d + 1, d + 1))
    sums[:, :d, :d], sums[:, d, d] = noisy.s, noisy.u
    sums[:, :d, d] = sums[:, d, :d] = noisy.z
    variances = np.full((d + 1, d + 1), noisy.s_sd**2)
    variances[d, :] = variances[:, d] = noisy.z_sd**2
    variances[d, d] = noisy.u_sd**2
    return ReleasedSums(sums, variances, noisy.num_rows.astype(np.float64))


def start_sums(released: ReleasedSums) -> Array:
    """Positive definite sums, shape (J, p, p), to start from.

    Each node gets its share of the total, whose eigenvalues are raised to the noise.
    """
    values, vectors = spectrum(released.noisy.sum(axis=0))
    least = math.sqrt(released.variances.max() * len(released.counts))
    total = vectors * np.maximum(values, least) @ vectors.T
    share = released.counts / released.counts.sum()
    return np.ascontiguousarray(share[:, None, None] * (total + total.T) / 2)


@compiled
def add_up(sums: Any, s: Any, z: Any) -> float:
    """Write S and z of all nodes together; return u, NaN where one of the sums is not finite."""
    d = z.size
    u, check = 0.0, 0.0
    for i in range(d + 1):
        for k in range(d + 1):
            value = 0.0
            for j in range(sums.shape[0]):
                value += sums[j, i, k]
            check += abs(value)
            if i < d and k < d:
                s[i, k] = value
            elif i < d:
                z[i] = value
            elif k == d:
                u = value
    return u if math.isfinite(check) else math.nan


@compiled
def repair(s: Any, settings: Any) -> bool:
    """Project S and add the ridge, in place; return whether an eigenvalue was negative."""
    negative = False
    if settings.project:
        values, vectors = np.linalg.eigh(s)
        negative = values[0] < 0.0
        for m in range(values.size):
            for i in range(values.size):
                for k in range(values.size):
                    s[i, k] -= min(0.0, values[m]) * vectors[i, m] * vectors[k, m]
    for i in range(s.shape[0]):
        s[i, i] += settings.ridge
    return negative


@kept
def run(
    released: Any,
    beliefs: Any,
    settings: Any,
    axes: Any,
    sums: Any,
    variance: float,
    rng: Any,
    draws: Any,
    variances: Any,
    tallies: Any,
) -> tuple[int, int]:
    """Run the chain: the parameters given the sums, then the sums given the parameters.

    Parameters
    ----------
    settings : SumChainSettings
        Settings of the chain.
    axes : tuple of ndarray of shape (p, p)
        Directions of joint moves.
    sums : ndarray of shape (J, p, p)
        Where to start; overwritten with where it ended.
    variance : float
        First sigma_y^2.
    tallies : ndarray of int of shape (4,)
        Counts, added to.

    Returns
    -------
    iterations : int
        Finished ones.
    end : int
        Index into ``ENDS``.
    """
    d = draws.shape[1]
    theta, features, joint = np.zeros(d), np.empty((d, d)), np.empty((d + 1, d + 1))
    s, z, count = np.empty((d, d)), np.empty(d), 0.0
    for j in range(released.counts.size):
        count += released.counts[j]
    for iteration in range(settings.num_iterations):
        u = add_up(sums, s, z)
        if math.isnan(u):
            return iteration, 3
        if not settings.exact:
            tallies[PROJECTED] += repair(s, settings)
        if not draw_features(s, count, beliefs, rng, features):
            return iteration, 1
        if beliefs.conjugate:
            variance, floored = draw_conjugate(s, z, u, count, beliefs, rng, theta)
        else:
            variance, floored = draw_independent(s, z, u, count, variance, beliefs, rng, theta)
        if math.isnan(variance):
            return iteration, 2
        tallies[FLOORED] += floored
        joint_covariance(theta, variance, features, joint)
        if not math.isfinite(joint[d, d]):
            return iteration, 3
        if iteration >= settings.burn_in:
            for i in range(d):
                draws[iteration - settings.burn_in, i] = theta[i]
            variances[iteration - settings.burn_in] = variance
        if settings.augmented:
            update_augmented(released, joint, settings.exact, sums, rng, tallies)
        else:
            update_direct(released, joint, settings.exact, sums, rng, tallies)
        if settings.joint_moves > 0:
            variance = move_jointly(released, beliefs, axes, settings.joint_moves, joint, sums, rng)
            if math.isnan(variance):
                return iteration, 4
    return settings.num_iterations, 0
