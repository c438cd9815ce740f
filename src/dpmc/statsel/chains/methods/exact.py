"""Averaged acceptance ratios over whole data sets [alparslan2023thesis, Algorithm 12].

For a released order statistic, with noise by smooth sensitivity or of constant scale. Right as
printed; of its inputs, the size m < n of a subset is used nowhere. Data sets are drawn as far as
released number and smooth sensitivity depend on them, see :mod:`dpmc.statsel.order_draws`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmc.numerics.compiled import assemble
from dpmc.statsel.chains import order
from dpmc.statsel.chains.common import RIGHT, Faults, ThetaWalk
from dpmc.statsel.chains.driver import Advance, ParticleParams, log_prior
from dpmc.statsel.order_draws import Particles
from dpmc.statsel.targets import PosteriorTarget

SHAPES = ("order",)
VARIANTS = {"as_published": RIGHT, "corrected": RIGHT}


@dataclass(frozen=True)
class Params(ParticleParams):
    """Settings of the chain.

    Parameters
    ----------
    num_particles : int
        N >= 2, the current data set among them.
    refresh : bool
        Take a data set anew on rejection, as Algorithms 11 and 13 do; Algorithm 12 keeps the
        current one. Both are right.
    """

    num_particles: int = 100
    refresh: bool = False


def kernel(target: PosteriorTarget) -> Any:
    """Return the compiled chain."""
    functions = (target.population.generate, target.statistic.transform, log_prior(target.prior))
    return assemble(order.make_averaged_ratio, *functions)


def chain(
    target: PosteriorTarget,
    params: Params,
    faults: Faults,
    walk: ThetaWalk,
    start: float,
    rng: np.random.Generator,
) -> Advance:
    """Return the chain from `start`."""
    assert target.order is not None
    particles = Particles.of(params.num_particles, target.num_rows)
    scratch, state, steps = np.empty((2, params.num_particles)), np.array([start]), kernel(target)
    arguments = (target.y, target.order, walk, faults, params.refresh, particles, scratch, state)
    return lambda draws: int(steps(*arguments, rng, draws))
