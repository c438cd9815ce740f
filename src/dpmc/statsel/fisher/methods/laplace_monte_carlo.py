"""Algorithm 6 of [alparslan2023thesis]: the mean with Laplace noise, by importance sampling."""

from __future__ import annotations

import numpy as np

from dpmc.statsel import moments
from dpmc.statsel.fisher import monte_carlo
from dpmc.statsel.fisher.information import InformationEstimate, ReleaseSetting
from dpmc.statsel.fisher.methods import _importance_sampling
from dpmc.statsel.fisher.methods._importance_sampling import Params
from dpmc.statsel.mechanisms import laplace


def evaluate(
    params: Params, release: ReleaseSetting, rng: np.random.Generator
) -> InformationEstimate:
    """Return the information."""
    sensitivity = release.statistic.sensitivity(release.population.support)
    scale = laplace.build(laplace.Params()).scale(sensitivity, release.num_rows, release.epsilon)
    closed_forms = moments.of(release.population, release.statistic)
    sampler = monte_carlo.of_mean(closed_forms, release.theta, release.num_rows, scale)
    return _importance_sampling.evaluate(sampler, params, rng)
