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
from typing import Any, NamedTuple

from dpmc.linreg.gibbs.conditionals import (
    WALK_ACCEPTANCE,
    accepts,
    adapted,
    log_coefficient_prior,
    probability,
)
from dpmc.linreg.gibbs.whitened_nodes import (
    CROSS,
    FIRST,
    GAP,
    IMAGE,
    LEFT,
    NEW_SQUARE,
    ON_FIRST,
    ON_SECOND,
    OTHER,
    OWN,
    PULL,
    RATIO,
    RELEASED,
    RESIDUAL,
    RIGHT,
    SECOND,
    SHIFT,
    SHIFTS,
    SQUARE,
    STATISTIC,
    TARGET,
    VALUES,
    WHITE,
    WHITENER,
    aim,
    close_nodes,
    common,
    matrix,
    open_nodes,
    product,
    vector,
)
from dpmc.numerics.simd import WIDTH, inlined, load, spread, store, total
from dpmc.numerics.small_matrices import (
    add_matrix,
    cholesky,
    compiled,
    copy_matrix,
    copy_vector,
    inner,
    log_determinant,
)


class ScaleChange(NamedTuple):
    """A common change of scale, and where it takes theta."""

    stretch: float  # c
    inverse: float  # T^-1 = I - inverse b_i b_k'
    own: float  # E_ii; E_kk is 0 unless i = k
    cross: float  # E_ik, 0 if i = k
    log_det: float  # log |T|
    lift: float  # T'theta' - theta as a multiple of b_k


@compiled
def scale_change(same: bool, step: float, along: float, lift: float) -> ScaleChange:
    """Change T = exp(step b_i b_k') with theta' = theta + lift b_k.

    Parameters
    ----------
    same : bool
        Whether i = k.
    step : float
        Logarithm of the stretch along b_i, or the shear.
    along : float
        b_i'theta.
    lift : float
        How far theta moves.
    """
    if same:
        stretch = math.expm1(step)
        lift += stretch * (along + lift)
        return ScaleChange(stretch, -math.expm1(-step), math.expm1(-2.0 * step), 0.0, step, lift)
    return ScaleChange(step, step, step * step, -step, 0.0, lift + step * along)


@inlined
def take_images(nodes: Any, j: int) -> tuple[float, float]:
    """Store the images of b_i and b_k; return b_k'S_j b_k and b_k'zhat_j."""
    room, width = nodes.room, nodes.width
    lengths, targets = spread(0.0), spread(0.0)
    own, cross, other = spread(0.0), spread(0.0), spread(0.0)
    for q in range(0, width, WIDTH):
        image, pull, first, second = spread(0.0), spread(0.0), spread(0.0), spread(0.0)
        row, size = matrix(nodes, j, STATISTIC) + q, nodes.dim * width
        for i in range(nodes.dim):
            left, right = room[common(nodes, LEFT) + i], room[common(nodes, RIGHT) + i]
            s, column = load(room, row), load(room, row + WHITENER * size)
            image = image + s * right
            pull = pull + (load(room, row + RELEASED * size) - s) * left
            first = first + column * left
            second = second + column * right
            row += width
        store(room, common(nodes, IMAGE) + q, image)
        store(room, common(nodes, PULL) + q, pull)
        store(room, vector(nodes, j, FIRST) + q, first)
        store(room, vector(nodes, j, SECOND) + q, second)
        right_lanes = load(room, common(nodes, RIGHT) + q)
        lengths = lengths + image * right_lanes
        targets = targets + load(room, vector(nodes, j, TARGET) + q) * right_lanes
        own = own + first * first
        cross = cross + first * second
        other = other + second * second
    values = vector(nodes, j, VALUES)
    room[values + OWN] = total(own)
    room[values + CROSS] = total(cross)
    room[values + OTHER] = total(other)
    return total(lengths), total(targets)


@inlined
def noise_gain(nodes: Any, j: int, stretch: float, length: float, s_variance: float) -> float:
    """Store the shift of S_j, given b_k'S_j b_k; return the gain of the log-density of Shat_j.

    That counts every entry above the diagonal once: half of all entries and of the diagonal.
    """
    room, half = nodes.room, 0.5 * stretch * length
    lines, overlap = spread(0.0), spread(0.0)
    for q in range(0, nodes.width, WIDTH):
        left = load(room, common(nodes, LEFT) + q)
        shift = load(room, common(nodes, IMAGE) + q) + left * half
        store(room, vector(nodes, j, SHIFT) + q, shift)
        shifts = common(nodes, SHIFTS) + q
        store(room, shifts, load(room, shifts) + shift)
        diagonal = left * shift * (2.0 * stretch)
        lines = lines + diagonal * (diagonal - load(room, vector(nodes, j, GAP) + q) * 2.0)
        both = shift * (2.0 * stretch) - load(room, common(nodes, PULL) + q) * 4.0
        lines = lines + shift * both * stretch
        overlap = overlap + left * shift
    error = total(lines) + 2.0 * (stretch * total(overlap)) ** 2
    return float(-0.25 * error / s_variance)


@inlined
def take_residual(nodes: Any, j: int, along: float, lift: float) -> float:
    """Store the residual in the frame of the old whitener; return its squared norm.

    It is K_j (zhat_j - S_j theta - along b_i - lift S_j b_k).
    """
    room = nodes.room
    squares, firsts, seconds = spread(0.0), spread(0.0), spread(0.0)
    for q in range(0, nodes.width, WIDTH):
        first = load(room, vector(nodes, j, FIRST) + q)
        image = product(nodes, matrix(nodes, j, WHITENER) + q, common(nodes, IMAGE))
        white = load(room, vector(nodes, j, RESIDUAL) + q) - first * along - image * lift
        store(room, vector(nodes, j, WHITE) + q, white)
        squares = squares + white * white
        firsts = firsts + white * first
        seconds = seconds + white * load(room, vector(nodes, j, SECOND) + q)
    values = vector(nodes, j, VALUES)
    room[values + ON_FIRST] = total(firsts)
    room[values + ON_SECOND] = total(seconds)
    return float(total(squares))


