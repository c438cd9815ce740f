"""Figures and tables of Räisä, Koskela and Honkela 2021, and companions to them."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from dpmc.diagnostics.mmd import collapse
from dpmc.fits import Fit
from dpmc.types import Array, DpmcError, swapped
from dpmc_papers.outputs import _held, _iac, _tables
from dpmc_papers.pipeline.results import Context
from dpmc_papers.plots import panels, style

# Upper end of the panels of Figure 3 in the paper.
CEILINGS = {"paper_banana_2d": 0.5, "paper_gauss_10d": 0.6}
GUIDELINE = 0.2
MASSES = (0.9, 0.5)
RANKS = {"best": ":", "median": "-", "worst": (0, (5, 1.5))}
MOST = 3000  # points of a two-dimensional density estimate

figure_held = _held.figure_held
figure_claimed = _held.figure_claimed
figure_iac = _iac.by_problem
budget_table = _tables.budget_table
comparison_table = _tables.comparison_table
clipping_table = _tables.clipping_table
dimension_table = _tables.dimension_table


@style.styled
def figure1(context: Context) -> Figure:
    """Draw MMD and error of the mean against epsilon, as published.

    Reads runs of the experiment ``comparison``; ``as_published`` variants are drawn. One row per
    model (banana above), MMD left, error of the mean right [Räisä, Koskela and Honkela 2021, Figure
    1].
    """
    rows = context.experiment("comparison")
    rows = rows[rows["variant"] == "as_published"]
    problems = context.problems(rows)
    looks = {m: style.look(m) for m in style.ordered(rows["method"], style.METHODS)}
    figure, axes = style.figure(len(problems), 2, 0.7 + 2.1 * len(problems))
    grid = sorted(rows["epsilon"].dropna().unique())
    count = 0
    for i, problem in enumerate(problems):
        panel_rows = rows[rows["problem"] == problem]
        for j, (metric, name) in enumerate((("mmd", "MMD"), ("mean_error", "Mean error"))):
            axis = axes[i, j]
            panels.boxes(axis, panel_rows, "epsilon", metric, "method", looks, grid=grid)
            lines = panels.held(axis, panel_rows, "method", looks, grid)
            exact = context.exact(problem, metric)
            panels.levels(axis, exact)
            count = max(count, len(exact))
            axis.set(ylabel=name, title=f"{context.problem_label(problem)}: {name}")
            axis.set_xlabel(panels.epsilon_label(lines))
    handles = [*panels.legend_entries(looks, count), *panels.missing_entries(figure)]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))
    style.heading(figure, "Räisä, Koskela and Honkela 2021, Figure 1, as published")
    return figure


@style.styled
def figure1_variants(context: Context) -> Figure:
    """Draw the variants of DP-SGLD and DP-SGNHT with the guarantee of each.

    Reads runs of the experiment ``comparison`` of methods with more than one variant. One row per
    model, one panel of MMD per method; below it the epsilon that each variant really has where it
    is not the one asked for.
    """
    rows = context.experiment("comparison")
    varied = rows.groupby("method")["variant"].transform("nunique") > 1
    rows = rows[varied]
    if rows.empty:
        return style.note("This run holds one variant of each method.")
    problems, methods = context.problems(rows), style.ordered(rows["method"], style.METHODS)
    looks = {v: style.look(v) for v in style.ordered(rows["variant"], style.VARIANTS)}
    height = 0.9 + 2.5 * len(problems)
    figure, axes = style.figure(len(problems), len(methods), height, sharey="row")
    for row, problem in zip(axes, problems, strict=True):
        panel_rows = rows[rows["problem"] == problem]
        grid = sorted(panel_rows["epsilon"].dropna().unique())
        for axis, method in zip(row, methods, strict=True):
            runs = panel_rows[panel_rows["method"] == method]
            present = {name: look for name, look in looks.items() if name in set(runs["variant"])}
            panels.boxes(axis, runs, "epsilon", "mmd", "variant", present, grid=grid)
            lines = panels.held(axis, runs, "variant", present, grid)
            panels.levels(axis, context.exact(problem, "mmd"))
            names = f"{context.problem_label(problem)}: {style.look(method).label}"
            axis.set(title=f"{names}\n({_counts(runs, present)})")
            axis.set_xlabel(panels.epsilon_label(lines))
        row[0].set(ylabel="MMD", ylim=(0, 1.05 * panel_rows["mmd"].max()))
    exact = len(context.exact(problems[0], "mmd"))
    handles = [*panels.legend_entries(looks, exact), *panels.missing_entries(figure)]
    figure.legend(handles=handles, loc="outside upper center", ncols=3)
    style.heading(figure, "Variants of Figure 1 and the ε that holds for each")
    return figure


def _counts(runs: pd.DataFrame, looks: Mapping[str, style.Look]) -> str:
    """How many runs a box of each variant has."""
    counts = runs.groupby("variant")["replicate"].nunique()
    told = [f"{look.label} {counts[name]}" for name, look in looks.items()]
    if len(set(counts.drop("as_published", errors="ignore"))) == 1:
        told = [told[0], f"others {counts.iloc[-1]}"]
    return f"runs a box: {counts.iloc[0] if len(set(counts)) == 1 else ', '.join(told)}"


@style.styled
def figure2(context: Context) -> Figure:
    """Draw the posteriors of the best, median and worst run of each algorithm.

    Reads chains of one grid point of one two-dimensional problem, the runs of ``comparison`` and
    the exact sample of that problem. One column per algorithm. Rows: marginal densities of both
    components, then joint densities of the best, the median and the worst run, by MMD [Räisä,
    Koskela and Honkela 2021, Figure 2].
    """
    rows = context.experiment("comparison")
    columns = _ranked_samples(context, rows)
    problem = next(iter(context.fits))[0]
    reference = context.reference(problem)
    if reference.shape[1] != 2:
        raise DpmcError(f"the problem of figure2 must have dimension 2, got {reference.shape[1]}")
    grids = _grids(reference, columns)
    ratios = [0.75, 0.75, 1, 1, 1]
    figure, axes = style.figure(5, len(columns), 7.6, height_ratios=ratios, sharey="row")
    places = _places(columns)
    for j, (method, samples) in enumerate(columns.items()):
        look = style.look(method)
        for k in range(2):
            _marginals(axes[k, j], samples, reference, grids, k, look)
            axes[k, j].set_ylabel(f"density of θ{'₁₂'[k]}" if j == 0 else "")
        for i, (rank, (points, weights, mmd, _)) in enumerate(samples.items()):
            axis = axes[2 + i, j]
            _joint(axis, points, weights, reference, grids, look)
            axis.annotate(f"MMD {mmd:.2f}", (0.03, 0.04), xycoords="axes fraction", fontsize=7)
            axis.set_ylabel(f"θ₂ ({places[rank]})" if j == 0 else "")
            axis.set_xlabel("θ₁" if i == 2 else "")
        axes[0, j].set_title(_with_privacy(rows, problem, method))
    handles: list[Any] = [
        Line2D([], [], color=style.INK, ls=line, label=places[rank]) for rank, line in RANKS.items()
    ]
    handles.append(Patch(facecolor="#d0d0d0", label="exact sample"))
    handles.append(Patch(facecolor="#dedede", label="90 % region"))
    handles.append(Patch(facecolor="#b8b8b8", label="50 % region"))
    figure.align_ylabels(axes[:, 0])
    figure.legend(handles=handles, loc="outside upper center", ncols=3)
    style.heading(figure, "Räisä, Koskela and Honkela 2021, Figure 2, as published")
    return figure


def _with_privacy(rows: pd.DataFrame, problem: str, method: str) -> str:
    """Name of a method with the epsilon asked for last, and that which holds."""
    runs = rows[(rows["problem"] == problem) & (rows["method"] == method)]
    runs = runs[runs["variant"] == "as_published"]
    asked = float(runs["epsilon"].max())
    held = runs[runs["epsilon"] == asked].groupby("epsilon")["guarantee_epsilon"].max()
    words = f"ε = {asked:g}"
    if panels.differs(held):
        words += f": really {style.epsilon_text(float(held.iloc[0]))}"
    return f"{style.look(method).label}\n{words}"


def _places(columns: Any) -> dict[str, str]:
    """What the three runs are: the middle one of an even number is the upper of two."""
    counts = {count for samples in columns.values() for *_, count in samples.values()}
    if len(counts) != 1:
        return {"best": "best run", "median": "middle run", "worst": "worst run"}
    count = counts.pop()
    return {
        "best": "best run",
        "median": f"run {count // 2 + 1} of {count}",
        "worst": "worst run",
    }


def _ranked_samples(
    context: Context, rows: pd.DataFrame
) -> dict[str, dict[str, tuple[Array, Array, float, int]]]:
    """Kept points, weights and MMD of three runs of each as-published method."""
    samples_of = {}
    for (problem, label), runs in context.fits.items():
        point = _point_of(rows, problem, label)
        ranked = rows[(rows["problem"] == problem) & (rows["label"] == label)]
        ranked = ranked[(ranked["point"] == point) & ranked["mmd"].notna()].sort_values("mmd")
        if ranked.empty or ranked["variant"].iloc[0] != "as_published":
            continue
        fits: dict[int, Fit] = dict(runs)
        ranks = {"best": 0, "median": len(ranked) // 2, "worst": len(ranked) - 1}
        samples = {}
        for name, rank in ranks.items():
            run = ranked.iloc[rank]
            points, weights = collapse(swapped(fits[int(run["replicate"])].kept()))
            samples[name] = (points, weights, float(run["mmd"]), len(ranked))
        samples_of[str(ranked["method"].iloc[0])] = samples
    if not samples_of:
        raise DpmcError("chains of variant 'as_published' are missing for figure2")
    return {method: samples_of[method] for method in style.ordered(samples_of, style.METHODS)}


def _point_of(rows: pd.DataFrame, problem: str, label: str) -> str:
    """Last grid point: the one whose chains an output with ``point: last`` gets."""
    panel_rows = rows[(rows["problem"] == problem) & (rows["label"] == label)]
    return "" if panel_rows.empty else str(panel_rows.sort_values("epsilon")["point"].iloc[-1])


def _grids(reference: Array, columns: Any) -> tuple[Array, Array]:
    """Cover the exact sample and the bulk of all runs, but no run that went astray."""
    low, high = reference.min(axis=0), reference.max(axis=0)
    span = high - low
    runs = [points for samples in columns.values() for points, *_ in samples.values()]
    bulk = np.array([np.quantile(points, (0.01, 0.99), axis=0) for points in runs])
    low, high = np.quantile(reference, (0.01, 0.99), axis=0)
    low = np.maximum(np.minimum(low, bulk[:, 0].min(axis=0)), low - 0.05 * span) - 0.05 * span
    high = np.minimum(np.maximum(high, bulk[:, 1].max(axis=0)), high + 0.05 * span) + 0.05 * span
    first, second = (np.linspace(a, b, 121) for a, b in zip(low, high, strict=True))
    return first, second


def _marginals(
    axis: Any, samples: Any, reference: Array, grids: Any, k: int, look: style.Look
) -> None:
    grey: dict[str, Any] = {"color": "#d0d0d0", "alpha": 1, "linewidth": 0, "fill": True}
    _density(axis, grids[k : k + 1], x=reference[:, k], label="exact sample", **grey)
    for rank, (points, weights, *_) in samples.items():
        _density(
            axis, grids[k : k + 1], x=points[:, k], weights=weights, color=look.colour,
            linestyle=RANKS[rank], linewidth=1.1, label=f"{rank} run",
        )  # fmt: skip
    axis.set(xlim=(grids[k][0], grids[k][-1]), xlabel=f"θ{'₁₂'[k]}")


def _joint(
    axis: Any, points: Array, weights: Array, reference: Array, grids: Any, look: style.Look
) -> None:
    coarse, levels = [grid[::2] for grid in grids], [1 - mass for mass in MASSES]
    shades = {"color": "#b8b8b8", "colors": ["#dedede", "#b8b8b8"], "fill": True}
    x, y = reference.T
    _density(axis, coarse, x=x, y=y, levels=[*levels, 1], **shades)
    step = -(-len(points) // MOST)
    (x, y), weights = points[::step].T, weights[::step]
    # A sample within a cell of the grid has no regions.
    with contextlib.suppress(ValueError):
        _density(
            axis, coarse, x=x, y=y, weights=weights, levels=levels, color=look.colour, linewidths=1
        )
    axis.set(xlim=(grids[0][0], grids[0][-1]), ylim=(grids[1][0], grids[1][-1]))


def _density(axis: Any, grids: Any, **given: Any) -> None:
    """Draw a kernel density estimate over all of the grids, and no more: none without spread."""
    import seaborn

    limits = [(grid[0], grid[-1]) for grid in grids]
    seaborn.kdeplot(
        **given, ax=axis, gridsize=len(grids[0]), clip=limits if len(limits) > 1 else limits[0],
        cut=math.inf, common_norm=False, warn_singular=False,
    )  # fmt: skip


@style.styled
def figure3(context: Context) -> Figure:
    """Draw the effect of clipping log-likelihood ratios in chains without noise.

    Reads runs of the experiment ``clipping``. One row per model; MMD against the clip bound left,
    against the fraction of ratios that were clipped right. A dotted line marks the guideline of 20
    % [Räisä, Koskela and Honkela 2021, Figure 3].
    """
    rows = context.experiment("clipping")
    problems = context.problems(rows)
    looks = {m: style.look(m) for m in style.ordered(rows["method"], style.METHODS)}
    height = 0.6 + 2.1 * len(problems)
    figure, axes = style.figure(len(problems), 2, height, sharey="row")
    for i, problem in enumerate(problems):
        panel_rows = rows[rows["problem"] == problem]
        left, right = axes[i]
        label, ceiling = context.problem_label(problem), CEILINGS.get(problem)
        high = ceiling is not None and bool((panel_rows["mmd"] > ceiling).any())
        panels.boxes(left, panel_rows, "clip_bound", "mmd", "method", looks, ceiling)
        panels.points(right, panel_rows, "ratio_clip_fraction", "mmd", "method", looks, ceiling)
        right.axvline(GUIDELINE, color=style.INK, lw=0.7, ls=":")
        right.set_xlim(-0.02, 1.02)
        left.set_ylabel("MMD")
        for axis, by in ((left, "bound"), (right, "fraction")):
            axis.set_title(f"{label}: by clip {by}", pad=12 if high else 6)
            panels.levels(axis, context.exact(problem, "mmd"))
    axes[-1, 0].set_xlabel("clip bound")
    axes[-1, 1].set_xlabel("fraction of log-likelihood ratios clipped")
    exact = max((len(context.exact(problem, "mmd")) for problem in problems), default=0)
    handles = panels.legend_entries(looks, exact)
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))
    style.heading(figure, "Räisä, Koskela and Honkela 2021, Figure 3: clipping, no privacy")
    return figure
