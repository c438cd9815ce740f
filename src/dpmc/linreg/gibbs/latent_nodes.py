"""Sums of all nodes and the noise on them while rows are transformed, w -> K w, K = I + s c r'.

With t = T_j r, K T_j K' is T_j + c u' + u c', where u = s t + (s^2 r't / 2) c, and the noise on it
is what was released less that. All numbers lie in one array, in rows padded with zeros to whole
lanes of :mod:`dpmc.numerics.simd`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dpmc.numerics.simd import WIDTH, inlined, load, spread, store, total
from dpmc.numerics.small_matrices import compiled

# Rows before all nodes: c, r, and sum_i V_ik c_i^2 for each k, where V is one over the variance of
# the noise, halved off the diagonal.
C, R, SQUARES, NUM_COMMON = range(4)
# Matrices before all nodes, after these rows: V, V_ik c_i and V_ik c_i c_k.
WEIGHT, HALF, WHOLE, NUM_WEIGHTS = range(4)
# Matrices of a node: T_j, and what was released less T_j. After them the row t.
SUMS, RESIDUAL, NUM_MATRICES = range(3)


class LatentNodes(NamedTuple):
    """Room for what moves of the sums know of the nodes."""

    num: int
    size: int  # p
    width: int  # of a padded row
    room: Any  # (rows * width,)


@compiled
def latent_nodes(released: Any, sums: Any) -> LatentNodes:
    """Copy the sums of all nodes, shape (J, p, p), and the noise on them."""
    num, size = sums.shape[0], sums.shape[1]
    width = (size + WIDTH - 1) // WIDTH * WIDTH
    rows = NUM_COMMON + NUM_WEIGHTS * size + num * (NUM_MATRICES * size + 1)
    nodes = LatentNodes(num, size, width, np.zeros(rows * width))
    for i in range(size):
        for k in range(size):
            weight = 1.0 / released.variances[i, k]
            at = weights(nodes, WEIGHT) + i * width + k
            nodes.room[at] = weight if i == k else 0.5 * weight
            for j in range(num):
                at = matrix(nodes, j, SUMS) + i * width + k
                nodes.room[at] = sums[j, i, k]
                at = matrix(nodes, j, RESIDUAL) + i * width + k
                nodes.room[at] = released.noisy[j, i, k] - sums[j, i, k]
    return nodes


@compiled
def copy_sums(nodes: Any, sums: Any) -> None:
    """Write the sums of all nodes."""
    for j in range(nodes.num):
        for i in range(nodes.size):
            for k in range(nodes.size):
                sums[j, i, k] = nodes.room[matrix(nodes, j, SUMS) + i * nodes.width + k]


@inlined
def common(nodes: Any, row: int) -> Any:
    """Return where a row begins that all nodes share."""
    return row * nodes.width


@inlined
def weights(nodes: Any, which: int) -> Any:
    """Return where a matrix begins that all nodes share."""
    return (NUM_COMMON + which * nodes.size) * nodes.width


@inlined
def matrix(nodes: Any, j: int, which: int) -> Any:
    """Return where a matrix of a node begins, or, after the last, its row t."""
    before = NUM_COMMON + NUM_WEIGHTS * nodes.size + j * (NUM_MATRICES * nodes.size + 1)
    return (before + which * nodes.size) * nodes.width


@compiled
def aim(nodes: Any, c: Any, r: Any) -> None:
    """Set c and r of the next move, and what follows from them."""
    room, width = nodes.room, nodes.width
    for i in range(nodes.size):
        room[common(nodes, C) + i], room[common(nodes, R) + i] = c[i], r[i]
    for q in range(0, width, WIDTH):
        across = load(room, common(nodes, C) + q)
        squares = spread(0.0)
        for i in range(nodes.size):
            at, along = i * width + q, room[common(nodes, C) + i]
            half = load(room, weights(nodes, WEIGHT) + at) * along
            store(room, weights(nodes, HALF) + at, half)
            store(room, weights(nodes, WHOLE) + at, half * across)
            squares = squares + half * along
        store(room, common(nodes, SQUARES) + q, squares)


@inlined
def turn(nodes: Any, j: int) -> float:
    """Store t = T_j r; return r't."""
    room, size, lanes = nodes.room, nodes.size, spread(0.0)
    turned = matrix(nodes, j, NUM_MATRICES)
    for q in range(0, nodes.width, WIDTH):
        row = spread(0.0)
        for i in range(size):
            at = matrix(nodes, j, SUMS) + i * nodes.width + q
            row = row + load(room, at) * room[common(nodes, R) + i]
        store(room, turned + q, row)
        lanes = lanes + row * load(room, common(nodes, R) + q)
    return float(total(lanes))


