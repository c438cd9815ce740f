"""Figures and tables of the league of methods."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from dpmc.types import Array
from dpmc_league import theory
from dpmc_papers.outputs import (
    _league_accounting,
    _league_lines,
    _league_regressions,
    _league_table,
)
from dpmc_papers.outputs._league_table import DISTANCE, LOOKS, label, nearest, ordered, why
from dpmc_papers.pipeline.results import Context
from dpmc_papers.plots import drawn, style

accountants = _league_accounting.accountants
batches = _league_accounting.batches
clip = _league_lines.clip
sep_clip = _league_lines.sep_clip
rows = _league_lines.rows
shapes = _league_lines.shapes
noise = _league_lines.noise
persons = _league_regressions.persons
survivors = _league_regressions.survivors
pure = _league_regressions.pure
synthetic = _league_regressions.synthetic
contests = _league_regressions.contests
standings = _league_table.standings
attacks = _league_table.attacks

# Colours of cells reach from one distance to the other, and text is white below a third.
LOWEST, HIGHEST, DARK = 0.03, 3.0, 0.12
SHADES = colormaps["Blues_r"](np.linspace(0.15, 1, 256))
KEY = (
    "median distance; bold: the nearest, or may be as near; *: some runs have no score\n"
    "×: no run has a score; –: the method does not take part"
)
MOST = 9999.5
LINES = (("k", theory.langevin), ("0.331 k / d", theory.penalty), ("0.114 k / d", theory.hmc))
EPSILONS = {1.0: "#D55E00", 4.0: "#0072B2"}


@style.styled
def winners(context: Context) -> Figure:
    """Write the median sliced distance of each method on each task: a panel for each epsilon.

    Reads runs of the studies of the league. In bold the nearest, and those that may be as near
    (:func:`_league_table.nearest`). A star where some runs have no score, a cross where none has
    one, a dash where a method does not take part.
    """
    rows = context.metrics
    tasks, methods = context.problems(rows), ordered(set(rows["label"]))
    epsilons = sorted(set(rows["epsilon"].dropna()))
    near = nearest(rows)
    height = 1.6 + len(epsilons) * (0.3 + 0.165 * len(tasks))
    figure, axes = style.figure(len(epsilons), 1, height, sharex=True)
    for axis, epsilon in zip(axes[:, 0], epsilons, strict=True):
        part = rows[rows["epsilon"] == epsilon]
        for y, task in enumerate(tasks):
            for x, method in enumerate(methods):
                runs = part[(part["problem"] == task) & (part["label"] == method)]
                _cell(axis, x, y, runs, near.get((task, epsilon, method), False))
                drawn.record(axis, f"{label(method)}, {task}", epsilon, runs[DISTANCE].median())
        axis.set_yticks(range(len(tasks)), [context.problem_label(task) for task in tasks])
        axis.set_xticks(
            range(len(methods)), [label(name) for name in methods], rotation=60, ha="left",
            rotation_mode="anchor",
        )  # fmt: skip
        axis.set(xlim=(-0.5, len(methods) - 0.5), ylim=(len(tasks) - 0.5, -0.5))
        axis.set_ylabel(f"ε = {epsilon:g}", fontsize=8, fontweight="bold")
        axis.tick_params(length=0, labeltop=axis is axes[0, 0], labelbottom=False)
        for side in axis.spines.values():
            side.set_visible(False)
    figure.suptitle("Sliced distance to the exact posterior, medians", fontweight="bold")
    colours = ScalarMappable(LogNorm(LOWEST, HIGHEST), ListedColormap(SHADES))
    bar = figure.colorbar(
        colours, ax=list(axes[:, 0]), location="bottom", aspect=50, shrink=0.5, pad=0.02,
        ticks=[LOWEST, 0.1, 0.3, 1, HIGHEST], format="%g", extend="both",
    )  # fmt: skip
    bar.ax.minorticks_off()
    bar.set_label(KEY)
    return figure


def _cell(axis: Axes, x: int, y: int, runs: pd.DataFrame, bold: bool) -> None:
    """Write one number, or why there is none."""
    scored = runs[DISTANCE].dropna()
    if scored.empty:
        sign = why(runs) if len(runs) else "–"
        axis.annotate(sign, (x, y), ha="center", va="center", color=style.GREY, fontsize=7)
        return
    value = float(scored.median())
    share = LogNorm(LOWEST, HIGHEST, clip=True)(value)
    colour = SHADES[round(float(share) * (len(SHADES) - 1))]
    axis.add_patch(Rectangle((x - 0.48, y - 0.46), 0.96, 0.92, color=colour, lw=0))
    text = _number(value) + ("*" if len(scored) < len(runs) else "")
    axis.annotate(
        text, (x, y), ha="center", va="center", fontsize=7, fontweight="bold" if bold else "normal",
        color="white" if value < DARK else style.INK,
    )  # fmt: skip


@style.styled
def price(context: Context) -> Figure:
    """Draw effective draws over k, and the acceptance, against the dimension.

    Reads runs of the study ``price``. Two standard errors; lines are those of
    :mod:`dpmc_league.theory`.
    """
    table = prices(context)
    figure, axes = style.figure(1, 2, 3.0)
    left, right = axes[0]
    dims = np.geomspace(table["dim"].min(), table["dim"].max(), 50)
    for text, line in LINES:
        values = [line(1.0, dim) for dim in dims]
        left.plot(dims, values, color="0.6", lw=1, zorder=1)
        left.annotate(
            text, (dims[-1], values[-1]), xytext=(5, 0), textcoords="offset points", fontsize=7,
            color="0.35", va="center", annotation_clip=False,
        )  # fmt: skip
    right.axhline(theory.acceptance(theory.best_spread()), color="0.6", lw=1, zorder=1)
    for number, method in enumerate(ordered(set(table["method"]))):
        look, points = LOOKS[method], table[table["method"] == method]
        at, hollow = points["dim"], number % 2  # so that marks at one place are both seen
        marks: dict[str, Any] = {"color": look.colour, "marker": look.marker, "ms": 4, "ls": ""}
        marks |= {"ms": 7, "mfc": "none", "mew": 0.9} if hollow else {}
        left.errorbar(at, points["share"], yerr=2 * points["se"], lw=1, label=look.label, **marks)
        if points["acceptance_rate"].lt(1).any():
            right.plot(at, points["acceptance_rate"], label=look.label, **marks)
    for axis in (left, right):
        axis.set(xscale="log", xlabel="dimension d")
    left.set(
        yscale="log",
        ylabel="effective draws /\nexact draws that the budget is worth, k",
        xlim=(dims[0] / 1.2, dims[-1] * 4),
    )
    for axis in (left, right):
        axis.set_xticks(sizes := sorted(set(table["dim"])), [str(size) for size in sizes])
        axis.minorticks_off()
    right.set(ylabel="share of proposals accepted", ylim=(0, 0.5))
    figure.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=4)
    style.heading(figure, "The price of the acceptance test, on a normal target")
    return figure


def prices(context: Context) -> pd.DataFrame:
    """Effective draws over k of each method at each dimension.

    ``share``, its standard error ``se`` over chains, what the theory has, how many standard errors
    they are apart, and the mean acceptance.
    """
    rows = []
    runs = context.metrics
    for method, dim in dict.fromkeys(zip(runs["label"], runs["dim"].astype(int), strict=True)):
        group = runs[(runs["label"] == method) & (runs["dim"] == dim)]
        cost, number = group["cost"].mean(), len(group)
        share = 1 / cost
        # Each chain has d squares of normal errors.
        se = share * math.sqrt(2 / (number * dim))
        expected = float(group["theory_share"].iloc[0])
        rows.append(
            {
                "method": method,
                "dim": dim,
                "chains": number,
                "share": share,
                "se": se,
                "theory": expected,
                "apart": (share - expected) / se,
                "acceptance_rate": group["acceptance_rate"].mean(),
            }
        )
    return pd.DataFrame(rows)


@style.styled
def released(context: Context) -> Figure:
    """Draw the distance of DP-HMC over that of the posterior of the gradients it released.

    Reads runs of the study ``table``: both methods run the same chain in a replicate. Medians of
    ratios with quartiles, and all ratios as dots: above 1 the released gradients are nearer.
    """
    rows = context.metrics
    chosen = rows[rows["label"].isin(["hmc", "hmc_releases"])]
    wide = chosen.pivot_table(DISTANCE, ["problem", "epsilon", "replicate"], "label").dropna()
    if not {"hmc", "hmc_releases"} <= set(wide.columns) or wide.empty:
        return style.note("DP-HMC and what it released are not in this run.")
    ratios = (wide["hmc"] / wide["hmc_releases"]).rename("ratio").reset_index()
    tasks = context.problems(ratios)
    figure, axes = style.figure(1, 1, 1.0 + 0.23 * len(tasks))
    axis = axes[0, 0]
    epsilons = sorted(set(ratios["epsilon"]))
    for number, epsilon in enumerate(epsilons):
        colour = EPSILONS.get(epsilon, style.INK)
        for y, task in enumerate(tasks):
            part = ratios[(ratios["epsilon"] == epsilon) & (ratios["problem"] == task)]["ratio"]
            place = y + 0.32 * (number - (len(epsilons) - 1) / 2)
            drawn.record(axis, f"ε = {epsilon:g}, {context.problem_label(task)}", part, place)
            _spread(axis, part.to_numpy(), place, colour, "os"[number % 2])
    axis.axvline(1, color=style.GREY, lw=0.7, ls=(0, (1, 2)), zorder=0)
    axis.set_yticks(range(len(tasks)), [context.problem_label(task) for task in tasks])
    axis.set(xscale="log", ylim=(len(tasks) - 0.5, -0.5))
    axis.set_xlabel("distance of DP-HMC over that of what it released")
    handles = [
        Line2D(
            [], [], color=EPSILONS.get(e, style.INK), marker="os"[k % 2], ms=4, label=f"ε = {e:g}"
        )
        for k, e in enumerate(epsilons)
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=2)
    style.heading(figure, "Does the posterior of the released gradients beat its chain?")
    return figure


def _spread(axis: Axes, values: Array, place: float, colour: str, marker: str) -> None:
    """Draw a median with quartiles, and all values."""
    if not len(values):
        return
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    axis.plot(values, np.full(len(values), place), ".", color=colour, ms=2, alpha=0.5, zorder=2)
    axis.plot([low, high], [place, place], color=colour, lw=1.2, zorder=3)
    axis.plot([middle], [place], marker, color=colour, ms=4, zorder=4)


def _number(value: float) -> str:
    """Distance with two significant digits, cut at four figures."""
    if value > MOST:
        return ">10⁴"
    return f"{value:.0f}" if value >= 10 else f"{value:#.2g}" if value >= 0.1 else f"{value:.2f}"
