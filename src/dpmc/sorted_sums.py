"""Clipped sums over all rows in O(log n): sorted features and their prefix sums.

Where a row contributes a + b u with one feature u of it, those that are clipped from below
and from above are the two ends of the rows in the order of u, and the rest adds up to a
difference of prefix sums. So it is for the ratio of a move that changes the weight of one
feature of an affine model, and for its gradient where all rows share one direction.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numba
import numpy as np

from dpmc.kernels import compile_source, compiled, identity, tuple_text
from dpmc.types import Array, Model

# Rows of a block: a prefix sum is stored for each, and the rest is added up when asked for.
BLOCK = 64
# How far gradients may turn, as a part of their length, and count as of one direction.
TURN = 1e-13
# Bits of the centre of a feature, relative to its largest value.
CENTRE_BITS = 8


class Column(NamedTuple):
    """One feature of all rows, sorted and centred, which keeps its prefix sums small.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Ascending.
    first : ndarray of shape (blocks,)
        The first value of each block.
    before : ndarray of shape (blocks + 1,)
        Sum of the values before each block, and of all.
    """

    values: Array
    first: Array
    before: Array

    @classmethod
    def of(cls, feature: Array, centre: float) -> Column:
        """Sort the values of one feature, shape (n,)."""
        values = feature - centre
        values.sort()
        # Extended precision where there is some: the sums swing far out and back to zero.
        blocks = np.add.reduceat(values, np.arange(0, values.size, BLOCK))
        before = np.concatenate(([0.0], np.cumsum(blocks, dtype=np.longdouble)))
        return cls(values, values[::BLOCK].copy(), before.astype(np.float64))


# What is compiled here calls nothing outside of this file, so that it can be kept on disk.
@numba.njit(nogil=True, error_model="numpy", cache=True)
def _count(
    values: Any, low: int, high: int, length: float, slope: float, level: float, equal: bool
) -> int:
    """Return where, from `low` to `high`, ``length + slope * value`` passes `level`.

    The slope is not negative. What is computed of a value rises with it, rounded or not,
    so the count is that of the rows which are clipped. NaN does not pass.
    """
    while low < high:
        middle = (low + high) >> 1
        term = length + slope * values[middle]
        if not term > level if equal else term < level:
            low = middle + 1
        else:
            high = middle
    return low


@numba.njit(nogil=True, error_model="numpy", cache=True)
def _below(values: Any, first: Any, length: float, slope: float, level: float, equal: bool) -> int:
    """Return how many terms are below `level`, or, with `equal`, not above it."""
    block = _count(first, 0, first.size, length, slope, level, equal) - 1
    if block < 0:
        return 0
    end = min((block + 1) * BLOCK, values.size)
    return int(_count(values, block * BLOCK + 1, end, length, slope, level, equal))


@numba.njit(nogil=True, error_model="numpy", cache=True)
def _prefix(values: Any, before: Any, count: int) -> float:
    """Return the sum of the first `count` values."""
    block = count // BLOCK
    total = before[block]
    for j in range(block * BLOCK, count):
        total += values[j]
    return float(total)


@numba.njit(nogil=True, error_model="numpy", cache=True)
def clipped_sum(
    values: Any, first: Any, before: Any, length: float, slope: float, bound: float
) -> tuple[float, int]:
    """Return the sum of ``length + slope * value``, each clipped, and how many are clipped.

    Parameters
    ----------
    values, first, before : ndarray
        The fields of a :class:`Column`.
    length, slope : float
        Finite.
    bound : float
        Each term is clipped to [-bound, bound]; ``inf`` clips nothing.
    """
    sign = -1.0 if slope < 0 else 1.0
    length, slope = sign * length, sign * slope
    low = _below(values, first, length, slope, -bound, False)
    high = _below(values, first, length, slope, bound, True)
    total = length * (high - low)
    total += slope * (_prefix(values, before, high) - _prefix(values, before, low))
    above = values.size - high
    if low != above:
        total += bound * (above - low)
    return sign * total, low + above


@functools.cache
def weight_kernel(
    coefficients: Any, log_likelihood: Any, num_coefficients: int, num_features: int
) -> Any:
    """Compile the search for the one feature on which the ratio of a move depends.

    Sums keep their order here, so that a coefficient that is zero gives a weight that is
    zero: adding nothing then changes no digit.

    Returns
    -------
    compiled function ``(theta, theta_new, centre, reach) -> (feature, weight, ratio)``
        `centre` and `reach` have shape (q,): a point among the rows, and how far each
        feature goes. The log-likelihood ratio is `ratio` at the centre, and `weight` its
        slope along `feature`; -1 as the feature if several have a weight.
    """
    zeros = tuple_text("0.0", num_features)
    source = f"""
