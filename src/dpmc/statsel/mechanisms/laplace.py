"""Laplace noise of scale D / (n epsilon) on the mean [alparslan2023thesis, definition 8]."""

from __future__ import annotations

from dataclasses import dataclass

from dpmc.statsel import noise
from dpmc.statsel.types import Mechanism


@dataclass(frozen=True)
class Params:
    """Laplace noise has no settings."""


def build(params: Params) -> Mechanism:
    """Return the mechanism."""
    return Mechanism(
        "laplace",
        "laplace",
        per_record=False,
        needs_delta=False,
        scale=noise.of_mean,
        guarantee=noise.pure_guarantee("laplace"),
        log_density=noise.laplace_log_density,
    )
