"""Figures and tables of Alparslan 2023 (MSc thesis), and companions to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dpmc.types import UNAVAILABLE
from dpmc_papers.outputs import (
    _held,
    _iac,
    _regression_tables,
    _slopes,
    _statsel_errors,
    _statsel_information,
    _statsel_selection,
    _statsel_tables,
)
from dpmc_papers.outputs import _regression as parts
from dpmc_papers.outputs._printed import Printed
from dpmc_papers.outputs._statsel import MEANS, interval
from dpmc_papers.pipeline.results import Context
from dpmc_papers.plots import drawn, panels, style

table7_1 = _regression_tables.table7_1
table7_2 = _regression_tables.table7_2
layout_table7_1 = _regression_tables.layout_table7_1
layout_table7_2 = _regression_tables.layout_table7_2
table_profiles = _regression_tables.table_profiles
table_convergence = _regression_tables.table_convergence

figure4_1 = figure4_2 = figure4_3 = _statsel_information.information_by_theta
figure_claimed = _held.figure_claimed
figure_iac = _iac.by_study
figure4_4 = _statsel_information.information_of_bits
figure6_1 = figure6_2 = figure6_4 = _statsel_errors.errors_by_epsilon
figure6_3 = _statsel_errors.information_and_autocorrelation
figure6_5 = _statsel_selection.selection_by_theta
table6_1 = _statsel_tables.table6_1
table6_2 = _statsel_tables.table6_2
layout_table6_1 = _statsel_tables.layout_table6_1
layout_table6_2 = _statsel_tables.layout_table6_2
table_errors = _statsel_tables.table_errors
table_leads = _statsel_tables.table_leads
table_monte_carlo = _statsel_tables.table_monte_carlo
table_prior_bound = _statsel_tables.table_prior_bound

BASE = "mcmc_fixed_s"  # the method that others are compared with
NO_DATA = "The data of this figure are not available."

# Of lines, none of which is that of another.
PATTERNS: tuple[Any, ...] = ("-", (0, (1, 2)), (0, (5, 1.5)), (0, (6, 1.2, 1.2, 1.2)))
MMD_KERNELS = {
    "mmd_squared": "width 0.1",
    "mmd_squared_median": "median width",
    "mmd_squared_printed": "as printed",
}


@style.styled
def figure_profiles(context: Context) -> Figure:
    """Draw test errors of every method under each profile, with the privacy they have.

    Reads runs of the experiment ``real_data``, and the printed numbers. One row per problem, one
    column per number of nodes. Means of runs with their 90 % intervals; hollow circles: printed
    numbers; dotted: least squares without privacy.
    """
    rows, numbers = context.metrics, Printed(context.published, "T-7.1")
    problems = parts.available(context)
    if not problems:
        return style.note(NO_DATA)
    nodes = sorted(rows["num_nodes"].unique())
    profiles = [p for p in parts.PROFILES if p in set(rows["variant"])]
    methods = list(parts.looks(rows))
    height = 0.9 + 1.95 * len(problems)
    figure, axes = style.figure(len(problems), len(nodes), height, sharex="row", sharey=True)
    for i, problem in enumerate(problems):
        of_problem = rows[rows["problem"] == problem]
        for j, count in enumerate(nodes):
            axis = axes[i, j]
            _profile_panel(axis, of_problem[of_problem["num_nodes"] == count], profiles, methods)
            for place, method in enumerate(methods):
                at = numbers.value(problem=problem, method=method, num_nodes=count)
                axis.plot(
                    [at], [place - 0.36], "o", color=style.INK, mfc="none", ms=4, mew=0.8,
                    label="printed",
                )  # fmt: skip
            axis.set_title(f"{context.problem_label(problem)}, J = {count:g}")
            axis.set_xlabel("test error" if i == len(problems) - 1 else "")
        _beside(axes[i], of_problem)
    names = [style.look(name).label.replace("Bayes-fixedS-fast", "Bayes-\nfixedS-fast")
             for name in methods]  # fmt: skip
    axes[0, 0].set_yticks(range(len(methods)), names)
    axes[0, 0].set_ylim(len(methods) - 0.05, -0.6)
    figure.legend(handles=_profile_entries(rows, profiles), loc="outside upper center", ncols=3)
    style.heading(figure, "Table 7.1 by profile, ε = 1 asked for; in brackets ε that holds")
    return figure


def _profile_entries(rows: pd.DataFrame, profiles: list[str]) -> list[Line2D]:
    """Legend entries that tell the epsilon which holds for each profile."""
    entries = []
    for name in profiles:
        look = style.look(name)
        private = rows[(rows["variant"] == name) & ~rows["method"].isin(parts.EXACT)]
        held = parts.replaced(private[~private["status"].str.startswith(UNAVAILABLE)])
        words = f"{look.label} ({_slopes.held_text(held)})"
        entries.append(
            Line2D([], [], color=look.colour, marker=look.marker, lw=1.2, ms=4, label=words)
        )
    ring: dict[str, Any] = {"marker": "o", "ls": "", "mfc": "none", "ms": 4, "mew": 0.8}
    entries.append(Line2D([], [], color=style.INK, label="printed", **ring))
    dots: dict[str, Any] = {"lw": 0.9, "ls": (0, (1, 2))}
    entries.append(Line2D([], [], color=style.INK, label="least squares, no privacy", **dots))
    return entries


def _profile_panel(
    axis: Axes, panel_rows: pd.DataFrame, profiles: list[str], methods: list[str]
) -> None:
    for k, profile in enumerate(profiles):
        look = style.look(profile)
        for place, method in enumerate(methods):
            runs = _of(panel_rows, method, profile)["mse"].dropna()
            if runs.empty:
                continue
            mean, low, high = interval(runs)
            at = place + 0.2 * (k - (len(profiles) - 1) / 2)
            axis.plot([low, high], [at, at], color=look.colour, lw=1.2, label=f"{look.label}, 90 %")
            axis.plot(
                mean, at, look.marker, color=look.colour, ms=3.8, mew=0.4, mec="white",
                label=look.label,
            )  # fmt: skip
    axis.set_xscale("log")


def _beside(axes: Sequence[Axes], rows: pd.DataFrame) -> None:
    """Draw the error of least squares, or say where it is if that is far away."""
    exact = rows.loc[rows["method"] == "ols", "mse"].dropna()
    if exact.empty:
        return
    value, low = float(exact.iloc[0]), axes[0].get_xlim()[0]
    for axis in axes:
        if value > low / 3:
            axis.axvline(value, color=style.INK, lw=0.9, ls=(0, (1, 2)), zorder=0)
        else:
            axis.annotate(
                f"← least squares: {value:.0e}" if value > 1e-12 else "← least squares: 0 (leak)",
                (0.03, 0.01), xycoords="axes fraction", fontsize=7,
            )  # fmt: skip
        drawn.record(axis, "least squares", value, np.nan)


@style.styled
def figure_slopes(context: Context) -> Figure:
    """Draw the numbers of Table 7.1 as printed, rerun, and rerun with valid privacy.

    Reads runs of the experiment ``real_data``, and the printed numbers. One row per problem, one
    column per number of nodes: mean test errors with their 90 % intervals, one line per method.
    """
    rows, numbers = context.metrics, Printed(context.published, "T-7.1")
    problems = parts.available(context)
    if not problems:
        return style.note(NO_DATA)
    nodes = sorted(rows["num_nodes"].unique())
    looks = parts.looks(rows)
    labels = {name: [f"{name}-{variant}" for variant in ("authors", "correct")] for name in looks}
    height = 0.9 + 1.75 * len(problems)
    figure, axes = style.figure(len(problems), len(nodes), height, sharey="row")
    for row, problem in zip(axes, problems, strict=True):
        of_problem = rows[rows["problem"] == problem]
        private = of_problem[~of_problem["method"].isin(parts.EXACT)]
        for axis, count in zip(row, nodes, strict=True):
            printed = {
                name: numbers.value(problem=problem, method=name, num_nodes=count) for name in looks
            }
            cell = of_problem[of_problem["num_nodes"] == count]
            _slopes.draw(axis, cell, "mse", printed, labels, looks)
            axis.set_title(f"{context.problem_label(problem)}, J = {count:g}")
            _slopes.privacy(axis, private, "authors", "correct")
        row[0].set(yscale="log", ylabel="test error")
    for axis in axes[-1]:
        axis.set_xlabel("ε: claimed by print,\nand that holds")
    absent = [context.problem_label(n) for n in context.problems(rows) if n not in problems]
    title = "Table 7.1: printed, rerun as the public code, with valid privacy"
    parts.legend(figure, looks)
    _slopes.heading(figure, absent, title)
    return figure


def _of(rows: pd.DataFrame, method: str, variant: str) -> pd.DataFrame:
    return rows[(rows["method"] == method) & (rows["variant"] == variant)]


@style.styled
def figure_convergence(context: Context) -> Figure:
    """Draw whether chains on one release reach the same distribution from two starts.

    Reads runs of the experiment ``convergence``. One column per problem, against the number of
    nodes: above, R-hat of two chains from two starts, and of the two halves of one chain from the
    published start; below, test errors of the two chains relative to predicting zero. Each has a
    pattern of its own. Medians of releases, and quartiles.
    """
    rows = context.metrics.copy()
    problems = parts.available(context)
    if not problems:
        return style.note(NO_DATA)
    for start in ("node", "pooled"):
        rows[f"relative_{start}"] = rows[f"mse_{start}"] / rows["mse_zero"]
    shown = {name: style.look(name) for name in parts.PROFILES if name in set(rows["variant"])}
    marks: dict[str, Any] = {"ls": "", "ms": 3.5, "mew": 0.4, "mec": "white"}
    handles = [
        Line2D([], [], color=k.colour, marker=k.marker, label=k.label, **marks)
        for k in shown.values()
    ]
    figure, axes = style.figure(2, len(problems), 4.2, sharey="row")
    metrics = [
        ("R-hat", "linear", {"rhat": "two chains, two starts", "rhat_node": "halves of one chain"}),
        (
            "test error / error of zero",
            "log",
            {"relative_node": "published start", "relative_pooled": "pooled start"},
        ),
    ]
    for axis, problem in zip(axes[0], problems, strict=True):
        axis.set_title(context.problem_label(problem))
    patterns = iter(PATTERNS)
    grey: dict[str, Any] = {"color": style.GREY, "lw": 1.1}
    for row, (name, scale, columns) in zip(axes, metrics, strict=True):
        for (column, words), line in zip(columns.items(), patterns, strict=False):
            looks = {key: replace(look, line=line) for key, look in shown.items()}
            handles.append(Line2D([], [], ls=line, label=f"{name.split(' /')[0]}: {words}", **grey))
            for axis, problem in zip(row, problems, strict=True):
                panel_rows = rows[rows["problem"] == problem]
                parts.lines(axis, panel_rows, "num_nodes", column, looks, hue="variant")
        for axis in row:
            axis.axhline(1, color=style.GREY, lw=0.5, zorder=0)
            axis.set(yscale=scale, xlabel="nodes J", xticks=sorted(rows["num_nodes"].unique()))
        row[0].set_ylabel(name)
    figure.legend(handles=handles, loc="outside upper center", ncols=3)
    style.heading(figure, "MCMC-normalX: do chains reach one distribution?")
    return figure


@style.styled
def figure7_1(context: Context) -> Figure:
    """Draw prediction and estimation errors against epsilon, on one simulated data set.

    Reads runs of the experiment ``simulated_once``. Two rows per dimension, one column per number
    of nodes: means of runs, and their 90 % intervals. Losses are those of the public code: averaged
    over draws for the Markov chains, of a point estimate otherwise [alparslan2023thesis, Figure
    7.1].
    """
    rows = context.metrics.copy()
    chains = rows["method"].isin(parts.CHAINS)
    rows["loss"] = rows["prediction"].where(~chains, rows["prediction_over_draws"])
    metrics = {"loss": "prediction error", "estimation": "estimation error"}
    figure = _errors(rows, metrics, MEANS)
    style.heading(figure, "Alparslan 2023, Figure 7.1, as the public code")
    return figure


@style.styled
def figure7_1_draws(context: Context) -> Figure:
    """Draw errors against epsilon over several simulated data sets, point estimates for all.

    Reads runs of the experiment ``simulated``. Two rows per dimension, one column per number of
    nodes: errors relative to those of MCMC-fixedS on the same data set, medians of runs and their
    quartiles.
    """
    rows = context.metrics.copy()
    base = BASE if BASE in set(rows["method"]) else str(rows["method"].iloc[0])
    names = {"prediction": "prediction error", "estimation": "estimation error"}
    for metric in names:
        rows[f"{metric}_ratio"] = parts.ratios(rows, metric, base)
    metrics = {f"{metric}_ratio": f"{words} / that of\n{style.look(base).label}"
               for metric, words in names.items()}  # fmt: skip
    figure = _errors(rows[rows["method"] != base], metrics, panels.MEDIANS)
    for axis in figure.axes:
        axis.axhline(1, color=style.GREY, lw=0.6, zorder=0)
    title = f"Figure 7.1, CORRECT noise: relative to {style.look(base).label}, same data set"
    style.heading(figure, title)
    return figure


def _errors(rows: pd.DataFrame, metrics: dict[str, str], centre: panels.Centre) -> Figure:
    shown = [
        (rows[rows["dim"] == dim], metric, f"d = {dim:g}", label)
        for dim in sorted(rows["dim"].unique())
        for metric, label in metrics.items()
    ]
    return parts.against_epsilon(shown, _joined(rows, centre), centre, ["log"] * len(shown))


def _joined(rows: pd.DataFrame, centre: panels.Centre) -> dict[str, style.Look]:
    """How methods are drawn: means are joined by lines, medians of several data sets are not."""
    joined = centre is MEANS
    looks = parts.looks(rows)
    return looks if joined else {k: replace(look, line="none") for k, look in looks.items()}


@style.styled
def figure7_2(context: Context) -> Figure:
    """Draw the time of an iteration against the dimension, by number of nodes.

    Reads runs of the experiment ``run_times`` [alparslan2023thesis, Figure 7.2].
    """
    rows = context.metrics
    rows = rows[rows["method"] != "bayes_fixed_s_fast"].copy()  # it has no iterations
    added = rows["variant"] == "correct"
    rows["drawn"] = rows["method"].where(~added, "mcmc_bs-augmented")
    nodes = sorted(rows["num_nodes"].unique())
    figure, axes = style.figure(1, len(nodes), 2.6, sharey=True)
    shown = parts.looks(rows)
    if added.any():
        base = style.look("mcmc_bs")
        shown["mcmc_bs-augmented"] = style.Look("MCMC-B&S, augmented", "#56B4E9", "P", base.line)
    for axis, count in zip(axes.flat, nodes, strict=True):
        panel_rows = rows[rows["num_nodes"] == count]
        parts.lines(axis, panel_rows, "dim", "microseconds", shown, hue="drawn")
        axis.set(yscale="log", xlabel="d", title=f"J = {count:g}")
    axes[0, 0].set_ylabel("µs per iteration")
    parts.legend(figure, shown)
    style.heading(figure, "Alparslan 2023, Figure 7.2: time of an iteration")
    return figure


@style.styled
def figure7_3(context: Context) -> Figure:
    """Draw the distance from the non-private posterior against epsilon, d = 2.

    Reads runs of the experiment ``simulated_once``. One row per kernel, one column per number of
    nodes: squared MMD, means of runs [alparslan2023thesis, Figure 7.3].
    """
    figure = _discrepancies(context.metrics, MEANS, "linear")
    style.heading(figure, "Alparslan 2023, Figure 7.3, as the public code")
    return figure


@style.styled
def figure7_3_draws(context: Context) -> Figure:
    """Draw the same as :func:`figure7_3`: medians and quartiles over data sets."""
    figure = _discrepancies(context.metrics, panels.MEDIANS, "symlog")
    style.heading(figure, "Alparslan 2023, Figure 7.3 with CORRECT noise, several data sets")
    return figure


def _discrepancies(rows: pd.DataFrame, centre: panels.Centre, last: str) -> Figure:
    rows = rows[rows["dim"] == rows["dim"].min()]
    shown = _joined(rows, centre)
    shown.pop("adassp", None)  # a point estimate
    of_kernels = [(rows, metric, name, "squared MMD") for metric, name in MMD_KERNELS.items()]
    return parts.against_epsilon(of_kernels, shown, centre, ["symlog", "linear", last])
