"""The curve of Gaussian privacy: delta at an epsilon, and its inverses."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import erfcx, log_ndtr

from dpmc.types.errors import DpmcError
from dpmc.types.roots import smallest_epsilon

_LOG_SQRT_2_PI = 0.5 * math.log(2 * math.pi)
_SQRT_HALF_PI = math.sqrt(math.pi / 2)
_SQRT_HALF = math.sqrt(0.5)
# Trapezoidal rule in ln t: exponentially convergent, and past 1e-17 at this spacing.
_NODES = np.exp(np.arange(-24.0, 5.0, 0.1))
_SPACING = 0.1
# Smallest s: below it the two tails cancel, whatever epsilon is.
_SMALL = 1e-6
# Least and largest epsilon that noise is computed for.
LEAST_EPSILON = 1e-12
MOST_EPSILON = 1e8


def log_delta(epsilon: float, mu: float) -> float:
    """Ln delta(epsilon) of a privacy loss N(mu, 2 mu).

    With ``s = sqrt(2 mu)``, ``a = (epsilon - mu) / s``, ``b = a + s``, and Mills' ratio
    ``m``, delta is ``phi(a) (m(a) - m(b))``. The difference cancels when s is
    small; then it is the integral of ``exp(-a t - t**2 / 2) (1 - exp(-s t))``
    over t > 0, of which every part is positive.

    Parameters
    ----------
    epsilon : float
        At least 0.
    mu : float
        At least 0.

    Returns
    -------
    float
        ``-inf`` at mu = 0. The relative error of delta is below 1e-9 as long as
        ``|ln delta|`` is below 1e6.
    """
    if mu == 0:
        return -math.inf
    if math.isinf(mu):
        return 0.0
    s = math.sqrt(2 * mu)
    a = (epsilon - mu) / s
    b = (epsilon + mu) / s
    log_density = -(a**2) / 2 - _LOG_SQRT_2_PI
    upper = _SQRT_HALF_PI * float(erfcx(b * _SQRT_HALF))
    if a < 0 and s > _SMALL:  # the upper tail is of order one there: subtract probabilities
        above = float(log_ndtr(-a))
        return above + math.log1p(-upper * math.exp(log_density - above))
    lower = _SQRT_HALF_PI * float(erfcx(a * _SQRT_HALF))
    if upper < 0.5 * lower:
        return log_density + math.log(lower - upper)
    return log_density + math.log(_mills_difference(a, s))


def _mills_difference(a: float, s: float) -> float:
    t = _NODES * (2 / (a + math.sqrt(a**2 + 4)))
    return _SPACING * float(np.sum(-t * np.exp(-t * (a + t / 2)) * np.expm1(-s * t)))


def affordable_rho(epsilon: float, delta: float) -> float:
    """Largest rho that implies (epsilon, delta)-DP (Bun and Steinke 2016, lemma 3.5).

    ``(sqrt(epsilon + ln 1/delta) - sqrt(ln 1/delta))**2``, written without cancellation.
    """
    log_inverse = -math.log(delta)
    return (epsilon / (math.sqrt(epsilon + log_inverse) + math.sqrt(log_inverse))) ** 2


def affordable_mean_loss(epsilon: float, delta: float) -> float:
    """Mu*, the largest mu with ``log_delta(epsilon, mu) <= ln delta``.

    Parameters
    ----------
    epsilon : float
        Finite and > 0.
    delta : float
        In (0, 1).

    Returns
    -------
    float
        To about 1e-11, relative.
    """
    if not LEAST_EPSILON <= epsilon <= MOST_EPSILON:
        raise DpmcError(
            f"`epsilon` must be from {LEAST_EPSILON:g} to {MOST_EPSILON:g} with Gaussian noise, "
            f"got {epsilon:g}"
        )
    from scipy.optimize import brentq

    target = math.log(delta)
    low = math.log(affordable_rho(epsilon, delta))  # zCDP is an upper bound, so mu* is above rho
    while log_delta(epsilon, math.exp(low)) > target:
        low -= 1.0
    high = low + 1.0
    while log_delta(epsilon, math.exp(high)) <= target:
        high += 1.0
    root = brentq(lambda x: log_delta(epsilon, math.exp(x)) - target, low, high, xtol=1e-14)
    return math.exp(root)


def epsilon_of_loss(mu: float, delta: float) -> float:
    """Smallest epsilon at `delta` of a privacy loss N(mu, 2 mu).

    The only place where the curve is inverted for epsilon: one release with noise multiplier
    sigma has ``mu = 1 / (2 sigma**2)``, and a release that is m-GDP ``mu = m**2 / 2``.

    Parameters
    ----------
    mu : float
        At least 0.
    delta : float
        In (0, 1).

    Returns
    -------
    float
        At most 1e-7 (relative) too large; ``inf`` beyond 4e8.
    """
    return smallest_epsilon(lambda value: delta_of_loss(mu, value), delta, MOST_EPSILON)


def delta_of_loss(mu: float, epsilon: float) -> float:
    """Smallest delta at `epsilon`, at least 0, of a privacy loss N(mu, 2 mu)."""
    return math.exp(log_delta(epsilon, mu))
