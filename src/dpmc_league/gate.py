"""The gate: which submissions are scored, by their ledgers composed again, and by their draws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmc.privacy import events
from dpmc.privacy.audit import audit
from dpmc.types import Array, DpmcError
from dpmc_league.submission import Records

# The second accountant rounds upwards: by how much an epsilon may exceed the budget.
TOLERANCE = 0.005
LEAST_DRAWS = 50


@dataclass(frozen=True)
class Passed:
    """What the ledger of a submission comes to.

    Parameters
    ----------
    epsilon : float
        At the delta of the task, by an accountant that shares no code with those that planned.
    mu : float
        Of Gaussian differential privacy; NaN where releases are not all Gaussian ones from all
        rows.
    releases : int
        How many there are.
    passes : float
        Over the rows: one for each release, and of a batch its share of the rows.
    """

    epsilon: float
    mu: float
    releases: int
    passes: float


def ledger(records: Records | None, delta: float, epsilon: float | None = None) -> Passed:
    """Compose a ledger again, and refuse one that is missing or dearer than `epsilon`."""
    if records is None:
        raise DpmcError("`ledger` must list releases, got none")
    counts = counted(records)
    if not counts:
        raise DpmcError("`ledger` must list at least one release, got none")
    found = audit(counts, delta).epsilon
    if epsilon is not None and not found <= epsilon * (1 + TOLERANCE):
        raise DpmcError(f"`ledger` must come to epsilon {epsilon:g} at most, got {found:.4g}")
    passes = sum(count * _fraction(event) for event, count in counts.items())
    return Passed(found, mu_of(counts), sum(counts.values()), passes)


def counted(records: Records) -> events.Counts:
    """Releases of a ledger, which may come from a file."""
    return events.parse(checked(records))


def draws(values: object, dim: int, least: int = LEAST_DRAWS) -> Array:
    """Draws as an array of shape (iterations, chains, d), refusing what is none."""
    try:
        array: Array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DpmcError(f"`draws` must be numbers, got {type(values).__name__}") from None
    given = array.shape
    if array.ndim == 2:
        array = array[:, None, :]
    if array.ndim != 3 or array.shape[2] != dim:
        raise DpmcError(f"`draws` must have {dim} columns, got shape {given}")
    if array.shape[0] * array.shape[1] < least:
        number = array.shape[0] * array.shape[1]
        raise DpmcError(f"`draws` must be at least {least}, got {number}")
    if not np.isfinite(array).all():
        raise DpmcError("`draws` must be finite, got NaN or infinity")
    return array


def checked(records: Sequence[Any]) -> list[tuple[str, int]]:
    """Entries of a ledger, which may come from a file."""
    entries: list[tuple[str, int]] = []
    for entry in records:
        pair = isinstance(entry, Sequence) and not isinstance(entry, str) and len(entry) == 2
        text, count = (entry[0], entry[1]) if pair else (None, None)
        if not isinstance(text, str) or type(count) is not int or count < 0:
            raise DpmcError(f"`ledger` must list pairs (event, count), got {entry!r}")
        entries.append((text, count))
    return entries


def _fraction(event: events.Event) -> float:
    """Share of the rows that a release reads."""
    if isinstance(event, events.BarkerEvent):
        return event.fraction
    noise = events.noise_of(event)
    return 1.0 if noise is None else noise[1]


def mu_of(counts: events.Counts) -> float:
    """Mu of Gaussian releases from all rows together; NaN where there are others."""
    total = 0.0
    for event, count in counts.items():
        noise = None if isinstance(event, events.BarkerEvent) else events.noise_of(event)
        if noise is None or noise[1] != 1:
            return math.nan
        total += count / noise[0] ** 2
    return math.sqrt(total)
