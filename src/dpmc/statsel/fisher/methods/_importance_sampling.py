"""Shared parameters and evaluation of the importance-sampling Algorithms 6, 7 and 8.

[alparslan2023thesis, section 4.2]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmc.statsel.fisher import monte_carlo
from dpmc.statsel.fisher.information import InformationEstimate
from dpmc.statsel.fisher.monte_carlo import LatentSampler, MonteCarloSizes


@dataclass(frozen=True)
class Params:
    """Monte Carlo sizes.

    Parameters
    ----------
    num_outer : int
        Simulated y: N of the thesis, which gives no number.
    num_inner : int
        Latent draws for each y: M of the thesis.
    estimator : {"squared", "halves"}
        As published, or the product of two halves.
    shared : bool
        Whether all y share their latent draws.
    """

    num_outer: int = 10000
    num_inner: int = 100
    estimator: str = "squared"
    shared: bool = False


def evaluate(
    sampler: LatentSampler, params: Params, rng: np.random.Generator, copies: int = 1
) -> InformationEstimate:
    """Return the information, with its standard error.

    Parameters
    ----------
    copies : int
        Independent releases of which the sampler simulates one.
    """
    sizes = MonteCarloSizes(params.num_outer, params.num_inner, params.estimator, params.shared)
    value, se = monte_carlo.estimate(sampler, sizes, rng)
    return InformationEstimate(
        copies * value, copies * se, num_outer=sizes.num_outer, num_inner=sizes.num_inner
    )
