"""Fisher information by quadrature, of records with noise of their own, and of noisy counts.

``F = integral of (d p(y) / d theta)^2 / p(y)``. Past the range of the statistic, density and
derivative under Laplace noise fall by the same exponential, and the integral is closed.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from dpmc import checks
from dpmc.numerics.compiled import kept
from dpmc.statsel.types import Population, Statistic, plain
from dpmc.types import Array, DpmcError

# Beyond this a standard normal number has a probability of 2e-19.
_NORMAL_END = 9.0
# Outer panels.
_PANELS = 30
# Nodes of an outer panel.
_OUTER = 8
# Inner nodes in each cell between two outer nodes.
_INNER = 4
_TAIL_CELLS = 24
# Power of the change of variable z = t^3, which makes |x|^a smooth enough at 0.
_GRADING = 3
_STEP = 1e-5


class Nodes(NamedTuple):
    """Range over which one noisy record is integrated."""

    # y and y_weights (k,): values of s in their range, ascending, and weights of an integral
    # over it.
    y: Array
    y_weights: Array
    # s and weights (m,): values of s, and their probabilities.
    s: Array
    weights: Array
    tilt: Array  # (m,): probability times the score of the record, zero without one
    drift: Array  # (m,): probability times ``d s(phi_theta(z)) / d theta``
    ends: Array  # (2,): the range of s


def nodes_of(population: Population, statistic: Statistic, theta: float) -> Nodes:
    """Nodes for one record under theta."""
    if population.base == "unit":
        return _of_bits(population, statistic, theta)
    folded = statistic.absolute or statistic.power % 2 == 0
    if folded and not population.odd:
        raise DpmcError(
            f"`statistic` must be an odd power for {population.name}, which is not symmetric about "
            f"0, got {statistic.name!r}"
        )
    end = _NORMAL_END if population.base == "normal" else 1.0
    low, high = population.support
    # Between z_low and z_high the record is inside of its support, and s moves with z.
    z_low = 0.0 if folded else _reached(population, theta, low, -end, end)
    z_high = _reached(population, theta, high, z_low, end)
    # Outer nodes: where y is placed, and the weights of the integral over y.
    t, t_weights = composite(np.linspace(0.0, 1.0, _PANELS + 1), _OUTER)
    z, slope = _placed(t, z_low, z_high, folded)
    rise = slope * _rise(population, statistic, theta, z)
    # Inner nodes: cells between the outer ones, so that a kink at s(x) = y is at an edge.
    inner, inner_weights = composite(np.concatenate([[0.0], t, [1.0]]), _INNER)
    inner_z, inner_slope = _placed(inner, z_low, z_high, folded)
    pieces = [(inner_z, inner_weights * inner_slope)]
    # Tails of z, whose records are clipped to an end of the support.
    if not folded and z_low > -end:
        pieces.append(composite(np.linspace(-end, z_low, _TAIL_CELLS + 1), _OUTER))
    if z_high < end:
        pieces.append(composite(np.linspace(z_high, end, _TAIL_CELLS + 1), _OUTER))
    all_z, all_weights = (np.concatenate(piece) for piece in zip(*pieces, strict=True))
    probability = all_weights * _density(population, all_z) * (2.0 if folded else 1.0)
    x = plain(population.generate)(theta, all_z)
    inside = (x > low) & (x < high)
    score = np.zeros(x.size) if population.score is None else plain(population.score)(x, theta)
    return Nodes(
        y=plain(statistic.transform)(np.clip(plain(population.generate)(theta, z), low, high)),
        y_weights=t_weights * rise,
        s=plain(statistic.transform)(np.clip(x, low, high)),
        weights=probability,
        tilt=probability * score,
        drift=probability * inside * _drift(population, statistic, theta, all_z),
        ends=plain(statistic.transform)(
            plain(population.generate)(theta, np.array([z_low, z_high]))
        ),
    )


def _of_bits(population: Population, statistic: Statistic, theta: float) -> Nodes:
    """Nodes of a record that is one with probability theta, else zero."""
    s = plain(statistic.transform)(np.array(population.support))
    y, y_weights = composite(np.linspace(s[0], s[1], _PANELS + 1), _OUTER)
    weights = np.array([1.0 - theta, theta])
    return Nodes(y, y_weights, s, weights, np.array([-1.0, 1.0]), np.zeros(2), s)


def _reached(population: Population, theta: float, bound: float, low: float, high: float) -> float:
    """Place between `low` and `high` where a record reaches `bound`, or the nearer end."""
    from scipy.optimize import brentq

    def beyond(z: float) -> float:
        return float(plain(population.generate)(theta, z)) - bound

    if beyond(low) >= 0:
        return low
    return high if beyond(high) <= 0 else float(brentq(beyond, low, high, xtol=1e-13))


def _placed(t: Array, low: float, high: float, folded: bool) -> tuple[Array, Array]:
    """Z at t in [0, 1], and its derivative."""
    if folded:
        return high * t**_GRADING, high * _GRADING * t ** (_GRADING - 1)
    return low + (high - low) * t, np.full(t.size, high - low)


def _density(population: Population, z: Array) -> Array:
    if population.base == "normal":
        return np.asarray(np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi))
    return np.full(z.size, 0.5)


def _power_slope(statistic: Statistic, x: Array) -> Array:
    """Derivative of s at x."""
    slope = statistic.power * np.abs(x) ** (statistic.power - 1.0)
    even = statistic.absolute or statistic.power % 2 == 0
    return np.asarray(slope * np.sign(x) if even else slope)


def _rise(population: Population, statistic: Statistic, theta: float, z: Array) -> Array:
    """D s(phi_theta(z)) / d z; generators are linear in z, or nearly so over a step."""
    x = plain(population.generate)(theta, z)
    ahead, behind = (plain(population.generate)(theta, z + h) for h in (_STEP, -_STEP))
    return np.asarray(_power_slope(statistic, x) * (ahead - behind) / (2 * _STEP))


def _drift(population: Population, statistic: Statistic, theta: float, z: Array) -> Array:
    """D s(phi_theta(z)) / d theta."""
    step = _STEP * max(1.0, abs(theta))
    step = min(step, *(abs(theta - end) / 2 for end in population.theta_domain if end != theta))
    x = plain(population.generate)(theta, z)
    ahead, behind = (plain(population.generate)(theta + h, z) for h in (step, -step))
    return np.asarray(_power_slope(statistic, x) * (ahead - behind) / (2 * step))


@functools.cache
def _rule(count: int) -> tuple[Array, Array]:
    points, weights = np.polynomial.legendre.leggauss(count)
    return (points + 1.0) / 2.0, weights / 2.0


def composite(edges: Array, count: int) -> tuple[Array, Array]:
    """Nodes and weights of the Gauss-Legendre rule of `count` nodes in each cell."""
    points, weights = _rule(count)
    widths = np.diff(edges)
    return (
        (edges[:-1, None] + widths[:, None] * points).ravel(),
        (widths[:, None] * weights).ravel(),
    )


# Gaussian noise is followed this many standard deviations past the range, a panel for each.
_TAIL = 12
_SPACING = 0.1


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
) -> float:
    """Information of n records, each released with noise of its own.

    [alparslan2023thesis, section 4.2.4, equation 4.10], with records clipped to the support.

    Parameters
    ----------
    statistic : Statistic
        Of kind ``"mean"``: its s.
    scale : float
        Of the noise of one record; 0 where there is none.
    noise : {"laplace", "gaussian"}
        Distribution of the noise.
    """
    checks.one_of("noise", noise, ("laplace", "gaussian"))
    grid = nodes_of(population, statistic, theta)
    if population.score is None and scale == 0:
        raise DpmcError(f"`population` {population.name!r} has no score: `scale` must be > 0")
    if scale == 0:
        kept_mass = grid.weights > 0
        return num_rows * float(np.sum(grid.tilt[kept_mass] ** 2 / grid.weights[kept_mass]))
    # Differentiate the distribution of the record where it has a score, else s at a fixed latent
    # number.
    if population.base == "unit" or population.score is not None:
        grid = grid._replace(drift=np.zeros(grid.s.size))
    else:
        grid = grid._replace(tilt=np.zeros(grid.s.size))
    return num_rows * _integrated(grid, scale, noise == "laplace")


def _integrated(grid: Nodes, scale: float, laplace: bool) -> float:
    if laplace:
        density, derivative = _at(grid.ends, grid, scale, True)
        outside = scale * float(np.sum(derivative**2 / density))
        y, weights = grid.y, grid.y_weights
    else:
        outside = 0.0
        cells = scale * np.arange(_TAIL + 1.0)
        below = composite(grid.ends[0] - cells[::-1], 8)
        above = composite(grid.ends[1] + cells, 8)
        y = np.concatenate([below[0], grid.y, above[0]])
        weights = np.concatenate([below[1], grid.y_weights, above[1]])
    density, derivative = _at(y, grid, scale, laplace)
    some = density > 0
    return outside + float(np.sum(weights[some] * derivative[some] ** 2 / density[some]))


def _at(y: Array, grid: Nodes, scale: float, laplace: bool) -> Array:
    out = np.empty((2, y.size))
    mixture(y, grid.s, grid.weights, grid.tilt, grid.drift, scale, laplace, out)
    return out


def noisy_count(theta: float, num_rows: int, epsilon: float) -> float:
    """Information of a noisy mean of n bits, the mean being binomial, not normal.

    Y = K / n + N(0, 1 / (n epsilon)^2), K ~ Bin(n, theta), which [alparslan2023thesis,
    example 6] takes for normal. The trapezoidal rule over y is exact to rounding.
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
