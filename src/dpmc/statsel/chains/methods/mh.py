"""Metropolis-Hastings with the density of a released mean [alparslan2023thesis, Algorithm 9].

With Laplace noise the density has a closed form too, so that no latent variable is needed: what
Algorithms 10 and 11 estimate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmc.numerics.compile_cache import assemble
from dpmc.statsel import moments
from dpmc.statsel.chains import mean
from dpmc.statsel.chains.common import RIGHT, Faults, Walk
from dpmc.statsel.chains.driver import Advance, ChainParams, log_prior
from dpmc.statsel.posterior import mean_likelihood
from dpmc.statsel.targets import Target

SHAPES = ("mean",)
VARIANTS = {"as_published": RIGHT, "corrected": RIGHT}


@dataclass(frozen=True)
class Params(ChainParams):
    """Settings of every chain, and no others."""


def kernel(given: Target) -> Any:
    """Return the compiled chain."""
    law = moments.of(given.population, given.statistic)
    density = mean_likelihood.DENSITIES[given.mechanism.noise]
    functions = (density, law.mean, law.variance, log_prior(given.prior))
    return assemble(mean.make_metropolis, *functions)


def chain(
    given: Target,
    params: Params,
    faults: Faults,
    walk: Walk,
    start: float,
    rng: np.random.Generator,
) -> Advance:
    """Return the chain from `start`."""
    released = mean_likelihood.Released(given.y, given.scale, float(given.num_rows))
    steps, state = kernel(given), np.array([start, math.nan])
    return lambda draws: int(steps(released, walk, state, rng, draws))
