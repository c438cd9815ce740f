"""Nodes of Gauss-Legendre integration over the latent number Z of one record.

A record is x = phi_theta(z), clipped to the support of its population. Where it is released
with noise of its own, y = s(x) + V, the density of y is an integral over z whose integrand has a
kink at s(x) = y under Laplace noise. Inner nodes therefore lie in cells between outer ones, at
which y is placed: no kink is inside of a cell.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from dpmc.statsel.types import Population, Statistic
from dpmc.types import Array, DpmcError

# Beyond this a standard normal number has a probability of 2e-19.
_NORMAL_END = 9.0
# Outer panels with 8 nodes each, and inner nodes in each cell between two outer nodes.
_PANELS, _OUTER, _INNER = 30, 8, 4
_TAIL_CELLS = 24
# Of |x|^a: z = t^3 makes a root of z smooth enough at 0.
_GRADING = 3
_STEP = 1e-5


class Nodes(NamedTuple):
    """Where one noisy record is integrated.

    Parameters
    ----------
    y, y_weights : ndarray of shape (k,)
        Values of s in their range, ascending, and weights of an integral over it.
    s, weights : ndarray of shape (m,)
        Values of s, and their probabilities.
    tilt : ndarray of shape (m,)
        Probability times the score of the record, zero without one.
    drift : ndarray of shape (m,)
        Probability times ``d s(phi_theta(z)) / d theta``.
    ends : ndarray of shape (2,)
        The range of s.
    """

    y: Array
    y_weights: Array
    s: Array
    weights: Array
    tilt: Array
    drift: Array
    ends: Array


def plain(function: Any) -> Any:
    """Return a compiled function as Python has it, which NumPy needs no compiler for."""
    return getattr(function, "py_func", function)


def nodes(population: Population, statistic: Statistic, theta: float) -> Nodes:
    """Return nodes for one record under theta."""
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
    """Return the nodes of a record that is one with probability theta, else zero."""
    s = plain(statistic.transform)(np.array(population.support))
    y, y_weights = composite(np.linspace(s[0], s[1], _PANELS + 1), _OUTER)
    weights = np.array([1.0 - theta, theta])
    return Nodes(y, y_weights, s, weights, np.array([-1.0, 1.0]), np.zeros(2), s)


def _reached(population: Population, theta: float, bound: float, low: float, high: float) -> float:
    """Return where between `low` and `high` a record reaches `bound`, or the nearer end."""
    from scipy.optimize import brentq

    def beyond(z: float) -> float:
        return float(plain(population.generate)(theta, z)) - bound

    if beyond(low) >= 0:
        return low
    return high if beyond(high) <= 0 else float(brentq(beyond, low, high, xtol=1e-13))


def _placed(t: Array, low: float, high: float, folded: bool) -> tuple[Array, Array]:
    """Return z at t in [0, 1], and its derivative."""
    if folded:
        return high * t**_GRADING, high * _GRADING * t ** (_GRADING - 1)
    return low + (high - low) * t, np.full(t.size, high - low)


def _density(population: Population, z: Array) -> Array:
    if population.base == "normal":
        return np.asarray(np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi))
    return np.full(z.size, 0.5)


def _power_slope(statistic: Statistic, x: Array) -> Array:
    """Return the derivative of s at x."""
    slope = statistic.power * np.abs(x) ** (statistic.power - 1.0)
    even = statistic.absolute or statistic.power % 2 == 0
    return np.asarray(slope * np.sign(x) if even else slope)


def _rise(population: Population, statistic: Statistic, theta: float, z: Array) -> Array:
    """Return d s(phi_theta(z)) / d z; generators are linear in z, or nearly so over a step."""
    x = plain(population.generate)(theta, z)
    ahead, behind = (plain(population.generate)(theta, z + h) for h in (_STEP, -_STEP))
    return np.asarray(_power_slope(statistic, x) * (ahead - behind) / (2 * _STEP))


def _drift(population: Population, statistic: Statistic, theta: float, z: Array) -> Array:
    """Return d s(phi_theta(z)) / d theta."""
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
    """Return nodes and weights of the Gauss-Legendre rule of `count` nodes in each cell."""
    points, weights = _rule(count)
    widths = np.diff(edges)
    return (
        (edges[:-1, None] + widths[:, None] * points).ravel(),
        (widths[:, None] * weights).ravel(),
    )
