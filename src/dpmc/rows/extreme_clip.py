"""The clip of vectors whose squared norm is not a number that can be trusted, compiled.

The clip is the last thing that happens to what a row says, for every float. Where a squared norm
overflows, vanishes or is not a number, the vector is divided by a power of two first: what
contains NaN becomes zero, what contains infinities points along them, and every other vector is
shortened to the bound as it would be with numbers of any size.
"""

from __future__ import annotations

import math
from typing import Any

from dpmc.numerics.jit import njit

# Between these limits a squared norm has all its digits. The root of the smaller one is the least
# bound that a squared norm can be compared with.
SMALLEST_SQUARE, LARGEST_SQUARE = 1e-280, 1e300
SMALLEST_BOUND = 1e-140
# Larger than the exponent of any finite number: that of infinity.
INFINITE = 1 << 12

# No reordering here: a division by the smallest numbers must not become a product.
exact = njit(nogil=True, error_model="numpy")


@exact
def ordinary(squared: float) -> bool:
    """Return whether a squared norm can be trusted; False for NaN."""
    return SMALLEST_SQUARE < squared < LARGEST_SQUARE


@exact
def largest_magnitude(values: Any) -> float:
    """Return the largest magnitude of a vector; NaN where one entry is."""
    largest = 0.0
    for k in range(values.size):
        if math.isnan(values[k]):
            return math.nan
        largest = max(largest, abs(values[k]))
    return largest


@exact
def exponent_of(largest: float) -> int:
    """Return e with ``largest <= 2**e``, `INFINITE` for infinity."""
    return INFINITE if largest == math.inf else math.frexp(largest)[1]


@exact
def scaled_down(value: float, exponent: int) -> float:
    """Return ``value / 2**exponent``; beside infinities, their signs and zero for all others."""
    if exponent != INFINITE:
        return math.ldexp(value, -exponent)
    return math.copysign(1.0, value) if abs(value) == math.inf else 0.0


@exact
def scaled_square(values: Any, exponent: int) -> float:
    """Return the squared norm of a vector that is scaled down."""
    total = 0.0
    for k in range(values.size):
        entry = scaled_down(values[k], exponent)
        total += entry * entry
    return total


@exact
def over(scaled: float, exponent: int, bound: float) -> bool:
    """Return whether a vector is longer than the bound, from its squared norm scaled down."""
    return exponent == INFINITE or math.ldexp(math.sqrt(scaled), exponent) > bound


@exact
def rescale(values: Any, exponent: int, weight: float) -> None:
    """Scale a vector down and multiply it, in place."""
    for k in range(values.size):
        values[k] = scaled_down(values[k], exponent) * weight


@exact
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
