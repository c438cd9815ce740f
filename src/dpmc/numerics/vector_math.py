"""Exponential and logarithm without a branch or a call, for vector code; the digamma function.

The functions of `math` are calls of one number at a time, which keep the compiler from computing
several rows at once. These are arithmetic on floats and their bits. For all floats they return what
`math` does, NaN and infinities among it, but for errors of a few units in the last place, and for
results of `exp` below 4.5e-308, which are 0.
"""

from __future__ import annotations

import math
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from dpmc.numerics.compiled import njit

MANTISSA, EXPONENT = 52, 1023
LOG2_E = 1.0 / math.log(2.0)
# ln 2 = LN2_HIGH + LN2_LOW; the first has 32 bits, so that its product with an exponent is exact.
LN2_HIGH = 6.93147180369123816490e-01
LN2_LOW = 1.90821492927058770002e-10
# Beyond these exp is not a normal number.
LEAST, MOST = -707.7, 709.78
# exp(r) = 1 + r + r^2 P(r) on [-ln(2)/2, ln(2)/2], and log(m) = 2 s (1 + s^2 Q(s^2)) with
# s = (m - 1) / (m + 1) for m in [sqrt(1/2), sqrt(2)]: interpolated at Chebyshev nodes with 120
# digits. Relative errors 1.1e-15 and 7e-16.
P = (
    0.5,
    0.16666666666648303,
    0.041666666666651364,
    0.008333333353717156,
    0.0013888888905871347,
    0.0001984120875699232,
    2.4801536409064087e-05,
    2.7625102005388108e-06,
    2.761379555451986e-07,
)
Q = (
    0.3333333333333104,
    0.20000000005603252,
    0.1428571206916208,
    0.11111431140054358,
    0.09070096901432996,
    0.08310908576429464,
)
# Bits of sqrt(1/2), and of 1 less these.
ROOT_HALF_BITS = 0x3FE6A09E667F3BCD
SHIFT_BITS = 0x3FF0000000000000 - ROOT_HALF_BITS
FRACTION_BITS = (1 << MANTISSA) - 1
LEAST_NORMAL = 2.0**-1022
WORD, NUMBER = ir.IntType(64), ir.DoubleType()
PAIR: Any = types.Tuple((types.float64, types.float64))  # type: ignore[no-untyped-call]


def _rounded(typing: Any, x: Any) -> Any:
    """Integer near x, |x| < 2**51, as a float, and half of 2 to its power.

    Adding 1.5 * 2**52 leaves the integer in the last bits. No operation may be reordered.
    """

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        magic = ir.Constant(NUMBER, 1.5 * 2.0**52)
        moved = builder.fadd(arguments[0], magic)
        whole = builder.fsub(moved, magic)
        bits = builder.bitcast(moved, WORD)
        biased = builder.add(bits, ir.Constant(WORD, EXPONENT - 1))
        power = builder.bitcast(builder.shl(biased, ir.Constant(WORD, MANTISSA)), NUMBER)
        return context.make_tuple(builder, signature.return_type, (whole, power))

    return PAIR(types.float64), build


def _split(typing: Any, x: Any) -> Any:
    """Integer n and m of x = 2**n m, m in [sqrt(1/2), sqrt(2)), for a normal x > 0."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        bits = builder.bitcast(arguments[0], WORD)
        bits = builder.add(bits, ir.Constant(WORD, SHIFT_BITS))
        # The exponent as a float: its bits below those of 2**52.
        high = builder.lshr(bits, ir.Constant(WORD, MANTISSA))
        magic = 0x4330000000000000
        number = builder.bitcast(builder.or_(high, ir.Constant(WORD, magic)), NUMBER)
        n = builder.fsub(number, ir.Constant(NUMBER, 2.0**52 + EXPONENT))
        fraction = builder.and_(bits, ir.Constant(WORD, FRACTION_BITS))
        root = ir.Constant(WORD, ROOT_HALF_BITS)
        m = builder.bitcast(builder.add(fraction, root), NUMBER)
        return context.make_tuple(builder, signature.return_type, (n, m))

    return PAIR(types.float64), build


_ROUNDED: Any = intrinsic(_rounded)
_SPLIT: Any = intrinsic(_split)


@njit
def exp(x: float) -> float:
    """Exponential of x.

    Examples
    --------
    >>> exp(1.0) == math.e
    True
    """
    inside = LEAST if x < LEAST else (MOST if x > MOST else x)
    whole, half = _ROUNDED(inside * LOG2_E)
    r = (inside - whole * LN2_HIGH) - whole * LN2_LOW
    p = r * P[8] + P[7]
    p = p * r + P[6]
    p = p * r + P[5]
    p = p * r + P[4]
    p = p * r + P[3]
    p = p * r + P[2]
    p = p * r + P[1]
    p = p * r + P[0]
    value = 2.0 * (p * (r * r) + r + 1.0) * half
    value = 0.0 if x < LEAST else value
    return math.inf if x > MOST else value


@njit
def _log_normal(x: float) -> float:
    """Logarithm of a normal number > 0."""
    n, m = _SPLIT(x)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    q = z * Q[5] + Q[4]
    q = q * z + Q[3]
    q = q * z + Q[2]
    q = q * z + Q[1]
    q = q * z + Q[0]
    value: float = n * LN2_HIGH + (2.0 * (s + s * (q * z)) + n * LN2_LOW)
    return value


@njit
def _ends(x: float, value: float) -> float:
    """Logarithm where it is not that of a finite number > 0."""
    value = x if x == math.inf else value
    value = -math.inf if x == 0.0 else value
    return value if x >= 0.0 else math.nan


@njit
def log(x: float) -> float:
    """Natural logarithm of x: NaN below 0, and -inf at 0.

    Examples
    --------
    >>> log(1.0), log(0.0)
    (0.0, -inf)
    """
    small = x < LEAST_NORMAL
    normal = x * 2.0**54 if small else x
    return _ends(x, _log_normal(normal) - (54.0 * math.log(2.0) if small else 0.0))


@njit
def log1p(x: float) -> float:
    """Log(1 + x), exact for small x too: NaN below -1, and -inf at -1.

    Examples
    --------
    >>> log1p(1e-20)
    1e-20
    """
    u = 1.0 + x
    # What 1 + x lost to rounding, over 1 + x.
    lost = (x - (u - 1.0)) / u
    return _ends(u, _log_normal(u) + lost)


# From here on the asymptotic series is exact to rounding.
LARGE = 10.0


@njit
def digamma(x: float) -> float:
    """Derivative of log gamma at x > 0; NaN elsewhere.

    By the recurrence psi(x) = psi(x + 1) - 1 / x up to 10, then the asymptotic series
    [Abramowitz and Stegun, 6.3.18].

    Examples
    --------
    >>> round(digamma(1.0), 12)
    -0.577215664902
    """
    if not x > 0.0:
        return math.nan
    total = 0.0
    while x < LARGE:
        total -= 1.0 / x
        x += 1.0
    inverse = 1.0 / x
    square = inverse * inverse
    series = square * (-1 / 132 + square * (691 / 32760 - square / 12))
    series = square * (
        1 / 12 - square * (1 / 120 - square * (1 / 252 - square * (1 / 240 + series)))
    )
    return total + math.log(x) - 0.5 * inverse - series
