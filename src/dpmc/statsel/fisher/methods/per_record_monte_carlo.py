"""Algorithm 8 of [alparslan2023thesis]: records with Laplace noise, by importance sampling."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpmc.statsel.fisher import monte_carlo
from dpmc.statsel.fisher.information import Estimate, Setting
from dpmc.statsel.fisher.monte_carlo import Sizes
from dpmc.statsel.mechanisms import per_record_laplace


@dataclass(frozen=True)
class Params:
    """Monte Carlo sizes.

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
    """

    num_outer: int = 10000
    num_inner: int = 100
    estimator: str = "squared"
    shared: bool = False


def evaluate(params: Params, given: Setting, rng: np.random.Generator) -> Estimate:
    """Return the information."""
    scale = per_record_laplace.build(per_record_laplace.Params()).scale(
        given.statistic.sensitivity(given.population.support), given.num_rows, given.epsilon
    )
    sampler = monte_carlo.of_record(given.population, given.statistic, given.theta, scale)
    sizes = Sizes(params.num_outer, params.num_inner, params.estimator, params.shared)
    value, se = monte_carlo.estimate(sampler, sizes, rng)
    return Estimate(
        given.num_rows * value, given.num_rows * se, math.nan, sizes.num_outer, sizes.num_inner
    )
