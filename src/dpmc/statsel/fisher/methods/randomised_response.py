"""Randomised response: F_1 of [alparslan2023thesis, example 6]."""

from __future__ import annotations

import numpy as np

from dpmc.statsel.fisher import information
from dpmc.statsel.fisher.information import Estimate, Setting
from dpmc.types import NoParams

Params = NoParams


def evaluate(params: Params, given: Setting, rng: np.random.Generator) -> Estimate:
    """Return the information."""
    information.check_bits(given)
    return Estimate(
        float(information.randomised_response(given.theta, given.num_rows, given.epsilon))
    )
