"""Figures and the table of contests of regressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dpmc_papers.pipeline.results import Context
from dpmc_papers.plots import panels, style
from dpmc_papers.plots.style import Look

ERROR, AGAINST = "slope_error", "against_nothing"
COMPLETE = "complete"
# Settings that methods of the league have beside their label, and columns of the table.
SETTINGS = ["num_rows", "constant", "width", "num_steps", "clip_bound"]
KEYS = ["experiment", "problem", "label", "epsilon", *SETTINGS]
# Width of the ranges that rows are in.
WIDTH = 2.5
MEDIANS = ("num_ones", AGAINST, "width_ratio")
LOOKS = {
    "dpmc": Look("dpmc.regression", "#009E73", "v"),
    "row": Look("a row, substituted", "#0072B2", "o"),
    "row_add_remove": Look("a row, added or removed", "#56B4E9", "s"),
    "person": Look("a person of five rows", "#D55E00", "^"),
    "person_by_rows": Look("a fifth of the budget for each row", "#767676", "X"),
    "diffprivlib": Look("diffprivlib (delta 0)", "#CC79A7", "D"),
    "gradient_ascent": Look("gradient ascent, best of four", "#E69F00", "P"),
    "statistics_gaussian": Look("statistics, Gaussian noise", "#0072B2", "o"),
    "statistics_laplace": Look("statistics, Laplace noise (delta 0)", "#D55E00", "s"),
    "one_sample": Look("one draw (delta 0)", "#222222", "*"),
    "napsu_mq": Look("NAPSU-MQ: knows of the noise", "#0072B2", "o"),
    "mst": Look("MST, as if it were real", "#E69F00", "s"),
    "aim": Look("AIM, as if it were real", "#D55E00", "^"),
    "aim_sets": Look("AIM, 20 sets of one release", "#CC79A7", "D"),
    "aim_releases": Look("AIM, five releases", "#767676", "X"),
}


class Panel(NamedTuple):
    """Runs of one panel against a column, by the words of its values."""

    runs: pd.DataFrame
    x: str
    ticks: Mapping[Any, str]
    title: str
    label: str


@style.styled
def persons(context: Context) -> Figure:
    """Draw errors for a row and for a person against epsilon: a panel a problem.

    Reads runs of the study ``persons``.
    """
    runs = context.metrics
    ticks = {value: f"{value:g}" for value in sorted(set(runs["epsilon"]))}
    made = [
        Panel(runs[runs["problem"] == name], "epsilon", ticks, context.problem_label(name), "ε")
        for name in context.problems(runs)
    ]
    words = "error of slopes, posterior deviations"
    return contest_panels(
        [made], ERROR, words, "A person against a row, removal against substitution"
    )


@style.styled
def survivors(context: Context) -> Figure:
    """Draw errors over those of slopes of zero: rare outcomes, wide ranges; a row for each epsilon.

    Reads runs of the studies ``rare`` and ``units``. Gradient ascent has at each point the setting
    with the least median.
    """
    rows = []
    for epsilon in sorted(set(context.metrics["epsilon"])):
        runs = _best_settings(context.metrics[context.metrics["epsilon"] == epsilon])
        rare, units = (runs[runs["experiment"] == name] for name in ("rare", "units"))
        ones = rare.groupby("constant")["num_ones"].median().sort_index(ascending=False)
        rare = rare.assign(ones=rare["constant"].map(ones))
        units = units.assign(ratio=units["width"] / WIDTH)
        shares = {value: f"{value:,.0f}" for value in ones}
        widths = {value: f"{value:,.0f}" for value in sorted(set(units["ratio"]))}
        title = f"ε = {epsilon:g}"
        rows.append(
            [
                Panel(rare, "ones", shares, title, "ones among 20,000 rows"),
                Panel(units, "ratio", widths, title, "public range / that of the rows"),
            ]
        )
    made = contest_panels(
        rows, AGAINST, "error / that of zero slopes", "Rare outcomes and wide ranges: who survives?"
    )
    for axis in made.axes:
        axis.axhline(1, color=style.GREY, lw=0.8, ls=(0, (1, 2)), zorder=0)
    return made


@style.styled
def pure(context: Context) -> Figure:
    """Draw errors with delta 0 and without: linear by dimension, logistic by rows.

    Reads runs of the studies ``statistics`` and ``one_sample``.
    """
    rows = []
    for epsilon in sorted(set(context.metrics["epsilon"])):
        runs = context.metrics[context.metrics["epsilon"] == epsilon]
        lines, logit = (runs[runs["experiment"] == name] for name in ("statistics", "one_sample"))
        dims = {value: f"{value:g}" for value in sorted(set(lines["dim"]))}
        sizes = {value: f"{value:,.0f}" for value in sorted(set(logit["num_rows"]))}
        title = f"ε = {epsilon:g}"
        rows.append(
            [
                Panel(lines, "dim", dims, f"linear, {title}", "number of features"),
                Panel(logit, "num_rows", sizes, f"logistic, {title}", "number of rows"),
            ]
        )
    return contest_panels(rows, ERROR, "error of slopes", "What does delta = 0 cost?")


@style.styled
def synthetic(context: Context) -> Figure:
    """Draw errors on synthetic data and without against epsilon: a row a size, a column a problem.

    Reads runs of the study ``synthetic``.
    """
    runs = context.metrics
    ticks = {value: f"{value:g}" for value in sorted(set(runs["epsilon"]))}
    rows = []
    for size in sorted(set(runs["num_rows"])):
        of_size = runs[runs["num_rows"] == size]
        rows.append(
            [
                Panel(of_size[of_size["problem"] == name], "epsilon", ticks,
                      f"{context.problem_label(name)}, n = {size:,.0f}", "ε")
                for name in context.problems(runs)
            ]
        )  # fmt: skip
    words = "error of slopes"
    return contest_panels(rows, ERROR, words, "Synthetic data or direct inference?")


def contests(context: Context) -> pd.DataFrame:
    """What the runs of each method at each setting come to.

    Reads runs of the contests of regressions. One row per study, problem, method and setting: how
    many runs there are and how many have a score, median and quartiles of the error of slopes in
    posterior deviations, medians of other scores, mean coverage, the guarantee, and why runs have
    no score.
    """
    groups = context.metrics.groupby(KEYS, dropna=False, sort=False)
    quartiles = {"q1": 0.25, "median": 0.5, "q3": 0.75}
    found = pd.DataFrame(
        {
            "runs": groups.size(),
            "scored": groups[ERROR].count(),
            **{name: groups[ERROR].quantile(share) for name, share in quartiles.items()},
            **{name: groups[name].median() for name in MEDIANS},
            "coverage_90": groups["coverage_90"].mean(),
            "guarantee_epsilon": groups["guarantee_epsilon"].max(),
            "guarantee_delta": groups["guarantee_delta"].max(),
            "guarantee_neighbours": groups["guarantee_neighbours"].first(),
            "guarantee_unit": groups["guarantee_unit"].first(),
            "status": groups["status"].agg(lambda s: "; ".join(sorted(set(s) - {COMPLETE}))),
        }
    )
    return found.reset_index()


def _best_settings(runs: pd.DataFrame) -> pd.DataFrame:
    """Runs of each method at the setting of its own with the least median error at a point."""
    place, own = ["experiment", "label", "constant", "width"], ["num_steps", "clip_bound"]
    medians = runs.groupby([*place, *own], dropna=False)[ERROR].median().reset_index()
    medians = medians.sort_values(ERROR, na_position="last")
    best = medians.drop_duplicates(place)[[*place, *own]]
    return runs.merge(best, on=[*place, *own])


def contest_panels(
    rows: Sequence[Sequence[Panel]],
    y: str,
    words: str,
    heading: str,
    of: Mapping[str, Look] = LOOKS,
) -> Figure:
    """Draw medians with quartiles: rows of panels with one scale, and the methods above them."""
    names = {name for row in rows for panel in row for name in set(panel.runs["label"])}
    looks = {name: look for name, look in of.items() if name in names}
    figure, axes = style.figure(len(rows), len(rows[0]), 0.9 + 2.0 * len(rows), sharey=True)
    for line, row in zip(axes, rows, strict=True):
        for axis, panel in zip(line, row, strict=True):
            _panel(axis, panel, y, looks)
        line[0].set_ylabel(words)
    axes[0, 0].set_yscale("log")  # they share it
    handles = [
        Line2D([], [], color=one.colour, marker=one.marker, ms=4, ls="", label=one.label)
        for one in looks.values()
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=2)
    style.heading(figure, heading)
    return figure


def _panel(axis: Axes, panel: Panel, y: str, looks: Mapping[str, Look]) -> None:
    """Draw medians with quartiles of the methods that are in a panel."""
    here = {name: look for name, look in looks.items() if name in set(panel.runs["label"])}
    grid = list(panel.ticks)
    if here:
        panels.centres(axis, panel.runs, panel.x, y, "label", here, grid)
    axis.set_xticks(range(len(grid)), list(panel.ticks.values()))
    axis.set(title=panel.title, xlabel=panel.label)
