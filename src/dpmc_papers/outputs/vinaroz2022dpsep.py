"""Figures and tables of Vinaroz and Park 2022 (DP-SEP), and companions to them."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Ellipse
from scipy.optimize import linear_sum_assignment

from dpmc_papers.config.grids import algorithm
from dpmc_papers.data import mixture_rows
from dpmc_papers.outputs import _dpsep_tables, _held, _regression, _slopes
from dpmc_papers.outputs._printed import Printed
from dpmc_papers.pipeline.results import Context
from dpmc_papers.plots import panels, style

figure_claimed = _held.figure_claimed
table1 = _dpsep_tables.table1
table2 = _dpsep_tables.table2
table3 = _dpsep_tables.table3
table4 = _dpsep_tables.table4
layout_table1 = _dpsep_tables.layout_table1
layout_table2 = _dpsep_tables.layout_table2
layout_table3 = _dpsep_tables.layout_table3
layout_table4 = _dpsep_tables.layout_table4
table_tuning = _dpsep_tables.table_tuning

# Half axes, in standard deviations, of the ellipse that holds 98 % of a Gaussian in two dimensions.
RADIUS = math.sqrt(-2 * math.log(0.02))
COMPONENTS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
NO_DATA = "The data of this figure are not available."


@style.styled
def figure1(context: Context) -> Figure:
    """Draw the posteriors of the component means on the first two coordinates of the rows.

    Reads runs of the experiment ``mixture``, and its rows. Rows in the colour of their component
    (first panel) or of the nearest mean; rings hold 98 % of the posterior of each mean. Above EP
    and SEP as published, then DP-SEP as published, then with valid privacy, at epsilon 1, 5 and 50
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
    dots: dict[str, Any] = {"ls": "", "color": "black"}
    handles = [
        Line2D([], [], marker="o", ms=7, mfc="none", mew=0.8, label="98 % of a posterior", **dots),
        Line2D([], [], marker="+", ms=5, label="posterior mean", **dots),
        Line2D([], [], marker="x", ms=5, label="true mean", **dots),
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=3)
    style.heading(figure, "Vinaroz and Park 2022, Figure 1; last row: with VALID privacy")
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
        # Colours of the true components, whatever the order of the fitted ones.
        gaps = np.linalg.norm(means[:, None, :] - parts.means[None, :, :], axis=2)
        fitted, true = linear_sum_assignment(gaps)
        names = np.empty(len(means), dtype=int)
        names[fitted] = true
        nearest = names[np.argmin(squares, axis=1)]
        told = _remark(means, covariances, parts.means[true][np.argsort(fitted)])
        if first["epsilon"] > 0:
            held = first["guarantee_epsilon"]
            if abs(held - first["epsilon"]) > panels.TOLERANCE * first["epsilon"]:
                title = f"{title}: really {_number(held)}"
        title = f"{title}\n{told}"
        for mean, covariance in zip(means[:, :2], covariances[:, :2, :2], strict=True):
            axis.add_patch(_ring(mean, covariance))
            axis.plot(*mean, "+", color="black", ms=4, mew=0.8)
    axis.plot(*parts.means[:, :2].T, "x", color="black", ms=4, mew=0.8, zorder=3)
    colours = [COMPONENTS[k % len(COMPONENTS)] for k in nearest]
    axis.scatter(points[:, 0], points[:, 1], s=1.5, c=colours, lw=0, rasterized=True)
    axis.set_title(title)


