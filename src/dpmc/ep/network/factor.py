"""Cavity, prediction and factor of one row in a network with one hidden layer, compiled.

For a row: take its factor out of q, propagate the moments of the weights to the output,
differentiate the logarithm of the evidence, and turn the derivatives into the factor of the row
[vinaroz2022dpsep, section 6.2; Hernández-Lobato and Adams 2015]. All derivatives are written
out; the cost is a few dozen operations and two divisions for each weight.
"""

from __future__ import annotations

import math
from typing import Any

from dpmc.numerics.compiled import njit
from dpmc.numerics.simd import (
    WIDTH,
    choose,
    exponential,
    inlined,
    load,
    mills,
    root,
    spread,
    store,
    total,
)

DENSITY = 1.0 / math.sqrt(2.0 * math.pi)
# Below exp(-500) a density is taken for that: products of it stay normal numbers.
LOWEST = -500.0


@inlined
def rectify(mean: Any, variance: Any) -> Any:
    """Moments of eight rectified normal variables, and what their derivatives need.

    Let s be the standard deviation, alpha the mean over it, t = abs(alpha), phi the normal
    density at t, R Mills' ratio there, A = 1 - t R and B = R - t A. Below zero the mean is
    ``s phi A`` and the second moment ``s^2 phi B``; above, the variable is the sum of a and
    such a one.

    Mean, variance, the chances Phi(-alpha) and Phi(alpha), and ``phi / (2 s)``. The derivatives of
    the mean are Phi(alpha) by the mean and phi / (2 s) by the variance of a; those of the variance
    twice the mean times Phi(-alpha), and Phi(alpha) less twice the mean times phi / (2 s).
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


@njit
def tilted_gamma(a: float, b: float, variance: float, squared: float) -> tuple[float, float, bool]:
    """Changes of shape and rate of the precision of noise by one residual.

    The residual is normal with variance ``variance + b / (a - 1)``, which stands for the
    average over Gamma(a, b) [Hernández-Lobato and Adams 2015]. With the evidence Z, and Z1 and
    Z2 those with b / a and b / (a + 1),

        a' = 1 / (Z Z2 / Z1^2 (a + 1) / a - 1),  b' = 1 / (Z2 / Z1 (a + 1) / b - Z1 / Z a / b).

    The ratios are close to 1; only how far they are from it is computed.

    ``a' - a``, ``b' - b``, and whether both distributions are proper, the expected variance finite.

    Parameters
    ----------
    a, b : float
        Shape > 1 and rate > 0 of the cavity.
    variance : float
        Of the residual without noise, >= 0.
    squared : float
        The residual squared.
    """
    d = variance + b / (a - 1.0)
    d1 = variance + b / a
    d2 = variance + b / (a + 1.0)
    gap_1 = b / (a * (a - 1.0))
    gap_2 = b / (a * (a + 1.0))
    # Logarithms of Z1 / Z and Z2 / Z1.
    log_1 = 0.5 * (math.log1p(gap_1 / d1) - squared * gap_1 / (d * d1))
    log_2 = 0.5 * (math.log1p(gap_2 / d2) - squared * gap_2 / (d1 * d2))
    new_a = 1.0 / math.expm1(log_2 - log_1 + math.log1p(1.0 / a))
    new_b = b / (1.0 + (a + 1.0) * math.expm1(log_2) - a * math.expm1(log_1))
    valid = a > 1.0 and b > 0.0 and 1.0 < new_a < math.inf and 0.0 < new_b < math.inf
    return new_a - a, new_b - b, valid


@inlined
def cavity_shape(arrays: Any, settings: Any, s: int) -> tuple[float, float, float, float]:
    """Shape and rate of the noise precision without one factor, and that factor."""
    a, b = arrays.gamma[0], arrays.gamma[1]
    if settings.sites:
        site_a, site_b = arrays.site_gamma[s, 0], arrays.site_gamma[s, 1]
    else:
        site_a = (a - settings.shape) * settings.share
        site_b = (b - settings.rate) * settings.share
    return a - site_a, b - site_b, site_a, site_b


# Precisions and variances below this are no update.
SMALLEST = 1e-20
# Precisions and variances above this are no update.
LARGEST = 1e20


@inlined
def scale_inputs(arrays: Any, settings: Any, row: Any) -> None:
    """Store the inputs of a row, the last of them 1, as the first layer takes them."""
    last = row.size
    for i in range(last):
        x = row[i]
        arrays.scaled[i] = x * settings.input_root
        arrays.squared[i] = x * x * settings.input_share
    arrays.scaled[last] = settings.input_root
    arrays.squared[last] = settings.input_share


@inlined
def take_out(arrays: Any, settings: Any, base: int, k: int) -> Any:
    """Mean and variance of eight weights in the cavity, and store them.

    The factor taken out is the site of the row, or a share 1 / N of what q has beyond the
    prior; this share is stored, for the inclusion to come.
    """
    shift, precision = load(arrays.shift, k), load(arrays.precision, k)
    if settings.sites:
        site_shift = load(arrays.site_shift, base + k)
        site_precision = load(arrays.site_precision, base + k)
    else:
        site_shift = shift * settings.share
        site_precision = (precision - load(arrays.prior, k)) * settings.share
        store(arrays.site_shift, k, site_shift)
        store(arrays.site_precision, k, site_precision)
    variance = 1.0 / (precision - site_precision)
    mean = (shift - site_shift) * variance
    store(arrays.mean, k, mean)
    store(arrays.variance, k, variance)
    return mean, variance


@inlined
def predict(arrays: Any, settings: Any, base: int) -> Any:
    """Mean and variance of the output under the cavity, storing moments on the way."""
    out_mean, out_variance = spread(0.0), spread(0.0)
    k = 0
    for t in range(settings.tiles):
        unit_mean, unit_variance = spread(0.0), spread(0.0)
        for i in range(settings.rows - 1):
            mean, variance = take_out(arrays, settings, base, k)
            unit_mean = unit_mean + mean * arrays.scaled[i]
            unit_variance = unit_variance + variance * arrays.squared[i]
            k += WIDTH
        mean, variance = take_out(arrays, settings, base, k)
        k += WIDTH
        unit_mean, unit_variance = units(arrays, WIDTH * t, unit_mean, unit_variance)
        out_mean = out_mean + mean * unit_mean
        second = variance * (unit_mean * unit_mean) + (variance + mean * mean) * unit_variance
        out_variance = out_variance + second
    return total(out_mean) * settings.unit_root, total(out_variance) * settings.unit_share


@inlined
def units(arrays: Any, u: int, mean: Any, variance: Any) -> Any:
    """Moments of eight units; store them and what their derivatives need."""
    unit_mean, unit_variance, below, above, slope = rectify(mean, variance)
    real = load(arrays.real, u)
    unit_mean = unit_mean * real + load(arrays.bias, u)
    unit_variance = unit_variance * real
    store(arrays.unit_mean, u, unit_mean)
    store(arrays.unit_variance, u, unit_variance)
    store(arrays.below, u, below)
    store(arrays.above, u, above)
    store(arrays.slope, u, slope)
    return unit_mean, unit_variance


@inlined
def top_gradient(arrays: Any, settings: Any, k: int, u: int, by_mean: float, by_var: float) -> Any:
    """Derivatives by mean and variance of eight weights of the output."""
    mean = load(arrays.mean, k)
    unit_mean, unit_variance = load(arrays.unit_mean, u), load(arrays.unit_variance, u)
    a = by_mean * settings.unit_root
    b = by_var * settings.unit_share
    gradient = unit_mean * a + (mean * unit_variance) * (2.0 * b)
    return gradient, (unit_variance + unit_mean * unit_mean) * b


@inlined
def unit_gradient(arrays: Any, settings: Any, k: int, u: int, by_mean: float, by_var: float) -> Any:
    """Derivatives by mean and variance of the inputs of eight units."""
    mean, variance = load(arrays.mean, k), load(arrays.variance, k)
    unit_mean = load(arrays.unit_mean, u)
    a = by_mean * settings.unit_root
    b = by_var * settings.unit_share
    of_mean = mean * a + (variance * unit_mean) * (2.0 * b)
    of_variance = (variance + mean * mean) * b
    above, slope, real = load(arrays.above, u), load(arrays.slope, u), load(arrays.real, u)
    product = unit_mean * load(arrays.below, u)
    first = of_mean * above + of_variance * product * 2.0
    second = of_mean * slope + of_variance * (above - unit_mean * slope * 2.0)
    return first * real, second * real


@inlined
def factor(arrays: Any, k: int, by_mean: Any, by_variance: Any) -> Any:
    """Shift and precision of the factor of eight weights, and where it is valid.

    With kappa = g_m^2 - 2 g_v and v the variance of the cavity, the precision is
    ``kappa / (1 - v kappa)`` and the shift ``(g_m + m kappa) / (1 - v kappa)``: the difference
    of tilted and cavity, with nothing cancelling. A comparison with NaN does not hold.
    """
    mean, variance = load(arrays.mean, k), load(arrays.variance, k)
    kappa = by_mean * by_mean - by_variance * 2.0
    left = 1.0 - variance * kappa
    inverse = 1.0 / left
    tilted = variance * left
    valid = (variance > SMALLEST) & (variance < LARGEST) & (tilted > SMALLEST) & (tilted < LARGEST)
    return (by_mean + mean * kappa) * inverse, kappa * inverse, valid
