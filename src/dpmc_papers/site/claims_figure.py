"""Figure of all claims: one cell per claim with two marks, whether it comes out and its privacy."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from dpmc_papers.plots.save import save
from dpmc_papers.plots.style import GREY, INK, SETTINGS, WIDTH
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
COLUMNS = 44
# Side of a cell in inches.
CELL = WIDTH / (COLUMNS + 0.5)
# Height in cells of a row of cells with its marks of privacy.
ROW = 1.6
# Two colours that colour-blind readers tell apart, and one for what is open.
GOOD = "#0072B2"
BAD = "#D55E00"
PALE = "#e9e9e9"
# Each answer differs from the others by its sign and its pattern, not by colour alone.
FILL = {YES: GOOD, NO: BAD, OPEN: PALE, NONE: "white"}
SIGN = {YES: "", NO: "×", OPEN: "?", NONE: ""}
STRIPE: dict[str, dict[str, Any]] = {
    YES: {"facecolor": INK},
    PART: {"facecolor": "white", "hatch": "//////", "edgecolor": INK},
    NO: {"facecolor": "white", "edgecolor": BAD},
}


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


def draw(documents: Mapping[str, Sequence[Cell]]) -> Figure:
    """Draw the claims of all documents, whose keys are their names in short.

    A square per claim says whether it comes out, and a bar below each whether the privacy holds.
    """
    rows = [math.ceil(len(cells) / COLUMNS) for cells in documents.values()]
    height = sum(1.6 + ROW * count for count in rows) + 3.9
    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(WIDTH, CELL * height))
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(-0.25, COLUMNS + 0.25), ylim=(height, 0))
        axes.set_axis_off()
        top = 0.0
        for (name, cells), count in zip(documents.items(), rows, strict=True):
            top += 1.6
            axes.text(0, top - 0.35, _heading(name, cells), color=INK)
            for k, cell in enumerate(cells):
                _cell(axes, k % COLUMNS, top + ROW * (k // COLUMNS), cell.out, cell.held)
            top += ROW * count
        _legend(axes, top + 1.0)
    return figure


def _heading(name: str, cells: Sequence[Cell]) -> str:
    counts = Counter(cell.out for cell in cells)
    told = ", ".join(f"{counts[key]} {words}" for key, words in OUT.items() if counts[key])
    return f"{name}: {told}" if told else f"{name}: no claims"


def _cell(axes: Axes, x: float, y: float, out: str, held: str) -> None:
    axes.add_patch(
        Rectangle((x + 0.06, y), 0.88, 0.88, facecolor=FILL[out], edgecolor=GREY, linewidth=0.5)
    )
    if SIGN[out]:
        colour = "white" if out == NO else INK
        axes.text(
            x + 0.5, y + 0.47, SIGN[out], color=colour, ha="center", va="center", fontsize=7,
            fontweight="bold",
        )  # fmt: skip
    _bar(axes, x, y, held)


def _bar(axes: Axes, x: float, y: float, held: str) -> None:
    if held in STRIPE:
        looks = {"edgecolor": INK, "linewidth": 0.6, **STRIPE[held]}
        axes.add_patch(Rectangle((x + 0.09, y + 1.0), 0.82, 0.3, **looks))


def _legend(axes: Axes, top: float) -> None:
    """Explain both marks, in two lines."""
    x = 0.0
    for key, words in OUT.items():
        _cell(axes, x, top, key, NONE)
        axes.text(x + 1.25, top + 0.5, words, va="center", fontsize=7)
        x += 8.2
    for k, (key, words) in enumerate(HELD.items()):
        x, told = 8.2 * k + 1.4 * (key in (NO, NONE)), key in STRIPE
        _bar(axes, x, top + 0.55, key)
        text = words if told else f"no bar: {words}"
        axes.text(x + (1.25 if told else 0), top + 1.7, text, va="center", fontsize=7)
