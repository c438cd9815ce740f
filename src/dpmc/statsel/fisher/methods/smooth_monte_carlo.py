"""Algorithm 7 of [alparslan2023thesis]: an order statistic, by importance sampling of data sets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmc.statsel.fisher import monte_carlo
from dpmc.statsel.fisher.information import Estimate, Setting
from dpmc.statsel.fisher.monte_carlo import Sizes
from dpmc.statsel.mechanisms import smooth_laplace
from dpmc.statsel.order_draws import order_of


@dataclass(frozen=True)
class Params:
    """Monte Carlo sizes and the noise.

    Parameters
    ----------
    num_outer : int
        Simulated y: N of the thesis, which gives no number.
    num_inner : int
        Latent draws for each: M of the thesis.
    estimator : {"squared", "halves"}
        As published, or the product of two halves.
    shared : bool
        Whether all y share their latent draws.
    delta : float
        Of the release.
    alpha, beta : float, optional
        Constants of the noise, if not the usual ones for epsilon and delta.
    """

    num_outer: int = 300
    num_inner: int = 1000
    estimator: str = "squared"
    shared: bool = False
    delta: float = 1e-4
    alpha: float | None = None
    beta: float | None = None


def evaluate(params: Params, given: Setting, rng: np.random.Generator) -> Estimate:
    """Return the information."""
    mechanism = smooth_laplace.build(smooth_laplace.Params(params.alpha, params.beta))
    order = order_of(
        given.population, given.statistic, mechanism, given.num_rows, given.epsilon, params.delta
    )
    sampler = monte_carlo.of_data(given.population, given.statistic, order, given.theta)
    sizes = Sizes(params.num_outer, params.num_inner, params.estimator, params.shared)
    value, se = monte_carlo.estimate(sampler, sizes, rng)
    return Estimate(value, se, num_outer=sizes.num_outer, num_inner=sizes.num_inner)
