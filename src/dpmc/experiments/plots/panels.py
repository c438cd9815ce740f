"""The kinds of panel: boxes over a grid, points, marginal and joint densities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.offsetbox import AnnotationBbox, DrawingArea
from matplotlib.patches import Patch

from dpmc.experiments.plots import drawn
from dpmc.experiments.plots.style import GREY, INK, Look, epsilon_text
from dpmc.types import Array

TOLERANCE = 0.05  # an epsilon that holds within this share of the one asked for is that one
TICK_LINE = 9.5  # points from one line of numbers below an axis to the next
NO_VALUE = "no value"
NOT_RUN = "not run"
GROUP = 0.82  # share of the distance between grid points that the boxes of one take


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
    the median are drawn. A cross at the bottom stands for runs without a value, a dash for a
    grid point at which a group was not run.

    Parameters
    ----------
    axis : matplotlib.axes.Axes
    table : pandas.DataFrame
        One row per run.
    x, y, hue : str
        Columns of the grid, of the metric and of the group.
    looks : mapping of str to Look
        The groups in drawing order.
    ceiling : float, optional
        Upper limit of the axis. Runs above it are counted at the top.
    grid : sequence of float, optional
        Grid points in order; by default those that the table has.
    """
    grid = sorted(table[x].dropna().unique()) if grid is None else grid
    width = GROUP / max(1, len(looks))
    for k, (name, style) in enumerate(looks.items()):
        rows = table[table[hue] == name]
        for i, value in enumerate(grid):
            runs = rows.loc[rows[x] == value, y].dropna().to_numpy()
            drawn.record(axis, style.label, value, runs)
            place = i + (k - (len(looks) - 1) / 2) * width
            _box(axis, runs, place, width, style)
            if not len(runs):
                tried = bool((rows[x] == value).any())
                _missing(axis, place, tried, style)
            if ceiling is not None and np.any(runs > ceiling):
                axis.plot(place, ceiling, "^", color=style.colour, ms=4, clip_on=False, zorder=4)
                count = f"{np.sum(runs > ceiling)}"
                axis.annotate(
                    count, (place, ceiling), (0, 2.5), textcoords="offset points", ha="center",
                    va="bottom", fontsize=7,
                )  # fmt: skip
    axis.set_xticks(range(len(grid)), [f"{value:g}" for value in grid])
    axis.set_xlim(-0.5, len(grid) - 0.5)
    axis.set_ylim(0, ceiling)
    for edge in np.arange(0.5, len(grid) - 1):
        axis.axvline(edge, color="#e6e6e6", lw=0.5, zorder=0)


def _missing(axis: Axes, place: float, tried: bool, style: Look) -> None:
    """Mark the place of a box that is not there."""
    shape = {"marker": "x", "ms": 4.5, "mew": 1.2} if tried else {"marker": "_", "ms": 4}
    at = axis.get_xaxis_transform()
    kind = NO_VALUE if tried else NOT_RUN
    axis.plot([place], [0.035], color=style.colour, transform=at, ls="", gid=kind, **shape)  # type: ignore[arg-type]


