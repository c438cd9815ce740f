"""Shared parameters and evaluation of the two methods for a mean that is normal by the CLT."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from dpmc.statsel import moments
from dpmc.statsel.fisher.information import InformationEstimate, ReleaseSetting
from dpmc.statsel.moments import Moments
from dpmc.statsel.types import Mechanism
from dpmc.types import Array

Formula = Callable[[Moments, float, int, float], Array]


@dataclass(frozen=True)
class Params:
    """Whether there is noise.

    Parameters
    ----------
    noiseless : bool
        Leave the noise out, whatever epsilon is.
    """

    noiseless: bool = False


def evaluate(
    formula: Formula, mechanism: Mechanism, params: Params, release: ReleaseSetting
) -> InformationEstimate:
    """Return the information by `formula`, with the noise scale of `mechanism`."""
    epsilon = math.inf if params.noiseless else release.epsilon
    sensitivity = release.statistic.sensitivity(release.population.support)
    scale = mechanism.scale(sensitivity, release.num_rows, epsilon)
    closed_forms = moments.of(release.population, release.statistic)
    return InformationEstimate(float(formula(closed_forms, release.theta, release.num_rows, scale)))
