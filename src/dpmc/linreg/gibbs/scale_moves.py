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
    WALK_ACCEPTANCE,
    accepts,
    adapted,
    log_coefficient_prior,
    probability,
)
from dpmc.linreg.gibbs.node_changes import accept_node, propose_node, scale_change
from dpmc.linreg.gibbs.whitened_nodes import LEFT, SHIFTS, aim, close_nodes, common, open_nodes
from dpmc.numerics.small_matrices import (
    add_matrix,
    cholesky,
    compiled,
    copy_matrix,
    copy_vector,
    inner,
    log_determinant,
)


@compiled
def propose_scale(released: Any, change: Any, state: Any, scratch: Any) -> float:
    """Write the new sum of all nodes; return the gain of the log-likelihood.

    Minus infinity where rounding has left a matrix that is not positive definite.
    """
    nodes, gain, growth = scratch.nodes, 0.0, 1.0
    left, shifts = common(nodes, LEFT), common(nodes, SHIFTS)
    s_variance, z_variance = released.s_variance, released.z_variance
    for i in range(nodes.dim):
        nodes.room[shifts + i] = 0.0
    for j in range(nodes.num):
        more, ratio = propose_node(nodes, j, change, s_variance, z_variance)
        gain, growth = gain + more, growth * ratio
        if not 1e-100 < growth < 1e100:
            gain, growth = gain - 0.5 * math.log(growth), 1.0
    for i in range(nodes.dim):
        for k in range(i + 1):
            entry = nodes.room[left + i] * nodes.room[shifts + k]
            entry += nodes.room[left + k] * nodes.room[shifts + i]
            scratch.total[i, k] = state.total[i, k] + change.stretch * entry
            scratch.total[k, i] = scratch.total[i, k]
    return float(gain - 0.5 * math.log(growth) - nodes.num * change.log_det)


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
        State of the chain; updated in place, but for what the nodes hold.
    scratch : StatisticsScratch
        Room for one move, overwritten; its nodes are open and updated in place.

    Returns
    -------
    accepted : bool
        Whether the proposal was accepted.
    probability : float
        Its acceptance probability.
    """
    nodes, dim = scratch.nodes, state.theta.size
    aim(nodes, basis[i], basis[k])
    step, along = sd * rng.standard_normal(), inner(basis[i], state.theta)
    lift = along * (math.expm1(-carry * step) if i == k else -carry * step)
    for m in range(dim):
        scratch.theta[m] = state.theta[m] + lift * basis[k, m]
    change = scale_change(i == k, step, along, lift)
    log_ratio = propose_scale(released, change, state, scratch)
    if lift != 0.0:
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
            state.log_likelihood[j] += accept_node(nodes, j, change, released.z_variance)
            if i == k:
                state.log_det[j] += 2.0 * step
    return accepted, probability(log_ratio)


@compiled
def sum_nodes(prior: Any, state: Any, scratch: Any) -> bool:
    """Sum up the S_j; return False if the sum has no factor."""
    copy_matrix(prior.scale, state.total)
    for j in range(state.s.shape[0]):
        add_matrix(state.s[j], state.total)
    if not cholesky(state.total, scratch.a):
        return False
    state.log_total[0] = log_determinant(scratch.a)
    return True


@compiled
def sweep_scales(
    released: Any,
    prior: Any,
    settings: Any,
    tuning: Any,
    iteration: int,
    state: Any,
    scratch: Any,
    rng: Any,
) -> tuple[bool, int]:
    """Change the common scale of the S_j; return False if a node has no factor afterwards."""
    if settings.scale_moves == 0:
        return True, 0
    if not open_nodes(released, state, scratch.nodes):
        return False, 0
    count = 0
    for m in range(settings.scale_moves):
        pair = ((iteration - 1) * settings.scale_moves + m) % tuning.scale_step.size
        i, k = tuning.pairs[pair % tuning.pairs.shape[0]]
        carry = 0.0
        if pair >= tuning.pairs.shape[0]:  # every other sweep takes theta along
            carry = 2.0 if i == k else 1.0
        sd = math.exp(tuning.scale_step[pair])
        accepted, chance = scale_move(
            released, prior, tuning.basis, i, k, carry, sd, state, scratch, rng
        )
        count += accepted
        if iteration <= settings.burn_in or not settings.frozen:
            tuning.scale_visits[pair] += 1
            visits = tuning.scale_visits[pair]
            excess = chance - WALK_ACCEPTANCE
            tuning.scale_step[pair] = adapted(tuning.scale_step[pair], excess, visits)
    if count == 0:
        return True, 0
    return bool(close_nodes(released, scratch.nodes, state)), count
