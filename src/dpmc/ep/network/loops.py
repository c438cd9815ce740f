"""Expectation propagation in a network with one hidden layer: one row after another, compiled.

The factor of a row (:mod:`dpmc.ep.network.factor`) is included at once, or kept apart, clipped,
and included with noise [vinaroz2022dpsep, Algorithms 1 to 3]. A weight without a valid factor,
NaN among them, is given what leaves it as it is, which depends on no row; the clip comes after
that and bounds every factor.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpmc.ep.network.factor import (
    LARGEST,
    cavity_shape,
    factor,
    predict,
    scale_inputs,
    tilted_gamma,
    top_gradient,
    unit_gradient,
)
from dpmc.numerics.compiled import kept, njit
from dpmc.numerics.simd import WIDTH, choose, inlined, load, spread, store, total
from dpmc.privacy.compiled_noise import GROUP, fill
from dpmc.rows.clipping import SMALLEST_COMPARED_BOUND, clip_together


@inlined
def include_one(
    arrays: Any, settings: Any, base: int, k: int, by_mean: Any, by_variance: Any
) -> Any:
    """Put the factor of eight weights in; return 1 for each that is not valid.

    The site is stored even where it is one for all rows and computed anew at the next step: a
    branch would cost more, and keep Numba from seeing that no array needs its references
    counted.
    """
    shift, precision, valid = factor(arrays, k, by_mean, by_variance)
    old_shift = load(arrays.site_shift, base + k)
    old_precision = load(arrays.site_precision, base + k)
    zero = spread(0.0)
    shift = choose(valid, (shift - old_shift) * settings.step, zero)
    precision = choose(valid, (precision - old_precision) * settings.step, zero)
    store(arrays.shift, k, load(arrays.shift, k) + shift)
    store(arrays.precision, k, load(arrays.precision, k) + precision)
    store(arrays.site_shift, base + k, old_shift + shift)
    store(arrays.site_precision, base + k, old_precision + precision)
    return choose(valid, zero, spread(1.0))


@inlined
def include(arrays: Any, settings: Any, base: int, by_mean: float, by_var: float) -> Any:
    """Include the factor of a row at once; return how many weights have no valid one."""
    invalid = spread(0.0)
    k = 0
    for t in range(settings.tiles):
        u = WIDTH * t
        top = k + WIDTH * (settings.rows - 1)
        first, second = unit_gradient(arrays, settings, top, u, by_mean, by_var)
        for i in range(settings.rows - 1):
            a, b = first * arrays.scaled[i], second * arrays.squared[i]
            invalid = invalid + include_one(arrays, settings, base, k, a, b)
            k += WIDTH
        a, b = top_gradient(arrays, settings, k, u, by_mean, by_var)
        invalid = invalid + include_one(arrays, settings, base, k, a, b)
        k += WIDTH
    return total(invalid)


@inlined
def keep_one(arrays: Any, k: int, by_mean: Any, by_variance: Any) -> Any:
    """Store the factor of eight weights; return its squares, and 1 for each not valid.

    In the place of one that is not valid comes what was taken out, which changes nothing, so
    that it is clipped and released as any other.
    """
    shift, precision, valid = factor(arrays, k, by_mean, by_variance)
    shift = choose(valid, shift, load(arrays.site_shift, k))
    precision = choose(valid, precision, load(arrays.site_precision, k))
    store(arrays.factor_shift, k, shift)
    store(arrays.factor_precision, k, precision)
    return shift * shift, precision * precision, choose(valid, spread(0.0), spread(1.0))


@inlined
def keep(arrays: Any, settings: Any, by_mean: float, by_var: float) -> Any:
    """Store the factor of a row.

    Returns the squared norms of its blocks (shift and precision of the first layer, then of
    the second), and how many weights have no valid factor.
    """
    zero = spread(0.0)
    invalid, shift_1, precision_1, shift_2, precision_2 = zero, zero, zero, zero, zero
    k = 0
    for t in range(settings.tiles):
        u = WIDTH * t
        top = k + WIDTH * (settings.rows - 1)
        first, second = unit_gradient(arrays, settings, top, u, by_mean, by_var)
        for i in range(settings.rows - 1):
            a, b = first * arrays.scaled[i], second * arrays.squared[i]
            a, b, c = keep_one(arrays, k, a, b)
            shift_1, precision_1, invalid = shift_1 + a, precision_1 + b, invalid + c
            k += WIDTH
        a, b = top_gradient(arrays, settings, k, u, by_mean, by_var)
        a, b, c = keep_one(arrays, k, a, b)
        shift_2, precision_2, invalid = shift_2 + a, precision_2 + b, invalid + c
        k += WIDTH
    return total(shift_1), total(precision_1), total(shift_2), total(precision_2), total(invalid)


@njit
def clip_scale(squared: float, bound: float) -> float:
    """Factor that gives a vector a norm of at most `bound`; NaN for NaN."""
    length = math.sqrt(squared)
    return 1.0 if length <= bound else bound / length


@inlined
def clip_scales(clip: int, bound: float, a: float, b: float, c: float, d: float, e: float) -> Any:
    """Factors of five blocks, from their squared norms, and how many are clipped."""
    if clip == 0:
        return 1.0, 1.0, 1.0, 1.0, 1.0, 0
    if clip == 1:
        scale = clip_scale(a + b + c + d + e, bound)
        return scale, scale, scale, scale, scale, int(scale < 1.0)
    a, b, c = clip_scale(a, bound), clip_scale(b, bound), clip_scale(c, bound)
    d, e = clip_scale(d, bound), clip_scale(e, bound)
    clipped = int(a < 1.0) + int(b < 1.0) + int(c < 1.0) + int(d < 1.0) + int(e < 1.0)
    return a, b, c, d, e, clipped


@njit
def clip_extreme(arrays: Any, settings: Any, factor_a: float, factor_b: float) -> Any:
    """Clip, in place and as one vector, a factor whose squared norm cannot be trusted.

    Returns
    -------
    tuple of (float, float, bool)
        Its part of the distribution of the noise precision, and whether the factor changed.
    """
    gamma = np.array([factor_a, factor_b])
    changed = clip_together(
        settings.clip_bound,
        arrays.factor_shift,
        arrays.factor_precision,
        gamma if settings.learned else gamma[:0],
    )
    return gamma[0], gamma[1], changed


@inlined
def trusted(bound: float, a: float, b: float, c: float, d: float, e: float) -> bool:
    """Test of scales of blocks: they come from norms that are numbers of ordinary size.

    A norm that overflows gives zero, and one that is NaN gives NaN.
    """
    return (
        (a > 0.0)
        & (b > 0.0)
        & (c > 0.0)
        & (d > 0.0)
        & (e > 0.0)
        & (bound > SMALLEST_COMPARED_BOUND)
    )


@inlined
def release_one(
    arrays: Any, settings: Any, k: int, p: int, shift_scale: float, precision_scale: float, sd: Any
) -> Any:
    """Include the clipped factor of eight weights with noise; return 1 for each raised."""
    change = load(arrays.factor_shift, k) * shift_scale - load(arrays.site_shift, k)
    shift = load(arrays.shift, k) + change * settings.step
    store(arrays.shift, k, shift + load(arrays.noise, p) * sd)
    change = load(arrays.factor_precision, k) * precision_scale - load(arrays.site_precision, k)
    precision = load(arrays.precision, k) + change * settings.step
    precision = precision + load(arrays.noise, p + arrays.shift.size) * sd
    floor = load(arrays.prior, k) * settings.floor_share + settings.floor_base
    low = precision < floor
    store(arrays.precision, k, choose(low, floor + settings.floor_lift, precision))
    return choose(low, spread(1.0), spread(0.0))


@inlined
def release(arrays: Any, settings: Any, p: int, a: float, b: float, c: float, d: float) -> Any:
    """Include the clipped factor of a row with noise; return how many precisions were raised.

    Noise begins at `p` in its array; `a` to `d` are the factors of the blocks.
    """
    raised = spread(0.0)
    k = 0
    for t in range(settings.tiles):
        real, bias = load(arrays.real, WIDTH * t), load(arrays.bias, WIDTH * t)
        sd = real * settings.noise_sd
        for _ in range(settings.rows - 1):
            raised = raised + release_one(arrays, settings, k, p + k, a, b, sd) * real
            k += WIDTH
        either = real + bias
        sd = either * settings.noise_sd
        raised = raised + release_one(arrays, settings, k, p + k, c, d, sd) * either
        k += WIDTH
    return total(raised)


@inlined
def next_noise(arrays: Any, settings: Any) -> Any:
    """Place of the noise of the next release, which is drawn if need be."""
    needed = 2 * arrays.shift.size + GROUP
    p = arrays.position[0]
    if settings.noise_sd > 0.0:
        if p + needed > arrays.noise.size:
            fill(arrays.words, arrays.noise)
            p = 0
        arrays.position[0] = p + needed
    return p


@inlined
def move_gamma(
    arrays: Any,
    settings: Any,
    s: int,
    change_a: float,
    change_b: float,
    noise_a: float,
    noise_b: float,
) -> None:
    """Update q of the noise precision; with noise it keeps at least what the prior has."""
    a, b = arrays.gamma[0] + change_a, arrays.gamma[1] + change_b
    if settings.noise_sd > 0.0:
        a = max(a + settings.noise_sd * noise_a, settings.shape)
        b = max(b + settings.noise_sd * noise_b, settings.rate)
    arrays.gamma[0], arrays.gamma[1] = a, b
    if settings.sites:
        arrays.site_gamma[s, 0] += change_a
        arrays.site_gamma[s, 1] += change_b


@kept
def sweep(x: Any, y: Any, order: Any, arrays: Any, settings: Any) -> None:
    """Include the factors of the rows that `order` names, one after the other, in place."""
    counts = arrays.counts
    for j in range(order.size):
        n = order[j]
        s = n if settings.sites else 0
        base = s * arrays.shift.size
        scale_inputs(arrays, settings, x[n])
        out_mean, out_variance = predict(arrays, settings, base)
        a, b, site_a, site_b = cavity_shape(arrays, settings, s)
        residual, spread_out = y[n] - out_mean, out_variance + b / (a - 1.0)
        fine = 0.0 < spread_out < LARGEST
        if not fine:
            spread_out = math.nan  # no factor is valid then
            counts[4] += 1
        by_mean = residual / spread_out
        by_var = 0.5 * (by_mean * by_mean - 1.0 / spread_out)
        factor_a, factor_b = site_a, site_b
        if settings.learned:
            factor_a, factor_b, valid = tilted_gamma(a, b, out_variance, residual * residual)
            if not (fine and valid):
                factor_a, factor_b = site_a, site_b
                counts[5] += 1
        p, scale = 0, 1.0
        if settings.stepwise:
            h1, l1, h2, l2, invalid = keep(arrays, settings, by_mean, by_var)
            norm = factor_a * factor_a + factor_b * factor_b if settings.learned else 0.0
            h1, l1, h2, l2, scale, clipped = clip_scales(
                settings.clip, settings.clip_bound, h1, l1, h2, l2, norm
            )
            if settings.clip > 0 and not trusted(settings.clip_bound, h1, l1, h2, l2, scale):
                factor_a, factor_b, changed = clip_extreme(arrays, settings, factor_a, factor_b)
                clipped = int(changed)
                h1, l1, h2, l2, scale = 1.0, 1.0, 1.0, 1.0, 1.0
            p = next_noise(arrays, settings)
            counts[3] += int(release(arrays, settings, p, h1, l1, h2, l2))
            counts[2] += clipped
            p += 2 * arrays.shift.size
        else:
            invalid = include(arrays, settings, base, by_mean, by_var)
        if fine:
            counts[1] += int(invalid)
        if settings.learned:
            change_a = settings.step * (scale * factor_a - site_a)
            change_b = settings.step * (scale * factor_b - site_b)
            noise = arrays.noise
            move_gamma(arrays, settings, s, change_a, change_b, noise[p], noise[p + 1])
    counts[0] += order.size
