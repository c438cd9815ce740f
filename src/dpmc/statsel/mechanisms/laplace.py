"""Laplace noise of scale D / (n epsilon) on the mean [alparslan2023thesis, definition 8]."""

from __future__ import annotations

from dataclasses import dataclass

from dpmc.statsel import noise
from dpmc.statsel.types import Mechanism


@dataclass(frozen=True)
class Params:
    """Which numbers get noise.

    Parameters
    ----------
    per_record : bool
        Release every record with scale D / epsilon (local model), rather than the mean with
        scale D / (n epsilon).
    """

    per_record: bool = False


def build(params: Params) -> Mechanism:
    """Return the mechanism; a record enters one release, and so spends epsilon once."""
    return Mechanism(
        "per_record_laplace" if params.per_record else "laplace",
        "laplace",
        per_record=params.per_record,
        needs_delta=False,
        scale=noise.of_record if params.per_record else noise.of_mean,
        guarantee=noise.pure_guarantee("laplace"),
        log_density=noise.laplace_log_density,
    )
