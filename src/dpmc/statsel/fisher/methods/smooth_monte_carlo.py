"""Algorithm 7 of [alparslan2023thesis]: an order statistic, by importance sampling of data sets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmc.statsel.fisher import monte_carlo
from dpmc.statsel.fisher.information import InformationEstimate, ReleaseSetting
from dpmc.statsel.fisher.methods import _importance_sampling
from dpmc.statsel.mechanisms import smooth_laplace
from dpmc.statsel.order_draws import order_of


@dataclass(frozen=True)
class Params(_importance_sampling.Params):
    """Monte Carlo sizes and the noise.

    Parameters
    ----------
    num_outer : int
        Simulated y: N of the thesis, which gives no number.
    num_inner : int
        Simulated data sets for each y: M of the thesis.
    delta : float
        Of the release.
    alpha, beta : float, optional
        Constants of the noise; by default those of `smooth_laplace` for epsilon and delta.
    """

    num_outer: int = 300
    num_inner: int = 1000
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
    sampler = monte_carlo.of_data(release.population, release.statistic, order, release.theta)
    return _importance_sampling.evaluate(sampler, params, rng)
