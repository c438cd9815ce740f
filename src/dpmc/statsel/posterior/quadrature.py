"""Posterior of theta given a release, by quadrature: reference values for the chains.

The likelihood of a released mean takes the statistic for normal, as the chains do
[alparslan2023thesis, equation 5.2]; that of an order statistic or of released records is
integrated over the records. References use nothing of the chains but the functions of the
population.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from dpmc.numerics.compiled import assemble
from dpmc.statsel import moments
from dpmc.statsel.posterior import order_table
from dpmc.statsel.posterior.likelihoods import (
    DENSITIES,
    NoisyMean,
    log_likelihoods,
    make_fill_likelihood,
)
from dpmc.statsel.posterior.order_table import DATA_SETS, OrderLikelihood
from dpmc.statsel.targets import PosteriorTarget
from dpmc.types import Array, DpmcError

Likelihood = Callable[[Array], Array]

# Gauss-Legendre nodes of a panel.
NODES = 12
# A panel is halved while the log-density spans more than this.
SPAN = 3.0
# Panels so far below the largest log-density are left as they are.
NEGLIGIBLE = 45.0
# Halvings at most.
DEPTH = 48
# Panels to begin with.
PANELS = 8
# Powers of two up to which an infinite interval is followed.
DOUBLINGS = 240
# Posterior probabilities below the two quantiles of a summary.
TAILS = (0.005, 0.995)


class Summary(NamedTuple):
    """Numbers that describe a posterior, or the error of each."""

    mean: float
    sd: float
    low: float  # 0.5 % quantile
    high: float  # 99.5 % quantile


EXACT = Summary(0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class QuadraturePosterior:
    """A posterior by quadrature.

    Parameters
    ----------
    theta : ndarray of shape (m,)
        Nodes, ascending.
    density : ndarray of shape (m,)
        Posterior density at the nodes.
    mean, sd : float
        Posterior mean and standard deviation.
    weights : ndarray of shape (m,)
        Of the nodes, for integrals over theta.
    low, high : float
        Posterior quantiles at 0.5 % and 99.5 %.
    errors : Summary
        Monte Carlo standard errors of mean, sd, low and high: 0 where nothing is simulated.
    """

    theta: Array
    density: Array
    mean: float
    sd: float
    weights: Array
    low: float
    high: float
    errors: Summary = EXACT


def likelihood(
    target: PosteriorTarget, num_data_sets: int = DATA_SETS, seed: int = 0
) -> Likelihood:
    """Log-likelihood as a function of theta, shape (m,) to (m,).

    `num_data_sets`: of an order statistic with smooth sensitivity: simulated data sets, the same at
    every theta and for every release. With constant noise they are quadrature nodes of the uniform
    of the released rank. `seed`: of these data sets.
    """
    if target.shape == "records":
        return functools.partial(log_likelihoods, target)
    if target.shape == "order":
        return order_table.likelihood(target, num_data_sets, seed)
    return functools.partial(_mean_likelihood, target)


def quadrature(
    target: PosteriorTarget, log_likelihood: Likelihood | None = None
) -> QuadraturePosterior:
    """Posterior of a target.

    `log_likelihood`: that of :func:`likelihood` by default.
    """
    function = log_likelihood or likelihood(target)

    def log_density(theta: Array) -> Array:
        return target.prior.log_densities(theta) + function(theta)

    low, high = finite_interval(log_density, target.prior.low, target.prior.high)
    posterior = integrate(log_density, low, high)
    if isinstance(function, OrderLikelihood) and function.simulated:
        return replace(posterior, errors=_errors(posterior, function))
    return posterior


def check_proper(target: PosteriorTarget) -> QuadraturePosterior | None:
    """Refuse a prior that leaves the posterior improper; return the posterior if computed."""
    if math.isfinite(target.prior.low) and math.isfinite(target.prior.high):
        return None
    return quadrature(target)


def integrate(log_density: Likelihood, low: float, high: float) -> QuadraturePosterior:
    """Distribution with this log-density on a bounded interval.

    Gauss-Legendre rules on panels, which are halved until the log-density is smooth on each.
    Halves of the same interval are always at the same places.
    """
    points, shares = np.polynomial.legendre.leggauss(NODES)
    todo = low + (high - low) * np.arange(PANELS + 1) / PANELS
    lefts, widths = todo[:-1], np.diff(todo)
    theta, weights, values = [], [], []
    top = -math.inf
    for level in range(DEPTH):
        # Evaluate every open panel; a log-density that is NaN counts as density 0.
        nodes = lefts[:, None] + widths[:, None] * (points + 1) / 2
        log_values = log_density(nodes.ravel()).reshape(nodes.shape)
        log_values = np.where(np.isnan(log_values), -np.inf, log_values)
        highest, lowest = log_values.max(axis=1), log_values.min(axis=1)
        # Panels that were halved do not count: a node of theirs may be nearer to a peak.
        level_top = max(top, float(highest.max()))
        relevant = highest > level_top - NEGLIGIBLE
        # Halve what matters and is not smooth yet; all other panels are done.
        rough = relevant & ~(highest - lowest < SPAN) & (level < DEPTH - 1)
        top = max(top, float(highest[~rough].max(initial=-math.inf)))
        theta.append(nodes[~rough].ravel())
        weights.append((widths[~rough, None] * shares / 2).ravel())
        values.append(log_values[~rough].ravel())
        if not rough.any():
            break
        half = widths[rough] / 2
        lefts = np.column_stack([lefts[rough], lefts[rough] + half]).ravel()
        widths = np.repeat(half, 2)
    if not math.isfinite(top):
        raise DpmcError("`prior` must agree with `y`: the posterior density is 0 everywhere")
    # Sort the nodes of all levels, and normalise relative to the largest density: no overflow.
    place = np.argsort(np.concatenate(theta))
    nodes, shares = np.concatenate(theta)[place], np.concatenate(weights)[place]
    relative = np.exp(np.concatenate(values)[place] - top)
    density = relative / np.sum(shares * relative)
    mean, sd, lower, upper = summary(nodes, shares * density)
    return QuadraturePosterior(nodes, density, mean, sd, shares, lower, upper)


def summary(theta: Array, masses: Array) -> Summary:
    """Summary of a distribution of these masses, shape (m,), at these nodes, ascending."""
    mean = float(np.sum(masses * theta))
    variance = float(np.sum(masses * (theta - mean) ** 2))
    # Half of the mass of a node lies below it.
    below = np.cumsum(masses) - masses / 2
    low, high = np.interp(TAILS, below, theta)
    return Summary(mean, math.sqrt(variance), float(low), float(high))


def _errors(posterior: QuadraturePosterior, likelihood: OrderLikelihood) -> Summary:
    """Standard errors by the jackknife over blocks of data sets."""
    masses = posterior.weights * posterior.density * likelihood.without_blocks(posterior.theta)
    masses /= masses.sum(axis=1, keepdims=True)
    found = np.array([summary(posterior.theta, row) for row in masses])
    return Summary(*(found.std(axis=0) * math.sqrt(len(found) - 1)).tolist())


def finite_interval(log_density: Likelihood, low: float, high: float) -> tuple[float, float]:
    """Interval that holds a posterior but for 1e-12 of its second moment.

    Infinite ends are followed over intervals of doubling length.
    """
    if math.isfinite(low) and math.isfinite(high):
        return low, high
    start = next((end for end in (low, high) if math.isfinite(end)), 0.0)
    ends = [low, high]
    for side, sign in ((0, -1.0), (1, 1.0)):
        if math.isinf(ends[side]):
            ends[side] = start + sign * _reach(log_density, start, sign)
    return ends[0], ends[1]


def _reach(log_density: Likelihood, start: float, sign: float) -> float:
    points, shares = np.polynomial.legendre.leggauss(NODES)
    # Log-mass of the shells [2^p, 2^(p + 1)) away from `start`.
    powers = np.arange(-DOUBLINGS // 8, DOUBLINGS)
    lefts = 2.0**powers
    nodes = lefts[:, None] * (1 + (points + 1) / 2)
    log_values = log_density((start + sign * nodes).ravel()).reshape(nodes.shape)
    log_values = np.where(np.isnan(log_values), -np.inf, log_values)
    logs = np.logaddexp.reduce(log_values + np.log(shares / 2), axis=1) + np.log(lefts)
    # Below the rounding of theta a moving mean can underflow: the last intervals decide.
    last = logs[-1] - logs[-2]
    if logs[-1] > -math.inf and last > -1e-9:
        raise DpmcError(
            f"`prior` must be bounded or have a proper density, got one that is flat up to "
            f"{sign * math.inf:g}, which makes the posterior improper"
        )
    # Second moments grow by a factor of 4 from a shell to the next where the mass is constant.
    seconds = logs + 2 * np.log(lefts)
    if logs[-1] > -math.inf and last > -2 * math.log(2) - 1e-9:
        raise DpmcError("`prior` must be bounded: the posterior has no variance")
    total = np.logaddexp.reduce(seconds)
    # Tails come after their own sum.
    tails = np.logaddexp.accumulate(seconds[::-1])[::-1]
    enough = np.flatnonzero(tails < total + math.log(1e-12))
    return float(lefts[enough[0]] if enough.size else 2 * lefts[-1])


def _mean_likelihood(target: PosteriorTarget, theta: Array) -> Array:
    closed_forms = moments.of(target.population, target.statistic)
    density = DENSITIES[target.mechanism.noise]
    fill = assemble(make_fill_likelihood, density, closed_forms.mean, closed_forms.variance)
    out = np.empty(theta.size)
    released = NoisyMean(target.y, target.scale, float(target.num_rows))
    fill(released, np.ascontiguousarray(theta, np.float64), out)
    return out
