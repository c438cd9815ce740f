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

import numpy as np

from dpmc import checks
from dpmc.statsel.selection.initial_distributions import MeanDistributions, grid, mean_distributions
from dpmc.statsel.types import Mechanism, Population, Statistic
from dpmc.types import Array, DpmcError, Guarantee

SCORES = ("mean_inverse", "mean_log")
NUM_POINTS = 200


@dataclass(frozen=True)
class SelectionPlan:
    """What is fixed before any record is read.

    Parameters
    ----------
    population : Population
        Distribution of one record.
    mechanism : Mechanism
        Of both releases: Gaussian or Laplace noise on a mean.
    epsilon : float
        Budget of either release.
    first : Statistic
        What y0 releases.
    candidates : tuple of Statistic
        What y1 may release.
    sizes : (int, int)
        Records of either part.
    theta : ndarray of shape (G,)
        Grid: midpoints of cells of equal width over the support (0, T] of a uniform prior.
    first_distributions, distributions : MeanDistributions
        Of `first` on the first part and of `candidates` on the second.
    cost : ndarray of shape (K, G)
        Its posterior mean is the score of a candidate; the lowest is best.
    """

    population: Population
    mechanism: Mechanism
    epsilon: float
    first: Statistic
    candidates: tuple[Statistic, ...]
    sizes: tuple[int, int]
    theta: Array
    first_distributions: MeanDistributions
    distributions: MeanDistributions
    cost: Array

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
