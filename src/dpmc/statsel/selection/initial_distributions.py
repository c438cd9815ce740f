"""Distributions of released means over a grid of theta, under a normal approximation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpmc import checks
from dpmc.numerics.compiled import kept
from dpmc.statsel import laplace_clt, moments
from dpmc.statsel.fisher import information
from dpmc.statsel.fisher.nodes import plain
from dpmc.statsel.types import Mechanism, Population, Statistic
from dpmc.types import Array, DpmcError, check_epsilon

Indices = npt.NDArray[np.int64]


class MeanDistributions(NamedTuple):
    """What K statistics of so many records look like at G values of theta.

    Parameters
    ----------
    mean, sd : ndarray of shape (K, G)
        Of the mean of s over the records.
    scale : ndarray of shape (K,)
        Of the noise on it: standard deviation or Laplace scale.
    information : ndarray of shape (K, G)
        Fisher information of the release.
    """

    mean: Array
    sd: Array
    scale: Array
    information: Array


def grid(population: Population, upper: float | None, num_points: int) -> Array:
    """Return midpoints of `num_points` cells of equal width over (0, upper].

    Raises
    ------
    DpmcError
        If theta may not be positive, or the interval leaves its domain.
    """
    end = population.support[1] if upper is None else upper
    checks.positive("upper", end)
    low, high = population.theta_domain
    if low > 0 or end > high:
        raise DpmcError(f"`upper` must keep (0, upper] in the domain ({low}, {high}), got {end}")
    return np.asarray((np.arange(num_points) + 0.5) * (end / num_points), np.float64)


def mean_distributions(
    population: Population,
    statistics: Sequence[Statistic],
    mechanism: Mechanism,
    epsilon: float,
    num_rows: int,
    theta: Array,
) -> MeanDistributions:
    """Return the distributions of statistics of `num_rows` records, and of their releases.

    The statistic itself is taken for normal, as by the central limit theorem.

    Raises
    ------
    DpmcError
        If a statistic is not a mean, the noise is not that of one, or epsilon is not > 0.
    """
    check_epsilon(epsilon)
    if mechanism.per_record or mechanism.noise not in NOISES or mechanism.needs_delta:
        raise DpmcError(
            f"`mechanism` must add Gaussian or Laplace noise to a mean, got {mechanism.name!r}"
        )
    rows = []
    for statistic in statistics:
        if statistic.kind != "mean":
            raise DpmcError(f"`statistic` must be a mean over records, got {statistic.name!r}")
        closed_forms = moments.of(population, statistic)
        scale = mechanism.scale(statistic.sensitivity(population.support), num_rows, epsilon)
        fisher = NOISES[mechanism.noise].information(closed_forms, theta, num_rows, scale)
        sd = np.sqrt(plain(closed_forms.variance)(theta) / num_rows)
        rows.append((plain(closed_forms.mean)(theta), sd, scale, fisher))
    mean, sd, scales, information = (np.array(part) for part in zip(*rows, strict=True))
    return MeanDistributions(mean, sd, scales, information)


def normalised(log_weights: Array) -> Array:
    """Return weights that sum to 1 in every row."""
    weights: Array = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


@kept
def fill_laplace(y: Any, index: Any, mean: Any, sd: Any, scale: Any, out: Any) -> None:
    """Write log-densities of normal statistics with Laplace noise into `out`, shape (R, G)."""
    for r in range(out.shape[0]):
        k = index[r]
        for g in range(out.shape[1]):
            out[r, g] = laplace_clt.log_density(y[r], mean[k, g], sd[k, g], scale[k])


def fill_gaussian(
    y: Array, index: Indices, mean: Array, sd: Array, scale: Array, out: Array
) -> None:
    """Write log-densities of normal statistics with Gaussian noise into `out`, shape (R, G)."""
    variance = (sd**2 + scale[:, None] ** 2)[index]
    out[:] = -0.5 * ((y[:, None] - mean[index]) ** 2 / variance + np.log(2 * np.pi * variance))


class _Noise(NamedTuple):
    fill: Any
    information: Any


NOISES = {
    "laplace": _Noise(fill_laplace, information.mean_with_laplace),
    "gaussian": _Noise(fill_gaussian, information.mean_with_gaussian),
}
