"""Data sets that see the tails of a posterior given an order statistic, with their weights.

Noise by smooth sensitivity is wide where records next to the released rank are far apart. A theta
far from what a release suggests explains it by such data sets alone: a few in 10^5 then hold most
of the likelihood, and values of theta that need them half of the posterior variance. Where
statistics are above the release, the released rank lies low and the gaps next above it are wide;
where they are below it, the other way round. Some data sets are drawn so, and all are weighted by
how often they occur. Base variables do not depend on theta, nor do the weights.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from dpmc.statsel.order_draws import Exponentials, Order
from dpmc.types import Array

# Shares of data sets: as they occur, with wide gaps above the released rank, and below it.
SHARES = (0.5, 0.4, 0.1)
# Gaps that are wide, and the mean of each; 1 is that of others.
NEAR, WIDE = 4, 2.5
# Parameters of the Beta distribution of the released rank where the gaps above it are wide, times
# its usual ones. With wide gaps below they change places.
LOW, HIGH = 0.6, 0.8


class DataSets(NamedTuple):
    """Data sets as they are drawn, and how often each occurs."""

    centres: Array  # (N, 2): the uniform of the released rank, and 1 less it
    exponentials: Exponentials
    log_weights: Array  # (N,)


def centres(order: Order, num: int) -> Array:
    """Middles of `num` strata of the uniform of the released rank, shape (num, 2)."""
    shares = (np.arange(num) + 0.5) / num
    return _uniforms(shares, order.rank, order.num + 1 - order.rank)


def _uniforms(shares: Array, a: float | Array, b: float | Array) -> Array:
    """Values of Beta(a, b) at these probabilities, and 1 less them, to full precision."""
    return np.column_stack([special.betaincinv(a, b, shares), special.betaincinv(b, a, 1 - shares)])


def draw(order: Order, num: int, blocks: int, key: np.uint64, rng: np.random.Generator) -> DataSets:
    """Data sets in blocks that are independent: data set i is in block i modulo `blocks`.

    `num`: a multiple of `blocks`. `key`: of the exponentials that are not near.
    """
    first = max(1, order.rank - NEAR)
    below, above = order.rank - first, min(NEAR + order.averaged, order.num - order.rank)
    side = np.repeat([2, 1], [below, above])
    points = _points(num, blocks, 2 + below + above, rng)
    # The first coordinate chooses the distribution of a data set.
    kind = np.searchsorted(np.cumsum(SHARES[:2]), points[:, 0], side="right")
    gaps = -np.log1p(-points[:, 2:]) * np.where(kind[:, None] == side, WIDE, 1.0)
    a = order.rank * np.array([1.0, LOW, HIGH])
    b = (order.num + 1 - order.rank) * np.array([1.0, HIGH, LOW])
    middles = _uniforms(points[:, 1], a[kind], b[kind])
    # Density of each distribution relative to the usual one, at each data set.
    log_u, log_rest = np.log(middles).T[:, :, None]
    logs = (a - a[0]) * log_u + (b - b[0]) * log_rest + special.betaln(a[0], b[0])
    logs -= special.betaln(a, b)
    for wide in (1, 2):
        of_side = gaps[:, side == wide]
        logs[:, wide] += of_side.sum(axis=1) * (1 - 1 / WIDE) - of_side.shape[1] * math.log(WIDE)
    log_weights = -special.logsumexp(logs + np.log(SHARES), axis=1)
    near = np.insert(gaps, below, math.nan, axis=1)  # the released rank has no gap
    return DataSets(middles, Exponentials(key, first, near), log_weights)


def _points(num: int, blocks: int, dim: int, rng: np.random.Generator) -> Array:
    """Points that fill the unit cube evenly, and independently in each block, shape (num, dim)."""
    from scipy.stats import qmc

    each = num // blocks
    power = (each - 1).bit_length()
    parts = [qmc.Sobol(dim, seed=rng).random_base2(power)[:each] for _ in range(blocks)]
    points: Array = np.stack(parts, axis=1).reshape(-1, dim)
    return np.clip(points, 1e-12, 1 - 1e-12)
