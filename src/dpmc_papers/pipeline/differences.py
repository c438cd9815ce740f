"""Differences of two tables, number by number."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

# Numbers that differ relatively by no more are the same, and so are those that differ by no more
# than this in all: what is left of numbers of order one that cancel.
TOLERANCE, CANCELLED = 1e-6, 1e-10
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|inf|nan)")


def difference(there: pd.DataFrame, here: pd.DataFrame) -> tuple[float, tuple[str, ...]]:
    """Return the largest relative difference of two tables, and the columns that differ.

    Parameters
    ----------
    there : pandas.DataFrame
        Published rows. Their columns are compared; those of other studies are empty.
    here : pandas.DataFrame
        Rows of the same run.

    Returns
    -------
    (float, tuple of str)
        Infinity if there are other rows, or a column or a text is another one.
    """
    if len(there) != len(here):
        return math.inf, ("rows",)
    each = {}
    for name in there.columns:
        old = there[name].tolist()
        new = here[name].tolist() if name in here else [None] * len(here)
        each[name] = max(map(_apart, old, new), default=0.0)
    differ = tuple(name for name, value in each.items() if value > TOLERANCE)
    return max(each.values(), default=0.0), differ


def _apart(old: Any, new: Any) -> float:
    """Return the relative difference of two values, infinity if they cannot be compared."""
    if isinstance(old, str) and isinstance(new, str):
        return _texts_apart(old, new)
    if _is_missing(old) or _is_missing(new):
        return 0.0 if _is_missing(old) and _is_missing(new) else math.inf
    if isinstance(old, str) or isinstance(new, str):
        return math.inf
    return _numbers_apart(float(old), float(new))


def _texts_apart(old: str, new: str) -> float:
    """Return the largest relative difference of the numbers in two texts of the same words."""
    if old == new:
        return 0.0
    if NUMBER.sub("#", old) != NUMBER.sub("#", new):
        return math.inf
    numbers = zip(NUMBER.findall(old), NUMBER.findall(new), strict=True)
    return max(_numbers_apart(float(a), float(b)) for a, b in numbers)


def _numbers_apart(old: float, new: float) -> float:
    if old == new or (math.isnan(old) and math.isnan(new)) or abs(old - new) <= CANCELLED:
        return 0.0
    largest = max(abs(old), abs(new))
    return abs(old - new) / largest if math.isfinite(largest) else math.inf


def _is_missing(value: Any) -> bool:
    """Return whether a study has no such column, or this row no such value."""
    return value is None or value == "" or value != value
