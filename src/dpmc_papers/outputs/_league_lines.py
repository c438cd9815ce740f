"""Figures of the league that draw distances against a setting: rows, and the clip bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dpmc_papers.outputs._league_regressions import Panel, contest_panels
from dpmc_papers.outputs._league_table import DISTANCE, LOOKS, label, ordered
from dpmc_papers.pipeline.results import Context
from dpmc_papers.plots import drawn, panels, style
from dpmc_papers.plots.style import Look

BUDGETS = {
    1.0: Look("ε = 1", "#D55E00", "o"),
    4.0: Look("ε = 4", "#0072B2", "s", (0, (5, 1.5))),
}
FIXED = Look("fixed", "#0072B2", "o")
# By the share of factors that are to be longer than the bound.
FOUND = {
    0.5: Look("found: half of the factors are longer", "#D55E00", "s", "none"),
    0.9: Look("found: nine tenths of them are longer", "#009E73", "D", "none"),
}
EXACT = Look("deviation of the exact posterior", style.GREY, "", (0, (1, 2)))
BATCHES = {
    1: Look("all rows at once", "#0072B2", "o"),
    10: Look("ten batches that take turns", "#D55E00", "s"),
}
ERROR = "mean_error"


@style.styled
def rows(context: Context) -> Figure:
    """Draw the distance of methods against the number of rows: a panel a task.

    Reads runs of the study ``rows``.
    """
    runs = context.metrics
    looks = {
        name: replace(LOOKS.get(name, style.look(name)), label=label(name), line="-")
        for name in ordered(set(runs["label"]))
    }
    made = _panels(context, runs, "num_rows", "label", looks, "number of rows")
    sizes = sorted(set(runs["num_rows"]))
    for axis in made.axes:
        axis.set_xticks(range(len(sizes)), [f"{size:,.0f}" for size in sizes])
    _legend(made, looks, 3)
    style.heading(made, "Distance against the number of rows, at ε = 1")
    return made


@style.styled
def clip(context: Context) -> Figure:
    """Draw the distance of unadjusted Langevin against its clip bound: a panel a task.

    Reads runs of the study ``clip``.
    """
    runs = context.metrics
    looks = {key: look for key, look in BUDGETS.items() if key in set(runs["epsilon"])}
    made = _panels(context, runs, "clip_factor", "epsilon", looks, "clip bound / the one found")
    _legend(made, looks, 2)
    style.heading(made, "Unadjusted Langevin with other clip bounds")
    return made


@style.styled
def sep_clip(context: Context) -> Figure:
    """Draw how far DP-SEP ends from the means, against its clip bound: a panel for each epsilon.

    Reads runs of the study ``sep_clip``. Medians with quartiles: a line of fixed bounds, and a
    point for each rule that finds one, at the median of what it found.
    """
    runs = context.metrics
    epsilons = sorted(set(runs["epsilon"]))
    figure, axes = style.figure(1, len(epsilons), 2.8, sharey=True)
    for axis, epsilon in zip(axes[0], epsilons, strict=True):
        part = runs[(runs["epsilon"] == epsilon) & (runs["status"] == "complete")]
        lines = part[part["label"] == "fixed"]
        _line(axis, lines, "clip_bound", FIXED, ERROR)
        of_fixed = lines.groupby("clip_bound")[ERROR]
        for share, name in ((0.25, "first quartile"), (0.5, "median"), (0.75, "third quartile")):
            ends = of_fixed.quantile(share)
            drawn.record(axis, f"{FIXED.label}: {name}", ends.index, ends)
        for share, look in FOUND.items():
            here = part[part["clipped_share"] == share]
            if len(here):
                x, y = _quartiles(here["bound"]), _quartiles(here[ERROR])
                axis.errorbar(
                    x[1], y[1], xerr=[[x[1] - x[0]], [x[2] - x[1]]],
                    yerr=[[y[1] - y[0]], [y[2] - y[1]]], color=look.colour, marker=look.marker,
                    ms=5, lw=0.8, ls="", zorder=4,
                )  # fmt: skip
                drawn.record(axis, look.label, x[1], y[1])
        axis.axhline(part["exact_sd"].median(), color=EXACT.colour, lw=1, ls=EXACT.line)
        axis.set(title=f"ε = {epsilon:g}", xscale="log", xlabel="clip bound", ylim=(0, None))
        bounds = sorted(set(lines["clip_bound"].dropna()))
        axis.set_xticks(bounds, [f"{value:g}" for value in bounds])
        axis.minorticks_off()
    axes[0, 0].set_ylabel("distance of means")
    found = {str(key): look for key, look in FOUND.items()}
    _legend(figure, {"fixed": FIXED, **found, "exact": EXACT}, 2)
    style.heading(figure, "DP-SEP: a fixed clip bound, or one found under the same budget")
    return figure


@style.styled
def shapes(context: Context) -> Figure:
    """Draw the distance of methods against epsilon where the posterior is not normal.

    Reads runs of the study ``shapes``. The dotted line is the distance of the normal law that has
    mean and covariance of the posterior.
    """
    runs = context.metrics
    ticks = {value: f"{value:g}" for value in sorted(set(runs["epsilon"]))}
    made = [
        Panel(runs[runs["problem"] == name], "epsilon", ticks, context.problem_label(name), "ε")
        for name in context.problems(runs)
    ]
    half = -(-len(made) // 2)
    rows = [made[:half], made[half:]] if len(made) % 2 == 0 else [made]
    heading = "Where the posterior is not normal: who gains by more budget?"
    figure = contest_panels(rows, DISTANCE, "sliced distance", heading, LOOKS)
    for axis, panel in zip(figure.axes, made, strict=True):
        floor = panel.runs["normal_distance"].median()
        axis.axhline(floor, color=style.GREY, lw=0.8, ls=(0, (1, 2)), zorder=0)
        drawn.record(axis, "best normal law", np.nan, floor)
    return figure


@style.styled
def noise(context: Context) -> Figure:
    """Draw effective draws over k against the correlation of noise, and of hidden noise.

    Reads runs of the study ``noise``. Two standard errors of the mean square over chains; dashes
    are the theory of :mod:`dpmc_league.noises`.
    """
    runs = context.metrics
    correlations = sorted(set(runs.loc[runs["label"] == "released", "correlation"]))
    words = [*(f"{value:g}" for value in correlations), "hidden"]
    figure, axes = style.figure(1, 1, 2.8)
    axis = axes[0, 0]
    for number, (batches, look) in enumerate(BATCHES.items()):
        for place, word in enumerate(words):
            part = runs[(runs["batches"] == batches) & (runs["label"] != "hidden")]
            part = part[part["correlation"].map("{:g}".format) == word]
            if word == "hidden":
                part = runs[(runs["batches"] == batches) & (runs["label"] == "hidden")]
            if part.empty:
                continue
            cost, se = part["cost"].mean(), part["cost"].std() / np.sqrt(len(part))
            x = place + 0.2 * (number - 0.5)
            low, high = 1 / (cost + 2 * se), 1 / (cost - 2 * se)
            axis.plot([x, x], [low, high], color=look.colour, lw=1)
            axis.plot([x], [1 / cost], look.marker, color=look.colour, ms=4)
            share = part["theory_share"].iloc[0]
            axis.plot([x - 0.09, x + 0.09], [share, share], color=style.INK, lw=0.8, ls="--")
            correlation = np.nan if word == "hidden" else float(word)
            drawn.record(axis, f"{look.label}, {word}", correlation, 1 / cost)
    axis.set_xticks(range(len(words)), words)
    axis.set(yscale="log", ylabel="effective draws / k", xlabel="correlation of released noise")
    _legend(figure, BATCHES, 2)
    style.heading(figure, "Does correlated noise pay, and hidden noise?")
    return figure


def _quartiles(values: pd.Series) -> tuple[float, float, float]:
    low, middle, high = values.quantile([0.25, 0.5, 0.75])
    return float(low), float(middle), float(high)


def _panels(
    context: Context,
    runs: pd.DataFrame,
    x: str,
    hue: str,
    looks: Mapping[object, Look] | Mapping[str, Look] | Mapping[float, Look],
    words: str,
) -> Figure:
    tasks = context.problems(runs)
    figure, axes = style.figure(1, len(tasks), 2.7, sharey=True)
    grid = sorted(set(runs[x].dropna()))
    for axis, task in zip(axes[0], tasks, strict=True):
        part = runs[runs["problem"] == task]
        panels.centres(
            axis, part, x, DISTANCE, hue, looks, grid, dodge=0.07 * (len(looks) - 1),
            linestyles=[k.line for k in looks.values()], markersize=4, markeredgewidth=0,
        )  # fmt: skip
        axis.set(title=context.problem_label(task), xlabel=words)
    axes[0, 0].set(yscale="log", ylabel="sliced distance")
    return figure


def _line(axis: Axes, runs: pd.DataFrame, x: str, look: Look, y: str) -> None:
    """Draw medians with quartiles."""
    scored = runs[runs[y].notna()]
    if scored.empty:
        return
    at = np.array(sorted(set(scored[x])), dtype=float)
    parts: Sequence[pd.Series] = [scored.loc[scored[x] == value, y] for value in at]
    low, middle, high = np.transpose([part.quantile([0.25, 0.5, 0.75]) for part in parts])
    axis.errorbar(
        at, middle, yerr=[middle - low, high - middle], color=look.colour,
        marker=look.marker, ms=4, lw=1, elinewidth=0.8, ls=look.line, label=look.label,
    )  # fmt: skip


def _legend(
    figure: Figure,
    looks: Mapping[Any, Look],
    columns: int,
) -> None:
    handles = [
        Line2D([], [], color=one.colour, marker=one.marker, ms=4, ls=one.line, label=one.label)
        for one in looks.values()
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=columns)