def missing_entries(figure: Figure) -> list[Line2D]:
    """Return legend entries of the marks that stand for boxes which are not there."""
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

    Parameters
    ----------
    axis : matplotlib.axes.Axes
        Of :func:`boxes` over epsilon.
    table : pandas.DataFrame
        One row per run, of one problem.
    hue : str
        Column of the groups.
    looks : mapping of str to Look
        The groups in drawing order. A marker tells whose line of numbers it is.
    grid : sequence of float
        The grid points in order.
    x : str
        Column of the epsilon that was asked for.

    Returns
    -------
    int
        How many lines were written: groups with the same numbers share one.
    """
    lines: dict[tuple[str, ...], list[Look]] = {}
    for name, style in looks.items():
        rows = table[table[hue] == name]
        real = rows.groupby(x)["guarantee_epsilon"].max()
        if not differs(real):
            continue
        drawn.record(axis, f"{style.label}: epsilon that holds", real.index, real)
        texts = tuple(epsilon_text(real[e]) if e in real.index else "" for e in grid)
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


def differs(real: pd.Series[float]) -> bool:
    """Return whether any epsilon that holds is not within 5 % of the one asked for, its index."""
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


def _box(axis: Axes, runs: Array, place: float, width: float, style: Look) -> None:
    if len(runs) == 0:
        return
    if len(runs) >= 5:
        parts = axis.boxplot(
            runs, positions=[place], widths=[0.8 * width], showfliers=False, patch_artist=True,
            manage_ticks=False,
        )  # fmt: skip
        for part in ("boxes", "whiskers", "caps", "medians"):
            for line in parts[part]:
                line.set(color=INK if part == "medians" else style.colour, linewidth=0.7)
        parts["boxes"][0].set(facecolor=style.colour, alpha=0.45)
        parts["medians"][0].set(linewidth=1.1)
    else:
        half = 0.36 * width
        axis.plot([place - half, place + half], [np.median(runs)] * 2, color=INK, lw=1.1)
    spread = np.linspace(-0.2, 0.2, len(runs)) * width if len(runs) > 1 else np.zeros(1)
    axis.plot(
        place + spread, runs, style.marker, color=style.colour, ms=1.8, mew=0, alpha=0.9, zorder=3
    )


def points(
    axis: Axes,
    table: pd.DataFrame,
    x: str,
    y: str,
    hue: str,
    looks: Mapping[str, Look],
    ceiling: float | None = None,
) -> None:
    """Draw one marker per run.

    Parameters
    ----------
    axis : matplotlib.axes.Axes
    table : pandas.DataFrame
        One row per run.
    x, y, hue : str
        Columns of both axes and of the group.
    looks : mapping of str to Look
        The groups in drawing order.
    ceiling : float, optional
        Upper limit of the axis. Runs above it are triangles at the top.
    """
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
    """Draw a thin dashed line at each of `values`: what exact samples reach."""
    drawn.record(axis, "exact sample", np.nan, list(values))
    for value in values:
        axis.axhline(value, color=GREY, lw=0.35, ls=(0, (8, 5)), zorder=0.5)


def marginal(axis: Axes, values: Array, weights: Array, grid: Array, **line: Any) -> None:
    """Draw the kernel density estimate of a weighted scalar sample over `grid`.

    Parameters
    ----------
    axis : matplotlib.axes.Axes
    values : ndarray of shape (m,)
    weights : ndarray of shape (m,)
    grid : ndarray of shape (g,)
    **line
        For ``Axes.plot``.
    """
    from scipy.stats import gaussian_kde  # takes long

    if np.ptp(values) > 0:
        axis.plot(grid, gaussian_kde(values, weights=weights)(grid), **line)


def joint(
    axis: Axes, values: Array, weights: Array, grids: tuple[Array, Array], masses: Sequence[float]
) -> tuple[Array, list[float]] | None:
    """Return a two-dimensional density estimate and the heights that enclose `masses`.

    Parameters
    ----------
    axis : matplotlib.axes.Axes
        Unused by the estimate; limits are set to the grids.
    values : ndarray of shape (m, 2)
    weights : ndarray of shape (m,)
    grids : pair of ndarray
        Coordinates along both axes, shapes (g,) and (h,).
    masses : sequence of float
        Shares of the probability on the grid, descending.

    Returns
    -------
    density : ndarray of shape (h, g)
    heights : list of float
        Ascending. None if the sample has no spread.
    """
    axis.set(xlim=(grids[0][0], grids[0][-1]), ylim=(grids[1][0], grids[1][-1]))
    if np.any(np.ptp(values, axis=0) == 0):
        return None
    from scipy.stats import gaussian_kde

    mesh = np.meshgrid(*grids)
    places = np.stack([part.ravel() for part in mesh])
    density = gaussian_kde(values.T, weights=weights)(places).reshape(mesh[0].shape)
    falling = np.sort(density.ravel())[::-1]
    shares = np.cumsum(falling) / falling.sum()
    heights = [float(falling[np.searchsorted(shares, mass)]) for mass in masses]
    return (density, heights) if np.all(np.diff(heights) > 0) else None


def guarantees(
    axis: Axes,
    table: pd.DataFrame,
    group: str,
    groups: Mapping[str, Look],
    hue: str,
    looks: Mapping[str, Look],
) -> None:
    """Draw the epsilon that holds over the epsilon that was asked for, side by side.

    Parameters
    ----------
    axis : matplotlib.axes.Axes
    table : pandas.DataFrame
        One row per run, of one problem.
    group : str
        Column of the groups distinguished by their marker.
    groups : mapping of str to Look
        The groups in drawing order.
    hue : str
        Column of the groups distinguished by colour.
    looks : mapping of str to Look
        The groups in drawing order.
    """
    grid = sorted(table["epsilon"].dropna().unique())
    pairs = [
        (shape, style, table[(table[group] == name) & (table[hue] == kind)])
        for name, shape in groups.items()
        for kind, style in looks.items()
    ]
    pairs = [pair for pair in pairs if not pair[2].empty]
    for i, asked in enumerate(grid):
        axis.plot([i - GROUP / 2, i + GROUP / 2], [asked] * 2, color=GREY, lw=0.8, zorder=0)
    for k, (shape, style, rows) in enumerate(pairs):
        real = rows.groupby("epsilon")["guarantee_epsilon"].max()
        drawn.record(axis, f"{shape.label}, {style.label}", real.index, real)
        shift = (k - (len(pairs) - 1) / 2) * GROUP / max(1, len(pairs))
        axis.plot(
            [grid.index(asked) + shift for asked in real.index], real, shape.marker, ls="",
            color=style.colour, ms=3.2, mfc="white", mew=0.9,
        )  # fmt: skip
    axis.set_xticks(range(len(grid)), [f"{asked:g}" for asked in grid])
    axis.set_xlim(-0.5, len(grid) - 0.5)
    axis.set(xlabel="ε asked for", ylabel="ε that holds", yscale="log")


def legend_entries(looks: Mapping[str, Look], exact: int = 0) -> list[Any]:
    """Return legend handles of boxes, and of the dashed lines of `exact` exact samples."""
    handles: list[Any] = [
        Patch(facecolor=s.colour, alpha=0.6, edgecolor=s.colour, label=s.label)
        for s in looks.values()
    ]
    if exact:
        line = {"color": GREY, "lw": 0.7, "ls": (0, (6, 3))}
        handles.append(Line2D([], [], label=f"{exact} exact samples", **line))  # type: ignore[arg-type]
    return handles
