"""Verdict on one claim or printed number, and the table of all verdicts on a document."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pandas as pd

from dpmc.types import DpmcError

REPRODUCED = "reproduced"
CONTRADICTED = "contradicted"
UNDECIDED = "undecided"
# What print does not show: a claim of it under a correction, or with what was added.
HOLDS = "holds"
FAILS = "fails"
# A number of ours for what print does not show.
DISTANCE = "beside print"
NOT_COMPARABLE = "not run"
VERDICTS = (REPRODUCED, CONTRADICTED, UNDECIDED, HOLDS, FAILS, DISTANCE, NOT_COMPARABLE)
# What a decision on a claim is called where print is about something else.
BESIDE_PRINT = {REPRODUCED: HOLDS, CONTRADICTED: FAILS}
# Whether the runs have the privacy that they were given, in words.
PRIVATE = "holds"
NOT_PRIVATE = "broken"
NO_PRIVACY = "none claimed"
MIXED = "holds in part"
# Nothing was computed from records, so that there is nothing to protect.
NO_RECORDS = "no records"
# What a claim that no figure or table shows says in place of their names.
NO_OUTPUT = "none"


@dataclass(frozen=True)
class Verdict:
    """One verdict: on a claim or a printed number, for one variant.

    Parameters
    ----------
    id : str
        Of the claim; that of a printed number starts with its series and a slash.
    where : str
        Place in the document, in words.
    output : tuple of str
        Names of the figures and tables that show it; none where it is empty.
    variant : str
        Variant of the runs that were judged.
    published : str
        What the document says.
    ours, ours_se : float
        What was measured at the setting with the least margin, and its standard error.
    rule : str
        The rule in words.
    verdict : str
        One of ``VERDICTS``.
    reason : str
        Built from the numbers.
    privacy : {"holds", "broken", "holds in part", "none claimed", ""}
        Whether the runs that were judged have the (epsilon, delta) that they were given; empty
        where no run was judged.
    digits : {"same", "other", ""}
        The strict rule: whether the measured number is printed so; empty of a claim.
    resolution : float
        Of a printed number: the smallest factor between print and the truth that is not called
        reproduced in 95 % of repetitions.
    runs_needed : float
        About how many runs would decide what is undecided; infinite where none would.
    """

    id: str
    where: str
    output: tuple[str, ...]
    variant: str
    published: str
    ours: float
    ours_se: float
    rule: str
    verdict: str
    reason: str
    privacy: str = ""
    digits: str = ""
    resolution: float = math.nan
    runs_needed: float = math.nan

    @property
    def anchor(self) -> str:
        """Anchor of this verdict on the page of the document."""
        return f"{self.id.replace('/', '.')}-{self.variant}"

    @property
    def together(self) -> bool:
        """Whether it is on all printed numbers of a row together."""
        return self.id.endswith("/together")

    @property
    def series(self) -> str:
        """Printed series that it belongs to; empty for a claim of its own."""
        return self.id.partition("/")[0] if "/" in self.id else ""


COLUMNS = tuple(entry.name for entry in fields(Verdict))
NUMBERS = ("ours", "ours_se", "resolution", "runs_needed")


def table(verdicts: Iterable[Verdict]) -> pd.DataFrame:
    """Verdicts as a table with the columns ``COLUMNS``, one row each."""
    records = [{**vars(entry), "output": " ".join(entry.output) or NO_OUTPUT} for entry in verdicts]
    return pd.DataFrame(records, columns=list(COLUMNS))


def read(path: Path | str) -> tuple[Verdict, ...]:
    """Read the verdicts on a document from a CSV file."""
    try:
        rows = pd.read_csv(path)
    except (OSError, ValueError) as error:
        raise DpmcError(f"{path}: {str(error).splitlines()[0]}") from None
    return from_table(rows, str(path))


def from_table(rows: pd.DataFrame, where: str = "verdicts") -> tuple[Verdict, ...]:
    """Verdicts of a table as :func:`table` makes it; `where` is what messages call it."""
    for name in COLUMNS:
        if name not in rows.columns:
            raise DpmcError(f"{where}: column `{name}` is missing")
    records = (dict(zip(rows.columns, row, strict=True)) for row in rows.itertuples(index=False))
    return tuple(_verdict(record, where) for record in records)


def _verdict(record: Mapping[str, Any], where: str) -> Verdict:
    texts = {
        name: "" if pd.isna(record[name]) else str(record[name])
        for name in COLUMNS
        if name not in NUMBERS
    }
    if texts["verdict"] not in VERDICTS:
        raise DpmcError(
            f"{where}: `verdict` must be one of {', '.join(VERDICTS)}, got {texts['verdict']!r}"
        )
    names = texts.pop("output").split()
    numbers = {name: float(record[name]) for name in NUMBERS}
    fields_of: dict[str, Any] = {**texts, **numbers}
    return Verdict(**fields_of, output=() if names == [NO_OUTPUT] else tuple(names))
