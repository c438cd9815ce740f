"""Columns of a table as a formula reads them: numbers and declared levels, each entry by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from dpmc.formulas.syntax import LEVELS, Levels, Uses, key
from dpmc.types import Array, DpmcError, frames, numbers

# Rows of a made-up table over public ranges; an odd number has the middle of a range too.
NUM_ROWS = 101
# Range of a column of which nothing has to be known: any numbers that most functions are for.
ANY = 1.0, 2.0


def made_up(uses: Uses, ranges: Mapping[str, tuple[float, float]]) -> pd.DataFrame:
    """Table with rows spread evenly over public ranges, and over declared levels."""
    found: dict[str, Any] = {
        name: np.linspace(*ranges.get(name, ANY), NUM_ROWS) for name in uses.numeric
    }
    for name, levels in uses.levels.items():
        codes = np.arange(NUM_ROWS) % len(levels)
        found[name] = pd.Categorical.from_codes(codes, categories=pd.Index(levels))
    return pd.DataFrame(found)


def read(
    frame: Any,
    uses: Uses,
    ranges: Mapping[str, tuple[float, float]],
    missing: Mapping[str, Any],
) -> tuple[pd.DataFrame, np.ndarray[Any, Any]]:
    """Columns of a table that are possible whatever it holds, and which rows are so themselves.

    An entry that is no finite number, or no declared level, is replaced by a public one, and its
    row is not valid unless `missing` has the one to take. Numbers beyond a public range are taken
    to its end.
    """
    public = made_up(uses, ranges)
    valid = np.ones(len(frame), dtype=bool)
    found: dict[str, Any] = {}
    for name in uses.numeric:
        values = _numbers(name, frames.column(frame, name))
        known = np.isfinite(values)
        values = np.where(known, values, missing.get(name, public[name][0]))
        found[name] = np.clip(values, *ranges[name]) if name in ranges else values
        valid &= known | (name in missing)
    for name, levels in uses.levels.items():
        column = frames.column(frame, name)
        if frames.is_temporal(column):
            raise DpmcError(
                f"column {name!r} must hold texts or numbers, as its levels are, got dates or "
                "durations"
            )
        codes = places(frames.entries(column), levels)
        known = codes >= 0
        filled = _place(missing[name], levels) if name in missing else 0
        codes = np.where(known, codes, filled)
        found[name] = pd.Categorical.from_codes(codes, categories=pd.Index(levels))
        valid &= known | (name in missing)
    return pd.DataFrame(found), valid


def _numbers(name: str, column: Any) -> Array:
    """Numbers of a column, refusing one that is declared to hold something else."""
    told = f"column {name!r} must hold numbers"
    if frames.is_categorical(column):
        raise DpmcError(f"{told}, got categories: declare them in the formula, {LEVELS % name}")
    entries = frames.entries(column)
    if frames.is_temporal(column) or entries.dtype.kind in "mM" or entries.ndim != 1:
        raise DpmcError(
            f"{told}, got dates, durations or lists: give numbers, such as the days since a "
            "public date"
        )
    return numbers(told, entries, "zero").astype(np.float64, copy=False)


def places(entries: np.ndarray[Any, Any], levels: Levels) -> np.ndarray[Any, Any]:
    """Place of each of some entries among levels, -1 of one that is none."""
    known = {key(level): k for k, level in enumerate(levels)}
    listed = entries.tolist()
    return np.fromiter((known.get(key(entry), -1) for entry in listed), np.int64, len(listed))


def _place(value: Any, levels: Levels) -> int:
    return [key(level) for level in levels].index(key(value))
