"""Chain of MCMC-normalX: one iteration after another, compiled.

W integrated out, the common scale of the S_j moves; then W, every S_j, theta and sigma_y^2,
each given the rest [alparslan2023thesis, Algorithm 16].
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dpmc.linreg.gibbs.conditionals import (
    DECAY,
    WALK_ACCEPTANCE,
    ReleasedStatistics,
    accepts,
    adapted,
    coefficient_mean,
    draw_coefficients,
    draw_precision,
    finite,
    log_variance_prior,
    node_log_likelihood,
    node_terms,
    probability,
    propose_variance,
)
from dpmc.linreg.gibbs.gaussian_moves import gaussian_move, set_frame
from dpmc.linreg.gibbs.scale_moves import sum_nodes, sweep_scales
from dpmc.linreg.gibbs.wishart_moves import wishart_move
from dpmc.numerics.compiled import kept
from dpmc.numerics.small_matrices import (
    add_matrix,
    cholesky,
    compiled,
    copy_matrix,
    copy_vector,
    log_determinant,
    shifted_cholesky,
    spectrum,
)

# Why a chain stops, by the code that compiled code returns.
FAILURES = (
    "",
    "Lambda + sum S_j is not positive definite",
    "a node covariance is not positive definite",
    "the precision of theta is not positive definite",
    "a draw is not finite",
)


class NormalXSettings(NamedTuple):
    """Settings as compiled code reads them."""

    num_iterations: int
    burn_in: int
    wishart: bool
    log_move: bool
    frozen: bool
    target: float
    scale_moves: int
    longest: float  # the largest logarithm of a step of S_j


class Tuning(NamedTuple):
    """Steps that adapt, on a logarithmic scale, and what else does not change the target."""

    node_step: Any  # (J,): of S_j; the Wishart walk has exp(-node_step) degrees of freedom
    node_rate: Any  # (J,): running acceptance
    scale_step: Any  # (2 D,): of each pair, theta left and theta taken along
    scale_visits: Any  # (2 D,)
    walk: Any  # (1,): of sigma_y^2
    basis: Any  # (d, d): rows along which scales change
    pairs: Any  # (D, 2)

    @classmethod
    def of(cls, released: ReleasedStatistics, wishart: bool, walk_sd: float) -> Tuning:
        """First steps: the Wishart walk as published, independent draws else."""
        num, dim = released.z.shape
        noise = math.sqrt(released.s_variance * num)
        values, vectors = spectrum(released.s.sum(axis=0))
        values = np.maximum(values, noise)
        pairs = np.array([(i, k) for i in range(dim) for k in range(i, dim)])
        low, high = values[pairs[:, 0]], values[pairs[:, 1]]
        scale = np.minimum(noise / high, np.sqrt(low / high) / 2)
        dof = np.maximum(released.num_rows**2 / 100, dim + 2)
        return cls(
            -np.log(dof) if wishart else np.zeros(num),
            np.zeros(num),
            np.tile(np.log(scale), 2),
            np.zeros(2 * len(pairs), dtype=np.int64),
            np.array([math.log(walk_sd)]),
            np.ascontiguousarray(vectors.T),
            pairs,
        )


@compiled
def refresh(released: Any, state: Any, scratch: Any) -> bool:
    """Compute what follows from where a chain starts; return False if it cannot."""
    for j in range(state.s.shape[0]):
        if not cholesky(state.s[j], scratch.a):
            return False
        state.log_det[j] = log_determinant(scratch.a)
        factor = state.factors[j]
        if not shifted_cholesky(state.s[j], state.variance[0], released.z_variance, factor):
            return False
        state.log_likelihood[j] = node_log_likelihood(
            state.s[j], released.z[j], state.theta, factor, scratch.x
        )
    return True


@compiled
def adapt_node(
    settings: Any, tuning: Any, j: int, accepted: bool, chance: float, iteration: int
) -> None:
    """Adapt the step of S_j.

    To the probability of acceptance during burn-in, or as published to a running mean of
    acceptances, from a tenth of the iterations on until the end.
    """
    if settings.frozen:
        excess = chance - settings.target
        if iteration > settings.burn_in:
            return
    else:
        gain = iteration**-DECAY
        tuning.node_rate[j] += gain * ((1.0 if accepted else 0.0) - tuning.node_rate[j])
        excess = tuning.node_rate[j] - settings.target
        if 10 * iteration <= settings.num_iterations:
            return
    step = adapted(tuning.node_step[j], excess, iteration)
    tuning.node_step[j] = min(step, settings.longest)


@compiled
def sweep_nodes(
    released: Any,
    settings: Any,
    tuning: Any,
    iteration: int,
    state: Any,
    frame: Any,
    scratch: Any,
    rng: Any,
) -> int:
    """Move every S_j once; return how many moved."""
    count = 0
    if not settings.wishart:
        set_frame(state.precision, frame)
    for j in range(state.s.shape[0]):
        step = math.exp(tuning.node_step[j])
        if settings.wishart:
            accepted, chance = wishart_move(released, j, 1.0 / step, state, scratch, rng)
        else:
            accepted, chance = gaussian_move(released, j, step, state, frame, scratch, rng)
        adapt_node(settings, tuning, j, accepted, chance, iteration)
        count += accepted
    return count


@compiled
def update_coefficients(released: Any, prior: Any, state: Any, scratch: Any, rng: Any) -> bool:
    """Draw theta given the rest; return False if its precision has no factor."""
    copy_matrix(prior.precision, scratch.a)
    copy_vector(prior.shift, scratch.x)
    for j in range(state.s.shape[0]):
        terms, shift = state.terms[j], state.shifts[j]
        if state.stale[j]:
            node_terms(state.s[j], released.z[j], state.factors[j], scratch.b, terms, shift)
            state.stale[j] = False
        add_matrix(terms, scratch.a)
        for i in range(shift.size):
            scratch.x[i] += shift[i]
    if not coefficient_mean(scratch.a, scratch.x, scratch.b, scratch.y):
        return False
    draw_coefficients(scratch.y, scratch.b, rng, state.theta)
    return True


@compiled
def move_variance(
    released: Any, prior: Any, sd: float, log_move: bool, state: Any, scratch: Any, rng: Any
) -> tuple[bool, float]:
    """Move sigma_y^2 given the rest; the likelihoods of all nodes are anew afterwards."""
    old = state.variance[0]
    new, log_ratio = propose_variance(old, sd, log_move, rng)
    positive = new > 0.0
    if positive:
        log_ratio += log_variance_prior(new, prior.shape, prior.rate)
        log_ratio -= log_variance_prior(old, prior.shape, prior.rate)
    for j in range(state.s.shape[0]):
        s, z = state.s[j], released.z[j]
        state.log_likelihood[j] = node_log_likelihood(
            s, z, state.theta, state.factors[j], scratch.x
        )
        factor = scratch.factors[j]
        if positive:
            positive = shifted_cholesky(s, new, released.z_variance, factor)
        if positive:
            scratch.log_likelihood[j] = node_log_likelihood(s, z, state.theta, factor, scratch.x)
            log_ratio += scratch.log_likelihood[j] - state.log_likelihood[j]
    if not positive:
        return False, 0.0
    accepted = accepts(log_ratio, rng)
    if accepted:
        state.variance[0] = new
        for j in range(state.s.shape[0]):
            copy_matrix(scratch.factors[j], state.factors[j])
            state.log_likelihood[j] = scratch.log_likelihood[j]
            state.stale[j] = True
    return accepted, probability(log_ratio)


@kept
def sample(
    released: Any,
    prior: Any,
    settings: Any,
    tuning: Any,
    state: Any,
    frame: Any,
    scratch: Any,
    rng: Any,
    draws: Any,
    variances: Any,
    accepted: Any,
) -> tuple[int, int]:
    """Run a chain; return the number of its failure, 0 if none, and iterations completed.

    `draws` and `variances` receive what follows burn-in, `accepted` how often moves of
    nodes, of scales and of sigma_y^2 were accepted there.
    """
    if not refresh(released, state, scratch):
        return 2, 0
    dof = prior.dof + released.total_rows
    for i in range(1, settings.num_iterations + 1):
        if not sum_nodes(prior, state, scratch):
            return 1, i - 1
        definite, scales = sweep_scales(released, prior, settings, tuning, i, state, scratch, rng)
        if not definite:
            return 2, i - 1
        if not draw_precision(state.total, dof, rng, scratch.a, scratch.b, state.precision):
            return 1, i - 1
        nodes = sweep_nodes(released, settings, tuning, i, state, frame, scratch, rng)
        if not update_coefficients(released, prior, state, scratch, rng):
            return 3, i - 1
        sd = math.exp(tuning.walk[0])
        moved, chance = move_variance(released, prior, sd, settings.log_move, state, scratch, rng)
        if settings.log_move and (i <= settings.burn_in or not settings.frozen):
            tuning.walk[0] = adapted(tuning.walk[0], chance - WALK_ACCEPTANCE, i)
        if not finite(state.theta, state.variance[0]):
            return 4, i - 1
        if i > settings.burn_in:
            copy_vector(state.theta, draws[i - 1 - settings.burn_in])
            variances[i - 1 - settings.burn_in] = state.variance[0]
            accepted[0] += nodes
            accepted[1] += scales
            accepted[2] += moved
    return 0, settings.num_iterations
