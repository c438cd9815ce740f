"""Pseudo-marginal Metropolis-Hastings of a released mean [alparslan2023thesis, Algorithm 10].

The density of the release is estimated from N draws of the statistic at theta'. As printed, the
weights of the estimate at theta' are those of theta: that chain is kept as ``as_published``. It
moves about once in a thousand iterations and has another distribution.
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
VARIANTS = {"as_published": Faults(weights_at_old_theta=True), "corrected": RIGHT}


@dataclass(frozen=True)
class Params(ChainParams):
    """Settings of the chain.

    Parameters
    ----------
    num_particles : int
        N >= 1.
    """

    num_particles: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.at_least("num_particles", self.num_particles, 1)


def kernel(given: Target) -> Any:
    """Return the compiled chain."""
    law = moments.of(given.population, given.statistic)
    noise = given.mechanism.log_density
    functions = (noise, law.mean, law.variance, log_prior(given.prior))
    return assemble(mean.make_pseudo_marginal, *functions)


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
    steps, state, logs = kernel(given), np.array([start, math.nan]), np.empty(params.num_particles)
    return lambda draws: int(steps(released, walk, faults, logs, state, rng, draws))
