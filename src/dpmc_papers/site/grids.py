"""Tables as a page shows them: printed cells, quartiles in one column."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pandas as pd

from dpmc_papers.outputs._facts import number_text, value_text

# Larger tables are not printed on paper, where the file takes their place.
PRINTED_ROWS = 60
PRINTED_COLUMNS = 12


@dataclass(frozen=True)
class Grid:
    """A table of printed cells.

    Parameters
    ----------
    columns : tuple of str
    numeric : tuple of bool
        Whether a column holds numbers.
    rows : tuple of tuple of str
    """

    columns: tuple[str, ...]
    numeric: tuple[bool, ...]
    rows: tuple[tuple[str, ...], ...]

    @property
    def large(self) -> bool:
        """Return whether it is too large for paper."""
        return len(self.rows) > PRINTED_ROWS or len(self.columns) > PRINTED_COLUMNS


def grid(table: pd.DataFrame) -> Grid:
    """Return the printed cells of a table; a column without any value is left out."""
    printed = {str(c): [value_text(v) for v in table[c]] for c in table.columns}
    kept = {name: column for name, column in printed.items() if any(column) or table.empty}
    return Grid(
        columns=tuple(name.replace("_", " ") for name in kept),
        numeric=tuple(pd.api.types.is_numeric_dtype(table[name]) for name in kept),
        rows=tuple(zip(*kept.values(), strict=True)),
    )


def compact(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with ``<m>_q1``, ``_median`` and ``_q3`` merged into one column each."""
    shown: dict[str, Any] = {}
    for column in table.columns:
        name, _, part = str(column).rpartition("_")
        if part == "median" and {f"{name}_q1", f"{name}_q3"} <= set(table.columns):
            parts = (table[f"{name}_{p}"] for p in ("median", "q1", "q3"))
            shown[name] = [
                "" if math.isnan(m) else f"{number_text(m)} [{number_text(a)}, {number_text(b)}]"
                for m, a, b in zip(*parts, strict=True)
            ]
        elif not (part in ("q1", "q3") and f"{name}_median" in table.columns):
            shown[str(column)] = list(table[column])
    return pd.DataFrame(shown)
