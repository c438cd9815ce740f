"""Integrated autocorrelation times of chains, beside the lengths of these chains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dpmc.diagnostics.autocorrelation import LEAST_TIMES
from dpmc.types import UNAVAILABLE
from dpmc_papers.config import grids
from dpmc_papers.outputs import _thesis_panels as parts
from dpmc_papers.outputs._regression import CHAINS
from dpmc_papers.pipeline.results import Context
from dpmc_papers.plots import panels, style
from dpmc_papers.plots.style import Look

# Panels of studies of statistic selection, and what they are drawn against.
STUDIES = {
    "posterior_gaussian": ("Figure 6.1: Gaussian noise", "epsilon"),
    "posterior_laplace": ("Figure 6.2: Laplace noise", "epsilon"),
    "posterior_sequential": ("Figure 6.4: sequential releases", "epsilon"),
    "autocorrelation_particles": ("Table 6.1: Laplace noise, ε = 5", "num_particles"),
}
AXES = {"epsilon": "ε asked for", "num_particles": "particles"}
# Methods of different studies share their looks elsewhere; here they stand in one legend.
MARKERS = "osD^v<>pPh"


@style.styled
def by_problem(context: Context) -> Figure:
    """Draw the autocorrelation times of as-published chains against epsilon.

    Reads runs of one experiment. One panel per problem, as :func:`_drawn` has it, with the epsilon
    that holds.
    """
    rows = parts.as_published(context)
    rows = rows.assign(
        panel=rows["problem"].map(context.problem_label),
        kept=rows["num_draws"] / rows["num_chains"],
        key=rows["algorithm"],
        at="epsilon",
    )
    order = [context.problem_label(name) for name in context.problems(rows)]
    return _drawn(rows, order, parts.looks_of(rows), held=True)


@style.styled
def by_study(context: Context) -> Figure:
    """Draw the autocorrelation times of chains of several studies, all variants.

    Reads rows of the studies of ``STUDIES``, and of private regression. One panel per study of
    ``STUDIES``, against epsilon or the number of particles; one per profile and dimension of
    private regression; as :func:`_drawn` has it.
    """
    import seaborn

    rows = context.metrics
    rows = rows[~rows["status"].fillna("").str.startswith(UNAVAILABLE)]
    chains = rows["experiment"].isin(STUDIES) & (rows["method"] != "quadrature")
    selection = rows[chains].assign(key=rows["label"], kept=rows["num_iterations"])
    selection["panel"], selection["at"] = zip(*selection["experiment"].map(STUDIES), strict=True)
    selection["iac"] = selection["iac"].fillna(selection["iac_sokal"])
    regression = rows[rows["method"].isin(CHAINS)]
    settings = [context.config["studies"][name]["params"] for name in regression["experiment"]]
    regression = regression.assign(
        panel=regression["variant"].map(lambda name: style.look(name).label)
        + ": "
        + regression["problem"].map(context.problem_label),
        kept=[each["num_iterations"] - each["burn_in"] for each in settings],
        key=regression["method"],
        at="epsilon",
    )
    both = pd.concat([selection, regression], ignore_index=True)
    order = [title for title, _ in STUDIES.values() if title in set(both["panel"])]
    order += sorted(set(regression["panel"]))
    keys = sorted(set(both["key"]))
    colours = seaborn.color_palette("dark", len(keys)).as_hex()
    looks = {
        key: Look(_named(key), colour, marker)
        for key, colour, marker in zip(keys, colours, MARKERS, strict=False)
    }
    return _drawn(both, order, looks, held=False)


def _named(label: str) -> str:
    return style.method_label(grids.algorithm(label), label.partition("-")[2])


def _drawn(
    rows: pd.DataFrame, order: list[str], looks: Mapping[str, Look], *, held: bool
) -> Figure:
    """Medians of runs with their quartiles, a panel for each title, on one scale.

    A mark is hollow where fewer than half of the chains behind it are ``LEAST_TIMES`` times as
    long as their autocorrelation time. A dash stands at the draws that are kept of a chain. Runs
    in which a component stands still have no time: a cross at the top has their number.
    """
    if rows["iac"].isna().all():
        return style.note("This run holds no chains that are long enough.")
    long = rows["kept"] >= LEAST_TIMES * rows["iac"]
    rows = rows.assign(long=long.where(rows["iac"].notna()).astype(float))
    columns = min(2, len(order))
    height = -(-len(order) // columns)
    figure, axes = style.figure(height, columns, 1.1 + 1.8 * height, sharey=True)
    lines = 0
    for axis, title in zip(axes.flat, order, strict=False):
        lines = max(lines, _panel(axis, rows[rows["panel"] == title], looks, held))
        axis.set_title(title)
    axes[0, 0].set_yscale("log")  # not before: quartiles would be those of logarithms
    low, high = axes[0, 0].get_ylim()
    axes[0, 0].set_ylim(low, high * (high / low) ** 0.12)  # crosses stand above
    parts.finish(axes, len(order), "IAC, kept draws", lines)
    if not held:
        for axis, title in zip(axes.flat, order, strict=False):
            axis.set_xlabel(AXES[str(rows.loc[rows["panel"] == title, "at"].iloc[0])])
    marks: dict[str, Any] = {"ls": "", "ms": 4, "mew": 0.4, "mec": "white"}
    handles = [
        Line2D([], [], color=k.colour, marker=k.marker, label=k.label, **marks)
        for k in looks.values()
    ]
    grey: dict[str, Any] = {"color": style.GREY, "ls": "", "ms": 4}
    handles += [
        Line2D([], [], marker="o", mfc="white", mew=0.8, label="chains too short to tell", **grey),
        Line2D([], [], marker="_", label="draws kept of a chain", **grey),
        *panels.missing_entries(figure),
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=3)
    style.heading(figure, "Integrated autocorrelation times: lower is better")
    return figure


def _panel(axis: Axes, rows: pd.DataFrame, looks: Mapping[str, Look], held: bool) -> int:
    """Draw one panel, and return how many lines of numbers stand below its ticks."""
    at = str(rows["at"].iloc[0])
    grid = sorted(rows[at].unique())
    shown = {key: look for key, look in looks.items() if key in set(rows["key"])}
    most = rows.groupby([at, "key"])["long"].transform("mean") >= 0.5
    short = {k: replace(v, label=f"{v.label}, chains too short") for k, v in shown.items()}
    dashes = {k: replace(v, label=f"{v.label}: draws kept", marker="_") for k, v in shown.items()}
    bare: dict[str, Any] = {"markeredgewidth": 0.8, "markeredgecolor": None}
    panels.centres(axis, rows[most], at, "iac", "key", shown, grid)
    panels.centres(axis, rows[~most], at, "iac", "key", short, grid, mfc="white", **bare)
    panels.centres(axis, rows, at, "kept", "key", dashes, grid, errorbar=None, **bare)
    panels.missing(axis, rows, at, "iac", "key", shown, grid)
    return panels.held(axis, rows, "key", shown, grid) if held else 0