@compiled
def noise_polynomial(nodes: Any, out: Any) -> None:
    """Write how the log-density of all noise changes with s.

    The noise on an entry becomes e - s f - s^2 g with f = c_i t_k + t_i c_k and g = r't c_i c_k:
    its log-density is minus V / 2 times the square of that, over all i and k.

    Parameters
    ----------
    nodes : LatentNodes
        Aimed; their rows t are overwritten.
    out : ndarray of shape (5,)
        Overwritten with the coefficients of 1, s, ..., s^4, and with 0 for the first.
    """
    room = nodes.room
    one, two, three, four, fourth = 0.0, 0.0, 0.0, 0.0, spread(0.0)
    for q in range(0, nodes.width, WIDTH):
        c = load(room, common(nodes, C) + q)
        fourth = fourth + load(room, common(nodes, SQUARES) + q) * c * c
    last = total(fourth)
    for j in range(nodes.num):
        square, turned = turn(nodes, j), matrix(nodes, j, NUM_MATRICES)
        # Sums of V e f / 2, V e g / r't, V f^2 / 2 and V f g / (2 r't).
        on_first, on_second = spread(0.0), spread(0.0)
        first_square, product = spread(0.0), spread(0.0)
        for q in range(0, nodes.width, WIDTH):
            pull, spin = spread(0.0), spread(0.0)
            for i in range(nodes.size):
                at = i * nodes.width + q
                noise = load(room, matrix(nodes, j, RESIDUAL) + at)
                pull = pull + load(room, weights(nodes, HALF) + at) * noise
                spin = spin + load(room, weights(nodes, WHOLE) + at) * room[turned + i]
            t, c = load(room, turned + q), load(room, common(nodes, C) + q)
            own = load(room, common(nodes, SQUARES) + q) * t
            on_first = on_first + pull * t
            on_second = on_second + pull * c
            first_square = first_square + (spin + own) * t
            product = product + own * c
        one += 2.0 * total(on_first)
        two += square * total(on_second) - total(first_square)
        three -= 2.0 * square * total(product)
        four -= 0.5 * square * square * last
    out[0], out[1], out[2], out[3], out[4] = 0.0, one, two, three, four


@compiled
def turn_sums(nodes: Any, s: float) -> None:
    """Replace T_j by K T_j K', for the t that :func:`noise_polynomial` has left."""
    room, size, width = nodes.room, nodes.size, nodes.width
    for j in range(nodes.num):
        turned, square = matrix(nodes, j, NUM_MATRICES), 0.0
        for i in range(size):
            square += room[turned + i] * room[common(nodes, R) + i]
        half = 0.5 * s * s * square
        for q in range(0, width, WIDTH):
            c = load(room, common(nodes, C) + q)
            store(room, turned + q, load(room, turned + q) * s + c * half)
        for q in range(0, width, WIDTH):
            c, u = load(room, common(nodes, C) + q), load(room, turned + q)
            for i in range(size):
                change = u * room[common(nodes, C) + i] + c * room[turned + i]
                at = matrix(nodes, j, SUMS) + i * width + q
                store(room, at, load(room, at) + change)
                at = matrix(nodes, j, RESIDUAL) + i * width + q
                store(room, at, load(room, at) - change)
