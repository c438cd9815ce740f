"""Sorted base variables, drawn from the released rank outwards as they are needed.

A record is a monotone function of its base variable, so that sorted base variables are drawn
once and give sorted statistics at every theta. A released order statistic and its smooth
sensitivity depend on few ranks: where the search for the latter stops, ranks not looked at yet
need no value. They are independent of everything else given those that have one, and can be
drawn later.

With U_(j) the uniform order statistics, ``1 - U_(j+1) = (1 - U_(j)) W^(1 / (n - j))`` and
``U_(j-1) = U_(j) W^(1 / (j - 1))``, W ~ U(0, 1).
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from dpmc.numerics.compiled import njit
from dpmc.numerics.normal_quantile import normal_quantile
from dpmc.numerics.small_matrices import compiled
from dpmc.statsel.types import Mechanism, Population, Statistic
from dpmc.types import DpmcError

# Distributions of sorted base variables; folded ones are absolute values.
BASE_DISTRIBUTIONS = ("normal", "folded_normal", "symmetric", "unit")


class Order(NamedTuple):
    """An order statistic and its noise, as compiled code reads them.

    Parameters
    ----------
    distribution : int
        Index into ``BASE_DISTRIBUTIONS``.
    num, rank : int
        n and m, from 1 on.
    averaged : int
        1 where ranks m and m + 1 are averaged, else 0.
    support : (float, float)
        Of clipped records.
    low, high : float
        Of the statistic of one record.
    beta, alpha : float
        Constants of the smooth sensitivity; alpha is 0 where `scale` is the scale of the noise.
    scale : float
        Scale of the noise.
    """

    distribution: int
    num: int
    rank: int
    averaged: int
    support: tuple[float, float]
    low: float
    high: float
    beta: float
    alpha: float
    scale: float


class Particles(NamedTuple):
    """Sorted base variables of N data sets, each known between two ranks."""

    z: Any  # (N, n): rank j in column j - 1
    lower: Any  # (N,): U of the lowest rank known
    upper: Any  # (N,): 1 - U of the highest rank known
    reach: Any  # (N, 2) of int: the lowest and the highest rank known
    window: Any  # (2 n + 6,): scratch, statistics of the ranks around the released one

    @classmethod
    def of(cls, num_particles: int, num: int) -> Particles:
        """Allocate them."""
        return cls(
            np.empty((num_particles, num)),
            np.empty(num_particles),
            np.empty(num_particles),
            np.zeros((num_particles, 2), dtype=np.int64),
            np.empty(2 * num + 6),
        )


def order_of(
    population: Population,
    statistic: Statistic,
    mechanism: Mechanism,
    num_rows: int,
    epsilon: float,
    delta: float | None = None,
) -> Order:
    """Order statistic and its noise."""
    if statistic.rank is None:
        raise DpmcError(f"`statistic` must be an order statistic, got {statistic.name!r}")
    if mechanism.noise != "laplace" or mechanism.per_record:
        raise DpmcError(
            f"`mechanism` must be laplace or smooth_laplace for {statistic.name}, got "
            f"{mechanism.name!r}"
        )
    low, high = statistic.range(population.support)
    alpha, beta, scale = 0.0, 0.0, math.nan
    if mechanism.constants is not None:
        if delta is None:
            raise DpmcError(f"`delta` must be in (0, 1) for {mechanism.name}, got None")
        alpha, beta = mechanism.constants(epsilon, delta)
    else:  # one record moves the released number itself as far
        scale = mechanism.scale(statistic.sensitivity(population.support), 1, epsilon)
    return Order(
        BASE_DISTRIBUTIONS.index(_base_distribution(population, statistic)),
        num_rows,
        statistic.rank(num_rows),
        int(statistic.averages(num_rows)),
        population.support,
        low,
        high,
        float(beta),
        float(alpha),
        float(scale),
    )


def _base_distribution(population: Population, statistic: Statistic) -> str:
    """Base distribution in which the statistic of a record does not decrease."""
    even = statistic.absolute or statistic.power % 2 == 0
    if not even or population.support[0] >= 0:
        return population.base
    if population.odd and population.base != "unit":
        if population.support[0] != -population.support[1]:
            raise DpmcError(f"`support` must be symmetric about 0, got {population.support}")
        return "folded_normal" if population.base == "normal" else "unit"
    raise DpmcError(
        f"`statistic` must be monotone in x unless the population is symmetric about 0, got "
        f"{statistic.name!r} of {population.name}"
    )


@compiled
def base_value(distribution: int, u: float, rest: float) -> float:
    """Base variable at probability u = 1 - rest, both given to full precision."""
    if distribution == 1:
        return -normal_quantile(0.5 * rest)
    if distribution == 0:
        return normal_quantile(u) if u < 0.5 else -normal_quantile(rest)
    return u - rest if distribution == 2 else u


@compiled
def draw_centre(order: Any, particles: Any, i: int, rng: Any) -> None:
    """Draw data set i anew: the released rank alone."""
    n, m = order.num, order.rank
    # U of rank m is Beta(m, n + 1 - m). The largest and the smallest are drawn by inversion, and
    # both U and 1 - U are computed to full precision: either may be next to 0.
    if m == n:
        log_u = -rng.standard_exponential() / n
        u, rest = math.exp(log_u), -math.expm1(log_u)
    elif m == 1:
        log_rest = -rng.standard_exponential() / n
        u, rest = -math.expm1(log_rest), math.exp(log_rest)
    else:
        a = rng.standard_gamma(float(m))
        b = rng.standard_gamma(float(n + 1 - m))
        u, rest = a / (a + b), b / (a + b)
    set_centre(order, particles, i, u, rest)


@compiled
def set_centre(order: Any, particles: Any, i: int, u: float, rest: float) -> None:
    """Set the uniform of the released rank of data set i, and forget all others."""
    particles.z[i, order.rank - 1] = base_value(order.distribution, u, rest)
    particles.lower[i], particles.upper[i] = u, rest
    particles.reach[i, 0] = particles.reach[i, 1] = order.rank


@compiled
def next_exponential(rng: Any, i: int, rank: int) -> float:
    """Draw the exponential of a rank of data set i: the next of a generator."""
    return float(rng.standard_exponential())


class Exponentials(NamedTuple):
    """Exponentials by which the ranks of N data sets are drawn."""

    key: Any  # uint64: of all ranks but the near ones
    first: int  # the lowest near rank
    near: Any  # (N, k): of k ranks from the first one on


@compiled
def exponential_of(drawn: Any, i: int, rank: int) -> float:
    """Exponential of a rank of data set i, the same whenever it is asked for.

    The bits of ranks that are not near are those of SplitMix64 (Steele, Lea and Flood 2014) at a
    place of their own.
    """
    if 0 <= rank - drawn.first < drawn.near.shape[1]:
        return float(drawn.near[i, rank - drawn.first])
    place = (np.uint64(i) << np.uint64(32)) + np.uint64(rank)
    word = drawn.key + (place + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    word ^= word >> np.uint64(31)
    return -math.log1p(-float(word >> np.uint64(11)) * 2.0**-53)


@njit(fastmath=True)
def widest(window: Any, first: int, num: int, gap: int) -> float:
    """Largest of `num` differences across `gap` ranks; none of them is NaN."""
    best = 0.0
    for t in range(first, first + num):
        difference = window[t + gap] - window[t]
        best = difference if difference > best else best
    return best


@functools.cache
def make_released_at(generate: Any, transform: Any, draw: Any = next_exponential) -> Any:
    """Compiled function that gives an order statistic and the scale of its noise.

    `generate`, `transform`: of the population and the statistic. `draw`: gives the exponential by
    which the next rank is drawn; the function that is returned takes its source as its last
    argument.
    """

    @compiled
    def statistic_at(order: Any, theta: float, z: float) -> Any:
        """Statistic of a record, which is clipped before."""
        return transform(min(max(generate(theta, z), order.support[0]), order.support[1]))

    # One long loop: arrays that are handed on cost more than what is done with them.
    @compiled
    def released_at(
        order: Any, particles: Any, i: int, theta: float, source: Any
    ) -> tuple[float, float]:
        """Order statistic of data set i at theta, and the scale of its noise.

        The smooth sensitivity is ``max_k exp(-k beta) A_k`` with ``A_k = max_t s_(m+t) -
        s_(m+t-k-1)``, t from 0 to k + 1; for an average of two ranks, upper ranks are one
        higher and A_k is half of it. No A_k exceeds the range of s, where the search ends.
        """
        # `window` holds s around the released rank, which is at index `centre`.
        z, window, centre = particles.z[i], particles.window, order.num + 2
        lowest, highest = particles.reach[i, 0], particles.reach[i, 1]
        u, rest = particles.lower[i], particles.upper[i]
        value = statistic_at(order, theta, z[order.rank - 1])
        window[centre] = value
        shift = order.averaged
        # With a constant scale and one rank nothing else is needed.
        if order.alpha == 0.0 and shift == 0:
            return value, order.scale
        best, factor, decay = 0.0, 1.0 / (1 + shift), math.exp(-order.beta)
        # One rank up and one down at each distance k; k = -1 is the upper of two averaged ranks.
        for k in range(-shift, order.num + 1):
            # No further A_k exceeds the range of s, and all are discounted by more.
            if k >= 0 and factor * (order.high - order.low) <= best:
                break
            rank, step = order.rank + k + 1 + shift, k + 1 + shift
            # The next rank up is drawn only now: 1 - U shrinks by W^(1 / (n - highest)).
            if rank > highest and rank <= order.num:
                rest *= math.exp(-draw(source, i, rank) / (order.num - highest))
                z[rank - 1] = base_value(order.distribution, 1.0 - rest, rest)
                highest = rank
            # Ranks past n count as the upper end of the range.
            window[centre + step] = order.high
            if rank <= order.num:
                window[centre + step] = statistic_at(order, theta, z[rank - 1])
            if k < 0:  # the upper of two ranks that are averaged
                value = 0.5 * (value + window[centre + 1])
                if order.alpha == 0.0:
                    break
                continue
            rank = order.rank - k - 1
            # The next rank down: U shrinks by W^(1 / (lowest - 1)).
            if rank < lowest and rank >= 1:
                u *= math.exp(-draw(source, i, rank) / (lowest - 1))
                z[rank - 1] = base_value(order.distribution, u, 1.0 - u)
                lowest = rank
            window[centre - k - 1] = order.low
            if rank >= 1:
                window[centre - k - 1] = statistic_at(order, theta, z[rank - 1])
            # A_k is the largest of k + 2 differences across `step` ranks in the window.
            best = max(best, factor * widest(window, centre - k - 1, k + 2, step))
            factor *= decay
        particles.lower[i], particles.upper[i] = u, rest
        particles.reach[i, 0], particles.reach[i, 1] = lowest, highest
        return value, order.scale if order.alpha == 0.0 else best / order.alpha

    return released_at


@compiled
def log_laplace(v: float, scale: float) -> float:
    """Log-density of Laplace noise."""
    return -abs(v) / scale - math.log(2.0 * scale)


@compiled
def copy_particle(particles: Any, source: int, target: int) -> None:
    """Copy one data set over another."""
    low, high = particles.reach[source, 0], particles.reach[source, 1]
    for j in range(low - 1, high):
        particles.z[target, j] = particles.z[source, j]
    particles.lower[target] = particles.lower[source]
    particles.upper[target] = particles.upper[source]
    particles.reach[target, 0], particles.reach[target, 1] = low, high


@compiled
def stratify(order: Any, particles: Any, centres: Any) -> None:
    """Set the uniforms of the released rank of all data sets, shape (N, 2): u and 1 - u."""
    for i in range(centres.shape[0]):
        set_centre(order, particles, i, centres[i, 0], centres[i, 1])


def make_fill(generate: Any, transform: Any) -> Any:
    """Loop over all data sets at one theta.

    Ranks are drawn by a key. A generator would give them in the order in which values of theta ask
    for them, so that data sets would depend on what was asked before.
    """
    released_at = make_released_at(generate, transform, exponential_of)

    @compiled
    def fill(order: Any, particles: Any, theta: float, drawn: Any, out: Any) -> None:
        """Write order statistics and scales of all data sets to `out`, shape (2, N)."""
        for i in range(out.shape[1]):
            value, scale = released_at(order, particles, i, theta, drawn)
            out[0, i], out[1, i] = value, scale

    return fill
