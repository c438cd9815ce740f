"""Clipped sums over all rows in O(log n): sorted features and their prefix sums.

Where a row contributes a + b u with one feature u of it, those that are clipped from below
and from above are the two ends of the rows in the order of u, and the rest adds up to a
difference of prefix sums. So it is for the ratio of a move that changes the weight of one
feature of an affine model, and for its gradient where all rows share one direction.

No row moves the sum by more than its clip allows, whatever float it is. The numbers a and b
depend on theta alone, so each row contributes a function of itself; prefix sums have twice
the digits and start in the middle of the rows, so that those at the ends spoil none that
does not include them; and a sum whose rounding could still be seen is not used.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from dpmc.numerics.compiled import compile_once, compile_source, identity, kept_loop, njit
from dpmc.numerics.exact_sums import add, add_product, running_sums
from dpmc.rows.kernels import tuple_text
from dpmc.types import Array, Model

# Rows of a block: a prefix sum is stored for each, and the rest is added up when asked for.
BLOCK = 64
# How far gradients may turn, as a part of their length, and count as of one direction.
TURN = 1e-13
# Where slopes are measured: a power of two, far out, so that what is there at zero rounds little.
REACH = 2.0**20
# Rounding of a sum that is used, as a part of the bound.
TOLERANCE = 1e-10
# Relative rounding of a number.
ROUNDING = 2.0**-52
# Relative rounding of a sum of a billion numbers with twice its digits.
DOUBLED = 2.0**-70


class Column(NamedTuple):
    """One feature of all rows, sorted, with sums of its blocks from the middle outwards.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Ascending.
    first : ndarray of shape (blocks,)
        The first value of each block.
    before : ndarray of shape (blocks + 1, 2)
        Sum of the values before each block, and of all, less that of those before the
        middle: two numbers, whose sum it is.
    """

    values: Array
    first: Array
    before: Array

    @property
    def middle(self) -> int:
        """The block at which sums begin."""
        return self.first.size // 2

    @classmethod
    def of(cls, feature: Array) -> Column:
        """Sort the values of one feature, shape (n,), all finite."""
        values = np.sort(feature)
        first = values[::BLOCK].copy()
        middle = first.size // 2
        before = np.zeros((first.size + 1, 2))
        start = middle * BLOCK
        # The last block may be a short one.
        padded = np.concatenate((values[start:], np.zeros(-values.size % BLOCK)))
        running_sums(padded, 0, padded.size, 1, BLOCK, before[middle + 1 :])
        running_sums(values, start - 1, -1, -1, BLOCK, before[:middle][::-1])
        before[:middle] *= -1.0
        return cls(values, first, before)


@njit
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


@njit
def _below(values: Any, first: Any, length: float, slope: float, level: float, equal: bool) -> int:
    """Return how many terms are below `level`, or, with `equal`, not above it."""
    block = _count(first, 0, first.size, length, slope, level, equal) - 1
    if block < 0:
        return 0
    end = min((block + 1) * BLOCK, values.size)
    return int(_count(values, block * BLOCK + 1, end, length, slope, level, equal))


@njit
def _prefix(values: Any, before: Any, middle: int, count: int) -> tuple[float, float, float]:
    """Return the sum of the first `count` values less that of those before the middle.

    Two numbers, whose sum it is, and how far values are from that which is counted on: the
    first of them seen from the middle.
    """
    block = count // BLOCK
    inner = block >= middle
    low, high = (block * BLOCK, count) if inner else (count, min((block + 1) * BLOCK, values.size))
    total, rest = before[block if inner else block + 1]
    if low == high:
        return total, rest, 0.0
    start = values[low] if inner else values[high - 1]
    part = 0.0
    for j in range(low, high):
        part += values[j] - start
    sign = 1.0 if inner else -1.0
    total, rest = add_product(total, rest, sign * (high - low), start)
    total, rest = add(total, rest, sign * part)
    return total, rest, max(abs(values[low] - start), abs(values[high - 1] - start))


@njit
def _clipped_sum(
    values: Any, first: Any, before: Any, middle: int, length: float, slope: float, bound: float
) -> tuple[float, int, float]:
    sign = -1.0 if slope < 0 else 1.0
    length, slope = sign * length, sign * slope
    low = _below(values, first, length, slope, -bound, False)
    high = _below(values, first, length, slope, bound, True)
    above = values.size - high
    total = rest = far = 0.0
    if low != high:
        to_high, high_rest, high_far = _prefix(values, before, middle, high)
        to_low, low_rest, low_far = _prefix(values, before, middle, low)
        total, rest = add_product(total, rest, length, high - low)
        total, rest = add_product(total, rest, slope, to_high)
        total, rest = add_product(total, rest, -slope, to_low)
        rest += slope * (high_rest - low_rest)
        far = slope * max(high_far, low_far)
    if low != above:
        total, rest = add_product(total, rest, bound, above - low)
    # What lies between the middle and the rows that count is no larger than these.
    size = abs(length) + slope * abs(values[min(middle * BLOCK, values.size - 1)])
    error = BLOCK * ROUNDING * far + values.size * DOUBLED * (size + far)
    return sign * (total + rest), low + above, error


@functools.cache
def clipped_sum() -> Any:
    """Compile the sum of ``length + slope * value``, each clipped.

    Returns
    -------
    compiled function ``(*column, middle, length, slope, bound) -> (sum, number clipped, error)``
        The fields of a :class:`Column` and its middle, two finite numbers, and the bound:
        each term is clipped to [-bound, bound]; ``inf`` clips nothing. The sum is off by
        the error at most.
    """
    return kept_loop(_clipped_sum)


@functools.cache
def weight_kernel(
    coefficients: Any, log_likelihood: Any, num_coefficients: int, num_features: int
) -> Any:
    """Compile the search for the one feature on which the ratio of a move depends.

    Sums keep their order here, so that a coefficient that is zero gives a weight that is
    zero: adding nothing then changes no digit.

    Returns
    -------
    compiled function ``(theta, theta_new) -> (feature, weight, ratio)``
        The log-likelihood ratio is `ratio` where all features are zero, and `weight` its
        slope along `feature`; -1 as the feature if several have a weight.
    """
    source = f"""
