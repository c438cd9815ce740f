"""Gamma factors of a precision: that of the noise, and that of the prior of weights."""

from __future__ import annotations

import math
from typing import Any

from dpmc.numerics.compiled import njit
from dpmc.numerics.simd import inlined


@njit
def tilted_gamma(a: float, b: float, variance: float, squared: float) -> tuple[float, float, bool]:
    """Return what one residual adds to shape and rate of the precision of its noise.

    The residual is normal with variance ``variance + b / (a - 1)``, which stands for the
    average over Gamma(a, b) [Hernández-Lobato and Adams 2015]. With the evidence Z, and Z1 and
    Z2 those with b / a and b / (a + 1),

        a' = 1 / (Z Z2 / Z1^2 (a + 1) / a - 1),  b' = 1 / (Z2 / Z1 (a + 1) / b - Z1 / Z a / b).

    The ratios are close to 1; only how far they are from it is computed.

    Parameters
    ----------
    a, b : float
        Shape > 1 and rate > 0 of the cavity.
    variance : float
        Of the residual without noise, >= 0.
    squared : float
        The residual squared.

    Returns
    -------
    tuple of (float, float, bool)
        ``a' - a``, ``b' - b``, and whether both distributions are proper, the expected variance
        finite.
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
    """Return shape and rate of the noise precision without one factor, and that factor."""
    a, b = arrays.gamma[0], arrays.gamma[1]
    if settings.sites:
        site_a, site_b = arrays.site_gamma[s, 0], arrays.site_gamma[s, 1]
    else:
        site_a = (a - settings.shape) * settings.share
        site_b = (b - settings.rate) * settings.share
    return a - site_a, b - site_b, site_a, site_b
