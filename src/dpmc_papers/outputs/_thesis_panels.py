"""Selection of runs, panels and legends of the comparison figures of Räisä 2021."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpmc.types import DpmcError
from dpmc_papers.pipeline.results import Context
from dpmc_papers.plots import panels, style
from dpmc_papers.plots.style import Look
from dpmc_papers.verdicts.evidence import AS_PUBLISHED

FINAL = "_final"  # ending of the problems of the final version of the code
GUIDELINE = 0.1  # of ratios clipped, section 6.2
NAMES = {
    "mmd": "MMD",
    "mean_norm": "distance of the mean from 0",
    "ratio_clip_fraction": "fraction of ratios clipped",
    "gradient_clip_fraction": "fraction of gradients clipped",
}


def grid(
    context: Context,
    rows: pd.DataFrame,
    problems: Sequence[str],
    metric: str,
    looks: dict[str, Look],
    columns: int,
    top: float | None,
    aligned: bool = True,
) -> Figure:
    """Figure of one panel per problem, filled row by row.

    The axes end at `top`, or above it where a run does; at their own runs without it.
    If `aligned`, all panels have the same values of epsilon.
    """
    columns = min(columns, len(problems))
    height = -(-len(problems) // columns)
    share = "row" if top is not None else False
    if top is not None and rows[metric].max() > top:
        top = 1.03 * rows[metric].max()
    each = 1.98 if columns == 1 else 1.85
    figure, axes = style.figure(height, columns, 0.65 + each * height, sharey=share)
    epsilons = sorted(rows["epsilon"].dropna().unique()) if aligned else None
    lines = 0
    for axis, problem in zip(axes.flat, problems, strict=False):
        panel_rows = rows[rows["problem"] == problem]
        lines = max(lines, panel(axis, context, panel_rows, metric, looks, top, epsilons))
        axis.set_title(context.problem_label(problem))
    finish(axes, len(problems), NAMES[metric], lines)
    exact = len(context.exact(problems[0], metric))
    legend(figure, looks, exact, 4)
    return figure


def panel(
    axis: Axes,
    context: Context,
    rows: pd.DataFrame,
    metric: str,
    looks: dict[str, Look],
    top: float | None = None,
    epsilons: Sequence[float] | None = None,
) -> int:
    """Draw a metric against epsilon with what exact samples reach, or the guideline.

    Algorithms without a run in `rows` have no place. Returns how many lines of numbers
    below the ticks tell which epsilon holds.
    """
    present = set(rows["algorithm"])
    shown = {name: look for name, look in looks.items() if name in present}
    grid = sorted(rows["epsilon"].dropna().unique()) if epsilons is None else epsilons
    panels.boxes(axis, rows, "epsilon", metric, "algorithm", shown, grid=grid)
    axis.set_ylim(0, top)
    if metric == "ratio_clip_fraction":
        axis.axhline(GUIDELINE, color=style.INK, lw=0.7, ls=":", zorder=0.5)
        axis.set_ylim(0, max(axis.get_ylim()[1], 1.1 * GUIDELINE))
    for problem in rows["problem"].unique():
        panels.levels(axis, context.exact(str(problem), metric))
    return panels.held(axis, rows, "algorithm", shown, grid)


def square_root(axis: Axes, top: float = 1.0) -> None:
    """Give small fractions more of the axis than large ones, from 0 to `top`."""
    axis.set_yscale("function", functions=(np.sqrt, np.square))
    axis.set_ylim(0, top)
    ticks = [tick for tick in (0, 0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1) if tick <= top]
    if top > 0.3:
        ticks = [tick for tick in ticks if tick not in (0.005, 0.05)]
    axis.set_yticks(ticks, [f"{tick:g}" for tick in ticks])


def finish(axes: Any, used: int, ylabel: str, lines: int = 0) -> None:
    """Label the outer axes of a grid and hide those that hold nothing.

    With `lines` of numbers below the ticks, the label says what they are.
    """
    columns = axes.shape[1]
    for k, axis in enumerate(axes.flat):
        if k >= used:
            axis.set_axis_off()
            continue
        axis.set_ylabel(ylabel if k % columns == 0 else "")
        last = (
            columns == 1 or k + columns >= used
        )  # numbers below a wide panel are far from the last
        axis.set_xlabel(panels.epsilon_label(lines, columns) if last else "")


def legend(figure: Figure, looks: dict[str, Look], exact: int, columns: int) -> None:
    """Draw the legend of boxes and of `exact` samples above all panels."""
    handles = [*panels.legend_entries(looks, exact), *panels.missing_entries(figure)]
    if any(len(str(handle.get_label())) > 20 for handle in handles):
        columns = min(columns, 3)
    figure.legend(handles=handles, loc="outside upper center", ncols=min(columns, len(handles)))


def heading(figure: Figure, context: Context, name: str, note: str = "as published") -> None:
    """Say above a figure of which document and of which experiment it is."""
    experiments = set(context.metrics["experiment"])
    settings = {"text": "settings of the text", "final": "FINAL code"}
    told = [words for key, words in settings.items() if key in experiments]
    style.heading(figure, ", ".join([f"Räisä 2021, {name}", note, *told]))


def only(context: Context) -> pd.DataFrame:
    """Runs of the one experiment that a figure reads."""
    names = list(dict.fromkeys(context.metrics["experiment"]))
    if len(names) != 1:
        raise DpmcError(f"`metrics` must name one experiment, got {', '.join(names) or 'none'}")
    return context.experiment(names[0])


def as_published(context: Context) -> pd.DataFrame:
    """Runs that do what the thesis or its code did."""
    rows = only(context)
    return rows[rows["variant"] == AS_PUBLISHED]


def chosen(context: Context, rows: pd.DataFrame, wanted: Sequence[str]) -> list[str]:
    """Problems of `rows` that are `wanted`, in that order, whatever their ending."""
    by_label = {name.removesuffix(FINAL): name for name in context.problems(rows)}
    return [by_label[name] for name in wanted if name in by_label]


def looks_of(rows: pd.DataFrame) -> dict[str, Look]:
    """Algorithms of `rows` in drawing order."""
    return {name: style.look(name) for name in style.ordered(rows["algorithm"], style.METHODS)}
