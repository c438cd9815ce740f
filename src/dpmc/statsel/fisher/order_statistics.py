"""Fisher information of a noisy order statistic, by simulation; its noise may depend on the data.

The distribution of Y = S(x) + (D(x) / alpha) Lap(1), D the smooth sensitivity, is a mixture of
Laplace distributions over data sets [alparslan2023thesis, section 4.2.3]. The same latent numbers
give a data set for theta and for two values next to it, so that density and derivative by theta
are averages of smooth functions: ``F = integral of (d p)^2 / p``, without self-normalised weights
and without a simulation of y.

The square of a simulated derivative is biased upwards by its variance. Data sets are therefore
dealt into independent groups, and the mean product of the derivatives of two different groups
takes its place: with two groups, that of two halves. Within a group the released rank is
stratified.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpmc import checks
from dpmc.numerics.compiled import compile_source, kept
from dpmc.statsel import smooth
from dpmc.statsel.order_draws import BASE_DISTRIBUTIONS, Order
from dpmc.statsel.types import Population, Statistic
from dpmc.types import Array, DpmcError

# Data sets that are held at once.
_BLOCK = 4096
# Data sets of a pilot run that sets the step of the difference.
_PILOT = 200
# Relative step of the pilot run.
_SMALL = 1e-3
# Largest relative step.
_MOST = 0.1


@dataclass(frozen=True)
class Simulation:
    """Settings of a simulation.

    Parameters
    ----------
    num_draws : int
        Data sets, a multiple of the number of groups.
    num_groups : int
        At least 2; with 3 or more there is a standard error.
    step : float
        Step of the central difference by theta: how far the released number moves, in
        units of its standard deviation before noise.
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
    """Step of the difference by theta.

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
    """Sorted latent numbers of data sets, shape (m, n), given where the released rank is.

    Given U of rank r, those of lower ranks are uniform below it, and those of higher ranks
    above it.

    `shares`, shape (m,): what U of rank r has for its distribution function, Beta(r, n + 1 - r).
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
    """Order statistic of data sets and the scale of its noise, shape (2, m).

    `z`, shape (m, n): latent numbers in which the statistic of a record does not decrease, sorted.
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


# Nodes of the integral over y, and how many noise scales it reaches past the data sets.
_NODES = 401
_TAIL = 36.0


class OrderInformation(NamedTuple):
    """An information and its standard error."""

    value: float  # Fisher information on theta in all records
    se: float  # NaN where it is not known, 0 where there is no simulation


@kept
def average(y: Any, value: Any, scale: Any, width: float, density: Any, slope: Any) -> None:
    """Write the density of y and its derivative, averaged over data sets in groups.

    Parameters
    ----------
    y : ndarray of shape (k,)
        Where the density is evaluated.
    value, scale : ndarray of shape (3, m)
        Released numbers and noise scales at the three values of theta.
    width : float
        Distance of the outer two values of theta.
    density, slope : ndarray of shape (g, k)
        Of each of g groups of m / g data sets; overwritten.
    """
    groups = density.shape[0]
    size = value.shape[1] // groups
    for g in range(groups):
        for i in range(y.size):
            total, change = 0.0, 0.0
            for j in range(g * size, (g + 1) * size):
                before = math.exp(-abs(y[i] - value[0, j]) / scale[0, j]) / scale[0, j]
                total += math.exp(-abs(y[i] - value[1, j]) / scale[1, j]) / scale[1, j]
                after = math.exp(-abs(y[i] - value[2, j]) / scale[2, j]) / scale[2, j]
                change += after - before
            density[g, i] = 0.5 * total / size
            slope[g, i] = 0.5 * change / (size * width)


def information(
    population: Population,
    statistic: Statistic,
    order: Order,
    theta: float,
    rng: np.random.Generator,
    simulation: Simulation | None = None,
) -> OrderInformation:
    """Information of a noisy order statistic.

    `order`: the statistic and its noise, from :func:`dpmc.statsel.order_draws.order_of`.
    `simulation`: sizes and step; by default those of `Simulation()`.

    The standard error is a jackknife over groups.
    """
    simulation = simulation or Simulation()
    simulated = simulate(population, statistic, order, theta, simulation, rng)
    y, weights = _places(simulated)
    density, slope = (np.empty((simulation.num_groups, y.size)) for _ in range(2))
    average(y, simulated.value, simulated.scale, simulated.width, density, slope)
    return _combined(density, slope, weights)


def _places(simulated: SimulatedReleases) -> tuple[Array, Array]:
    """Values of y, dense where data sets are, and the weights of an integral."""
    # y = centre + spread sinh(t) for equidistant t: dense in the middle, far in the tails.
    value, scale = simulated.value[1], simulated.scale[1]
    low, centre, high = np.quantile(value, [0.1, 0.5, 0.9])
    spread = float(high - low + np.quantile(scale, 0.1))
    reach = float(np.ptp(value) + _TAIL * scale.max())
    end = math.asinh(reach / spread)
    t = np.linspace(-end, end, _NODES)
    y = centre + spread * np.sinh(t)
    return y, spread * np.cosh(t) * (t[1] - t[0])


def _combined(density: Array, slope: Array, weights: Array) -> OrderInformation:
    groups = len(density)

    # Mean product of the slopes of two different groups, of which the square of the sum has all
    # and the sum of the squares those of a group with itself.
    def value(kept_groups: npt.NDArray[np.intp]) -> float:
        d, p = slope[kept_groups], density[kept_groups].mean(axis=0)
        number = len(d)
        products = (d.sum(axis=0) ** 2 - (d**2).sum(axis=0)) / (number * (number - 1))
        return float(np.sum(weights * products / p))

    every = np.arange(groups)
    if groups == 2:
        return OrderInformation(value(every), math.nan)
    # Jackknife: the estimate without each group in turn.
    left_out = np.array([value(every[every != g]) for g in every])
    se = math.sqrt((groups - 1) / groups * float(np.sum((left_out - left_out.mean()) ** 2)))
    return OrderInformation(value(every), se)
