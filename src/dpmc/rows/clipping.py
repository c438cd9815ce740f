"""The clip: the last thing that happens to the contribution of a row, for every float.

A number that is not a number counts as zero, and an infinity as the bound, with its sign. A
vector with an entry that is not a number counts as zero; one whose Euclidean norm is beyond
the bound is shortened to it, infinite entries taken as equally large and all others as zero
then. Loops over rows (:mod:`dpmc.rows.kernels`, :mod:`dpmc.ep`) do the same in place to vectors
whose squared norm has all its digits, and call :func:`clip_vector` or :func:`clip_together` for
the others: a squared norm that overflows, vanishes or is NaN cannot be trusted.

Arithmetic is exact here, whoever calls: with fast arithmetic a division by the smallest numbers
would become a product, and overflow.
"""

from __future__ import annotations

import math
from typing import Any

from dpmc.numerics.compiled import njit
from dpmc.types import DpmcError

# Squares of bounds in between neither overflow nor vanish.
SMALLEST_BOUND = 1e-100
LARGEST_BOUND = 1e100
# Between these limits a squared norm has all its digits.
SMALLEST_SQUARE = 1e-280
LARGEST_SQUARE = 1e300
# Least bound that a squared norm can be compared with: the root of the smallest one.
SMALLEST_COMPARED_BOUND = 1e-140
# Larger than the exponent of any finite number: that of infinity.
INFINITE = 1 << 12


def check_bound(name: str, bound: float) -> None:
    """Refuse a clip bound whose square is not an ordinary floating-point number."""
    if not (SMALLEST_BOUND <= bound <= LARGEST_BOUND or bound == math.inf):
        raise DpmcError(
            f"`{name}` must be between {SMALLEST_BOUND:g} and {LARGEST_BOUND:g}, got {bound}"
        )


@njit
def ordinary(squared: float) -> bool:
    """Whether a squared norm can be trusted; False for NaN."""
    return SMALLEST_SQUARE < squared < LARGEST_SQUARE


@njit
def largest_magnitude(values: Any) -> float:
    """Largest magnitude of a vector; NaN where one entry is."""
    largest = 0.0
    for k in range(values.size):
        if math.isnan(values[k]):
            return math.nan
        largest = max(largest, abs(values[k]))
    return largest


@njit
def exponent_of(largest: float) -> int:
    """E with ``largest <= 2**e``, `INFINITE` for infinity."""
    return INFINITE if largest == math.inf else math.frexp(largest)[1]


@njit
def scaled_down(value: float, exponent: int) -> float:
    """Return ``value / 2**exponent``; of infinities the sign, and zero for all else there."""
    if exponent != INFINITE:
        return math.ldexp(value, -exponent)
    return math.copysign(1.0, value) if abs(value) == math.inf else 0.0


@njit
def scaled_square(values: Any, exponent: int) -> float:
    """Squared norm of a vector that is scaled down."""
    total = 0.0
    for k in range(values.size):
        entry = scaled_down(values[k], exponent)
        total += entry * entry
    return total


@njit
def over(scaled: float, exponent: int, bound: float) -> bool:
    """Whether a vector is longer than the bound, from its squared norm scaled down."""
    return exponent == INFINITE or math.ldexp(math.sqrt(scaled), exponent) > bound


@njit
def rescale(values: Any, exponent: int, weight: float) -> None:
    """Scale a vector down and multiply it, in place."""
    for k in range(values.size):
        values[k] = scaled_down(values[k], exponent) * weight


@njit
def clip_together(bound: float, first: Any, second: Any, third: Any) -> bool:
    """Clip three arrays of one dimension as one vector, in place; return whether it changed.

    Parameters
    ----------
    bound : float
        Largest norm of all together, > 0.
    first, second, third : ndarray of shape (m,), (k,) and (l,)
        Any floats: with a NaN among them all become zero. One may be empty.
    """
    a, b, c = largest_magnitude(first), largest_magnitude(second), largest_magnitude(third)
    if math.isnan(a) or math.isnan(b) or math.isnan(c):
        first[:], second[:], third[:] = 0.0, 0.0, 0.0
        return True
    largest = max(a, b, c)
    if largest == 0.0:
        return False
    # Divided by a power of two, exactly, the largest entry is in [1/2, 1]: no square overflows,
    # and what vanishes is far below the rounding of the sum.
    exponent = exponent_of(largest)
    squared = scaled_square(first, exponent) + scaled_square(second, exponent)
    squared += scaled_square(third, exponent)
    if not over(squared, exponent, bound):
        return False
    weight = bound / math.sqrt(squared)
    rescale(first, exponent, weight)
    rescale(second, exponent, weight)
    rescale(third, exponent, weight)
    return True


@njit
def clip_vector(values: Any, bound: float) -> bool:
    """Clip a vector in place to a Euclidean norm, whatever floats it holds.

    Parameters
    ----------
    values : ndarray of shape (d,)
        Any floats: with a NaN among them all become zero.
    bound : float
        Finite and > 0.

    Returns
    -------
    bool
        Whether the vector changed.
    """
    return bool(clip_together(bound, values, values[:0], values[:0]))
