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
from dataclasses import dataclass

import numpy as np

from dpmc.numerics.compiled import assemble
from dpmc.rng import stream
from dpmc.statsel import moments
from dpmc.statsel.order_draws import Order, Particles, centres, make_fill, stratify
from dpmc.statsel.posterior.likelihoods import (
    DENSITIES,
    NoisyMean,
    log_likelihoods,
    make_fill_likelihood,
)
from dpmc.statsel.targets import PosteriorTarget
from dpmc.statsel.types import Population, Statistic
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
# Data sets that stand for the distribution of an order statistic with its smooth sensitivity.
DATA_SETS = 4000
# Values of theta whose data sets are remembered.
MOST_POINTS = 2000


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
    """

    theta: Array
    density: Array
    mean: float
    sd: float
    weights: Array


def likelihood(
    target: PosteriorTarget, num_data_sets: int = DATA_SETS, seed: int = 0
) -> Likelihood:
    """Log-likelihood as a function of theta, shape (m,) to (m,).

    `num_data_sets`: of an order statistic with smooth sensitivity: simulated data sets, the same at
    every theta and for every release, stratified by the uniform of the released rank. With constant
    noise they are quadrature nodes of that uniform. `seed`: of these data sets.
    """
    if target.shape == "records":
        return functools.partial(log_likelihoods, target)
    if target.shape == "order":
        return order_table(target, num_data_sets, seed).likelihood(target.y)
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
    return integrate(log_density, low, high)


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
    mean = float(np.sum(shares * density * nodes))
    variance = float(np.sum(shares * density * (nodes - mean) ** 2))
    return QuadraturePosterior(nodes, density, mean, math.sqrt(variance), shares)


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


class OrderTable:
    """Released order statistics and noise scales of the same data sets at every theta.

    Parameters
    ----------
    population : Population
        Distribution of one record.
    statistic : Statistic
        The released statistic.
    order : Order
        The order statistic and its noise.
    num_data_sets : int
        Simulated data sets, stratified by the uniform of the released rank.
    seed : int
        Of these data sets.
    """

    def __init__(
        self,
        population: Population,
        statistic: Statistic,
        order: Order,
        num_data_sets: int,
        seed: int,
    ) -> None:
        self._order = order
        rng = stream(seed, "reference", "order statistic", order.num, order.rank)
        self._key = np.uint64(rng.integers(2**63))
        self._particles = Particles.of(num_data_sets, order.num)
        stratify(order, self._particles, centres(order, num_data_sets))
        self._fill = assemble(make_fill, population.generate, statistic.transform)
        self._cache: dict[float, tuple[Array, Array]] = {}

    def at(self, theta: float) -> tuple[Array, Array]:
        """Order statistics and the scales at theta, shape (num_data_sets,) each."""
        if theta not in self._cache:
            if len(self._cache) >= MOST_POINTS:
                self._cache.clear()
            out = np.empty((2, len(self._particles.lower)))
            self._fill(self._order, self._particles, theta, self._key, out)
            self._cache[theta] = out[0], out[1]
        return self._cache[theta]

    def likelihood(self, y: float) -> Likelihood:
        """Log-likelihood of `y` as a function of theta."""

        def log_likelihood(theta: Array) -> Array:
            return np.array([self._log_mean(y, value) for value in theta.tolist()])

        return log_likelihood

    def _log_mean(self, y: float, theta: float) -> float:
        values, scales = self.at(theta)
        logs = -np.abs(y - values) / scales - np.log(2 * scales)
        top = logs.max()
        return float(top + math.log(np.mean(np.exp(logs - top))))


def order_table(
    target: PosteriorTarget, num_data_sets: int = DATA_SETS, seed: int = 0
) -> OrderTable:
    """Table of a target, the same for all releases from the same place."""
    assert target.order is not None
    return _order_table(target.population, target.statistic, target.order, num_data_sets, seed)


@functools.lru_cache(maxsize=8)
def _order_table(
    population: Population, statistic: Statistic, order: Order, num_data_sets: int, seed: int
) -> OrderTable:
    return OrderTable(population, statistic, order, num_data_sets, seed)