@compiled
def propose_node(
    nodes: Any, j: int, change: Any, s_variance: float, z_variance: float
) -> tuple[float, float]:
    """Store what a change of scale makes of a node.

    Returns
    -------
    gain : float
        Of the log-likelihood, but for that of the determinant of M_j; minus infinity where
        rounding has left a matrix that is not positive definite.
    ratio : float
        |A|, by which the determinant grows beyond |T|^2.
    """
    length, target = take_images(nodes, j)
    gain = noise_gain(nodes, j, change.stretch, length, s_variance)
    square = take_residual(nodes, j, change.inverse * target, change.lift)
    values = vector(nodes, j, VALUES)
    own, cross, other = (
        nodes.room[values + OWN],
        nodes.room[values + CROSS],
        nodes.room[values + OTHER],
    )
    on_first, on_second = nodes.room[values + ON_FIRST], nodes.room[values + ON_SECOND]
    e, f = z_variance * change.own, z_variance * change.cross
    a22, a12, a21 = 1.0 + f * cross, e * cross + f * other, f * own
    first = 1.0 + e * own + 2.0 * f * cross
    ratio = (1.0 + e * own + f * cross) * a22 - a12 * a21
    if not (first > 0.0 and ratio > 0.0):
        return -math.inf, 1.0
    known = (a22 * e - a12 * f) * on_first**2 + (2.0 * a22 * on_first - a21 * on_second) * f * (
        on_second
    )
    square -= known / ratio
    nodes.room[values + NEW_SQUARE], nodes.room[values + RATIO] = square, ratio
    return gain - 0.5 * (square - nodes.room[values + SQUARE]), ratio


class Turn(NamedTuple):
    """Change of a vector by a square root of the inverse of I + v P E P', see :func:`turned`."""

    own: float
    cross: float
    other: float
    slope: float


@inlined
def turn_of(own: float, cross: float, e: float, f: float, ratio: float) -> Turn:
    """Turn by Q (G^-1 - I) Q', where P = Q R and G G' = I + v R E R'.

    Parameters
    ----------
    own, cross : float
        Products of the columns of P: of the first with itself and of both.
    e, f : float
        v E_ii and v E_ik.
    ratio : float
        |G|^2.
    """
    first = 1.0 + e * own + 2.0 * f * cross
    g11, g22 = math.sqrt(first), math.sqrt(ratio / first)
    return Turn(
        -(e + 2.0 * f * cross / own) / (g11 * (1.0 + g11)),
        -f / (first * g22),
        f * f * own / (first * g22 * (1.0 + g22)),
        cross / own,
    )


@inlined
def turned(turn: Any, t: float, u: float) -> tuple[float, float]:
    """Multiples of the columns of P, given the products t and u with them."""
    b = turn.cross * t + turn.other * (u - turn.slope * t)
    return turn.own * t - turn.slope * b, b


@compiled
def accept_node(nodes: Any, j: int, change: Any, z_variance: float) -> float:
    """Make a proposal the state of a node; return the gain of the log-likelihood of zhat_j."""
    room, width, values = nodes.room, nodes.width, vector(nodes, j, VALUES)
    own, cross, ratio = room[values + OWN], room[values + CROSS], room[values + RATIO]
    turn = turn_of(own, cross, z_variance * change.own, z_variance * change.cross, ratio)
    first, second = vector(nodes, j, FIRST), vector(nodes, j, SECOND)
    left, shift = common(nodes, LEFT), vector(nodes, j, SHIFT)
    row = matrix(nodes, j, STATISTIC)
    size = WHITENER * nodes.dim * width
    for i in range(nodes.dim):
        firsts, seconds = spread(0.0), spread(0.0)
        for q in range(0, width, WIDTH):
            column = load(room, row + size + q)
            firsts = firsts + column * load(room, first + q)
            seconds = seconds + column * load(room, second + q)
        pull = -change.inverse * room[common(nodes, RIGHT) + i]
        a, b = turned(turn, total(firsts) + pull * own, total(seconds) + pull * cross)
        a += pull
        on_left, on_shift = change.stretch * room[shift + i], change.stretch * room[left + i]
        for q in range(0, width, WIDTH):
            column = load(room, row + size + q) + load(room, first + q) * a
            store(room, row + size + q, column + load(room, second + q) * b)
            s = load(room, row + q) + load(room, left + q) * on_left
            store(room, row + q, s + load(room, shift + q) * on_shift)
        row += width
    a, b = turned(turn, room[values + ON_FIRST], room[values + ON_SECOND])
    residual, gap = vector(nodes, j, RESIDUAL), vector(nodes, j, GAP)
    for q in range(0, width, WIDTH):
        white = load(room, vector(nodes, j, WHITE) + q) + load(room, first + q) * a
        store(room, residual + q, white + load(room, second + q) * b)
        diagonal = load(room, left + q) * load(room, shift + q) * (2.0 * change.stretch)
        store(room, gap + q, load(room, gap + q) - diagonal)
    old = room[values + SQUARE]
    room[values + SQUARE] = room[values + NEW_SQUARE]
    return float(0.5 * (old - room[values + SQUARE] - math.log(ratio)) - change.log_det)


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
