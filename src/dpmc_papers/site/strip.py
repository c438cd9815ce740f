"""The strip of all claims: one cell each, with two marks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from dpmc_papers.verdicts.verdict import (
    AS_CONFIGURED,
    CONFIGURED_OTHERWISE,
    CONTRADICTED,
    FAILS,
    HOLDS,
    MIXED,
    NOT_COMPARABLE,
    NOT_PRIVATE,
    PRIVATE,
    REPRODUCED,
    UNDECIDED,
    Verdict,
)

YES, NO, OPEN, NONE = "yes", "no", "open", "none"
# Does what is printed come out?
OUT = {YES: "reproduced", NO: "contradicted", OPEN: "undecided", NONE: "not run"}
SIGNS = {YES: "✓", NO: "✗", OPEN: "?", NONE: "–"}
PART = "part"
# Do the runs have the privacy that they were given?
HELD = {YES: "ε holds", PART: "ε holds in part", NO: "ε does not hold", NONE: "no ε to judge"}
_OUT = {REPRODUCED: YES, HOLDS: YES, CONTRADICTED: NO, FAILS: NO, UNDECIDED: OPEN}
_HELD = {PRIVATE: YES, MIXED: PART, NOT_PRIVATE: NO}


@dataclass(frozen=True)
class Cell:
    """One claim.

    Parameters
    ----------
    anchor : str
        On the page of its document.
    out : str
        A key of ``OUT``.
    held : str
        A key of ``HELD``.
    published : str
        What the document says.
    """

    anchor: str
    out: str
    held: str
    published: str

    @property
    def title(self) -> str:
        """Return the claim and both marks in words."""
        return f"{self.published}: {OUT[self.out]}; {HELD[self.held]}"


def cells(verdicts: Iterable[Verdict]) -> list[Cell]:
    """Return one cell for each claim of a document, in their order.

    A claim that is judged for several variants stands for the first, which is the one in print.
    Settings, where nothing was run, and printed numbers have no cell.
    """
    first: dict[str, Verdict] = {}
    for entry in verdicts:
        if not entry.series and entry.verdict not in (AS_CONFIGURED, CONFIGURED_OTHERWISE):
            first.setdefault(entry.id, entry)
    return [
        Cell(e.anchor, _OUT.get(e.verdict, NONE), _HELD.get(e.privacy, NONE), e.published)
        for e in first.values()
    ]


def numbers(verdicts: Iterable[Verdict]) -> dict[str, int]:
    """Return how many numbers come out as printed, by the keys of ``OUT``."""
    found = dict.fromkeys(OUT, 0)
    for entry in verdicts:
        if entry.series and not entry.together and entry.verdict in (*_OUT, NOT_COMPARABLE):
            found[_OUT.get(entry.verdict, NONE)] += 1
    return found


def out(found: Iterable[Cell]) -> dict[str, int]:
    """Return how many claims come out, by the keys of ``OUT``."""
    counts = Counter(cell.out for cell in found)
    return {key: counts[key] for key in OUT}
