"""Likelihood of theta given a release: of a mean, or of records, each integrated.

``p(y | theta) = integral g(y | s(x)) p(x | theta) dx`` over the base variable of a record,
by the midpoint rule. With Laplace noise all n integrals share two passes over the nodes: the
part of the nodes below y is that of the record before, decayed.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpmc.numerics.compiled import assemble
from dpmc.numerics.small_matrices import compiled
from dpmc.statsel import laplace_clt
from dpmc.types import Array, DpmcError

_LOG_SQRT_2_PI = 0.5 * math.log(2 * math.pi)


class NoisyMean(NamedTuple):
    """A released mean."""

    y: float
    scale: float  # standard deviation or Laplace scale of the noise
    num: float  # n


@compiled
def log_gaussian(y: float, mean: float, sd: float, scale: float) -> float:
    """Log-density of a normal statistic with Gaussian noise."""
    variance = sd * sd + scale * scale
    away = y - mean
    return -0.5 * (math.log(variance) + away * away / variance) - _LOG_SQRT_2_PI


@functools.cache
def make_log_likelihood(density: Any, mean: Any, variance: Any) -> Any:
    """Compiled log p(y | theta) of a released mean."""

    @compiled
    def log_likelihood(released: Any, theta: float) -> Any:
        """Log p(y | theta)."""
        sd = math.sqrt(variance(theta) / released.num)
        return density(released.y, mean(theta), sd, released.scale)

    return log_likelihood


def make_fill_likelihood(density: Any, mean: Any, variance: Any) -> Any:
    """Loop of log p(y | theta) over an array of theta."""
    log_likelihood = make_log_likelihood(density, mean, variance)

    @compiled
    def fill_likelihood(released: Any, theta: Any, out: Any) -> None:
        """Write log p(y | theta) of each entry of an array to `out`."""
        for k in range(theta.size):
            out[k] = log_likelihood(released, theta[k])

    return fill_likelihood


DENSITIES = {"gaussian": log_gaussian, "laplace": laplace_clt.log_density}


if TYPE_CHECKING:
    from dpmc.statsel.targets import PosteriorTarget

# Midpoints with Laplace noise: it has a kink, so that the error falls with their square only.
LAPLACE_NODES = 4000
# Midpoints with Gaussian noise.
GAUSSIAN_NODES = 600
# End of the range of normal base variables.
FARTHEST = 8.5
_SQRT_2_PI = math.sqrt(2 * math.pi)


def log_likelihoods(target: PosteriorTarget, theta: Array) -> Array:
    """Log-likelihood of all released records at each theta, shape (m,).

    `target`: of a mechanism that releases records. `theta`, shape (m,): parameters at which to
    evaluate.
    """
    y = np.sort(target.y)
    if target.population.base == "unit":
        return _of_bits(target, y, theta)
    functions = (target.population.generate, target.statistic.transform)
    if target.mechanism.noise == "laplace":
        nodes, weights = base_nodes(target.population.base, LAPLACE_NODES)
        if target.population.odd and target.statistic.range(target.population.support)[0] == 0.0:
            nodes, weights = nodes[nodes > 0], 2 * weights[nodes > 0]  # s is even in z
        kernel = assemble(make_fill_laplace, *functions)
    elif target.mechanism.noise == "gaussian":
        nodes, weights = base_nodes(target.population.base, GAUSSIAN_NODES)
        kernel = assemble(make_fill_gaussian, *functions)
    else:
        raise DpmcError(f"`mechanism` {target.mechanism.name!r} requires a Bernoulli population")
    out, s = np.empty(theta.size), np.empty(nodes.size)
    support = target.population.support
    kernel(y, target.scale, support, nodes, weights, np.ascontiguousarray(theta), s, out)
    return out


def base_nodes(base: str, num: int) -> tuple[Array, Array]:
    """Midpoints of the range of a base variable, ascending, and their probabilities."""
    end = FARTHEST if base == "normal" else 1.0
    nodes = end * ((2 * np.arange(num) + 1) / num - 1)
    weights = np.exp(-0.5 * nodes**2) if base == "normal" else np.ones(num)
    return nodes, weights / weights.sum()


def _of_bits(target: PosteriorTarget, y: Array, theta: Array) -> Array:
    """Log-likelihood where a record is 0 or 1."""
    noise, scale = target.mechanism.log_density, target.scale
    zero, one = (np.array([noise(value - bit, scale) for value in y]) for bit in (0.0, 1.0))
    with np.errstate(divide="ignore"):
        logs = np.logaddexp(np.log1p(-theta)[:, None] + zero, np.log(theta)[:, None] + one)
    total: Array = logs.sum(axis=1)
    return total


@functools.cache
def make_fill_statistics(generate: Any, transform: Any) -> Any:
    """Compiled loop that evaluates the statistic at nodes of the base variable."""

    @compiled
    def fill_statistics(support: Any, nodes: Any, theta: float, s: Any) -> bool:
        """Write the statistic at every node to `s`; return whether it does not decrease."""
        ascending = True
        for j in range(nodes.size):
            x = generate(theta, nodes[j])
            s[j] = transform(min(max(x, support[0]), support[1]))
            if j > 0 and s[j] < s[j - 1]:
                ascending = False
        return ascending

    return fill_statistics


def make_fill_laplace(generate: Any, transform: Any) -> Any:
    """Loop over theta with Laplace noise."""
    fill_statistics = make_fill_statistics(generate, transform)

    @compiled
    def fill_laplace(
        y: Any, scale: float, support: Any, nodes: Any, weights: Any, theta: Any, s: Any, out: Any
    ) -> None:
        """Write log-likelihoods with Laplace noise to `out`; `y` ascends."""
        left = np.empty(y.size)
        order = np.arange(nodes.size)
        for k in range(theta.size):
            if fill_statistics(support, nodes, theta[k], s):
                order = np.arange(nodes.size)
            else:
                order = np.argsort(s)
            # Upwards: nodes with s <= y_i. Their sum decays by exp(-(y_i - y_(i-1)) / scale) from
            # one record to the next, and the nodes in between are added.
            total, j = 0.0, 0
            for i in range(y.size):
                if i > 0:
                    total *= math.exp((y[i - 1] - y[i]) / scale)
                while j < nodes.size and s[order[j]] <= y[i]:
                    total += weights[order[j]] * math.exp((s[order[j]] - y[i]) / scale)
                    j += 1
                left[i] = total
            # Downwards: the same for nodes with s > y_i; both sums make the density of y_i.
            total, j, log_likelihood = 0.0, nodes.size - 1, 0.0
            for i in range(y.size - 1, -1, -1):
                if i < y.size - 1:
                    total *= math.exp((y[i] - y[i + 1]) / scale)
                while j >= 0 and s[order[j]] > y[i]:
                    total += weights[order[j]] * math.exp((y[i] - s[order[j]]) / scale)
                    j -= 1
                log_likelihood += math.log((left[i] + total) / (2.0 * scale))
            out[k] = log_likelihood

    return fill_laplace


def make_fill_gaussian(generate: Any, transform: Any) -> Any:
    """Loop over theta with Gaussian noise."""
    fill_statistics = make_fill_statistics(generate, transform)

    @compiled
    def fill_gaussian(
        y: Any, scale: float, support: Any, nodes: Any, weights: Any, theta: Any, s: Any, out: Any
    ) -> None:
        """Write log-likelihoods with Gaussian noise to `out`."""
        for k in range(theta.size):
            fill_statistics(support, nodes, theta[k], s)
            log_likelihood = 0.0
            for i in range(y.size):
                # Relative to the nearest node, so that no sum underflows.
                nearest = math.inf
                for j in range(nodes.size):
                    nearest = min(nearest, abs(y[i] - s[j]))
                total = 0.0
                for j in range(nodes.size):
                    away = y[i] - s[j]
                    total += weights[j] * math.exp(
                        0.5 * (nearest * nearest - away * away) / (scale * scale)
                    )
                log_likelihood += math.log(total / (_SQRT_2_PI * scale))
                log_likelihood -= 0.5 * nearest * nearest / (scale * scale)
            out[k] = log_likelihood

    return fill_gaussian
