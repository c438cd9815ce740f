"""The kinds of panel: boxes over a grid, points, marginal and joint densities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from dpmc.experiments.plots import drawn
from dpmc.experiments.plots.style import GREY, INK, Look
from dpmc.types import Array

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
    the median are drawn.

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
    """Draw the epsilon that holds against the epsilon that was asked for.

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
        Column of the groups distinguished by colour and line.
    looks : mapping of str to Look
        The groups in drawing order.
    """
    most = table["epsilon"].max()
    axis.plot([0, most], [0, most], color=GREY, lw=0.6, ls=(0, (4, 3)), zorder=0)
    for name, shape in groups.items():
        for kind, style in looks.items():
            chosen = table[(table[group] == name) & (table[hue] == kind)]
            if chosen.empty:
                continue
            real = chosen.groupby("epsilon")["guarantee_epsilon"].max()
            drawn.record(axis, f"{shape.label}, {style.label}", real.index, real)
            axis.plot(real.index, real, ls=style.line, color=style.colour, lw=0.9, alpha=0.8)
            axis.plot(
                real.index, real, shape.marker, color=style.colour, ms=3.2, mfc="white", mew=0.9
            )
    axis.set(xlabel="ε asked for", ylabel="ε that holds", xlim=(0, None), ylim=(0, None))


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
