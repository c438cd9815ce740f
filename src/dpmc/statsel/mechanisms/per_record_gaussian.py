"""Gaussian noise of sd D / epsilon on every record [alparslan2023thesis, section 4.5]."""

from __future__ import annotations

from dataclasses import dataclass

from dpmc.statsel import noise
from dpmc.statsel.types import Mechanism


@dataclass(frozen=True)
class Params:
    """Gaussian noise has no settings."""


def build(params: Params) -> Mechanism:
    """Return the mechanism: each record goes into one release, so each spends epsilon once."""
    return Mechanism(
        "per_record_gaussian",
        "gaussian",
        per_record=True,
        needs_delta=False,
        scale=noise.of_record,
        guarantee=noise.gaussian_guarantee,
        log_density=noise.gaussian_log_density,
    )
