"""Arithmetic with twice the digits: unevaluated sums of two floating-point numbers.

A sum of many rows by prefix sums is a small difference of large numbers. With one number its
rounding would depend on all rows at once, and one row could move the sum by more than the
bound that clips it. Error-free transformations as in Ogita, Rump and Oishi (2005), *Accurate
sum and dot product*: no operation may be reordered or fused, so nothing here is compiled with
fast arithmetic.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic

from dpmc.numerics.compiled import njit


@intrinsic
def _fused(_: Any, a: Any, b: Any, c: Any) -> Any:
    """Return ``a * b + c``, rounded once."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fma(*args)

    return types.float64(types.float64, types.float64, types.float64), codegen


_fma: Any = _fused  # it has no types


@njit
def add(high: float, low: float, other: float) -> tuple[float, float]:
    """Return ``high + low + other`` as two numbers."""
    total = high + other
    shift = total - high
    return total, low + ((high - (total - shift)) + (other - shift))


@njit
def add_product(high: float, low: float, a: float, b: float) -> tuple[float, float]:
    """Return ``high + low + a * b`` as two numbers."""
    product = a * b
    total = high + product
    shift = total - high
    low += (high - (total - shift)) + (product - shift)
    return total, low + _fma(a, b, -product)


@njit
def running_sums(values: Any, start: int, stop: int, step: int, block: int, out: Any) -> None:
    """Write the sums of whole blocks from one place on, outwards.

    Parameters
    ----------
    values : ndarray of shape (n,)
    start, stop, step : int
        The first value, the one before which to stop, and 1 or -1.
    block : int
        Values of a block, counted from `start`.
    out : ndarray of shape (blocks, 2)
        The sum of all values up to the end of each block, as two numbers.
    """
    high = low = 0.0
    for count in range((stop - start) // step):
        high, low = add(high, low, values[start + count * step])
        if (count + 1) % block == 0:
            out[count // block, 0] = high
            out[count // block, 1] = low
