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

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpmc.numerics.compiled import kept
from dpmc.statsel.fisher.order_simulation import SimulatedReleases, Simulation, simulate
from dpmc.statsel.order_draws import Order
from dpmc.statsel.types import Population, Statistic
from dpmc.types import Array

# Nodes of the integral over y, and how many noise scales it reaches past the data sets.
_NODES = 401
_TAIL = 36.0


class OrderInformation(NamedTuple):
    """An information and its standard error.

    Parameters
    ----------
    value : float
        Fisher information on theta in all records.
    se : float
        NaN where it is not known, 0 where there is no simulation.
    squared : float
        The value with the square of the derivative of all data sets, biased upwards.
    """

    value: float
    se: float
    squared: float


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
    """Return the information of a noisy order statistic.

    Parameters
    ----------
    population : Population
        Distribution of one record.
    statistic : Statistic
        The released statistic.
    order : Order
        The statistic and its noise, from :func:`dpmc.statsel.order_draws.order_of`.
    theta : float
        Parameter at which the information is taken.
    rng : numpy.random.Generator
        Random numbers of the draws.
    simulation : Simulation, optional
        Sizes and step; by default those of `Simulation()`.

    Returns
    -------
    OrderInformation
        The standard error is a jackknife over groups.
    """
    simulation = simulation or Simulation()
    simulated = simulate(population, statistic, order, theta, simulation, rng)
    y, weights = _places(simulated)
    density, slope = (np.empty((simulation.num_groups, y.size)) for _ in range(2))
    average(y, simulated.value, simulated.scale, simulated.width, density, slope)
    return _combined(density, slope, weights)


def _places(simulated: SimulatedReleases) -> tuple[Array, Array]:
    """Return where y is put, dense where data sets are, and the weights of an integral."""
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
    squared = float(np.sum(weights * slope.mean(axis=0) ** 2 / density.mean(axis=0)))
    if groups == 2:
        return OrderInformation(value(every), math.nan, squared)
    # Jackknife: the estimate without each group in turn.
    left_out = np.array([value(every[every != g]) for g in every])
    se = math.sqrt((groups - 1) / groups * float(np.sum((left_out - left_out.mean()) ** 2)))
    return OrderInformation(value(every), se, squared)
