"""Randomised response: F_1 of [alparslan2023thesis, example 6]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmc.statsel.fisher import information
from dpmc.statsel.fisher.information import Estimate, Setting


@dataclass(frozen=True)
class Params:
    """Randomised response has no settings."""


def evaluate(params: Params, given: Setting, rng: np.random.Generator) -> Estimate:
    """Return the information."""
    information.check_bits(given)
    return Estimate(
        float(information.randomised_response(given.theta, given.num_rows, given.epsilon))
    )
