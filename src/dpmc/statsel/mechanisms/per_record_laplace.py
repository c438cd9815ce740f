"""Laplace noise of scale D / epsilon on every record [alparslan2023thesis, section 4.5]."""

from __future__ import annotations

from dataclasses import dataclass

from dpmc.statsel import noise
from dpmc.statsel.types import Mechanism


@dataclass(frozen=True)
class Params:
    """Laplace noise has no settings."""


def build(params: Params) -> Mechanism:
    """Return the mechanism: each record goes into one release, so each spends epsilon once."""
    return Mechanism(
        "per_record_laplace",
        "laplace",
        per_record=True,
        needs_delta=False,
        scale=noise.of_record,
        guarantee=noise.pure_guarantee("laplace"),
        log_density=noise.laplace_log_density,
    )
