"""Nodes with a matrix K_j that whitens M_j = sigma_y^2 S_j + v I: K_j M_j K_j' = I.

:mod:`dpmc.linreg.gibbs.scale_moves` changes them without a factorisation; here they are opened
before such changes and closed after them.

All numbers lie in one array, in rows padded with zeros to whole lanes of
:mod:`dpmc.numerics.simd`: to count the references to many would take longer than the arithmetic.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dpmc.numerics.simd import WIDTH, inlined, load, spread, store, total
from dpmc.numerics.small_matrices import compiled

# Rows of a move, before all nodes: b_i, b_k, S_j b_k and (Shat_j - S_j) b_i of the last node,
# and the sum over nodes of what is in SHIFT.
LEFT, RIGHT, IMAGE, PULL, SHIFTS, NUM_COMMON = range(6)
# Matrices of a node; of the whitener the columns are rows.
STATISTIC, RELEASED, WHITENER, NUM_MATRICES = range(4)
# Rows of a node, after its matrices: the diagonal of Shat_j - S_j, zhat_j and
# K_j (zhat_j - S_j theta). Rows of a change: S_j grows by c (b_i shift' + shift b_i'), then the
# columns of P = K_j (b_i, b_k) and K_j T^-1 (zhat_j - T S_j T' theta').
GAP, TARGET, RESIDUAL, SHIFT, FIRST, SECOND, WHITE, VALUES, NUM_ROWS = range(9)
# Numbers in the row VALUES: squared norm of RESIDUAL, products of the columns of P, and of
# both with WHITE, the squared norm to come and |A|.
SQUARE, OWN, CROSS, OTHER, ON_FIRST, ON_SECOND, NEW_SQUARE, RATIO = range(8)


class WhitenedNodes(NamedTuple):
    """Room for what a sweep of scale moves knows of the nodes."""

    num: int
    dim: int
    width: int  # of a padded row
    room: Any  # (rows * width,)

    @classmethod
    def of(cls, num: int, dim: int) -> WhitenedNodes:
        """Allocate it."""
        width = -(-dim // WIDTH) * WIDTH
        rows = NUM_COMMON + num * (NUM_MATRICES * dim + NUM_ROWS)
        return cls(num, dim, width, np.zeros(rows * width))


@inlined
def common(nodes: Any, row: int) -> Any:
    """Place of a row of a move."""
    return row * nodes.width


@inlined
def matrix(nodes: Any, j: int, which: int) -> Any:
    """Place of a matrix of a node."""
    before = NUM_COMMON + j * (NUM_MATRICES * nodes.dim + NUM_ROWS)
    return (before + which * nodes.dim) * nodes.width


@inlined
def vector(nodes: Any, j: int, row: int) -> Any:
    """Place of a row of a node that belongs to no matrix."""
    return matrix(nodes, j, NUM_MATRICES) + row * nodes.width


@compiled
def aim(nodes: Any, left: Any, right: Any) -> None:
    """Set b_i and b_k of the next change."""
    for m in range(nodes.dim):
        nodes.room[common(nodes, LEFT) + m] = left[m]
        nodes.room[common(nodes, RIGHT) + m] = right[m]


@inlined
def product(nodes: Any, at: int, weights: int) -> Any:
    """Eight entries of the sum of the rows of a matrix, weighted by a vector."""
    lanes = spread(0.0)
    for i in range(nodes.dim):
        lanes = lanes + load(nodes.room, at + i * nodes.width) * nodes.room[weights + i]
    return lanes


@compiled
def factorise(nodes: Any, at: int) -> bool:
    """Replace a matrix by its upper factor U, U'U; return False if it is not positive definite.

    What is below the diagonal means nothing.
    """
    room, width = nodes.room, nodes.width
    for k in range(nodes.dim):
        row = at + k * width
        pivot = room[row + k]
        if not 0.0 < pivot < math.inf:
            return False
        scale = 1.0 / math.sqrt(pivot)
        first = k // WIDTH * WIDTH
        for q in range(first, width, WIDTH):
            store(room, row + q, load(room, row + q) * scale)
        for i in range(k + 1, nodes.dim):
            weight, other = room[row + i], at + i * width
            for q in range(first, width, WIDTH):
                lanes = load(room, other + q) - load(room, row + q) * weight
                store(room, other + q, lanes)
    return True


@compiled
def invert(nodes: Any, at: int) -> None:
    """Replace an upper factor U by its inverse: the columns of L^-1, L = U'."""
    room, dim, width = nodes.room, nodes.dim, nodes.width
    for i in range(dim - 1, -1, -1):
        row = at + i * width
        scale = 1.0 / room[row + i]
        weights = common(nodes, IMAGE)
        for m in range(dim):
            room[weights + m] = -scale * room[row + m] if m > i else 0.0
        for q in range(0, width, WIDTH):
            store(room, row + q, spread(0.0))
        room[row + i] = scale
        for q in range(i // WIDTH * WIDTH, width, WIDTH):
            lanes = load(room, row + q)
            for m in range(i + 1, dim):
                lanes = lanes + load(room, at + m * width + q) * room[weights + m]
            store(room, row + q, lanes)


@compiled
def set_covariance(nodes: Any, j: int, variance: float, shift: float) -> Any:
    """Write M_j in place of the whitener; return where it begins."""
    s, at = matrix(nodes, j, STATISTIC), matrix(nodes, j, WHITENER)
    for i in range(nodes.dim):
        for q in range(0, nodes.width, WIDTH):
            place = i * nodes.width + q
            store(nodes.room, at + place, load(nodes.room, s + place) * variance)
        nodes.room[at + i * nodes.width + i] += shift
    return at


@compiled
def open_node(
    nodes: Any, j: int, s: Any, s_hat: Any, z: Any, theta: Any, variance: float, shift: float
) -> bool:
    """Copy one node and whiten it; return False if its M_j has no factor."""
    room, width = nodes.room, nodes.width
    statistic, released = matrix(nodes, j, STATISTIC), matrix(nodes, j, RELEASED)
    gap, target = vector(nodes, j, GAP), vector(nodes, j, TARGET)
    for i in range(nodes.dim):
        row = i * width
        for k in range(nodes.dim):
            room[statistic + row + k] = s[i, k]
            room[released + row + k] = s_hat[i, k]
        room[gap + i] = s_hat[i, i] - s[i, i]
        room[target + i] = z[i]
        room[common(nodes, PULL) + i] = -theta[i]
    at = set_covariance(nodes, j, variance, shift)
    if not factorise(nodes, at):
        return False
    invert(nodes, at)
    image = common(nodes, IMAGE)
    for q in range(0, width, WIDTH):
        lanes = load(room, target + q) + product(nodes, statistic + q, common(nodes, PULL))
        store(room, image + q, lanes)
    square = spread(0.0)
    for q in range(0, width, WIDTH):
        lanes = product(nodes, at + q, image)
        store(room, vector(nodes, j, RESIDUAL) + q, lanes)
        square = square + lanes * lanes
    room[vector(nodes, j, VALUES) + SQUARE] = total(square)
    return True


@compiled
def close_node(nodes: Any, j: int, variance: float, shift: float, s: Any, factor: Any) -> bool:
    """Write back S_j and the lower factor of M_j; return False if there is none."""
    room, at = nodes.room, matrix(nodes, j, STATISTIC)
    for i in range(nodes.dim):
        for k in range(i + 1):
            s[i, k] = s[k, i] = room[at + i * nodes.width + k]
    at = set_covariance(nodes, j, variance, shift)
    if not factorise(nodes, at):
        return False
    for i in range(nodes.dim):
        for k in range(i + 1):
            factor[i, k] = room[at + k * nodes.width + i]
    return True


@compiled
def open_nodes(released: Any, state: Any, nodes: Any) -> bool:
    """Copy the nodes of a chain and whiten them; return False if one has no factor."""
    variance, shift = state.variance[0], released.z_variance
    for j in range(nodes.num):
        s, s_hat, z = state.s[j], released.s[j], released.z[j]
        if not open_node(nodes, j, s, s_hat, z, state.theta, variance, shift):
            return False
    return True


@compiled
def close_nodes(released: Any, nodes: Any, state: Any) -> bool:
    """Write the S_j back, and the factors of M_j; return False if one has none."""
    variance, shift = state.variance[0], released.z_variance
    for j in range(nodes.num):
        if not close_node(nodes, j, variance, shift, state.s[j], state.factors[j]):
            return False
        state.stale[j] = True
    return True
