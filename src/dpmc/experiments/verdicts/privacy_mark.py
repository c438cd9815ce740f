"""Mark beside a verdict: whether its runs have the privacy that they were given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dpmc.experiments.verdicts.verdict import (
    MIXED,
    NO_PRIVACY,
    NO_RECORDS,
    NOT_PRIVATE,
    PRIVATE,
)
from dpmc.types import UNAVAILABLE

# Noise is calibrated to a budget by bisection.
ROUNDING = 1e-6
NOTHING: Mapping[str, Any] = {}
# Studies of formulas and of noise: they compute nothing from records.
WITHOUT_RECORDS = ("statsel_information", "perturbation")


def without_records(config: Mapping[str, Any], experiment: str) -> bool:
    """Return whether an experiment of a document computes nothing from records."""
    study = config.get("studies", {}).get(experiment, {}).get("study")
    return study in WITHOUT_RECORDS


def privacy_of(used: Sequence[pd.DataFrame], config: Mapping[str, Any] = NOTHING) -> str:
    """Return whether all, some or none of the runs have the (epsilon, delta) they were given.

    Parameters
    ----------
    used : sequence of pandas.DataFrame
        Runs with columns ``epsilon`` and ``delta`` that were asked for, and
        ``guarantee_epsilon`` and ``guarantee_delta`` that hold. A run that was given no finite
        epsilon claims no privacy.
    config : mapping
        The resolved configuration of the document, which tells what is computed from records.

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
    table = table[[not without_records(config, name) for name in table["experiment"]]]
    if table.empty:
        return NO_RECORDS
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
    for name in ("status", "experiment"):
        kept[name] = group[name].astype(str) if name in group else ""
    return kept
