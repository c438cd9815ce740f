"""Mark beside a verdict: whether its runs have the privacy that they were given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dpmc.types import UNAVAILABLE, Array
from dpmc_papers.verdicts.verdict import (
    MIXED,
    NO_PRIVACY,
    NO_RECORDS,
    NOT_PRIVATE,
    PRIVATE,
)

# Noise is calibrated to a budget by bisection.
ROUNDING = 1e-6
NOTHING: Mapping[str, Any] = {}
# Studies of formulas and of noise: they compute nothing from records.
WITHOUT_RECORDS = ("statsel_information", "perturbation")


def without_records(config: Mapping[str, Any], experiment: str) -> bool:
    """Whether an experiment of a document computes nothing from records."""
    study = config.get("studies", {}).get(experiment, {}).get("study")
    return study in WITHOUT_RECORDS


def privacy_of(used: Sequence[pd.DataFrame], config: Mapping[str, Any] = NOTHING) -> str:
    """Whether all, some or none of the runs have the (epsilon, delta) they were given.

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
        A mark of :class:`dpmc_papers.verdicts.verdict.Verdict`; empty without any run.
    """
    rows = [group for group in used if {"epsilon", "guarantee_epsilon"} <= set(group)]
    if not rows:
        return ""
    status, experiment = (_words(rows, name) for name in ("status", "experiment"))
    available = [not word.startswith(UNAVAILABLE) for word in status]
    if not any(available):
        return ""
    of_records = {name: not without_records(config, name) for name in set(experiment)}
    counts = np.array(available) & np.array([of_records[name] for name in experiment])
    if not counts.any():
        return NO_RECORDS
    asked, delta, held, held_delta = (
        np.concatenate([_numbers(group, name) for group in rows])[counts]
        for name in ("epsilon", "delta", "guarantee_epsilon", "guarantee_delta")
    )
    claimed = np.isfinite(asked)
    if not claimed.any():
        return NO_PRIVACY
    # Some releases are pure: these are given no delta.
    kept = (held <= asked * (1 + ROUNDING)) & ~(held_delta > delta * (1 + ROUNDING))
    kept = kept[claimed]
    if kept.all():
        return PRIVATE
    return MIXED if kept.any() else NOT_PRIVATE


def _numbers(group: pd.DataFrame, name: str) -> Array:
    """Column; one that is missing says nothing."""
    if name not in group:
        return np.full(len(group), np.nan)
    return np.asarray(pd.to_numeric(group[name]), dtype=np.float64)


def _words(groups: Sequence[pd.DataFrame], name: str) -> list[str]:
    return [
        str(word)
        for group in groups
        for word in (group[name] if name in group else [""] * len(group))
    ]
