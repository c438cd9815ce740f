"""Pseudo-marginal Metropolis-Hastings of a released mean [alparslan2023thesis, Algorithm 10].

The density of the release is estimated from N draws of the statistic at theta'. As printed, the
weights of the estimate at theta' are those of theta: that chain is kept as ``as_published``. It
moves about once in a thousand iterations and has another distribution.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmc.statsel.chains import mean
from dpmc.statsel.chains.common import RIGHT, Faults, ThetaWalk
from dpmc.statsel.chains.driver import Advance, ParticleParams
from dpmc.statsel.chains.methods import _mean
from dpmc.statsel.targets import PosteriorTarget

SHAPES = ("mean",)
VARIANTS = {"as_published": Faults(weights_at_old_theta=True), "corrected": RIGHT}


@dataclass(frozen=True)
class Params(ParticleParams):
    """Settings of the chain.

    Parameters
    ----------
    num_particles : int
        N >= 1 draws of each estimate.
    """

    num_particles: int = 100
    _fewest_particles = 1


def chain(
    target: PosteriorTarget,
    params: Params,
    faults: Faults,
    walk: ThetaWalk,
    start: float,
    rng: np.random.Generator,
) -> Advance:
    """Return the chain from `start`."""
    steps = _mean.kernel(mean.make_pseudo_marginal, target.mechanism.log_density, target)
    logs = np.empty(params.num_particles)
    return _mean.advance(steps, target, start, rng, walk, faults, logs)
