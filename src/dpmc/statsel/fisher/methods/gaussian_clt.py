"""The mean with Gaussian noise, normal by the central limit theorem, in closed form.

[alparslan2023thesis, section 4.2.1]
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpmc.statsel import moments
from dpmc.statsel.fisher import information
from dpmc.statsel.fisher.information import Estimate, Setting
from dpmc.statsel.mechanisms import gaussian


@dataclass(frozen=True)
class Params:
    """What is left out.

    Parameters
    ----------
    noiseless : bool
        Without noise, whatever epsilon is.
    """

    noiseless: bool = False


def evaluate(params: Params, given: Setting, rng: np.random.Generator) -> Estimate:
    """Return the information."""
    epsilon = math.inf if params.noiseless else given.epsilon
    mechanism = gaussian.build(gaussian.Params())
    scale = mechanism.scale(
        given.statistic.sensitivity(given.population.support), given.num_rows, epsilon
    )
    law = moments.of(given.population, given.statistic)
    return Estimate(float(information.mean_with_gaussian(law, given.theta, given.num_rows, scale)))
