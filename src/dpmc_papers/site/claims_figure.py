"""Figure of all claims: how many come out, and of how many the privacy holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from dpmc_papers.plots import style
from dpmc_papers.plots.save import save
from dpmc_papers.verdicts.verdict import (
    CONTRADICTED,
    FAILS,
    HOLDS,
    MIXED,
    NOT_PRIVATE,
    PRIVATE,
    REPRODUCED,
    UNDECIDED,
    Verdict,
)

FILES = ("claims.svg", "claims.png")
YES, NO, OPEN, NONE = "yes", "no", "open", "none"
PART = "part"
# Does what is printed come out?
OUT = {YES: "reproduced", NO: "contradicted", OPEN: "undecided", NONE: "not run"}
# Do the runs have the privacy that they were given?
HELD = {YES: "ε holds", PART: "ε holds in part", NO: "ε does not hold", NONE: "no ε to judge"}
_OUT = {REPRODUCED: YES, HOLDS: YES, CONTRADICTED: NO, FAILS: NO, UNDECIDED: OPEN}
_HELD = {PRIVATE: YES, MIXED: PART, NOT_PRIVATE: NO}
OWN = "dpmc"  # as whose are the claims of the league, which no document has in print
# Each answer differs from the others by its pattern too, not by colour alone.
LOOKS: dict[str, dict[str, dict[str, Any]]] = {
    "out": {
        YES: {"fc": "#0072B2"},
        NO: {"fc": "#D55E00", "hatch": "////"},
        OPEN: {"fc": "#e0e0e0"},
        NONE: {"fc": "white", "hatch": "xxx"},
    },
    "held": {
        YES: {"fc": style.INK},
        PART: {"fc": "#999999", "hatch": "////"},
        NO: {"fc": "#f6c9a8", "hatch": "...."},
        NONE: {"fc": "white"},
    },
}
DARK = ("#0072B2", "#D55E00", style.INK)  # on which numbers are white
LEAST = 3  # claims whose number has room in a bar


class Cell(NamedTuple):
    """One claim: a key of ``OUT`` and one of ``HELD``."""

    out: str
    held: str


def cells(verdicts: Iterable[Verdict]) -> list[Cell]:
    """One cell for each claim of a document, in their order.

    A claim that is judged for several variants stands for the first, which is the one in print.
    Printed numbers have no cell.
    """
    first: dict[str, Verdict] = {}
    for entry in verdicts:
        if not entry.series:
            first.setdefault(entry.id, entry)
    return [Cell(_OUT.get(e.verdict, NONE), _HELD.get(e.privacy, NONE)) for e in first.values()]


def write(documents: Mapping[str, Iterable[Verdict]], folder: Path) -> None:
    """Write the figure of the verdicts of each document, in each of the formats of ``FILES``."""
    drawn = draw({name: cells(verdicts) for name, verdicts in documents.items()})
    for name in FILES:
        save(drawn, folder / name)


@style.styled
def draw(documents: Mapping[str, Sequence[Cell]]) -> Figure:
    """Draw the claims of all documents, whose keys are their names in short; our own come last.

    Of two bars the upper one counts how claims come out, the lower one whether privacy holds.
    """
    names = sorted(documents, key=lambda name: name.startswith(OWN))
    figure, axes = style.figure(1, 1, 1.1 + 0.5 * len(names))
    axis = axes[0, 0]
    for place, name in enumerate(names):
        for field, words, down in (("out", OUT, -0.2), ("held", HELD, 0.2)):
            counts = Counter(getattr(cell, field) for cell in documents[name])
            _bar(axis, place + down, [(counts[key], LOOKS[field][key]) for key in words])
    labels = [f"{name}\n(our own claims)" if name.startswith(OWN) else name for name in names]
    axis.set_yticks(range(len(names)), labels)
    axis.set(ylim=(len(names) - 0.5, -0.5), xlabel="claims")
    pairs = zip(OUT.items(), HELD.items(), strict=True)
    handles = [
        Patch(**LOOKS[field][key], ec=style.GREY, label=words)
        for pair in pairs
        for field, (key, words) in zip(("out", "held"), pair, strict=True)
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(OUT))
    style.heading(figure, "Do claims come out (above), and does their ε hold (below)?")
    return figure


def _bar(axis: Axes, place: float, parts: Sequence[tuple[int, Mapping[str, Any]]]) -> None:
    """Draw counts behind each other, each with its number."""
    begin = 0
    for count, look in parts:
        if count:
            axis.barh(place, count, 0.36, left=begin, ec=style.GREY, lw=0.5, **look)
        if count >= LEAST:
            axis.annotate(
                f"{count}", (begin + count / 2, place), ha="center", va="center", fontsize=7,
                color="white" if look["fc"] in DARK else style.INK,
                bbox={"fc": look["fc"], "lw": 0, "pad": 0.8},
            )  # fmt: skip
        begin += count
