"""Averaged acceptance ratios over a released mean [alparslan2023thesis, Algorithm 11].

The statistic is a latent variable; the particles of an iteration are drawn at the middle of
theta and theta', and one of them is taken whether the chain moves or not. Algorithm 11 is right
as it is printed. The general equation 2.7 is not, and its inverted ratio is kept as
``equation_2_7``: that chain drifts to the end of the prior.
"""

from __future__ import annotations

import numpy as np

from dpmc.statsel.chains import mean
from dpmc.statsel.chains.common import RIGHT, Faults, ThetaWalk
from dpmc.statsel.chains.driver import Advance, ParticleParams
from dpmc.statsel.chains.methods import _mean
from dpmc.statsel.targets import PosteriorTarget

SHAPES = ("mean",)
VARIANTS = {"as_published": RIGHT, "corrected": RIGHT, "equation_2_7": Faults(inverted_ratio=True)}
Params = ParticleParams


def chain(
    target: PosteriorTarget,
    params: ParticleParams,
    faults: Faults,
    walk: ThetaWalk,
    start: float,
    rng: np.random.Generator,
) -> Advance:
    """Return the chain from `start`."""
    steps = _mean.kernel(mean.make_averaged_ratio, target.mechanism.log_density, target)
    scratch = np.empty((3, params.num_particles))
    return _mean.advance(steps, target, start, rng, walk, faults, scratch)
