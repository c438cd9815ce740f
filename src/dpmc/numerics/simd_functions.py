"""Elementary functions of eight numbers at a time: a few multiplications, no call, no branch.

Series and ranges are such that the truncated rest is below the rounding of float64. Errors are
relative, as measured by the tests.
"""

from __future__ import annotations

import math
from typing import Any

from dpmc.numerics.simd import bits_of_numbers, inlined, numbers_of_bits, to_numbers, to_words

MANTISSA, EXPONENT = 52, 1023
LOG2_E = 1.0 / math.log(2.0)
# ln 2 = LN2_HIGH + LN2_LOW; the first has 32 bits, so that its product with an exponent is exact.
LN2_HIGH = 6.93147180369123816490e-01
LN2_LOW = 1.90821492927058770002e-10

# Mills' ratio: see below. (1 + t) R(t) as a polynomial in (t - 5) / (t + 5), interpolated at 37
# Chebyshev nodes with 40 digits.
M0, M1, M2, M3 = 1.1568486282918946, -0.22948753825211315, 0.07778159886873769, 0.0250721793016388
M4, M5, M6, M7 = -0.0661776007790963, 0.0615050458401865, -0.03802659218584139, 0.01634823128102938
M8, M9 = -0.004201290329187307, 1.9530638370790786e-05
M10, M11 = 0.00045704392357953655, -0.0001343742785571135
M12, M13 = -2.480583845192319e-05, 2.270961270923768e-05
M14, M15 = -1.7633239265736722e-07, -3.2772876332088646e-06
M16, M17 = 3.205431665258954e-07, 4.919962331478334e-07
M18, M19 = -6.58897449110893e-08, -7.758520236786298e-08
M20, M21 = 9.092476134019043e-09, 1.1032071151574147e-08
M22, M23 = -7.073898575561392e-10, -9.564832934712206e-10

# Bits of sqrt(1/2), and of 1 less these.
ROOT_HALF_BITS = 0x3FE6A09E667F3BCD
SHIFT_BITS = 0x3FF0000000000000 - ROOT_HALF_BITS
FRACTION_BITS = (1 << MANTISSA) - 1


@inlined
def exponential(x: Any) -> Any:
    """Return exp(x) for x in [-700, 0]: 2^n times a Taylor series on [-ln(2)/2, ln(2)/2]."""
    n = to_words(x * LOG2_E - 0.5)
    whole = to_numbers(n)
    r = (x - whole * LN2_HIGH) - whole * LN2_LOW
    p = r * (1 / 479001600) + 1 / 39916800
    p = p * r + 1 / 3628800
    p = p * r + 1 / 362880
    p = p * r + 1 / 40320
    p = p * r + 1 / 5040
    p = p * r + 1 / 720
    p = p * r + 1 / 120
    p = p * r + 1 / 24
    p = p * r + 1 / 6
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    return p * numbers_of_bits((n + EXPONENT) << MANTISSA)


@inlined
def logarithm(x: Any) -> Any:
    """Return ln(x) for normal x > 0: of 2^n m with m in [sqrt(1/2), sqrt(2)).

    ln m = 2 artanh((m - 1) / (m + 1)), whose series converges fast: the square of that ratio
    is at most 0.0295.
    """
    bits = bits_of_numbers(x) + SHIFT_BITS
    n = to_numbers(bits >> MANTISSA) - EXPONENT
    m = numbers_of_bits((bits & FRACTION_BITS) + ROOT_HALF_BITS)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    p = z * (1 / 17) + 1 / 15
    p = p * z + 1 / 13
    p = p * z + 1 / 11
    p = p * z + 1 / 9
    p = p * z + 1 / 7
    p = p * z + 1 / 5
    p = p * z + 1 / 3
    p = p * z + 1.0
    return n * LN2_HIGH + (2.0 * s * p + n * LN2_LOW)


@inlined
def circle(u: Any) -> Any:
    """Return cos and sin of 2 pi u for u in [-1/2, 1/2]; the error is absolute.

    Taylor series at a quarter of the angle, which is doubled twice.
    """
    x = (0.5 * math.pi) * u
    z = x * x
    s = z * (1 / 1307674368000) * -1.0 + 1 / 6227020800
    s = s * z - 1 / 39916800
    s = s * z + 1 / 362880
    s = s * z - 1 / 5040
    s = s * z + 1 / 120
    s = s * z - 1 / 6
    s = s * z + 1.0
    s = s * x
    c = z * (1 / 20922789888000) - 1 / 87178291200
    c = c * z + 1 / 479001600
    c = c * z - 1 / 3628800
    c = c * z + 1 / 40320
    c = c * z - 1 / 720
    c = c * z + 1 / 24
    c = c * z - 0.5
    c = c * z + 1.0
    s, c = 2.0 * s * c, 1.0 - 2.0 * s * s
    return 1.0 - 2.0 * s * s, 2.0 * s * c


@inlined
def mills(t: Any) -> Any:
    """Return Mills' ratio R(t) = (1 - Phi(t)) / phi(t) of the normal distribution, for t >= 0.

    ``(1 + t) R(t)`` is smooth in ``(t - 5) / (t + 5)`` on all of [-1, 1]
    [Shepherd and Laframboise 1981].
    """
    y = (t - 5.0) / (t + 5.0)
    p = y * M23 + M22
    p = p * y + M21
    p = p * y + M20
    p = p * y + M19
    p = p * y + M18
    p = p * y + M17
    p = p * y + M16
    p = p * y + M15
    p = p * y + M14
    p = p * y + M13
    p = p * y + M12
    p = p * y + M11
    p = p * y + M10
    p = p * y + M9
    p = p * y + M8
    p = p * y + M7
    p = p * y + M6
    p = p * y + M5
    p = p * y + M4
    p = p * y + M3
    p = p * y + M2
    p = p * y + M1
    p = p * y + M0
    return p / (1.0 + t)
