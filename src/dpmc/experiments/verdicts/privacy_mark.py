"""Mark beside a verdict: whether its runs have the privacy that they were given."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from dpmc.experiments.verdicts.verdict import MIXED, NO_PRIVACY, NOT_PRIVATE, PRIVATE
from dpmc.types import UNAVAILABLE

# Noise is calibrated to a budget by bisection.
ROUNDING = 1e-6


def privacy_of(used: Sequence[pd.DataFrame]) -> str:
    """Return whether all, some or none of the runs have the (epsilon, delta) they were given.

    Parameters
    ----------
    used : sequence of pandas.DataFrame
        Runs with columns ``epsilon`` and ``delta`` that were asked for, and
        ``guarantee_epsilon`` and ``guarantee_delta`` that hold. A run that was given no finite
        epsilon claims no privacy.

    Returns
    -------
    str
        A mark of :class:`dpmc.experiments.verdicts.verdict.Verdict`; empty without any run.
    """
    rows = [group for group in used if {"epsilon", "guarantee_epsilon"} <= set(group)]
    if not rows:
        return ""
    table = pd.concat([_columns(group) for group in rows], ignore_index=True)
    table = table[~table["status"].str.startswith(UNAVAILABLE)]
    if table.empty:
        return ""
    claimed = table[np.isfinite(table["epsilon"])]
    if claimed.empty:
        return NO_PRIVACY
    enough = claimed["guarantee_epsilon"] <= claimed["epsilon"] * (1 + ROUNDING)
    # Some releases are pure: these are given no delta.
    more = claimed["guarantee_delta"] > claimed["delta"] * (1 + ROUNDING)
    held = enough & ~more
    if held.all():
        return PRIVATE
    return MIXED if held.any() else NOT_PRIVATE


def _columns(group: pd.DataFrame) -> pd.DataFrame:
    """Return the columns that matter; one that is missing says nothing."""
    kept = pd.DataFrame(index=group.index)
    for name in ("epsilon", "delta", "guarantee_epsilon", "guarantee_delta"):
        kept[name] = pd.to_numeric(group[name]) if name in group else np.nan
    kept["status"] = group["status"].astype(str) if "status" in group else ""
    return kept
