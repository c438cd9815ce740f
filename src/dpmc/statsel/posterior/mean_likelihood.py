"""Likelihood of theta given a released mean."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

from dpmc.numerics.small_matrices import compiled
from dpmc.statsel import laplace_clt

_LOG_SQRT_2_PI = 0.5 * math.log(2 * math.pi)


class NoisyMean(NamedTuple):
    """A released mean."""

    y: float
    scale: float  # standard deviation or Laplace scale of the noise
    num: float  # n


@compiled
def log_gaussian(y: float, mean: float, sd: float, scale: float) -> float:
    """Return the log-density of a normal statistic with Gaussian noise."""
    variance = sd * sd + scale * scale
    away = y - mean
    return -0.5 * (math.log(variance) + away * away / variance) - _LOG_SQRT_2_PI


@functools.cache
def make_log_likelihood(density: Any, mean: Any, variance: Any) -> Any:
    """Return the compiled log p(y | theta) of a released mean."""

    @compiled
    def log_likelihood(released: Any, theta: float) -> Any:
        """Return log p(y | theta)."""
        sd = math.sqrt(variance(theta) / released.num)
        return density(released.y, mean(theta), sd, released.scale)

    return log_likelihood


def make_fill_likelihood(density: Any, mean: Any, variance: Any) -> Any:
    """Return the loop of log p(y | theta) over an array of theta."""
    log_likelihood = make_log_likelihood(density, mean, variance)

    @compiled
    def fill_likelihood(released: Any, theta: Any, out: Any) -> None:
        """Write log p(y | theta) of each entry of an array to `out`."""
        for k in range(theta.size):
            out[k] = log_likelihood(released, theta[k])

    return fill_likelihood


DENSITIES = {"gaussian": log_gaussian, "laplace": laplace_clt.log_density}
