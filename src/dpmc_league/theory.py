"""The cost of the accept test: effective draws of samplers on a whitened normal posterior.

The target is N(0, I) in d dimensions. A row moves a whitened gradient by at most c, and a log-ratio
by at most c times the length of the move; the budget is mu of Gaussian differential privacy. All
that matters is k = (mu / c)^2: a draw from the posterior is a release of its mean with noise of
variance 1, which costs c^2, so that the budget buys k exact draws. A release with noise of standard
deviation sigma costs (c / sigma)^2, and N releases of a gradient that spend all have sigma^2 = N /
k.

*Without an accept test.* Whatever is done with N gradients, their mean has variance sigma^2 / N = 1
/ k. Langevin steps ``x - h (x + sigma xi)`` with sigma^2 = 2 / h are an autoregression with
coefficient 1 - h and stationary variance 1 / (1 - h / 2); the long-run variance of its mean is (h
sigma / h)^2 / N = 1 / k: k effective draws for every h and d. With momentum it is the same.

*Random walk.* A move of length l on the target has log-ratio N(-l^2 / 2, l^2) at stationarity;
noise of standard deviation s and the penalty make it N(-V / 2, V) with V = l^2 + s^2, which is
accepted with probability a(V) = 2 Phi(-sqrt(V) / 2). A decision costs (c l / s)^2, so that N = k
s^2 / l^2. A component moves l^2 a / d in mean square; for short moves N of them are worth N l^2 a /
(4 d) draws. With N given, V a(V) is to be greatest: V = 2.38^2, and effective draws are V a(V) / (4
d) / (1 / k + 1 / N) -> 0.331 k / d.

*DP-HMC, one leapfrog step of size eta.* Noise sigma in the gradients at both ends changes the
energy by N(-v / 2, v) with v = d eta^2 sigma^2 / 2, up to higher orders of eta. With s for the
noise of the ratio, V = v + s^2. An iteration costs c^2 (g / sigma^2 + d eta^2 / s^2), g = 1
gradients where the last one is kept, 2 where it is not. N iterations are worth N eta^2 a / 4 draws,
hence k a / (4 d) / (g / (2 v) + 1 / s^2). Greatest for s^2 = v sqrt(2 / g): with x = sqrt(g / 2),
effective draws are V a(V) / (4 d) k / (1 + x)^2: 0.114 k / d (g = 1) and 0.083 k / d (g = 2), with
x / (1 + x) of the budget on gradients.

*DP-HMC, L leapfrog steps* that go as far as one. Each of N L gradients has L times the variance.
Those in between turn the momentum by a whole step, those at the ends by halves, so that v = (2 L -
1) / L of what it is for one step: g = (2 L - 1) / L above, from 1 to 2. More steps lose up to 27 %.

*Batches.* A sum over b of n rows, times n / b, with noise of multiplier z has noise of n / b z in
units of the sensitivity: N of them say as much of the mode as one release from all rows with noise
of z n / b / sqrt(N), had the choice of rows no variance of its own. All rows at once would have 1 /
mu.

All of this is at stationarity, for a normal target, a known shape, and rows that are not clipped.
"""

from __future__ import annotations

import math
from functools import cache

from scipy.optimize import minimize_scalar
from scipy.special import ndtr

# The standard deviation of a log-ratio at which V a(V) is greatest, and shares of the budget.
BEST_SPREAD = 2.3812
GRADIENT_SHARE = math.sqrt(0.5) / (1 + math.sqrt(0.5))


def acceptance(spread: float) -> float:
    """Acceptance where a log-ratio is N(-V / 2, V), with ``V = spread**2``."""
    return 2 * float(ndtr(-0.5 * spread))


@cache
def best_spread() -> float:
    """Root of the V at which V a(V) is greatest, 2.38."""
    found = minimize_scalar(
        lambda s: -(s**2) * acceptance(s), bounds=(1.0, 4.0), method="bounded",
        options={"xatol": 1e-10},
    )  # fmt: skip
    return float(found.x)


def langevin(k: float, dim: int) -> float:
    """Effective draws of unadjusted Langevin, and of any mean of released gradients."""
    return k


def penalty(k: float, dim: int, num_iterations: float = math.inf) -> float:
    """Effective draws of a private random walk at its best noise, for short moves."""
    s = best_spread()
    return s**2 * acceptance(s) / (4 * dim) / (1 / k + 1 / num_iterations)


def hmc(k: float, dim: int, gradients: float = 1) -> float:
    """Effective draws of DP-HMC at its best settings.

    `gradients` are g: with one leapfrog step 1 where the last is kept and 2 where it is not.
    """
    return penalty(k, dim) / (1 + math.sqrt(gradients / 2)) ** 2


def noisy_gradients(num_leapfrog_steps: int) -> float:
    """Gradients that an iteration of so many leapfrog steps pays for: g of :func:`hmc`."""
    return (2 * num_leapfrog_steps - 1) / num_leapfrog_steps


def batch_share(num_iterations: float, rate: float, noise_multiplier: float, mu: float) -> float:
    """What noisy sums over batches say of a mode, over what the budget buys of all rows.

    Each of N sums has b / n, the `rate`, of the rows, and noise of z times its sensitivity.
    """
    return num_iterations * (rate / noise_multiplier / mu) ** 2
