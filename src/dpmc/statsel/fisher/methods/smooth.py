"""An order statistic with noise by smooth sensitivity, by common random numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpmc.statsel.fisher import order_statistics
from dpmc.statsel.fisher.information import InformationEstimate, ReleaseSetting
from dpmc.statsel.fisher.order_simulation import Simulation
from dpmc.statsel.mechanisms import smooth_laplace
from dpmc.statsel.order_draws import order_of


@dataclass(frozen=True)
class Params:
    """The simulation and the noise.

    Parameters
    ----------
    num_draws, num_groups : int
        Data sets, and independent groups of them: the mean product of two groups takes the
        place of a biased square.
    step : float
        Of the difference by theta, in standard deviations of the released number.
    delta : float
        Of the release.
    alpha, beta : float, optional
        Constants of the noise, if not the usual ones for epsilon and delta.
    """

    num_draws: int = 16_000
    num_groups: int = 16
    step: float = 0.2
    delta: float = 1e-4
    alpha: float | None = None
    beta: float | None = None


def evaluate(
    params: Params, release: ReleaseSetting, rng: np.random.Generator
) -> InformationEstimate:
    """Return the information."""
    mechanism = smooth_laplace.build(smooth_laplace.Params(params.alpha, params.beta))
    order = order_of(
        release.population,
        release.statistic,
        mechanism,
        release.num_rows,
        release.epsilon,
        params.delta,
    )
    simulation = Simulation(params.num_draws, params.num_groups, params.step)
    estimate = order_statistics.information(
        release.population, release.statistic, order, release.theta, rng, simulation
    )
    return InformationEstimate(
        estimate.value, estimate.se, num_outer=math.nan, num_inner=params.num_draws
    )
