"""Common changes of scale of whitened nodes, each at the cost of a few matrix-vector products.

T = I + c b_i b_k' turns S_j into T S_j T', and M_j into T (M_j + v E) T', where
E = T^-1 T'^-1 - I is zero outside of the plane of b_i and b_k. With the whitener K_j of M_j and
P = K_j (b_i, b_k), everything follows from A = I + v E P'P, of two rows: the determinant of M_j
grows by |T|^2 |A|, and the inverse of I + v P E P' is I - v P A^-1 E P'. Nothing is factorised
anew. Below, E and A stand for their entries in the plane.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

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
    common,
    matrix,
    product,
    vector,
)
from dpmc.numerics.simd import WIDTH, inlined, load, spread, store, total
from dpmc.numerics.small_matrices import compiled


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
    """Return the change T = exp(step b_i b_k') with theta' = theta + lift b_k.

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
    """What a square root of the inverse of I + v P E P' adds to a vector, see :func:`turned`."""

    own: float
    cross: float
    other: float
    slope: float


@inlined
def turn_of(own: float, cross: float, e: float, f: float, ratio: float) -> Turn:
    """Return the turn by Q (G^-1 - I) Q', where P = Q R and G G' = I + v R E R'.

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
    """Return the multiples of the columns of P, given the products t and u with them."""
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
