"""Algorithm 8 of [alparslan2023thesis]: records with Laplace noise, by importance sampling."""

from __future__ import annotations

import numpy as np

from dpmc.statsel.fisher import monte_carlo
from dpmc.statsel.fisher.information import InformationEstimate, ReleaseSetting
from dpmc.statsel.fisher.methods import _importance_sampling
from dpmc.statsel.fisher.methods._importance_sampling import Params
from dpmc.statsel.mechanisms import laplace


def evaluate(
    params: Params, release: ReleaseSetting, rng: np.random.Generator
) -> InformationEstimate:
    """Return the information of all records: n times that of one."""
    mechanism = laplace.build(laplace.Params(per_record=True))
    sensitivity = release.statistic.sensitivity(release.population.support)
    scale = mechanism.scale(sensitivity, release.num_rows, release.epsilon)
    sampler = monte_carlo.of_record(release.population, release.statistic, release.theta, scale)
    return _importance_sampling.evaluate(sampler, params, rng, copies=release.num_rows)
