"""Selection of runs and intervals, for tables and figures of private distributed regression."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpmc.types import UNAVAILABLE
from dpmc_papers.outputs._statsel import interval
from dpmc_papers.pipeline.results import Context
from dpmc_papers.plots import panels as panels_style
from dpmc_papers.plots import style
from dpmc_papers.plots.style import Look

METHODS = ("mcmc_normal_x", "mcmc_fixed_s", "bayes_fixed_s_fast", "mcmc_bs", "adassp")
# Estimators that read the rows themselves.
EXACT = ("ols", "posterior")
PROFILES = ("authors", "final", "thesis", "correct")
SMALL = 0.001  # below this a squared MMD is noise
# The public code scores these by the loss averaged over draws, the others by a point estimate.
CHAINS = ("mcmc_normal_x", "mcmc_fixed_s", "mcmc_bs")


def unavailable(rows: pd.DataFrame) -> bool:
    """Whether the data of these runs could not be had."""
    return bool(len(rows)) and bool(rows["status"].str.startswith(UNAVAILABLE).all())


def available(context: Context) -> list[str]:
    """Problems of an output whose data could be had, in the order of the document."""
    rows = context.metrics
    return [
        name for name in context.problems(rows) if not unavailable(rows[rows["problem"] == name])
    ]


def cells(context: Context, rows: pd.DataFrame) -> Iterator[tuple[str, int, str, pd.DataFrame]]:
    """Problem, number of nodes, profile and their runs, in the order of the document."""
    for problem in context.problems(rows):
        panel_rows = rows[rows["problem"] == problem]
        for nodes in sorted(panel_rows["num_nodes"].unique()):
            for variant in PROFILES:
                chosen = panel_rows[
                    (panel_rows["num_nodes"] == nodes) & (panel_rows["variant"] == variant)
                ]
                if not chosen.empty:
                    yield problem, int(nodes), variant, chosen


def looks(rows: pd.DataFrame, names: Sequence[str] = METHODS) -> dict[str, Look]:
    """How the methods of `rows` are drawn, in the order of `names`."""
    present = set(rows["method"])
    return {name: style.look(name) for name in names if name in present}


def lines(
    axis: Axes,
    rows: pd.DataFrame,
    x: str,
    metric: str,
    shown: dict[str, Look],
    hue: str = "method",
    centre: str = "mean",
) -> None:
    """Draw a metric against a column, one line per group, with how far its centre may be off.

    The centre is the mean of runs with its 90 % Student interval, or the median of runs
    with their quartiles.
    """
    for name, look in shown.items():
        points = []
        for value, group in rows[rows[hue] == name].groupby(x, sort=True):
            runs = group[metric].dropna()
            if runs.empty:
                continue
            if centre == "mean":
                points.append((float(str(value)), *interval(runs)))
            else:
                quarters = np.quantile(runs.to_numpy(float), (0.5, 0.25, 0.75))
                points.append((float(str(value)), *quarters))
        if not points:
            continue
        place, middle, low, high = np.array(points).T
        axis.plot(
            place, middle, marker=look.marker, ls=look.line, color=look.colour, ms=3, mew=0.4,
            mec="white", lw=1.1, label=look.label,
        )  # fmt: skip
        axis.fill_between(place, low, high, color=look.colour, alpha=0.18, lw=0)


def against_epsilon(
    panels: Sequence[tuple[pd.DataFrame, str, str, str]],
    shown: dict[str, Look],
    centre: str,
    scale: str = "log",
) -> Figure:
    """Draw metrics against epsilon, one row of panels each, one column per number of nodes.

    A panel has runs, a metric, further text of titles next to the number of nodes, and the vertical
    label. With `centre` "mean", means are as :func:`lines` draws them; with "median", medians have
    bars at the quartiles, the methods side by side. A `scale` of "symlog" is linear where values
    are below ``SMALL``, with a line at zero. The legend gives the epsilon that holds where it is
    not the one asked for.
    """
    nodes = sorted(panels[0][0]["num_nodes"].unique())
    grid = sorted(panels[0][0]["epsilon"].dropna().unique())
    height = len(panels)
    figure, axes = style.figure(height, len(nodes), 0.9 + 1.55 * height, sharex=True, sharey="row")
    for i, (rows, metric, name, label) in enumerate(panels):
        for axis, count in zip(axes[i], nodes, strict=True):
            panel_rows = rows[rows["num_nodes"] == count]
            if centre == "mean":
                lines(axis, panel_rows, "epsilon", metric, shown)
                axis.set_xscale("log")
            else:
                panels_style.medians(axis, panel_rows, "epsilon", metric, "method", shown, grid)
            axis.set_title(f"{name}, J = {count}")
            axis.set_xlabel("ε asked for" if i == height - 1 else "")
        # Not before: quartiles would be those of logarithms.
        axes[i, 0].set_yscale(scale, **({"linthresh": SMALL} if scale == "symlog" else {}))
        if scale == "symlog":
            limits = axes[i, 0].get_ylim()
            for axis in axes[i]:
                axis.axhline(0, color=style.GREY, lw=0.5, zorder=0)
                axis.axhspan(-SMALL, SMALL, color="#f2f2f2", lw=0, zorder=0)
            axes[i, 0].set_ylim(limits)
        axes[i, 0].set_ylabel(label)
    legend(figure, with_guarantees(panels[0][0], shown), 3)
    return figure


def with_guarantees(rows: pd.DataFrame, shown: dict[str, Look]) -> dict[str, Look]:
    """Looks whose names tell the epsilon that holds where 1, or the least, was asked for.

    Only where it differs from that by more than 5 %. The guarantee is that for the
    replacement of a row, as the thesis means it.
    """
    epsilons = sorted(rows["epsilon"].dropna().unique())
    if not epsilons:
        return shown
    asked = 1.0 if 1.0 in epsilons else epsilons[0]
    told = {}
    for name, look in shown.items():
        held = replaced(rows[(rows["method"] == name) & (rows["epsilon"] == asked)]).max()
        differs = np.isfinite(held) and abs(held - asked) > panels_style.TOLERANCE * asked
        words = f": {style.epsilon_text(float(held))} at ε {asked:g}" if differs else ""
        told[name] = replace(look, label=look.label + words)
    return told


def replaced(rows: pd.DataFrame) -> pd.Series[float]:
    """Epsilon of each run when one row is replaced."""
    if "epsilon_replace" not in rows:
        return rows["guarantee_epsilon"]
    known = rows["epsilon_replace"]
    return known.where(known.notna(), rows["guarantee_epsilon"])


def ratios(rows: pd.DataFrame, metric: str, base: str) -> pd.Series[float]:
    """Metric of each run relative to that of method `base` on the same data set."""
    keys = ["problem", "num_nodes", "epsilon", "replicate"]
    of_base = rows[rows["method"] == base].groupby(keys)[metric].mean()
    place = pd.MultiIndex.from_frame(rows[keys])
    return pd.Series(rows[metric].to_numpy() / of_base.reindex(place).to_numpy(), rows.index)


def legend(figure: Figure, shown: dict[str, Look], columns: int = 5) -> None:
    """Draw the legend of lines above all panels."""
    from matplotlib.lines import Line2D

    marks: dict[str, Any] = {"ms": 3.5, "mew": 0.4, "mec": "white"}
    handles = [
        Line2D([], [], color=k.colour, ls=k.line, marker=k.marker, label=k.label, **marks)
        for k in shown.values()
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=min(columns, len(handles)))
