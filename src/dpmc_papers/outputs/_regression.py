"""Selection of runs and intervals, for tables and figures of private distributed regression."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpmc.types import UNAVAILABLE
from dpmc_papers.pipeline.results import Context
from dpmc_papers.plots import panels as panels_style
from dpmc_papers.plots import style
from dpmc_papers.plots.panels import Centre
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
    axis: Axes, rows: pd.DataFrame, x: str, metric: str, shown: dict[str, Look], hue: str = "method"
) -> None:
    """Draw medians of a metric against a column, one line per group, between their quartiles."""
    for name, look in shown.items():
        runs = rows[(rows[hue] == name) & rows[metric].notna()].groupby(x)[metric]
        if not len(runs):
            continue
        low, middle, high = (runs.quantile(share) for share in (0.25, 0.5, 0.75))
        axis.plot(
            middle, marker=look.marker, ls=look.line, color=look.colour, ms=3, mew=0.4,
            mec="white", lw=1.1, label=look.label,
        )  # fmt: skip
        axis.fill_between(middle.index, low, high, color=look.colour, alpha=0.18, lw=0)


def against_epsilon(
    panels: Sequence[tuple[pd.DataFrame, str, str, str]],
    shown: dict[str, Look],
    centre: Centre,
    scales: Sequence[str],
) -> Figure:
    """Draw metrics against epsilon, one row of panels each, one column per number of nodes.

    A panel has runs, a metric, further text of titles next to the number of nodes, and the vertical
    label; methods stand side by side. `scales` are those of the rows: "symlog" is linear where
    values are below ``SMALL``, with a line at zero. Below a row of panels stands the epsilon that
    holds where it is not the one asked for, unless the next row has the same runs.
    """
    nodes = sorted(panels[0][0]["num_nodes"].unique())
    grid = sorted(panels[0][0]["epsilon"].dropna().unique())
    height = len(panels)
    figure, axes = style.figure(height, len(nodes), 0.9 + 1.65 * height, sharey="row")
    dims = [tuple(rows["dim"].unique()) for rows, *_ in panels]
    lasts = [k + 1 == height or dims[k + 1] != dim for k, dim in enumerate(dims)]
    for row, (rows, metric, name, label), scale, last in zip(
        axes, panels, scales, lasts, strict=True
    ):
        rows = rows.assign(guarantee_epsilon=replaced(rows))
        for axis, count in zip(row, nodes, strict=True):
            cell = rows[rows["num_nodes"] == count]
            panels_style.centres(
                axis, cell, "epsilon", metric, "method", shown, grid, centre,
                linestyles=[look.line for look in shown.values()],
            )  # fmt: skip
            lines_below = panels_style.held(axis, cell, "method", shown, grid) if last else 0
            axis.set(title=f"{name}, J = {count:g}")
            axis.set_xlabel(panels_style.epsilon_label(lines_below, len(nodes)) if last else "")
        # Not before: the numbers would be those of logarithms.
        row[0].set_yscale(scale, **({"linthresh": SMALL} if scale == "symlog" else {}))
        if scale == "symlog":
            low, high = row[0].get_ylim()
            for axis in row:
                axis.axhline(0, color=style.GREY, lw=0.5, zorder=0)
                axis.axhspan(-SMALL, SMALL, color="#f2f2f2", lw=0, zorder=0)
            row[0].set_ylim(max(low, -SMALL), 1.3 * high)
            label += "\n(linear in grey)"
        elif scale == "linear":
            row[0].set_ylim(0, None)
        row[0].set_ylabel(label)
    legend(figure, shown)
    return figure


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


def legend(figure: Figure, shown: dict[str, Look]) -> None:
    """Draw the legend of lines above all panels."""
    from matplotlib.lines import Line2D

    marks: dict[str, Any] = {"ms": 3.5, "mew": 0.4, "mec": "white"}
    handles = [
        Line2D([], [], color=k.colour, ls=k.line, marker=k.marker, label=k.label, **marks)
        for k in shown.values()
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=min(3, len(handles)))
