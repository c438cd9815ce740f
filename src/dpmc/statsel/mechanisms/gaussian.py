"""Gaussian noise of sd D / (n epsilon) on the mean [alparslan2023thesis, section 4.2.1].

It is epsilon-GDP [dong2022]: not (epsilon, delta)-DP for a small delta with the same number.
"""

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
        Release every record with sd D / epsilon (local model), rather than the mean with
        sd D / (n epsilon).
    """

    per_record: bool = False


def build(params: Params) -> Mechanism:
    """Return the mechanism; a record enters one release, and so spends epsilon once."""
    return Mechanism(
        "per_record_gaussian" if params.per_record else "gaussian",
        "gaussian",
        per_record=params.per_record,
        needs_delta=False,
        scale=noise.of_record if params.per_record else noise.of_mean,
        guarantee=noise.gaussian_guarantee,
        log_density=noise.gaussian_log_density,
    )
