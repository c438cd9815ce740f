"""Metropolis-Hastings with the density of a released mean [alparslan2023thesis, Algorithm 9].

With Laplace noise the density has a closed form too, so that no latent variable is needed: what
Algorithms 10 and 11 estimate.
"""

from __future__ import annotations

import numpy as np

from dpmc.statsel.chains import mean
from dpmc.statsel.chains.common import RIGHT, Faults, ThetaWalk
from dpmc.statsel.chains.driver import Advance, ChainParams
from dpmc.statsel.chains.methods import _mean
from dpmc.statsel.posterior import mean_likelihood
from dpmc.statsel.targets import PosteriorTarget

SHAPES = ("mean",)
VARIANTS = {"as_published": RIGHT, "corrected": RIGHT}
Params = ChainParams


def chain(
    target: PosteriorTarget,
    params: ChainParams,
    faults: Faults,
    walk: ThetaWalk,
    start: float,
    rng: np.random.Generator,
) -> Advance:
    """Return the chain from `start`."""
    density = mean_likelihood.DENSITIES[target.mechanism.noise]
    steps = _mean.kernel(mean.make_metropolis, density, target)
    return _mean.advance(steps, target, start, rng, walk)
