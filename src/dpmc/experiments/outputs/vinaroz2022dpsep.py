"""Figures and tables of Vinaroz and Park 2022 (DP-SEP), and companions to them."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from dpmc.experiments.config.grids import algorithm
from dpmc.experiments.data import mixture_rows
from dpmc.experiments.outputs import _dpsep_tables, _held, _slopes
from dpmc.experiments.pipeline.results import Context
from dpmc.experiments.plots import style
from dpmc.types import UNAVAILABLE

figure_claimed = _held.figure_claimed
table1 = _dpsep_tables.table1
table2 = _dpsep_tables.table2
table3 = _dpsep_tables.table3
table4 = _dpsep_tables.table4
table_tuning = _dpsep_tables.table_tuning

# Half axes, in standard deviations, of the ellipse that holds 98 % of a Gaussian in two dimensions.
RADIUS = math.sqrt(-2 * math.log(0.02))
COMPONENTS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
NO_DATA = "The data of this figure are not available."


@style.styled
def figure1(context: Context) -> Figure:
    """Draw the posteriors of the component means on the first two coordinates of the rows.

    Parameters
    ----------
    context : Context
        Runs of the experiment ``mixture``, and its rows.

    Returns
    -------
    matplotlib.figure.Figure
        Rows in the colour of their component (first panel) or of the nearest mean; rings hold
        98 % of the posterior of each mean. Above EP and SEP as published, then DP-SEP as
        published, then with valid privacy, at epsilon 1, 5 and 50.

    References
    ----------
    [vinaroz2022dpsep, Figure 1].
    """
    rows = context.metrics
    parts = mixture_rows.parts(context.dataset("mixture"))
    shown: list[tuple[str, pd.DataFrame | None]] = [("true components", None)]
    for label, name in (("ep-as_published", "EP"), ("sep-as_published", "SEP")):
        shown.append((name, rows[rows["label"] == label]))
    for variant, name in (("as_published", "DP-SEP"), ("dp_valid", "DP-SEP, valid")):
        for epsilon in (1.0, 5.0, 50.0):
            chosen = rows[(rows["label"] == f"dp_sep-{variant}") & (rows["epsilon"] == epsilon)]
            shown.append((f"{name}, ε = {epsilon:g}", chosen))
    figure, axes = style.figure(3, 3, 6.6, sharex=True, sharey=True)
    for axis, (title, runs) in zip(axes.flat, shown, strict=True):
        _panel(axis, title, runs, parts)
    for axis in axes[-1]:
        axis.set_xlabel("x₁")
    for axis in axes[:, 0]:
        axis.set_ylabel("x₂")
    return figure


def _panel(axis: Axes, title: str, chosen: pd.DataFrame | None, parts: mixture_rows.Parts) -> None:
    points = parts.rows[:, :2]
    nearest = parts.labels
    if chosen is not None:
        if chosen.empty:
            axis.set_title(f"{title}: not in this run")
            return
        first = chosen.sort_values("replicate").iloc[0]
        fit = json.loads(first["posterior"])
        means, covariances = np.array(fit["means"]), np.array(fit["covariances"])
        squares = np.sum((parts.rows[:, None, :] - means) ** 2, axis=2)
        nearest = np.argmin(squares, axis=1)
        if first["epsilon"] > 0:
            title = f"{title}: really {_number(first['guarantee_epsilon'])}"
        for mean, covariance in zip(means[:, :2], covariances[:, :2, :2], strict=True):
            axis.add_patch(_ring(mean, covariance))
            axis.plot(*mean, "+", color="black", ms=4, mew=0.8)
    colours = [COMPONENTS[k % len(COMPONENTS)] for k in nearest]
    axis.scatter(points[:, 0], points[:, 1], s=1.5, c=colours, lw=0, rasterized=True)
    axis.set_title(title)


def _ring(mean: Any, covariance: Any) -> Ellipse:
    values, vectors = np.linalg.eigh(covariance)
    width, height = 2 * RADIUS * np.sqrt(values)
    angle = math.degrees(math.atan2(vectors[1, 0], vectors[0, 0]))
    return Ellipse(tuple(mean), width, height, angle=angle, fill=False, ec="black", lw=0.8)


def _number(epsilon: float) -> str:
    return "∞" if math.isinf(epsilon) else f"{epsilon:.3g}"


@style.styled
def figure_networks(context: Context) -> Figure:
    """Draw test errors of networks, each with the epsilon that it really has.

    Parameters
    ----------
    context : Context
        Runs of the experiments ``networks`` and ``networks_public``.

    Returns
    -------
    matplotlib.figure.Figure
        One panel per table: root mean squared errors relative to predicting the centre of the
        target, medians of splits and their quartiles.
    """
    rows = context.metrics[context.metrics["rmse"].notna()].copy()
    if rows.empty:
        return style.note(NO_DATA)
    rows["relative"] = rows["rmse"] / rows["rmse_of_mean"]
    rows["table"] = rows["problem"].str.removesuffix("_public")
    keys = rows[["experiment", "label", "epsilon"]].drop_duplicates()
    lines = [(str(a), str(b), float(c)) for a, b, c in keys.itertuples(index=False)]
    tables = [name for name in context.problems(rows) if name in set(rows["table"])]
    height = 0.6 + 0.19 * len(lines) * math.ceil(len(tables) / 3)
    figure, axes = style.figure(math.ceil(len(tables) / 3), min(3, len(tables)), height)
    for axis in axes.flat[len(tables) :]:
        axis.set_axis_off()
    for place, (axis, table) in enumerate(zip(axes.flat, tables, strict=False)):
        panel_rows = rows[rows["table"] == table]
        ticks = []
        for k, (experiment, label, epsilon) in enumerate(lines):
            same = panel_rows["epsilon"].eq(epsilon) | (
                panel_rows["epsilon"].isna() & math.isnan(epsilon)
            )
            runs = panel_rows[
                (panel_rows["experiment"] == experiment) & (panel_rows["label"] == label) & same
            ]
            ticks.append(_named(experiment, label, epsilon, runs))
            if len(runs):
                look = style.look(str(runs["variant"].iloc[0]))
                low, middle, high = runs["relative"].quantile([0.25, 0.5, 0.75])
                axis.errorbar(
                    middle, k, xerr=[[middle - low], [high - middle]], fmt=look.marker,
                    color=look.colour, ms=4, mew=0.4, mec="white", lw=1.0,
                )  # fmt: skip
        axis.axvline(1, color=style.GREY, lw=0.6, ls=(0, (1, 2)), zorder=0)
        axis.set(title=context.problem_label(table), xscale="log", ylim=(len(lines) - 0.5, -0.5))
        shown = ticks if place % 3 == 0 else [""] * len(ticks)
        axis.set_yticks(range(len(lines)), shown, fontsize=6)
        axis.set_xlabel("relative RMSE")
        axis.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
        axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.xaxis.set_minor_formatter(NullFormatter())
    return figure


def _named(experiment: str, label: str, epsilon: float, runs: pd.DataFrame) -> str:
    name = style.look(algorithm(label)).label
    variant = style.look(label.partition("-")[2]).label
    parts = [name, variant] if "-" in label else [name]
    if experiment.endswith("public"):
        parts.append("public ranges")
    if not math.isnan(epsilon):
        real = runs["guarantee_epsilon"].max() if len(runs) else math.nan
        parts.append(f"ε {epsilon:g}, really {_number(float(real))}")
    return ", ".join(parts)


SLOPES = {
    # Name of a line: what it is as published, and with valid privacy or really clipped.
    "EP": ("ep", "as_published", ""),
    "SEP": ("sep", "as_published", ""),
    "SEP clipped": ("clipped_sep", "as_published", "clipped_true"),
    "DP-SEP": ("dp_sep", "as_published", "dp_valid"),
    "DP-SEP, valid privacy tuned": ("dp_sep", "as_published", "dp_valid_tuned"),
}


@style.styled
def figure_slopes(context: Context) -> Figure:
    """Draw the numbers of Tables 2 and 3 as printed, rerun, and rerun with valid privacy.

    Parameters
    ----------
    context : Context
        Runs of the experiment ``networks``, and the printed numbers.

    Returns
    -------
    matplotlib.figure.Figure
        One panel per data set and table, one line per method: above, root mean squared
        errors on test rows; below, test log-likelihoods.
    """
    rows = context.metrics
    problems = context.problems(rows)
    columns = min(3, len(problems))
    half = math.ceil(len(problems) / columns)
    figure, axes = style.figure(2 * half, columns, 0.9 + 1.5 * 2 * half)
    ends = {name: method for name, (method, *_) in SLOPES.items()}
    tables = (("rmse", "T-2", "test RMSE", "log"), ("loglik", "T-3", "log-likelihood", "linear"))
    for k, (metric, series, words, scale) in enumerate(tables):
        ids = [series, f"{series}-clipped", f"{series}-dp"]
        numbers = _slopes.printed(context.published, ids)
        grid = axes[k * half : (k + 1) * half]
        for axis in grid.flat[len(problems) :]:
            axis.set_axis_off()
        for place, (axis, problem) in enumerate(zip(grid.flat, problems, strict=False)):
            here = rows[rows["problem"] == problem]
            values = {
                name: [
                    _slopes.number(numbers, problem=problem, algorithm=method),
                    *(
                        _slopes.means(here[here["label"] == f"{method}-{variant}"], metric)
                        for variant in variants
                    ),
                ]
                for name, (method, *variants) in SLOPES.items()
            }
            _slopes.lines(axis, values, ends)
            axis.set_title(f"Table {series[-1]}: {context.problem_label(problem)}")
            axis.set_yscale(scale)
            _slopes.columns(axis, ["printed", "rerun", "valid"])
            axis.set_ylabel(words if place % columns == 0 else "")
            if here["status"].str.startswith(UNAVAILABLE).all():
                _slopes.absent(axis)
            _slopes.privacy([axis], here[here["method"].str.startswith("dp_sep")],
                            "as_published", "dp_valid")  # fmt: skip
    figure.legend(handles=_slopes.entries(ends), loc="outside upper center", ncols=3)
    style.heading(figure, "Tables 2 and 3: printed, rerun as published, with valid privacy")
    return figure


@style.styled
def figure_bound(context: Context) -> Figure:
    """Draw Theorem 4.1 with its correction and the true probability.

    Parameters
    ----------
    context : Context
        Runs of the experiment ``perturbation``.

    Returns
    -------
    matplotlib.figure.Figure
        Probability that KL(q || p) exceeds a, against a; one row per size of the noise, one
        column per dimension. Dotted: noise of the same size on natural parameters.

    References
    ----------
    [vinaroz2022dpsep, Theorem 4.1].
    """
    rows = context.metrics
    sizes, dims = sorted(rows["noise_sd"].unique()), sorted(rows["dim"].unique())
    figure, axes = style.figure(
        len(sizes), len(dims), 0.6 + 1.7 * len(sizes), sharex=True, sharey=True
    )
    curves = (
        ("published_bound", "published bound", "#D55E00", "s", "-"),
        ("corrected_bound", "corrected bound", "#0072B2", "D", "-"),
        ("simulated_bound", "the same, event simulated", "#56B4E9", "v", "-"),
        ("probability", "truth (simulated)", "#000000", "o", "-"),
    )
    for i, size in enumerate(sizes):
        for j, dim in enumerate(dims):
            axis = axes[i, j]
            panel_rows = rows[(rows["noise_sd"] == size) & (rows["dim"] == dim)]
            panel_rows = panel_rows.sort_values("threshold")
            moments = panel_rows[panel_rows["method"] == "moments"]
            for column, name, colour, marker, line in curves:
                axis.plot(
                    moments["threshold"], moments[column], marker=marker, ls=line, color=colour,
                    ms=3, lw=1.0, label=name,
                )  # fmt: skip
            natural = panel_rows[panel_rows["method"] == "natural"]
            axis.plot(
                natural["threshold"], natural["probability"], color=style.GREY, lw=1.0,
                ls=(0, (1, 2)), label="noise on natural parameters",
            )  # fmt: skip
            axis.axhline(1, color=style.GREY, lw=0.5, zorder=0)
            axis.set(xscale="log", yscale="log", ylim=(1e-5, 1e3))
            axis.set_title(f"d = {dim}, σ₂ = {size:g}")
            axis.set_xlabel("a" if i == len(sizes) - 1 else "")
        axes[i, 0].set_ylabel("P(KL ≥ a)")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3)
    return figure
