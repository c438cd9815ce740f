"""Moments of max(0, a) for a normal a, without cancellation, and their derivatives."""

from __future__ import annotations

import math
from typing import Any

from dpmc.numerics.simd import choose, exponential, inlined, mills, root, spread

DENSITY = 1.0 / math.sqrt(2.0 * math.pi)
# Below exp(-500) a density is taken for that: products of it stay normal numbers.
LOWEST = -500.0


@inlined
def rectify(mean: Any, variance: Any) -> Any:
    """Return moments of eight rectified normal variables, and what their derivatives need.

    Let s be the standard deviation, alpha the mean over it, t = abs(alpha), phi the normal
    density at t, R Mills' ratio there, A = 1 - t R and B = R - t A. Below zero the mean is
    ``s phi A`` and the second moment ``s^2 phi B``; above, the variable is the sum of a and
    such a one.

    Returns
    -------
    tuple of Numbers
        Mean, variance, the chances Phi(-alpha) and Phi(alpha), and ``phi / (2 s)``. The
        derivatives of the mean are Phi(alpha) by the mean and phi / (2 s) by the variance of
        a; those of the variance twice the mean times Phi(-alpha), and Phi(alpha) less twice
        the mean times phi / (2 s).
    """
    sd = root(variance)
    ratio = mean / sd
    zero, one = spread(0.0), spread(1.0)
    negative = ratio < zero
    t = choose(negative, zero - ratio, ratio)
    exponent = t * t * -0.5
    exponent = choose(exponent > LOWEST, exponent, spread(LOWEST))
    density = exponential(exponent) * DENSITY
    r = mills(t)
    first = 1.0 - t * r
    second = r - t * first
    far = density * r
    part = density * first
    near = one - far
    unit_mean = sd * (choose(negative, zero, t) + part)
    below_zero = density * second - part * part
    above_zero = 1.0 - (density * second + 2.0 * t * part + part * part)
    unit_variance = variance * choose(negative, below_zero, above_zero)
    below, above = choose(negative, near, far), choose(negative, far, near)
    return unit_mean, unit_variance, below, above, density / (sd * 2.0)
