"""The kinds of panel: boxes or medians over a grid, and points.

All take axes and a table with one row per run. `x`, `y` and `hue` are its columns of the grid, of
the metric and of the group; `looks` maps the groups to their looks in drawing order; `grid` has the
grid points in order, by default those of the table. The axes end at `ceiling`: runs above it are
counted, or are triangles, at the top.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.offsetbox import AnnotationBbox, DrawingArea
from matplotlib.patches import Patch

from dpmc.types import DpmcError
from dpmc_papers.plots import drawn
from dpmc_papers.plots.style import GREY, INK, SMALLEST, Look, epsilon_text

TOLERANCE = 0.05  # an epsilon that holds within this share of the one asked for is that one
TICK_LINE = 9.5  # points from one line of numbers below an axis to the next
EXACT = "#c9c9c9"  # the band of exact samples
NO_VALUE = "no value"
NOT_RUN = "not run"
GROUP = 0.82  # share of the distance between grid points that the boxes of one take
CROWDED = 20  # grid points to the width of a page whose numbers do without the zero in front
LEAST = 5  # runs that have quartiles
MEDIAN_ALONE: dict[str, Any] = {"showbox": False, "showcaps": False, "whiskerprops": {"lw": 0}}


def boxes(
    axis: Axes,
    table: pd.DataFrame,
    x: str,
    y: str,
    hue: str,
    looks: Mapping[str, Look],
    ceiling: float | None = None,
    grid: Sequence[float] | None = None,
) -> None:
    """Draw one box per grid point and group, the runs as dots upon it.

    Boxes span the quartiles with a line at the median, whiskers reach the furthest
    run within 1.5 times that span. With fewer than five runs only the dots and
    the median are drawn. What is not there is marked as by :func:`missing`.
    """
    import seaborn

    grid = _grid(table, x) if grid is None else grid
    for name, look in looks.items():
        runs = table[table[hue] == name]
        few = runs.groupby(x)[y].transform("count") < LEAST
        for rows, parts in ((runs[~few], {}), (runs[few], MEDIAN_ALONE)):
            if rows[y].notna().any():  # `vert` is a name that matplotlib gives up
                seaborn.boxplot(
                    rows, **_by_group(axis, x, y, hue, looks, grid), dodge=True, width=GROUP,
                    gap=0.2, saturation=1, linecolor=look.colour, linewidth=0.7, showfliers=False,
                    boxprops={"alpha": 0.45}, medianprops={"color": INK, "linewidth": 1.1},
                    vert=None, **parts,
                )  # fmt: skip
    for name, place, value, runs in _cells(table, x, hue, looks, grid):
        values, look = runs[y].dropna(), looks[name]
        drawn.record(axis, look.label, value, values)
        spread = np.linspace(-0.2, 0.2, len(values)) if len(values) > 1 else np.zeros(len(values))
        axis.plot(
            place + spread * GROUP / len(looks), values, look.marker, color=look.colour, ms=1.8,
            mew=0, alpha=0.9, zorder=3,
        )  # fmt: skip
        if ceiling is not None and (high := int((values > ceiling).sum())):
            axis.plot(place, ceiling, "^", color=look.colour, ms=4, clip_on=False, zorder=4)
            axis.annotate(
                f"{high}", (place, ceiling), (0, 2.5), textcoords="offset points", ha="center",
                va="bottom", fontsize=7,
            )  # fmt: skip
    missing(axis, table, x, y, hue, looks, grid)
    _on_grid(axis, grid)
    axis.set_ylim(0, ceiling)


@dataclass(frozen=True)
class Centre:
    """What stands for the runs of a group: a middle with a bar.

    Parameters
    ----------
    middle, bar : str
        Their names.
    of : callable
        From values to the middle and both ends of the bar.
    """

    middle: str
    bar: str
    of: Callable[[Any], Sequence[float]]


MEDIANS = Centre("median", "quartile", lambda values: np.quantile(values, (0.5, 0.25, 0.75)))


def centres(
    axis: Axes,
    table: pd.DataFrame,
    x: str,
    y: str,
    hue: str,
    looks: Mapping[Any, Look],
    grid: Sequence[float] | None = None,
    centre: Centre = MEDIANS,
    **marks: Any,
) -> None:
    """Draw medians of runs with bars at their quartiles, groups side by side at a grid point.

    Another `centre` draws other numbers. `marks` are for ``seaborn.pointplot``. An axis must be
    made logarithmic later: the numbers would be those of logarithms.
    """
    import seaborn

    if axis.get_yscale() != "linear":
        raise DpmcError(f"the axis must be linear before it has centres, got {axis.get_yscale()}")
    grid = _grid(table, x) if grid is None else grid
    for name, look in looks.items():
        rows = table[(table[hue] == name) & table[y].notna()]
        for value, group in rows.groupby(x)[y]:
            middle, *ends = centre.of(group)
            drawn.record(axis, f"{look.label}: {centre.middle}", value, middle)
            drawn.record(axis, f"{look.label}: {centre.bar}", value, ends)
    options: dict[str, Any] = {
        "linestyles": "none", "markersize": 3.5, "linewidth": 0.8, "markeredgewidth": 0.4,
        "markeredgecolor": "white", "dodge": GROUP * (1 - 1 / len(looks)),
        "errorbar": lambda values: tuple(centre.of(values)[1:]), **marks,
    }  # fmt: skip
    seaborn.pointplot(
        table, **_by_group(axis, x, y, hue, looks, grid),
        estimator=lambda values: centre.of(values)[0],
        markers=[look.marker for look in looks.values()], **options,
    )  # fmt: skip
    _on_grid(axis, grid)


def _grid(table: pd.DataFrame, x: str) -> list[float]:
    return sorted(table[x].dropna().unique())


def _by_group(
    axis: Axes, x: str, y: str, hue: str, looks: Mapping[Any, Look], grid: Sequence[float]
) -> dict[str, Any]:
    """What seaborn is told of a panel: groups side by side, whichever of them is drawn."""
    colours = {name: look.colour for name, look in looks.items()}
    return {
        "x": x, "y": y, "hue": hue, "order": list(grid), "hue_order": list(looks),
        "palette": colours, "legend": False, "ax": axis,
    }  # fmt: skip


def _on_grid(axis: Axes, grid: Sequence[float]) -> None:
    axis.set_xticks(range(len(grid)), [f"{value:g}" for value in grid])
    axis.set(xlim=(-0.5, len(grid) - 0.5), xlabel="", ylabel="")
    for edge in np.arange(0.5, len(grid) - 1):
        axis.axvline(edge, color="#e6e6e6", lw=0.5, zorder=0)


def _cells(
    table: pd.DataFrame, x: str, hue: str, looks: Mapping[str, Look], grid: Sequence[float]
) -> Iterator[tuple[str, float, float, pd.DataFrame]]:
    """Group, the place on the axis, the grid point and the runs of each box."""
    for k, name in enumerate(looks):
        rows = table[table[hue] == name]
        for i, value in enumerate(grid):
            place = i + (k - (len(looks) - 1) / 2) * GROUP / len(looks)
            yield name, place, value, rows[rows[x] == value]


def missing(
    axis: Axes,
    table: pd.DataFrame,
    x: str,
    y: str,
    hue: str,
    looks: Mapping[str, Look],
    grid: Sequence[float],
) -> None:
    """Mark runs without a value by a cross at the top, grid points that were not run by a dash.

    The cross has the number of these runs below it, unless no run has a value.
    """
    for name, place, value, runs in _cells(table, x, hue, looks, grid):
        lost = int(runs[y].isna().sum())
        if len(runs) and not lost:
            continue
        kind, marker, height = (NO_VALUE, "x", 0.965) if lost else (NOT_RUN, "_", 0.035)
        at = axis.get_xaxis_transform()
        colour = looks[name].colour
        axis.plot(
            [place], [height], marker, color=colour, transform=at, gid=kind, ms=4, mew=1.1,
            zorder=5,
        )  # fmt: skip
        if lost:
            drawn.record(axis, f"{looks[name].label}: runs without a value", value, lost)
        if 0 < lost < len(runs):
            down = -3 - SMALLEST * (list(looks).index(name) % 2)  # neighbours stand apart
            axis.annotate(
                f"{lost}", (place, height), (0, down), xycoords=at, textcoords="offset points",
                ha="center", va="top", fontsize=7,
            )  # fmt: skip


def missing_entries(figure: Figure) -> list[Line2D]:
    """Legend entries of the marks that stand for boxes which are not there."""
    lines = [line for axis in figure.axes for line in axis.lines]
    kinds = {str(line.get_gid()) for line in lines}
    return [
        Line2D([], [], color=GREY, marker=marker, ls="", ms=4.5, label=kind)
        for kind, marker in ((NO_VALUE, "x"), (NOT_RUN, "_"))
        if kind in kinds
    ]


def held(
    axis: Axes,
    table: pd.DataFrame,
    hue: str,
    looks: Mapping[str, Look],
    grid: Sequence[float],
    x: str = "epsilon",
) -> int:
    """Write below the ticks the epsilon that holds, where it is not the one asked for.

    Runs are of one problem, and `x` was asked for. A marker tells whose line of numbers it is.
    Returns how many lines were written: groups with the same numbers share one.
    """
    lines: dict[tuple[str, ...], list[Look]] = {}
    for name, style in looks.items():
        rows = table[table[hue] == name]
        real = rows.groupby(x)["guarantee_epsilon"].max()
        if not differs(real):
            continue
        drawn.record(axis, f"{style.label}: epsilon that holds", real.index, real)
        texts = tuple(epsilon_text(real[e]) if e in real.index else "" for e in grid)
        if len(grid) > CROWDED * axis.get_position().width:
            texts = tuple(text.removeprefix("0") for text in texts)
        lines.setdefault(texts, []).append(style)
    for k, (texts, styles) in enumerate(lines.items()):
        down = -TICK_LINE * (k + 1) - 6
        for i, text in enumerate(texts):
            axis.annotate(
                text, (i, 0), (0, down), xycoords=axis.get_xaxis_transform(),
                textcoords="offset points", ha="center", va="top", fontsize=7, color=INK,
            )  # fmt: skip
        for j, style in enumerate(styles):
            _line_mark(axis, style, -8 - 7 * (len(styles) - 1 - j), down - 4)
    axis.xaxis.labelpad = 4 + TICK_LINE * len(lines)
    return len(lines)


def epsilon_label(lines: int, columns: int = 1) -> str:
    """Label of an axis of epsilon, with `lines` of numbers below its ticks.

    In more than two `columns` of panels it has two lines.
    """
    words = "ε asked for; beside marks: ε that holds" if lines else "ε asked for, and that holds"
    return words.replace("; ", ";\n").replace(", ", ",\n") if columns > 2 else words


def differs(real: pd.Series[float]) -> bool:
    """Whether any epsilon that holds is not within 5 % of the one asked for, its index."""
    asked = real.index.to_numpy(float)
    return bool(np.any(np.abs(real.to_numpy(float) - asked) > TOLERANCE * asked))


def _line_mark(axis: Axes, style: Look, right: float, down: float) -> None:
    box = DrawingArea(6, 6, 0, 0)
    box.add_artist(Line2D([3], [3], color=style.colour, marker=style.marker, ms=4.5))
    axis.add_artist(
        AnnotationBbox(
            box, (0, 0), (right, down), xycoords="axes fraction", boxcoords="offset points",
            frameon=False, pad=0, annotation_clip=False,
        )
    )  # fmt: skip


def points(
    axis: Axes,
    table: pd.DataFrame,
    x: str,
    y: str,
    hue: str,
    looks: Mapping[str, Look],
    ceiling: float | None = None,
) -> None:
    """Draw one marker per run."""
    for name, style in looks.items():
        rows = table[table[hue] == name]
        high = rows[rows[y] > (np.inf if ceiling is None else ceiling)]
        if len(high):  # an empty line without clipping has no extent and upsets the layout
            top = np.full(len(high), ceiling)
            axis.plot(high[x], top, "^", color=style.colour, ms=4, clip_on=False, zorder=4)
        drawn.record(axis, style.label, rows[x], rows[y])
        axis.plot(
            rows[x], rows[y], style.marker, color=style.colour, ms=3, mew=0.3, mec="white",
            alpha=0.85,
        )  # fmt: skip


def levels(axis: Axes, values: Sequence[float]) -> None:
    """Draw a band from the least to the largest of `values`, which are those of exact samples."""
    drawn.record(axis, "exact sample", np.nan, list(values))
    if values:
        axis.axhspan(min(values), max(values), color=EXACT, lw=0, zorder=0.5)


def legend_entries(looks: Mapping[str, Look], exact: int = 0) -> list[Any]:
    """Legend handles of boxes, and of the band of `exact` exact samples."""
    handles: list[Any] = [
        Patch(facecolor=s.colour, alpha=0.6, edgecolor=s.colour, label=s.label)
        for s in looks.values()
    ]
    if exact:
        handles.append(Patch(facecolor=EXACT, label=f"{exact} exact samples"))
    return handles
