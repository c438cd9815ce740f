"""Verdicts as a page shows them: claims and printed numbers, by the output that they are about."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from dpmc.experiments.outputs._facts import number_text, value_text
from dpmc.experiments.verdicts.judge import COLUMNS
from dpmc.types import DpmcError

VERDICTS = {
    "reproduced": "reproduced",
    "not_reproduced": "not reproduced",
    "not_comparable": "not comparable",
}


@dataclass(frozen=True)
class Verdict:
    """One verdict: a claim or a printed number, for one variant.

    Parameters
    ----------
    id, where, variant, published, rule, verdict, reason : str
        As in ``verdict.csv``.
    ours : str
        What was measured, with its standard error.
    anchor : str
        Where the page of the document has it.
    series : str
        The printed series that it belongs to; empty for a claim of its own.
    """

    id: str
    where: str
    variant: str
    published: str
    ours: str
    rule: str
    verdict: str
    reason: str
    anchor: str
    series: str

    @property
    def kind(self) -> str:
        """Return the verdict in words."""
        return VERDICTS[self.verdict]


@dataclass(frozen=True)
class Series:
    """All numbers that a document prints in one place, for one variant.

    Parameters
    ----------
    id, where, variant : str
    cells : tuple of Verdict
    """

    id: str
    where: str
    variant: str
    cells: tuple[Verdict, ...]

    @property
    def anchor(self) -> str:
        """Return where the page of the document has it."""
        return f"series-{self.id}-{self.variant}"

    @property
    def counts(self) -> dict[str, int]:
        """Return how many numbers came out how."""
        return counts(self.cells)


@dataclass(frozen=True)
class Group:
    """The claims and series about one output, or about none.

    Parameters
    ----------
    claims : tuple of Verdict
    series : tuple of Series
    """

    claims: tuple[Verdict, ...] = ()
    series: tuple[Series, ...] = ()

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Return all verdicts."""
        return (*self.claims, *(cell for entry in self.series for cell in entry.cells))

    @property
    def counts(self) -> dict[str, int]:
        """Return how many verdicts came out how."""
        return counts(self.verdicts)


def read(path: Path | str) -> tuple[Verdict, ...]:
    """Read the verdicts on a document.

    Raises
    ------
    DpmcError
        If the file cannot be read, lacks a column or holds an unknown verdict.
    """
    try:
        table = pd.read_csv(path)
    except (OSError, ValueError) as error:
        raise DpmcError(f"{path}: {str(error).splitlines()[0]}") from None
    return from_table(table, str(path))


def from_table(table: pd.DataFrame, where: str = "verdicts") -> tuple[Verdict, ...]:
    """Return the rows of :func:`dpmc.experiments.verdicts.judge.verdicts`.

    Raises
    ------
    DpmcError
        If a column is missing or a verdict is unknown.
    """
    if missing := set(COLUMNS) - set(table.columns):
        raise DpmcError(f"{where}: column {min(missing)!r} is missing")
    records = (dict(zip(table.columns, row, strict=True)) for row in table.itertuples(index=False))
    return tuple(_verdict(record, where) for record in records)


def group(verdicts: Iterable[Verdict]) -> Group:
    """Return claims and series, in the order in which they stand."""
    claims, cells = [], dict[tuple[str, str, str], list[Verdict]]()
    for entry in verdicts:
        if entry.series:
            cells.setdefault((entry.series, entry.where, entry.variant), []).append(entry)
        else:
            claims.append(entry)
    series = tuple(Series(*key, tuple(found)) for key, found in cells.items())
    return Group(tuple(claims), series)


def by_output(verdicts: Iterable[Verdict], outputs: Sequence[str]) -> dict[str, Group]:
    """Return the verdicts on each output; under the empty name those on none of them."""
    found: dict[str, list[Verdict]] = {}
    for entry in verdicts:
        found.setdefault(output_of(entry.where, outputs), []).append(entry)
    return {name: group(entries) for name, entries in found.items()}


def output_of(where: str, outputs: Sequence[str]) -> str:
    """Return the output that shows a place of a document, such as "section 6.3, Figure 6.3".

    Of several outputs of one figure it is the one whose further words the place has:
    ``figure6_3_final`` for "Figure 6.3, final version". Empty if there is none.
    """
    found = re.search(r"\b(Figure|Table)s? (\d+(?:\.\d+)?)", where)
    if found is None:
        return ""
    name = f"{found[1].lower()}{found[2].replace('.', '_')}"
    rest = set(re.findall(r"\w+", where.replace(found[0], "")))
    for other in outputs:
        if other.startswith(f"{name}_") and set(other.removeprefix(f"{name}_").split("_")) <= rest:
            return other
    return name if name in outputs else ""


def counts(verdicts: Iterable[Verdict]) -> dict[str, int]:
    """Return how many verdicts came out how, those that none has included."""
    found = dict.fromkeys(VERDICTS, 0)
    for entry in verdicts:
        found[entry.verdict] += 1
    return found


def _verdict(record: Mapping[str, Any], where: str) -> Verdict:
    texts = {name: str(record[name]) for name in COLUMNS if not name.startswith("ours")}
    if texts["verdict"] not in VERDICTS:
        allowed = ", ".join(VERDICTS)
        raise DpmcError(f"{where}: verdict {texts['verdict']!r}, allowed {allowed}")
    ours, error = value_text(record["ours"]), record["ours_se"]
    if isinstance(error, float) and error > 0:
        ours += f" ± {number_text(error)}"
    name = texts["id"]
    return Verdict(
        **texts,
        ours=ours,
        anchor=f"{name.replace('/', '.')}-{texts['variant']}",
        series=name.partition("/")[0] if "/" in name else "",
    )
