"""Gaussian noise of sd D / (n epsilon) on the mean [alparslan2023thesis, section 4.2.1].

It is epsilon-GDP [dong2022]: not (epsilon, delta)-DP for a small delta with the same number.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpmc.statsel import noise
from dpmc.statsel.types import Mechanism


@dataclass(frozen=True)
class Params:
    """Gaussian noise has no settings."""


def build(params: Params) -> Mechanism:
    """Return the mechanism."""
    return Mechanism(
        "gaussian",
        "gaussian",
        per_record=False,
        needs_delta=False,
        scale=noise.of_mean,
        guarantee=noise.gaussian_guarantee,
        log_density=noise.gaussian_log_density,
    )
