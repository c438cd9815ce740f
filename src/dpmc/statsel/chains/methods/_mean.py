"""Assembly of the chains of Algorithms 9, 10 and 11, all of which target a released mean."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpmc.numerics.compiled import assemble
from dpmc.statsel import moments
from dpmc.statsel.chains.driver import Advance, log_prior
from dpmc.statsel.posterior import mean_likelihood
from dpmc.statsel.targets import PosteriorTarget


def kernel(make: Any, density: Any, target: PosteriorTarget) -> Any:
    """Return the compiled chain.

    Parameters
    ----------
    make : callable
        One of the factories of :mod:`dpmc.statsel.chains.mean`.
    density : compiled function
        What the factory takes first: the density of a noisy normal statistic, or of the noise.
    target : PosteriorTarget
        Release and prior.
    """
    closed_forms = moments.of(target.population, target.statistic)
    functions = (density, closed_forms.mean, closed_forms.variance, log_prior(target.prior))
    return assemble(make, *functions)


def advance(
    steps: Any, target: PosteriorTarget, start: float, rng: np.random.Generator, *arguments: Any
) -> Advance:
    """Return the chain from `start`, whose second state variable is not known yet.

    Parameters
    ----------
    steps : compiled function
        From `kernel`.
    target : PosteriorTarget
        Release and prior.
    start : float
        First theta.
    rng : numpy.random.Generator
        Random numbers of the draws.
    *arguments
        Those of `steps` between the release and the state.
    """
    released = mean_likelihood.NoisyMean(target.y, target.scale, float(target.num_rows))
    state = np.array([start, math.nan])
    return lambda draws: int(steps(released, *arguments, state, rng, draws))