def kernel(theta, theta_new, centre, reach):
    old = coefficients(theta)
    new = coefficients(theta_new)
    c = {tuple_text("new[{k}] - old[{k}]", num_coefficients)}
    ratio = log_likelihood(c, {tuple_text("centre[{k}]", num_features)})
    base = log_likelihood(c, {zeros})
    feature = -1
    weight = 0.0
    for i in range(reach.size):
        x = {tuple_text("reach[{k}] if i == {k} else 0.0", num_features)}
        rise = log_likelihood(c, x) - base
        if rise != 0.0:
            if feature != -1:
                return -1, 0.0, ratio
            feature = i
            weight = rise / reach[i]
    if not (math.isfinite(weight) and math.isfinite(ratio)):
        return -1, 0.0, ratio
    return max(feature, 0), weight, ratio
"""
    names = {"coefficients": compiled(coefficients), "log_likelihood": compiled(log_likelihood)}
    return compile_source(source, False, **names)


@functools.cache
def direction_kernel(coefficients: Any, gradient: Any, dim: int, num_coefficients: int) -> Any:
    """Compile the search for the one direction of the gradients of all rows, from one feature.

    Returns
    -------
    compiled function ``(theta, centre, reach) -> (whether, slope, length, direction)``
        The gradient of a row is `direction`, of length one, times `length` at the centre
        and `slope` times the feature beyond it. Not so (the first entry says whether) if
        gradients turn by more than rounding as the feature goes from `centre` to
        `centre` + `reach`, each of shape (1,).
    """
    source = f"""
def kernel(theta, centre, reach):
    v = coefficients(theta)
    c = {tuple_text("v[{k}]", num_coefficients)}
    g = gradient(c, (centre[0],))
    h = gradient(c, (centre[0] + reach[0],))
    s = {tuple_text("h[{k}] - g[{k}]", dim)}
    gg = {_products("g", "g", dim)}
    ss = {_products("s", "s", dim)}
    gs = {_products("g", "s", dim)}
    norm = math.sqrt(max(gg, ss))
    if norm == 0.0:
        return True, 0.0, 0.0, {tuple_text("0.0", dim)}
    length = math.sqrt(gg) if gg >= ss else gs / norm
    slope = gs / norm if gg >= ss else math.sqrt(ss)
    e = {tuple_text("(g[{k}] if gg >= ss else s[{k}]) / norm", dim)}
    t = {tuple_text("max(abs(g[{k}] - length * e[{k}]), abs(s[{k}] - slope * e[{k}]))", dim)}
    return {_products("t", "t", dim)} <= ({TURN} * norm) ** 2, slope / reach[0], length, e
"""
    names = {"coefficients": compiled(coefficients), "gradient": compiled(gradient)}
    return compile_source(source, False, **names)


def _products(a: str, b: str, count: int) -> str:
    return " + ".join(f"{a}[{k}] * {b}[{k}]" for k in range(count))


class SortedSums:
    """The sums of an affine model that need not pass over the rows.

    Features are sorted when they are first needed: 8.25 bytes per row and feature used,
    beside the rows themselves.

    Parameters
    ----------
    model : Model
        An affine one.
    features : ndarray of shape (q, n)
        What the row functions read of each row.
    num_coefficients : int
        Number m of coefficients.
    """

    def __init__(self, model: Model, features: Array, num_coefficients: int) -> None:
        self._features = features
        reach = np.maximum(features.max(axis=1), -features.min(axis=1))
        self._reach = np.where(reach > 0, reach, 1.0)
        # The mean, to a few bits: what is subtracted then rounds little, or not at all.
        quantum = np.exp2(np.floor(np.log2(self._reach)) - CENTRE_BITS)
        self._centre = np.round(features.mean(axis=1) / quantum) * quantum
        self._columns: list[Column | None] = [None] * len(features)
        coefficients = compiled(model.coefficients or identity)
        shape = (num_coefficients, len(features))
        self._weight = weight_kernel(coefficients, model.log_likelihood, *shape)
        self._sum: Any = clipped_sum
        self._direction: Any = None
        if len(features) == 1:
            self._direction = direction_kernel(
                coefficients, model.gradient, model.dim, num_coefficients
            )

    def ratio(self, theta: Array, theta_new: Array, bound: float) -> tuple[float, int] | None:
        """Return what :attr:`dpmc.rows.RowSums.ratio` does, None for a move that is not so."""
        # A move of several components changes several weights: no search, nothing to compile.
        if len(self._reach) > 1 and np.count_nonzero(theta_new != theta) > 1:
            return None
        feature, weight, ratio = self._weight(theta, theta_new, self._centre, self._reach)
        if feature < 0:
            return None
        column = self._columns[feature] or self._sort(feature)
        total, clipped = self._sum(*column, ratio, weight, bound)
        return total, clipped

    def gradient(self, theta: Array, bound: float) -> tuple[Array, int] | None:
        """Return what :attr:`dpmc.rows.RowSums.gradient` does, None if gradients turn."""
        if self._direction is None:
            return None
        shared, slope, length, direction = self._direction(theta, self._centre, self._reach)
        if not shared:
            return None
        column = self._columns[0] or self._sort(0)
        total, clipped = self._sum(*column, length, slope, bound)
        return total * np.array(direction), clipped

    def _sort(self, feature: int) -> Column:
        column = Column.of(self._features[feature], self._centre[feature])
        self._columns[feature] = column
        return column
