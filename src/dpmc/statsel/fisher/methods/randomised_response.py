"""Randomised response: F_1 of [alparslan2023thesis, example 6]."""

from __future__ import annotations

import numpy as np

from dpmc.statsel.fisher import information
from dpmc.statsel.fisher.information import InformationEstimate, ReleaseSetting
from dpmc.types import NoParams

Params = NoParams


def evaluate(
    params: Params, release: ReleaseSetting, rng: np.random.Generator
) -> InformationEstimate:
    """Return the information."""
    information.check_bits(release)
    return InformationEstimate(
        float(information.randomised_response(release.theta, release.num_rows, release.epsilon))
    )
