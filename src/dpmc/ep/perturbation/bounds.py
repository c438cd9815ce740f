"""Bounds on how far noise moves a Gaussian, published and corrected, and simulations of it.

[vinaroz2022dpsep, Theorem 4.1] takes q = N(mu, Sigma) and p = N(mu + e, Sigma + E), where e has
independent N(0, sigma_1^2) entries and E is symmetric with independent N(0, sigma_2^2) entries on
and above the diagonal, and bounds P(KL(q||p) >= a). With Y = Sigma^{-1/2} E Sigma^{-1/2}, of
eigenvalues l_1 <= ... <= l_d, and M = Sigma^{-1},

    2 KL = sum_i (ln(1 + l_i) - l_i / (1 + l_i)) + e' (Sigma + E)^{-1} e,

infinite where Sigma + E is not positive definite, which has positive probability whatever
sigma_2 is. DP-SEP puts its noise on natural parameters, not on these: `simulate_natural` of
`dpmc.ep.perturbation.noise`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, ndtr

from dpmc import checks
from dpmc.ep.perturbation.noise import Perturbation, simulate
from dpmc.types import DpmcError

if TYPE_CHECKING:
    import pandas as pd

_LIMIT_ERROR = 1e-3  # of the upper limit on a probability that `table` estimates


def published_bound(perturbation: Perturbation, threshold: float) -> float:
    """Right-hand side of [vinaroz2022dpsep, Theorem 4.1].

    It holds only if ``tau < 1 + l_1 < A`` for every E, which no Gaussian E has: where the
    event fails often enough the probability is larger than this. It does not vanish with
    the noise: ``(d / 2a) (1 - tau) (A - 1) / (A tau)`` is left.

    Not cut off at 1.
    """
    checks.positive("threshold", threshold)
    p = perturbation
    largest = math.sqrt(2 * p.published_variance * math.log(2 * p.dim))
    chord = (p.high + p.low - 1 + largest) / (p.high * p.low)
    inner = math.log1p(largest) - 1 + (p.mean_sd**2 * p.trace + 1) * chord
    return p.dim / (2 * threshold) * inner


def outside_bound(perturbation: Perturbation) -> float:
    """Upper bound on the probability that ``tau < 1 + l_1 < A`` fails.

    Below: ``P(l_1 <= tau - 1) <= d exp(-(1 - tau)^2 / (2 v))`` [Tropp 2015, Theorem 4.6.1].
    Above: ``d l_1 <= tr Y``, which is Gaussian.

    In [0, 1].
    """
    p = perturbation
    below = p.dim * math.exp(-((1 - p.low) ** 2) / (2 * p.variance))
    above = float(ndtr(-p.dim * (p.high - 1) / math.sqrt(p.trace_variance)))
    return min(1.0, below + above)


def corrected_bound(
    perturbation: Perturbation, threshold: float, outside: float | None = None
) -> float:
    """Upper bound on P(KL(q||p) >= a) that is proved for Gaussian noise.

    Let G be the event ``tau < 1 + l_1 < A``, and g its probability.

    1. Markov on KL times the indicator of G: ``P(KL >= a) <= 1 - g + E[KL; G] / a``.
    2. ``ln|I + Y| <= tr Y`` where I + Y is positive definite, as it is on G. As tr Y has mean 0,
       ``E[tr Y; G] = -E[tr Y; not G] <= sqrt(Var(tr Y) (1 - g))`` (Cauchy and Schwarz).
    3. ``tr (I + Y)^{-1} <= d / (1 + l_1)`` and ``tr (Sigma + E)^{-1} <= tr M / (1 + l_1)``; the
       second is ``e' (Sigma + E)^{-1} e`` averaged over e and divided by sigma_1^2.
    4. ``1 / x <= (A + tau - x) / (A tau)`` between tau and A, by convexity, so that
       ``E[1 / (1 + l_1); G] <= ((A + tau - 1) g + E[max(0, -l_1)]) / (A tau)``.
    5. ``E[max(0, -l_1)] <= sqrt(2 v ln(d + 1))``: -Y has the distribution of Y, and
       ``E max(1, exp(t l_d)) <= 1 + E tr exp(t Y) <= 1 + d exp(t^2 v / 2)`` [Tropp 2015,
       Lemma 4.6.3] for every t > 0. The d of the usual bound on E[l_d] would not do: for
       d = 1 it is 0, which E[max(0, l_d)] is not.

    Together: ``1 - g + (sqrt(Var(tr Y) (1 - g)) - d g + (d + sigma_1^2 tr M)
    ((A + tau - 1) g + sqrt(2 v ln(d + 1))) / (A tau)) / (2 a)``. What is left without noise is
    that of the published bound; tau and A can come closer to 1, the smaller the noise.

    `outside`: an upper bound on 1 - g, `outside_bound` by default. The largest value over all 1 - g
    up to it is returned, so that an upper confidence limit will do.

    Not cut off at 1.
    """
    checks.positive("threshold", threshold)
    p = perturbation
    outside = outside_bound(p) if outside is None else outside
    if not 0 <= outside <= 1:
        raise DpmcError(f"`outside` must be a probability, got {outside}")
    weight = (p.dim + p.mean_sd**2 * p.trace) / (p.high * p.low)
    kept = weight * (p.high + p.low - 1) - p.dim
    deviation = math.sqrt(p.trace_variance)
    if kept > 2 * threshold:  # the sum is largest inside of the range
        outside = min(outside, (deviation / (2 * kept - 4 * threshold)) ** 2)
    tail = weight * math.sqrt(2 * p.variance * math.log(p.dim + 1))
    inner = deviation * math.sqrt(outside) + kept * (1 - outside) + tail
    return outside + inner / (2 * threshold)


def second_order(perturbation: Perturbation) -> float:
    """E KL(q||p) to second order in the noise: no bound, but sharp where it is small.

    ``(E tr Y^2 / 2 + sigma_1^2 tr M) / 2``, so that the divergence falls with the square of
    the noise.
    """
    p, m = perturbation, perturbation.precision
    off_diagonal = float(np.sum(m**2) - np.sum(np.diag(m) ** 2))
    squares = p.covariance_sd**2 * (p.trace**2 + off_diagonal)
    return 0.5 * (0.5 * squares + p.mean_sd**2 * p.trace)


def table(
    perturbation: Perturbation, thresholds: npt.ArrayLike, num_draws: int, rng: np.random.Generator
) -> pd.DataFrame:
    """Bounds on P(KL(q||p) >= a), and the truth.

    `thresholds`: values of a, > 0.

    Returns
    -------
    DataFrame
        One row for each a: ``threshold``, ``probability`` with its standard error
        ``probability_se``, ``published_bound``, ``corrected_bound`` in closed form,
        ``simulated_bound`` (the corrected one with an upper limit on the probability that the
        event fails, which errs with probability 1e-3), and ``second_order`` over a, which is
        no bound.
    """
    import pandas as pd

    values, inside = simulate(perturbation, num_draws, rng)
    failures = int(num_draws - inside.sum())
    limit = 1.0
    if failures < num_draws:
        limit = float(betaincinv(failures + 1, num_draws - failures, 1 - _LIMIT_ERROR))
    rows = []
    for threshold in np.atleast_1d(np.asarray(thresholds, dtype=np.float64)).tolist():
        probability = float(np.mean(values >= threshold))
        rows.append(
            {
                "threshold": threshold,
                "probability": probability,
                "probability_se": math.sqrt(probability * (1 - probability) / num_draws),
                "published_bound": published_bound(perturbation, threshold),
                "corrected_bound": corrected_bound(perturbation, threshold),
                "simulated_bound": corrected_bound(perturbation, threshold, limit),
                "second_order": second_order(perturbation) / threshold,
            }
        )
    return pd.DataFrame(rows)
