"""What tables and figures of private distributed regression share: selection, intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpmc.evidence import UNAVAILABLE
from dpmc.linreg.scores import t_interval
from dpmc.outputs._context import Context
from dpmc.plots import style
from dpmc.plots.style import Look
from dpmc.types import Array

METHODS = ("mcmc_normal_x", "mcmc_fixed_s", "bayes_fixed_s_fast", "mcmc_bs", "adassp")
# Estimators that read the rows themselves.
EXACT = ("ols", "posterior")
PROFILES = ("authors", "thesis", "correct")
# The public code scores these by the loss averaged over draws, the others by a point estimate.
CHAINS = ("mcmc_normal_x", "mcmc_fixed_s", "mcmc_bs")


def unavailable(rows: pd.DataFrame) -> bool:
    """Return whether the data of these runs could not be had."""
    return bool(len(rows)) and bool(rows["status"].str.startswith(UNAVAILABLE).all())


def interval(values: pd.Series[float]) -> tuple[float, float, float]:
    """Return the mean of runs and the ends of its 90 % Student interval, NaN for too few."""
    found: Array = np.asarray(values.dropna(), dtype=np.float64)
    if len(found) < 2:
        return (float(found[0]) if len(found) else math.nan), math.nan, math.nan
    mean, low, high = t_interval(found)
    return mean, low, high


def cells(context: Context, rows: pd.DataFrame) -> Iterator[tuple[str, int, str, pd.DataFrame]]:
    """Yield problem, number of nodes, profile and their runs, in the order of the document."""
    for problem in context.problems(rows):
        here = rows[rows["problem"] == problem]
        for nodes in sorted(here["num_nodes"].unique()):
            for variant in PROFILES:
                chosen = here[(here["num_nodes"] == nodes) & (here["variant"] == variant)]
                if not chosen.empty:
                    yield problem, int(nodes), variant, chosen


def looks(rows: pd.DataFrame, names: Sequence[str] = METHODS) -> dict[str, Look]:
    """Return how the methods of `rows` are drawn, in the order of `names`."""
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


def legend(figure: Figure, shown: dict[str, Look], columns: int = 5) -> None:
    """Draw the legend of lines above all panels."""
    from matplotlib.lines import Line2D

    marks: dict[str, Any] = {"ms": 3.5, "mew": 0.4, "mec": "white"}
    handles = [
        Line2D([], [], color=k.colour, ls=k.line, marker=k.marker, label=k.label, **marks)
        for k in shown.values()
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=min(columns, len(handles)))
