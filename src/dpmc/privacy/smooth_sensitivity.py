"""Laplace noise by smooth sensitivity: the constants alpha and beta, and their true epsilon.

The thesis gives none. [nissim2007, lemma 2.6] has alpha = epsilon / 2 and beta = epsilon /
(2 log(2 / delta)) with a proof for epsilon < 1. Here the delta of any pair is computed.

Let S and S' be the smooth sensitivities of two neighbouring data sets and t the distance of
what is released. Then t <= min(S, S') and |log(S / S')| <= beta. The loss is the hockey stick of
P = Lap(0, S / alpha) against Q = Lap(t, S' / alpha), ``1 - integral of min(p, e^epsilon q)``.
Sets on which a density exceeds a level are intervals about 0 and t, whose overlap shrinks with
t: the worst shift is the largest. Only the ratio of S and S' has to be searched.
"""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np

from dpmc import checks
from dpmc.types import DpmcError, check_delta, check_epsilon

# Ratios looked at first, from e^-beta to e^beta; the worst of them is then refined.
NUM_RATIOS = 401
# Largest exponent: a larger epsilon is given the delta of this one.
_LARGEST = 700.0


def constants(epsilon: float, delta: float) -> tuple[float, float]:
    """Alpha = epsilon / 2 and beta = epsilon / (2 log(2 / delta)), not checked."""
    check_epsilon(epsilon)
    return epsilon / 2, epsilon / (2 * math.log(2 / check_delta(delta, "smooth_laplace")))


def check(epsilon: float, delta: float, alpha: float, beta: float) -> float:
    """Delta that alpha and beta really have at `epsilon`."""
    check_delta(delta, "smooth_laplace")
    least = delta_of(epsilon, alpha, beta)
    if least > delta:
        raise DpmcError(
            f"`alpha` and `beta` must give a delta of at most {delta:g} at epsilon {epsilon:g}, "
            f"got {least:.3g} with {alpha:.6g} and {beta:.6g}"
        )
    return least


@functools.lru_cache(maxsize=1024)
def delta_of(epsilon: float, alpha: float, beta: float) -> float:
    """Smallest delta of noise S / alpha with a beta-smooth S.

    Parameters
    ----------
    epsilon, alpha, beta : float
        Finite and > 0.
    """
    from scipy.optimize import minimize_scalar  # a third of a second, for this one function

    check_epsilon(epsilon)
    checks.positive("alpha", alpha)
    checks.positive("beta", beta)
    logs = np.linspace(-beta, beta, NUM_RATIOS)
    losses = [worst_loss(epsilon, alpha, log) for log in logs]
    best = int(np.argmax(losses))
    near = logs[max(best - 1, 0)], logs[min(best + 1, NUM_RATIOS - 1)]
    minimum = minimize_scalar(
        lambda log: -worst_loss(epsilon, alpha, log), bounds=near, method="bounded"
    )
    return float(max(losses[best], -minimum.fun))


def worst_loss(epsilon: float, alpha: float, log_ratio: float) -> float:
    """Hockey stick of the worst shift, for S'/S = e^log_ratio.

    Parameters
    ----------
    epsilon, alpha : float
    log_ratio : float
    """
    ratio = math.exp(log_ratio)
    return hockey_stick(epsilon, min(1.0, ratio), 1.0 / alpha, ratio / alpha)


def hockey_stick(epsilon: float, shift: float, scale: float, other: float) -> float:
    """Integral of the positive part of p - e^epsilon q.

    Parameters
    ----------
    epsilon : float
        >= 0.
    shift : float
        Of q, >= 0.
    scale, other : float
        Laplace scales of p = Lap(0, scale) and q = Lap(shift, other).

    Returns
    -------
    float
        Exact but for rounding: the log-ratio is linear between 0 and the shift and beyond.
    """
    level = math.log(other / scale) - epsilon

    def excess(x: float) -> float:
        return level - abs(x) / scale + abs(x - shift) / other

    steep = 1 / other - 1 / scale
    cuts = {0.0, shift}
    first, last = excess(0.0), excess(shift)
    if steep != 0:
        if first / steep < 0:
            cuts.add(first / steep)
        if last / steep < 0:
            cuts.add(shift - last / steep)
    middle = 1 / other + 1 / scale
    if 0 < first / middle < shift:
        cuts.add(first / middle)
    ends = [-math.inf, *sorted(cuts), math.inf]
    total, weight = 0.0, math.exp(min(epsilon, _LARGEST))
    for low, high in itertools.pairwise(ends):
        if excess(_between(low, high, scale + other)) > 0:
            mass = _mass(low, high, 0.0, scale)
            total += mass - weight * _mass(low, high, shift, other)
    return max(0.0, total)


def _between(low: float, high: float, step: float) -> float:
    if math.isinf(low):
        return high - step
    return low + step if math.isinf(high) else 0.5 * (low + high)


def _mass(low: float, high: float, centre: float, scale: float) -> float:
    """Laplace probability of an interval on one side of 0 or across it."""
    a, b = (low - centre) / scale, (high - centre) / scale
    if a >= 0:
        return 0.5 * (math.exp(-a) - math.exp(-b))
    if b <= 0:
        return 0.5 * (math.exp(b) - math.exp(a))
    return 1 - 0.5 * (math.exp(a) + math.exp(-b))
