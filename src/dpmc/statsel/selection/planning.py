"""Plan of a two-stage selection: everything that is fixed before any record is read.

The score of the thesis is the posterior mean of 1 / F. Next to theta = 0 the noise drowns the
statistic |x|^a of a population of scale theta, F falls as theta^(2 (a - 1)) and 1 / F has no
mean as soon as a >= 1.5: what the score says of such candidates is decided by the least point
of the grid, or the least of the draws in its place. The posterior mean of -log F is finite for
all, and the order that it gives does not depend on how theta is measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpmc import checks
from dpmc.numerics.compiled import kept
from dpmc.statsel import laplace_clt, moments
from dpmc.statsel.fisher import information
from dpmc.statsel.types import Mechanism, Population, Statistic, plain
from dpmc.types import Array, DpmcError, Guarantee, check_epsilon

Indices = npt.NDArray[np.int64]


class MeanDistributions(NamedTuple):
    """What K statistics of so many records look like at G values of theta."""

    # mean and sd (K, G): of the mean of s over the records.
    mean: Array
    sd: Array
    scale: Array  # (K,): of the noise on it: standard deviation or Laplace scale
    information: Array  # (K, G): Fisher information of the release


def grid(population: Population, upper: float | None, num_points: int) -> Array:
    """Midpoints of `num_points` cells of equal width over (0, upper]."""
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
    """Distributions of statistics of `num_rows` records, and of their releases.

    The statistic itself is taken for normal, as by the central limit theorem.
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
    """Weights that sum to 1 in every row."""
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


SCORES = ("mean_inverse", "mean_log")
NUM_POINTS = 200


@dataclass(frozen=True)
class SelectionPlan:
    """What is fixed before any record is read."""

    population: Population  # Distribution of one record
    mechanism: Mechanism  # Of both releases: Gaussian or Laplace noise on a mean
    epsilon: float  # Budget of either release
    first: Statistic  # What y0 releases
    candidates: tuple[Statistic, ...]  # What y1 may release
    sizes: tuple[int, int]  # Records of either part
    # (G,): Grid: midpoints of cells of equal width over the support (0, T] of a uniform prior.
    theta: Array
    # first_distributions, distributions: of `first` on the first part and of `candidates` on
    # the second.
    first_distributions: MeanDistributions
    distributions: MeanDistributions
    cost: Array  # (K, G): Its posterior mean is the score of a candidate; the lowest is best

    @property
    def guarantee(self) -> Guarantee:
        """Of y0 and y1 together: a record enters one of them alone."""
        return self.mechanism.guarantee(self.epsilon)


def plan(
    population: Population,
    candidates: Sequence[Statistic],
    mechanism: Mechanism,
    epsilon: float,
    sizes: tuple[int, int],
    first: Statistic,
    upper: float | None = None,
    num_points: int = NUM_POINTS,
    score: str = "mean_inverse",
) -> SelectionPlan:
    """Fix everything that the procedure needs in addition to the records.

    Parameters
    ----------
    population : Population
        With theta > 0.
    candidates : sequence of Statistic
        At least one, each a mean.
    epsilon : float
        Budget of either release.
    sizes : (int, int)
        Records of the first and of the second part.
    first : Statistic
        Released of the first part, a mean.
    upper : float, optional
        T of the uniform prior on (0, T]; the upper end of the support of records by default.
    score : {"mean_inverse", "mean_log"}
        Posterior mean of 1 / F, or of -log F.
    """
    if not candidates:
        raise DpmcError("`candidates` must be one or more statistics, got none")
    checks.one_of("score", score, SCORES)
    checks.at_least("num_points", num_points, 2)
    for size in sizes:
        checks.at_least("sizes", size, 1)
    theta = grid(population, upper, num_points)
    distributions = mean_distributions(population, candidates, mechanism, epsilon, sizes[1], theta)
    return SelectionPlan(
        population=population,
        mechanism=mechanism,
        epsilon=epsilon,
        first=first,
        candidates=tuple(candidates),
        sizes=sizes,
        theta=theta,
        first_distributions=mean_distributions(
            population, [first], mechanism, epsilon, sizes[0], theta
        ),
        distributions=distributions,
        cost=1 / distributions.information
        if score == "mean_inverse"
        else -np.log(distributions.information),
    )
