"""Fisher information by quadrature, of records with noise of their own, and of noisy counts.

``F = integral of (d p(y) / d theta)^2 / p(y)``. Past the range of the statistic, density and
derivative under Laplace noise fall by the same exponential, and the integral is closed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpmc import checks
from dpmc.numerics.compiled import kept
from dpmc.statsel.fisher import nodes
from dpmc.statsel.types import Population, Statistic
from dpmc.types import Array, DpmcError

# Gaussian noise is followed this many standard deviations past the range, a panel for each.
_TAIL = 12
_SPACING = 0.1
ROUTES = ("score", "pathwise")


@kept
def mixture(
    y: Any, s: Any, weights: Any, tilt: Any, drift: Any, scale: float, laplace: bool, out: Any
) -> None:
    """Write the density of y = s + V and its derivative by theta to `out`, shape (2, k).

    Parameters
    ----------
    y : ndarray of shape (k,)
        Where the density is evaluated.
    s, weights : ndarray of shape (m,)
        Values of s, and their probabilities.
    tilt, drift : ndarray of shape (m,)
        Probability times the score of the record, and times the derivative of s by theta.
    scale : float
        Laplace scale or standard deviation of V.
    laplace : bool
        Whether V is Laplace, else normal.
    out : ndarray of shape (2, k)
        Density and derivative; overwritten.
    """
    for i in range(y.size):
        density, derivative = 0.0, 0.0
        for j in range(s.size):
            v = (y[i] - s[j]) / scale
            if laplace:
                g = 0.5 * math.exp(-abs(v)) / scale
                slope = g * math.copysign(1.0, v) / scale
            else:
                g = 0.3989422804014327 * math.exp(-0.5 * v * v) / scale
                slope = g * v / scale
            density += weights[j] * g
            derivative += tilt[j] * g + drift[j] * slope
        out[0, i] = density
        out[1, i] = derivative


def per_record(
    population: Population,
    statistic: Statistic,
    theta: float,
    num_rows: int,
    scale: float,
    noise: str,
    route: str | None = None,
) -> float:
    """Return the information of n records, each released with noise of its own.

    [alparslan2023thesis, section 4.2.4, equation 4.10], with records clipped to the support.

    Parameters
    ----------
    population : Population
        Distribution of one record.
    statistic : Statistic
        Of kind ``"mean"``: its s.
    theta : float
        Parameter at which the information is taken.
    num_rows : int
        n.
    scale : float
        Of the noise of one record; 0 where there is none.
    noise : {"laplace", "gaussian"}
        Distribution of the noise.
    route : {"score", "pathwise"}, optional
        Differentiate the distribution of the record, or s at a fixed latent number. Only the
        second is there for a population whose support moves with theta; else both agree to 1e-6,
        relative, where the scale is at least 0.02 of a standard deviation of s.

    Returns
    -------
    float

    Raises
    ------
    DpmcError
        If the population has no score and the route or the lack of noise needs one.
    """
    checks.one_of("noise", noise, ("laplace", "gaussian"))
    grid = nodes.nodes(population, statistic, theta)
    derivative_by = route or ("pathwise" if population.score is None else "score")
    checks.one_of("route", derivative_by, ROUTES)
    if population.score is None and (derivative_by == "score" or scale == 0):
        raise DpmcError(
            f"`population` {population.name!r} has no score: `route` must be 'pathwise' and "
            f"`scale` > 0, got {derivative_by!r} and {scale}"
        )
    if scale == 0:
        kept_mass = grid.weights > 0
        return num_rows * float(np.sum(grid.tilt[kept_mass] ** 2 / grid.weights[kept_mass]))
    if population.base == "unit" or derivative_by == "score":
        grid = grid._replace(drift=np.zeros(grid.s.size))
    else:
        grid = grid._replace(tilt=np.zeros(grid.s.size))
    return num_rows * _integrated(grid, scale, noise == "laplace")


def _integrated(grid: nodes.Nodes, scale: float, laplace: bool) -> float:
    if laplace:
        density, derivative = _at(grid.ends, grid, scale, True)
        outside = scale * float(np.sum(derivative**2 / density))
        y, weights = grid.y, grid.y_weights
    else:
        outside = 0.0
        cells = scale * np.arange(_TAIL + 1.0)
        below = nodes.composite(grid.ends[0] - cells[::-1], 8)
        above = nodes.composite(grid.ends[1] + cells, 8)
        y = np.concatenate([below[0], grid.y, above[0]])
        weights = np.concatenate([below[1], grid.y_weights, above[1]])
    density, derivative = _at(y, grid, scale, laplace)
    some = density > 0
    return outside + float(np.sum(weights[some] * derivative[some] ** 2 / density[some]))


def _at(y: Array, grid: nodes.Nodes, scale: float, laplace: bool) -> Array:
    out = np.empty((2, y.size))
    mixture(y, grid.s, grid.weights, grid.tilt, grid.drift, scale, laplace, out)
    return out


def noisy_count(theta: float, num_rows: int, epsilon: float) -> float:
    """Return the information of a noisy mean of n bits, the mean being binomial, not normal.

    Y = K / n + N(0, 1 / (n epsilon)^2), K ~ Bin(n, theta), which [alparslan2023thesis,
    example 6] takes for normal. The trapezoidal rule over y is exact to rounding.

    Parameters
    ----------
    theta : float
        In (0, 1).
    num_rows : int
        n, the number of records.
    epsilon : float
        Finite and > 0.
    """
    from scipy.stats import binom

    count = np.arange(num_rows + 1.0)
    weights = binom.pmf(count, num_rows, theta)
    tilt = weights * (count - num_rows * theta) / (theta * (1 - theta))
    sd = 1.0 / epsilon
    step = _SPACING * sd
    y = np.arange(-_TAIL * sd, num_rows + _TAIL * sd + step, step)
    out = np.empty((2, y.size))
    mixture(y, count, weights, tilt, np.zeros(count.size), sd, False, out)
    some = out[0] > 0
    return step * float(np.sum(out[1, some] ** 2 / out[0, some]))
