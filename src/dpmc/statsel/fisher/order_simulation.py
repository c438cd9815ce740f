"""Simulated data sets of a noisy order statistic, at theta and at two values next to it.

The same latent numbers give a data set at all three values, so that differences between them are
smooth. Within a group of data sets the released rank is stratified.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dpmc import checks
from dpmc.numerics.compiled import compile_source
from dpmc.statsel import smooth
from dpmc.statsel.order_draws import BASE_DISTRIBUTIONS, Order
from dpmc.statsel.types import Population, Statistic
from dpmc.types import Array, DpmcError

# Data sets that are held at once.
_BLOCK = 4096
# Data sets of a pilot run that sets the step of the difference.
_PILOT = 200
# Relative steps: of the pilot run, and the largest.
_SMALL, _MOST = 1e-3, 0.1


@dataclass(frozen=True)
class Simulation:
    """How to simulate.

    Parameters
    ----------
    num_draws : int
        Data sets, a multiple of the number of groups.
    num_groups : int
        At least 2; with 3 or more there is a standard error.
    step : float
        Step of the central difference by theta: how far the released number moves, in
        units of its standard deviation before noise.

    Raises
    ------
    DpmcError
        If a number is out of range.
    """

    num_draws: int = 16_000
    num_groups: int = 16
    step: float = 0.2

    def __post_init__(self) -> None:
        checks.at_least("num_groups", self.num_groups, 2)
        checks.at_least("num_draws", self.num_draws, self.num_groups)
        if self.num_draws % self.num_groups:
            raise DpmcError(
                f"`num_draws` must be a multiple of `num_groups` = {self.num_groups}, got "
                f"{self.num_draws}"
            )
        if not 0 < self.step <= 1:
            raise DpmcError(f"`step` must be in (0, 1], got {self.step}")


class SimulatedReleases(NamedTuple):
    """The number released of each simulated data set, and the scale of its noise.

    Parameters
    ----------
    value, scale : ndarray of shape (3, m)
        At theta less a step, theta, and theta plus a step.
    width : float
        Twice the step.
    """

    value: Array
    scale: Array
    width: float


def simulate(
    population: Population,
    statistic: Statistic,
    order: Order,
    theta: float,
    simulation: Simulation,
    rng: np.random.Generator,
) -> SimulatedReleases:
    """Draw data sets and evaluate them at theta and next to it."""
    step = _step(population, statistic, order, theta, simulation, rng)
    size = simulation.num_draws // simulation.num_groups
    released = np.empty((3, 2, simulation.num_draws))
    for group in range(simulation.num_groups):
        shares = (np.arange(size) + rng.uniform(size=size)) / size
        for first in range(0, size, _BLOCK):
            z = sorted_latents(order, shares[first : first + _BLOCK], rng)
            start = group * size + first
            for k in range(3):
                block = released[k, :, start : start + len(z)]
                block[:] = release(population, statistic, order, theta + (k - 1) * step, z)
    return SimulatedReleases(released[:, 0], released[:, 1], 2 * step)


def _step(
    population: Population,
    statistic: Statistic,
    order: Order,
    theta: float,
    simulation: Simulation,
    rng: np.random.Generator,
) -> float:
    """Return the step of the difference by theta.

    Of a normal distribution whose mean moves by d standard deviations, differences give an
    information that is ``sinh(d^2) / d^2`` times too large: 3e-4 at d = 0.2.
    """
    small, most = _SMALL * (abs(theta) or 1.0), _MOST * (abs(theta) or 1.0)
    room = [abs(theta - end) for end in population.theta_domain if end != theta]
    z = sorted_latents(order, (np.arange(_PILOT) + 0.5) / _PILOT, rng)
    before, after = (
        release(population, statistic, order, theta + h, z)[0] for h in (-small, small)
    )
    slope = float(np.median(np.abs(after - before))) / (2 * small)
    wanted = simulation.step * float(after.std()) / slope if slope > 0 else most
    return min(wanted, most, *(0.5 * distance for distance in room))


def sorted_latents(order: Order, shares: Array, rng: np.random.Generator) -> Array:
    """Return sorted latent numbers of data sets, shape (m, n), given where the released rank is.

    Given U of rank r, those of lower ranks are uniform below it, and those of higher ranks
    above it.

    Parameters
    ----------
    order : Order
        The order statistic and its noise.
    shares : ndarray of shape (m,)
        What U of rank r has for its distribution function, Beta(r, n + 1 - r).
    rng : numpy.random.Generator
        Random numbers of the draws.
    """
    from scipy.special import betaincinv, ndtri

    m, n, r = len(shares), order.num, order.rank
    # U and 1 - U of all ranks, both to full precision: quantiles are taken from the smaller one.
    u, rest = np.empty((m, n)), np.empty((m, n))
    u[:, r - 1] = betaincinv(r, n + 1 - r, shares)
    rest[:, r - 1] = betaincinv(n + 1 - r, r, 1.0 - shares)
    below = np.sort(rng.uniform(size=(m, r - 1)), axis=1)
    u[:, : r - 1] = u[:, r - 1 : r] * below
    rest[:, : r - 1] = 1.0 - u[:, : r - 1]
    above = np.sort(rng.uniform(size=(m, n - r)), axis=1)[:, ::-1]
    rest[:, r:] = rest[:, r - 1 : r] * above
    u[:, r:] = 1.0 - rest[:, r:]
    distribution = BASE_DISTRIBUTIONS[order.distribution]
    if distribution == "folded_normal":
        return np.asarray(-ndtri(0.5 * rest))
    if distribution == "normal":
        return np.where(u < rest, ndtri(u), -ndtri(rest))
    return u - rest if distribution == "symmetric" else u


def release(
    population: Population, statistic: Statistic, order: Order, theta: float, z: Array
) -> Array:
    """Return the order statistic of data sets and the scale of its noise, shape (2, m).

    Parameters
    ----------
    population : Population
        Distribution of one record.
    statistic : Statistic
        The released statistic.
    order : Order
        The order statistic and its noise.
    theta : float
        Parameter at which the information is taken.
    z : ndarray of shape (m, n)
        Latent numbers in which the statistic of a record does not decrease, sorted.
    """
    out = np.empty((2, len(z)))
    kernel = _kernel(population.generate, statistic.transform, order.averaged)
    limits = (float(order.low), float(order.high))
    kernel(theta, np.ascontiguousarray(z), order.support, limits, order.rank, order.beta, out)
    if order.alpha == 0.0:
        out[1] = order.scale
    else:
        out[1] /= order.alpha
    return out


@functools.cache
def _kernel(generate: Any, transform: Any, averaged: int) -> Any:
    """Compile what turns latent numbers into order statistics and smooth sensitivities."""
    value = "0.5 * (s[rank - 1] + s[rank])" if averaged else "s[rank - 1]"
    source = f"""
def kernel(theta, z, support, limits, rank, beta, out):
    s = np.empty(z.shape[1])
    for j in range(z.shape[0]):
        for i in range(z.shape[1]):
            s[i] = transform(min(max(generate(theta, z[j, i]), support[0]), support[1]))
        out[0, j] = {value}
        out[1, j] = sensitivity(s, rank, limits[0], limits[1], beta)
"""
    sensitivity = smooth.smooth_sensitivity_average if averaged else smooth.smooth_sensitivity
    return compile_source(
        source, np=np, generate=generate, transform=transform, sensitivity=sensitivity
    )
