"""Averaged acceptance ratios, record by record [alparslan2023thesis, Algorithm 13].

For records released one by one: each has N base variables of its own, and the ratio is the
product over the records. Right as printed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmc import checks
from dpmc.numerics.compile_cache import assemble
from dpmc.statsel.chains import records
from dpmc.statsel.chains.common import RIGHT, Faults, Walk
from dpmc.statsel.chains.driver import Advance, ChainParams, log_prior
from dpmc.statsel.targets import Target

SHAPES = ("records",)
VARIANTS = {"as_published": RIGHT, "corrected": RIGHT}


@dataclass(frozen=True)
class Params(ChainParams):
    """Settings of the chain.

    Parameters
    ----------
    num_particles : int
        N >= 2 for each record, the current one among them.
    """

    num_particles: int = 50

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.at_least("num_particles", self.num_particles, 2)


def kernel(given: Target) -> Any:
    """Return the compiled chain."""
    functions = (
        given.population.generate,
        given.statistic.transform,
        given.mechanism.log_density,
        log_prior(given.prior),
    )
    return assemble(records.make_averaged_ratio, *functions)


def chain(
    given: Target,
    params: Params,
    faults: Faults,
    walk: Walk,
    start: float,
    rng: np.random.Generator,
) -> Advance:
    """Return the chain from `start`."""
    base = records.BASES.index(given.population.base)
    own = records.Records(given.y, given.scale, base, *given.population.support)
    latents = records.Latents.of(given.num_rows, params.num_particles)
    steps, state, runs = kernel(given), np.array([start]), [0]

    def advance(draws: Any) -> int:
        begin = runs[0] == 0
        runs[0] += 1
        return int(steps(own, walk, faults, begin, latents, state, rng, draws))

    return advance