def kernel(theta, theta_new):
    old = coefficients(theta)
    new = coefficients(theta_new)
    c = {tuple_text("new[{k}] - old[{k}]", num_coefficients)}
    ratio = log_likelihood(c, {tuple_text("0.0", num_features)})
    feature = -1
    weight = 0.0
    for i in range({num_features}):
        x = {tuple_text(f"{REACH!r} if i == {{k}} else 0.0", num_features)}
        rise = log_likelihood(c, x) - ratio
        if rise != 0.0:
            if feature != -1:
                return -1, 0.0, ratio
            feature = i
            weight = rise / {REACH!r}
    if not (math.isfinite(weight) and math.isfinite(ratio)):
        return -1, 0.0, ratio
    return max(feature, 0), weight, ratio
"""
    names = {
        "coefficients": compile_once(coefficients),
        "log_likelihood": compile_once(log_likelihood),
    }
    return compile_source(source, False, **names)


@functools.cache
def direction_kernel(coefficients: Any, gradient: Any, dim: int, num_coefficients: int) -> Any:
    """Compile the search for the one direction of the gradients of all rows, from one feature.

    Returns
    -------
    compiled function ``(theta) -> (whether, slope, length, direction)``
        The gradient of a row is `direction`, of length one, times `length` and `slope`
        times the feature. Not so (the first entry says whether) if gradients turn by more
        than rounding as the feature goes from 0 to 1.
    """
    source = f"""
def kernel(theta):
    v = coefficients(theta)
    c = {tuple_text("v[{k}]", num_coefficients)}
    g = gradient(c, (0.0,))
    h = gradient(c, ({REACH!r},))
    s = {tuple_text(f"(h[{{k}}] - g[{{k}}]) / {REACH!r}", dim)}
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
    return {_products("t", "t", dim)} <= ({TURN} * norm) ** 2, slope, length, e
"""
    names = {"coefficients": compile_once(coefficients), "gradient": compile_once(gradient)}
    return compile_source(source, False, **names)


def _products(a: str, b: str, count: int) -> str:
    return " + ".join(f"{a}[{k}] * {b}[{k}]" for k in range(count))


def _holds(total: float, error: float, bound: float) -> bool:
    """Return whether a sum may be taken: sums of rows far out overflow, which clips do not."""
    return math.isfinite(total) and error <= TOLERANCE * bound


class SortedSums:
    """The sums of an affine model that need not pass over the rows.

    Features are sorted when they are first needed: 8.25 bytes per row and feature used,
    in addition to the rows themselves.

    Parameters
    ----------
    model : Model
        An affine one.
    features : ndarray of shape (q, n)
        What the row functions read of each row, all finite.
    num_coefficients : int
        Number m of coefficients.
    """

    def __init__(self, model: Model, features: Array, num_coefficients: int) -> None:
        self._features = features
        self._columns: list[tuple[Any, ...] | None] = [None] * len(features)
        coefficients = compile_once(model.coefficients or identity)
        shape = (num_coefficients, len(features))
        self._weight = weight_kernel(coefficients, model.log_likelihood, *shape)
        self._sum = clipped_sum()
        self._direction: Any = None
        if len(features) == 1:
            self._direction = direction_kernel(
                coefficients, model.gradient, model.dim, num_coefficients
            )

    def ratio(self, theta: Array, theta_new: Array, bound: float) -> tuple[float, int] | None:
        """Clipped ratio of all rows, None for a move that depends on several features."""
        # A move of several components changes several weights: no search, nothing to compile.
        if len(self._columns) > 1 and np.count_nonzero(theta_new != theta) > 1:
            return None
        feature, weight, ratio = self._weight(theta, theta_new)
        if feature < 0:
            return None
        column = self._columns[feature] or self._sort(feature)
        total, clipped, error = self._sum(*column, ratio, weight, bound)
        return (total, clipped) if _holds(total, error, bound) else None

    def gradient(self, theta: Array, bound: float) -> tuple[Array, int] | None:
        """Clipped gradient of all rows, None if gradients turn."""
        if self._direction is None:
            return None
        shared, slope, length, direction = self._direction(theta)
        if not (shared and math.isfinite(slope) and math.isfinite(length)):
            return None
        column = self._columns[0] or self._sort(0)
        total, clipped, error = self._sum(*column, length, slope, bound)
        return (total * np.array(direction), clipped) if _holds(total, error, bound) else None

    def _sort(self, feature: int) -> tuple[Any, ...]:
        column = Column.of(self._features[feature])
        arguments = (*column, column.middle)
        self._columns[feature] = arguments
        return arguments
