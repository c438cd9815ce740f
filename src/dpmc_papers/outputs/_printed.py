"""Printed numbers of a document, looked up for tables; and the epsilon that holds, in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import pandas as pd

from dpmc.types import UNAVAILABLE
from dpmc_papers.outputs._facts import number_text
from dpmc_papers.outputs._layout import Block, Cell, block
from dpmc_papers.outputs._regression import replaced
from dpmc_papers.verdicts import printed_series
from dpmc_papers.verdicts.privacy_mark import ROUNDING

Kind = TypeVar("Kind")


@dataclass(frozen=True)
class Number:
    """A printed cell.

    Parameters
    ----------
    parts : tuple of float
        The number; the mean and its standard deviation; the lower end, the mean and the upper
        end of an interval.
    decimals : int or None
        How many of them print has, None for a number that is printed in full.
    cut : bool
        Whether print cuts further digits off.
    """

    parts: tuple[float, ...]
    decimals: int | None
    cut: bool


class Printed:
    """Printed numbers of some series of a file of claims.

    Parameters
    ----------
    claims : mapping
        As :func:`dpmc_papers.verdicts.claim_file.load` returns it; nothing if empty.
    *ids : str
        Names of the series.
    """

    def __init__(self, claims: Mapping[str, Any], *ids: str) -> None:
        blocks = [block for block in claims.get("series", ()) if block["id"] in ids]
        self._cells = [
            (entry["rule"]["where"], _number(entry["rule"], block))
            for block in blocks
            for entry in printed_series.expand(block)
            if printed_series.TOGETHER not in entry["rule"]
        ]

    def values(self, key: str) -> list[Any]:
        """Different values of what tells cells apart, in the order of print."""
        return list(dict.fromkeys(where[key] for where, _ in self._cells if key in where))

    def value(self, **which: Any) -> float:
        """Printed number that `which` names, of several the middle one; NaN if there is none."""
        found = self.find(**which)
        return _middle(found) if found else math.nan

    def find(self, **which: Any) -> Number | None:
        """Printed cell that `which` names, None if there is none."""
        for where, number in self._cells:
            if all(where.get(key) == value for key, value in which.items()):
                return number
        return None


def numbers(table: pd.DataFrame, keys: Sequence[str], column: str) -> dict[tuple[Any, ...], float]:
    """Column of a long table by the values of others; nothing if it has none."""
    if column not in table:
        return {}
    places = zip(*(table[key] for key in keys), strict=True)
    return dict(zip(places, table[column].astype(float), strict=True))


def cell(ours: float, printed: Number | None, decimals: int | None = None, mark: str = "") -> Cell:
    """Cell of one number, with as many digits as print has."""
    places = printed.decimals if printed else decimals
    return Cell(
        (ours,),
        (_middle(printed),) if printed else (),
        () if places is None else (places,),
        printed is not None and printed.cut,
        mark,
    )


def spread(ours: float, deviation: float, printed: Number | None, decimals: int) -> Cell:
    """Cell of a mean and its standard deviation, which has `decimals`."""
    places = 3 if printed is None or printed.decimals is None else printed.decimals
    parts = printed.parts if printed else ()
    return Cell((ours, deviation), (*parts, math.nan)[:2] if parts else (), (places, decimals))


def interval(low: float, high: float, printed: Number | None) -> Cell:
    """Cell of the two ends of an interval."""
    places = 4 if printed is None or printed.decimals is None else printed.decimals
    ends = (printed.parts[0], printed.parts[-1]) if printed else ()
    return Cell((low, high), ends, (places,) * 2)


def blocks(
    kinds: Mapping[str, Kind],
    runs: Callable[[Kind], pd.DataFrame],
    rows: Mapping[Any, Sequence[str]],
    columns: Iterable[Any],
    cell: Callable[[Kind, Any, Any], Cell],
    who: str = "",
) -> tuple[Block, ...]:
    """Blocks of the kinds that have runs, by their titles, with the epsilon that holds of `who`.

    `rows` has the labels of each row, `columns` the keys of columns; `cell` is asked for each.
    """
    made = []
    for title, kind in kinds.items():
        if len(chosen := runs(kind)):
            told = held(chosen)
            head = f"{title} ({who}{told})" if told else title
            made.append(block(head, rows, columns, partial(cell, kind)))
    return tuple(made)


def held(rows: pd.DataFrame) -> str:
    """In words which epsilon was asked for and which one holds; empty if none was.

    Where guarantees for both relations of neighbours are known, that for the replacement of a row
    counts.
    """
    ran = rows[rows["epsilon"].notna() & ~rows["status"].fillna("").str.startswith(UNAVAILABLE)]
    if ran.empty:
        return ""
    real = replaced(ran).fillna(math.inf).groupby(ran["epsilon"])
    low, high = real.min(), real.max()
    asked = [float(value) for value in high.index]
    several = len(asked) > 1
    wanted = f"ε = {_listed(map(number_text, asked))}"
    wanted_only = f"{wanted} {'were' if several else 'was'} asked for"
    if high.map(math.isinf).all():
        return f"{wanted_only}, none holds"
    if all(
        abs(value / e - 1) < ROUNDING
        for bounds in (low, high)
        for e, value in zip(asked, bounds, strict=True)
    ):
        return f"{wanted} {'hold' if several else 'holds'}"
    pairs = zip(map(number_text, low), map(number_text, high), strict=True)
    shown = [least if least == most else f"{least} to {most}" for least, most in pairs]
    return f"{wanted_only}, {_listed(shown)} {'hold' if several else 'holds'}"


def _number(rule: Mapping[str, Any], block: Mapping[str, Any]) -> Number:
    printed = rule["printed"]
    parts = printed if isinstance(printed, list) else [printed]
    # The unit is half of one in the last place.
    decimals = round(-math.log10(2 * rule["unit"])) if "decimals" in block else None
    return Number(tuple(map(float, parts)), decimals, bool(block.get("cut")))


def _middle(number: Number) -> float:
    """Number, the mean of mean and spread, or the middle of an interval."""
    return number.parts[1 if len(number.parts) == 3 else 0]


def _listed(words: Iterable[str]) -> str:
    return ", ".join(words)
