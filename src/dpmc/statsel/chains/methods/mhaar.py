"""Averaged acceptance ratios over a released mean [alparslan2023thesis, Algorithm 11].

The statistic is a latent variable; the particles of an iteration are drawn at the middle of
theta and theta', and one of them is taken whether the chain moves or not. Algorithm 11 is right
as it is printed. The general equation 2.7 is not, and its inverted ratio is kept as
``equation_2_7``: that chain drifts to the end of the prior.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmc import checks
from dpmc.numerics.compile_cache import assemble
from dpmc.statsel import moments
from dpmc.statsel.chains import mean
from dpmc.statsel.chains.common import RIGHT, Faults, Walk
from dpmc.statsel.chains.driver import Advance, ChainParams, log_prior
from dpmc.statsel.posterior import mean_likelihood
from dpmc.statsel.targets import Target

SHAPES = ("mean",)
VARIANTS = {
    "as_published": RIGHT,
    "corrected": RIGHT,
    "equation_2_7": Faults(inverted_ratio=True),
}


@dataclass(frozen=True)
class Params(ChainParams):
    """Settings of the chain.

    Parameters
    ----------
    num_particles : int
        N >= 2, the current one among them.
    """

    num_particles: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.at_least("num_particles", self.num_particles, 2)


def kernel(given: Target) -> Any:
    """Return the compiled chain."""
    law = moments.of(given.population, given.statistic)
    noise = given.mechanism.log_density
    functions = (noise, law.mean, law.variance, log_prior(given.prior))
    return assemble(mean.make_averaged_ratio, *functions)


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
    scratch = np.empty((3, params.num_particles))
    return lambda draws: int(steps(released, walk, faults, scratch, state, rng, draws))
