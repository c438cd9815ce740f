"""Averaged acceptance ratios, record by record [alparslan2023thesis, Algorithm 13].

For records released one by one: each has N base variables of its own, and the ratio is the
product over the records. Right as printed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmc.numerics.compiled import assemble
from dpmc.statsel.chains import records
from dpmc.statsel.chains.common import RIGHT, Faults, ThetaWalk
from dpmc.statsel.chains.driver import Advance, ParticleParams, log_prior
from dpmc.statsel.targets import PosteriorTarget

SHAPES = ("records",)
VARIANTS = {"as_published": RIGHT, "corrected": RIGHT}


@dataclass(frozen=True)
class Params(ParticleParams):
    """Settings of the chain.

    Parameters
    ----------
    num_particles : int
        N >= 2 for each record, the current one among them.
    """

    num_particles: int = 50


def kernel(target: PosteriorTarget) -> Any:
    """Return the compiled chain."""
    functions = (
        target.population.generate,
        target.statistic.transform,
        target.mechanism.log_density,
        log_prior(target.prior),
    )
    return assemble(records.make_averaged_ratio, *functions)


def chain(
    target: PosteriorTarget,
    params: Params,
    faults: Faults,
    walk: ThetaWalk,
    start: float,
    rng: np.random.Generator,
) -> Advance:
    """Return the chain from `start`."""
    base = records.BASES.index(target.population.base)
    released = records.ReleasedRecords(target.y, target.scale, base, *target.population.support)
    latents = records.BaseVariables.of(target.num_rows, params.num_particles)
    steps, state, runs = kernel(target), np.array([start]), [0]

    def advance(draws: Any) -> int:
        begin = runs[0] == 0
        runs[0] += 1
        return int(steps(released, walk, faults, begin, latents, state, rng, draws))

    return advance
