"""The strip of all claims as a figure file: one cell per claim, two marks each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from dpmc_papers.plots.save import save
from dpmc_papers.plots.style import GREY, INK, SETTINGS, WIDTH
from dpmc_papers.site import strip
from dpmc_papers.site.strip import HELD, NO, NONE, OPEN, OUT, PART, YES, Cell

FILES = ("claims.svg", "claims.png")
COLUMNS = 44
CELL = WIDTH / (COLUMNS + 0.5)  # inches
ROW = 1.6  # height of a row of cells, with its marks of privacy, in cells
GOOD, BAD, PALE = "#0072B2", "#D55E00", "#e9e9e9"  # told apart by colour-blind readers
# Each answer differs from the others by its sign and its pattern, not by colour alone.
FILL = {YES: GOOD, NO: BAD, OPEN: PALE, NONE: "white"}
SIGN = {YES: "", NO: "×", OPEN: "?", NONE: ""}
STRIPE: dict[str, dict[str, Any]] = {
    YES: {"facecolor": INK},
    PART: {"facecolor": "white", "hatch": "//////", "edgecolor": INK},
    NO: {"facecolor": "white", "edgecolor": BAD},
}


def write(documents: Mapping[str, Sequence[Cell]], folder: Path) -> None:
    """Write the figure in each of the formats of ``FILES``; see :func:`draw`."""
    drawn = draw(documents)
    for name in FILES:
        save(drawn, folder / name)


def draw(documents: Mapping[str, Sequence[Cell]]) -> Figure:
    """Draw the claims of all documents.

    Parameters
    ----------
    documents : mapping of str to sequence of Cell
        The claims of each document, by its name in short.

    Returns
    -------
    matplotlib.figure.Figure
        A square per claim (does it come out?) and below each a bar (does the privacy hold?).
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
    counts = strip.out(cells)
    told = ", ".join(f"{number} {OUT[key]}" for key, number in counts.items() if number)
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