def _remark(means: Any, covariances: Any, truth: Any) -> str:
    """What rings do not show by themselves."""
    gaps = means[:, :2] - truth[:, :2]
    inverses = np.linalg.inv(covariances[:, :2, :2])
    held = np.einsum("ki,kij,kj->k", gaps, inverses, gaps) <= RADIUS**2
    if np.ptp(means[:, :2], axis=0).max() < np.ptp(truth[:, :2], axis=0).max() / 5:
        return f"all {len(means)} means at one place"
    return f"{int(held.sum())} of {len(held)} rings hold the truth"


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

    Reads runs of the experiments ``networks`` and ``networks_public``. One panel per table: root
    mean squared errors relative to predicting the centre of the target, medians of splits and their
    quartiles.
    """
    rows = context.metrics[context.metrics["rmse"].notna()].copy()
    if rows.empty:
        return style.note(NO_DATA)
    rows["relative"] = rows["rmse"] / rows["rmse_of_mean"]
    rows["table"] = rows["problem"].str.removesuffix("_public")
    keys = rows[["experiment", "label", "epsilon"]].drop_duplicates()
    lines = [(str(a), str(b), float(c)) for a, b, c in keys.itertuples(index=False)]
    tables = [name for name in context.problems(rows) if name in set(rows["table"])]
    printed = Printed(context.published, "T-2", "T-2-clipped", "T-2-dp", "T-2-vi")
    columns = min(3, len(tables))
    grid = math.ceil(len(tables) / columns)
    height = 1.2 + grid * (0.5 + 0.155 * len(lines))
    figure, axes = style.figure(grid, columns, height, sharey=True)
    for axis in axes.flat[len(tables) :]:
        axis.set_axis_off()
    names = [_named(*line, rows) for line in lines]
    private = [k for k, (_, label, _) in enumerate(lines) if label.startswith("dp_sep")]
    for place, (axis, table) in enumerate(zip(axes.flat, tables, strict=False)):
        panel_rows = rows[rows["table"] == table]
        for k, line in enumerate(lines):
            _network_point(axis, k, panel_rows, line)
            number = printed.value(problem=table, algorithm=algorithm(line[1]))
            if line[1].partition("-")[2] in PRINTED and line[0] == "networks":
                at = number / panel_rows["rmse_of_mean"].mean()
                axis.plot(
                    [at], [k], "o", color=style.INK, mfc="none", ms=6.5, mew=0.7, label="printed"
                )
        for k in private:
            axis.axhspan(k - 0.5, k + 0.5, color="#f0f4f8", lw=0, zorder=0)
        axis.axvline(1, color=style.GREY, lw=0.7, ls=(0, (1, 2)), zorder=0)
        axis.set(title=context.problem_label(table), xscale="log", ylim=(len(lines) - 0.5, -0.5))
        if place + columns >= len(tables):
            axis.set_xlabel("RMSE (the mean: 1)")
            axis.tick_params(labelbottom=True)
    axes[0, 0].set_yticks(range(len(lines)), names)
    figure.legend(handles=_network_entries(rows), loc="outside upper center", ncols=3)
    style.heading(figure, "Table 2 by variant; claimed private on blue")
    return figure


# Variants in names of lines, of which all others are as published.
SHORT = {
    "dp_valid": "(valid)",
    "dp_valid_tuned": "(tuned)",
    "intended": "(as intended)",
    "clipped_true": "(really)",
    "graves": "(new run)",
}
# Variants that are the rerun of what is printed.
PRINTED = ("as_published", "graves")


def _network_point(
    axis: Axes, place: int, rows: pd.DataFrame, line: tuple[str, str, float]
) -> None:
    """Draw the median and the quartiles of one line, a cross if it has no runs."""
    experiment, label, epsilon = line
    same = rows["epsilon"].eq(epsilon) | (rows["epsilon"].isna() & math.isnan(epsilon))
    runs = rows[(rows["experiment"] == experiment) & (rows["label"] == label) & same]
    if runs.empty:
        axis.plot(
            [0.03], [place], "x", color=style.GREY, ms=4, transform=axis.get_yaxis_transform()
        )
        return
    look = style.look(str(runs["variant"].iloc[0]))
    low, middle, high = runs["relative"].quantile([0.25, 0.5, 0.75])
    axis.errorbar(
        middle, place, xerr=[[middle - low], [high - middle]], fmt=look.marker, color=look.colour,
        ms=4, mew=0.9 if look.marker == "P" else 0.4, mec="white", lw=1.0, label=look.label,
    )  # fmt: skip


def _network_entries(rows: pd.DataFrame) -> list[Line2D]:
    looks = [style.look(name) for name in style.ordered(rows["variant"], style.VARIANTS)]
    marks: dict[str, Any] = {"ls": "", "ms": 4, "mew": 0.4, "mec": "white"}
    handles = [
        Line2D([], [], color=k.colour, marker=k.marker, label=k.label, **marks) for k in looks
    ]
    ring: dict[str, Any] = {"ls": "", "ms": 6.5, "mfc": "none", "mew": 0.7, "marker": "o"}
    handles.append(Line2D([], [], color=style.INK, label="printed", **ring))
    handles.append(Line2D([], [], color=style.GREY, lw=0.7, ls=(0, (1, 2)), label="the mean"))
    return handles


def _named(experiment: str, label: str, epsilon: float, rows: pd.DataFrame) -> str:
    """Name of a line, unlike that of every other."""
    variant = label.partition("-")[2]
    parts = [" ".join(filter(None, (style.look(algorithm(label)).label, SHORT.get(variant, ""))))]
    if experiment.endswith("public"):
        parts.append("public ranges")
    if not math.isnan(epsilon):
        same = rows["experiment"].eq(experiment) & rows["label"].eq(label)
        real = float(rows.loc[same & rows["epsilon"].eq(epsilon), "guarantee_epsilon"].max())
        differs = not abs(real - epsilon) <= panels.TOLERANCE * epsilon
        parts.append(f"ε {epsilon:g}" + (f": really {_number(real)}" if differs else ""))
    return ", ".join(parts)


# Labels of the runs of a line in the second and in the third column.
SLOPES = {
    "ep": ("ep-as_published", ""),
    "sep": ("sep-as_published", ""),
    "clipped_sep": ("clipped_sep-as_published", ""),
    "dp_sep": ("dp_sep-as_published", "dp_sep-dp_valid"),
    "tuned": ("", "dp_sep-dp_valid_tuned"),
}


@style.styled
def figure_slopes(context: Context) -> Figure:
    """Draw the numbers of Tables 2 and 3 as printed, rerun, and rerun with valid privacy.

    Reads runs of the experiment ``networks``, and the printed numbers. One row per data set, one
    line per method: left, root mean squared errors on test rows; right, test log-likelihoods.
    """
    rows = context.experiment("networks")
    every, rows = context.problems(rows), _slopes.available(rows)
    problems = context.problems(rows)
    if not problems:
        return style.note(NO_DATA)
    looks = {name: style.look(name) for name in SLOPES if name != "tuned"}
    tuned = style.look("dp_valid_tuned")
    looks["tuned"] = replace(tuned, label="DP-SEP, tuned", marker="v", line="none")
    figure, axes = style.figure(len(problems), 2, 0.9 + 1.45 * len(problems))
    tables = (("rmse", "T-2", "test RMSE", "log"), ("loglik", "T-3", "log-likelihood", "linear"))
    for column, (metric, series, words, scale) in zip(axes.T, tables, strict=True):
        numbers = Printed(context.published, series, f"{series}-clipped", f"{series}-dp")
        for axis, problem in zip(column, problems, strict=True):
            here = rows[rows["problem"] == problem]
            printed = {
                name: numbers.value(problem=problem, algorithm=name)
                for name in looks
                if name != "tuned"
            }
            _slopes.draw(axis, here, metric, printed, SLOPES, looks)
            axis.set(title=f"Table {series[-1]}: {context.problem_label(problem)}", yscale=scale)
            axis.set_ylabel(f"{words}\n({scale} axis)")
            private = here[here["method"].str.startswith("dp_sep")]
            _slopes.privacy(axis, private, "as_published", "dp_valid")
        column[-1].set_xlabel("ε: claimed by print, and that holds")
    absent = [context.problem_label(name) for name in every if name not in problems]
    title = "Tables 2 and 3: printed, rerun as published, with valid privacy"
    _regression.legend(figure, looks)
    _slopes.heading(figure, absent, title)
    return figure


@style.styled
def figure_bound(context: Context) -> Figure:
    """Draw Theorem 4.1 with its correction and the true probability.

    Reads runs of the experiment ``perturbation``. Probability that KL(q || p) exceeds a, against a;
    one column per size of the noise, one row for the least and for the largest dimension. Bounds
    above 1 say nothing and are beyond the axis. Dotted: noise of the same size on natural
    parameters [vinaroz2022dpsep, Theorem 4.1].
    """
    rows = context.metrics
    sizes, dims = sorted(rows["noise_sd"].unique()), sorted({rows["dim"].min(), rows["dim"].max()})
    figure, axes = style.figure(len(dims), len(sizes), 1.1 + 1.8 * len(dims), sharey=True)
    ringed = False
    curves = (
        ("published_bound", "published bound", "#D55E00", "s", "-"),
        ("corrected_bound", "corrected bound, closed form", "#0072B2", "D", "-"),
        ("simulated_bound", "corrected bound, event simulated", "#56B4E9", "v", (0, (3, 1))),
        ("probability", "truth (simulated)", "#000000", "o", "-"),
    )
    for i, dim in enumerate(dims):
        for j, size in enumerate(sizes):
            axis = axes[i, j]
            panel_rows = rows[(rows["noise_sd"] == size) & (rows["dim"] == dim)]
            panel_rows = panel_rows.sort_values("threshold")
            moments = panel_rows[panel_rows["method"] == "moments"]
            for column, name, colour, marker, line in curves:
                axis.plot(
                    moments["threshold"], moments[column], marker=marker, ls=line, color=colour,
                    ms=3, lw=1.0, label=name,
                )  # fmt: skip
            below = moments[moments["published_bound"] < moments["probability"]]
            if len(below):
                ringed = True
                axis.plot(
                    below["threshold"], below["published_bound"], "o", color="#D55E00", ms=7,
                    mfc="none", mew=0.9,
                )  # fmt: skip
            natural = panel_rows[panel_rows["method"] == "natural"]
            axis.plot(
                natural["threshold"], natural["probability"], color=style.GREY, lw=1.0,
                ls=(0, (1, 2)), label="noise on natural parameters",
            )  # fmt: skip
            axis.axhline(1, color=style.GREY, lw=0.5, zorder=0)
            axis.set(xscale="log", yscale="log", ylim=(1e-5, 2), xlabel="a")
            axis.set_title(f"d = {dim:g}, σ₂ = {size:g}")
        axes[i, 0].set_ylabel("P(KL ≥ a)")
    handles, _ = axes[0, 0].get_legend_handles_labels()
    ring: dict[str, Any] = {"ls": "", "marker": "o", "ms": 7, "mfc": "none", "mew": 0.9}
    if ringed:
        words = "published bound is FALSE here"
        handles.append(Line2D([], [], color="#D55E00", label=words, **ring))
    figure.legend(handles=handles, loc="outside upper center", ncols=2)
    style.heading(figure, "Vinaroz and Park 2022, Theorem 4.1 and its correction (no figure there)")
    return figure
