"""Figures and tables of Räisä 2021 (MSc thesis), and companions to them.

The figures of chapter 6 show whichever experiment their context holds: the one that the
text describes, or that of the final version of the public code, whose problems carry the
ending ``_final``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from matplotlib.figure import Figure

from dpmc_papers.outputs import (
    _held,
    _iac,
    _thesis_accounting,
    _thesis_density,
    _thesis_tables,
)
from dpmc_papers.outputs import _thesis_panels as parts
from dpmc_papers.pipeline.results import Context
from dpmc_papers.plots import panels, style
from dpmc_papers.verdicts.evidence import AS_PUBLISHED

BANANAS = ("flat_banana_2d", "flat_banana_10d", "tempered_banana_2d", "tempered_banana_10d")
HARDER = ("gauss_30d", "narrow_banana_2d", "corr_gauss_2d")
CIRCLE = ("circle",)
MMD_TOP = 0.9  # of the published axes
CLIPPING_CEILING = 0.6
CIRCLE_METRICS = {
    "mean_norm": "distance of the mean from 0",
    "ratio_clip_fraction": "fraction of ratios clipped",
    "mmd": "MMD (added)",
}

figure4_1 = _thesis_density.figure4_1
figure5_1 = _thesis_density.figure5_1
figure6_1 = _thesis_accounting.figure6_1
figure_held = _held.figure_held
figure_claimed = _held.figure_claimed
figure_iac = _iac.by_problem
table5_1 = _thesis_tables.table5_1
layout_table5_1 = _thesis_tables.layout_table5_1
budget_table = _thesis_tables.budget_table
comparison_table = _thesis_tables.comparison_table
clipping_table = _thesis_tables.clipping_table


def _clip_fractions(context: Context, name: str, wanted: Sequence[str], columns: int) -> Figure:
    """Draw the fraction of ratios clipped on an axis that grows with its square root."""
    figure = _by_epsilon(context, name, wanted, "ratio_clip_fraction", columns, top=1.0)
    rows = parts.as_published(context)
    rows = rows[rows["problem"].isin(parts.chosen(context, rows, wanted))]
    top = min(1.0, 1.1 * max(parts.GUIDELINE, rows["ratio_clip_fraction"].max()))
    for axis in figure.axes:
        if not axis.axison:
            continue
        parts.square_root(axis, top)
        if axis.get_ylabel():
            axis.set_ylabel("fraction clipped\n(square-root axis)")
    return figure


@style.styled
def figure6_7(context: Context) -> Figure:
    """Draw the results on the circle [Räisä 2021, Figure 6.7].

    Reads what is read for :func:`figure6_3`. The distance of the mean of the draws from the origin,
    the fraction of ratios clipped, and, in addition, MMD.
    """
    rows = parts.as_published(context)
    problems = parts.chosen(context, rows, CIRCLE)
    if not problems:
        return style.note("This run holds no results on the circle.")
    panel_rows = rows[rows["problem"] == problems[0]]
    looks = parts.looks_of(panel_rows)
    figure, axes = style.figure(1, 3, 2.7)
    for axis, metric in zip(axes.flat, CIRCLE_METRICS, strict=True):
        lines = parts.panel(axis, context, panel_rows, metric, looks)
        axis.set(ylabel=CIRCLE_METRICS[metric], xlabel=panels.epsilon_label(lines, 3))
    middle = axes[0, 1]
    most = panel_rows["ratio_clip_fraction"].max()
    if most < parts.GUIDELINE / 2:
        middle.set_ylim(0, 1.15 * most)
        middle.annotate(
            "10 % is above the axis", (0.97, 0.97), xycoords="axes fraction", ha="right", va="top",
            fontsize=7,
        )  # fmt: skip
    parts.legend(figure, looks, len(context.exact(problems[0], "mmd")), 4)
    parts.heading(figure, context, "Figure 6.7 and additions")
    return figure


@style.styled
def figure6_8(context: Context) -> Figure:
    """Draw the fraction of row gradients that DP-HMC clipped [Räisä 2021, Figure 6.8].

    Reads what is read for :func:`figure6_3`. One panel per model.
    """
    rows = parts.as_published(context)
    rows = rows[rows["algorithm"] == "dp_hmc"]
    problems = parts.chosen(context, rows, (*BANANAS, *HARDER, *CIRCLE))
    if not problems:
        return style.note("This run holds no results of DP-HMC.")
    looks = parts.looks_of(rows)
    height = -(-len(problems) // 2)
    figure, axes = style.figure(height, 2, 0.5 + 1.4 * height, sharey=True)
    for axis, problem in zip(axes.flat, problems, strict=False):
        panel_rows = rows[rows["problem"] == problem]
        parts.panel(axis, context, panel_rows, "gradient_clip_fraction", looks, 1.0)
        axis.set_title(context.problem_label(problem))
    parts.finish(axes, len(problems), "row gradients clipped")
    parts.heading(figure, context, "Figure 6.8: row gradients clipped")
    return figure


@style.styled
def figure_mala(context: Context) -> Figure:
    """Draw MMD of DP-MALA, DP-penalty and DP-HMC on the problems of DP-MALA.

    Reads runs of one experiment. One panel per model.
    """
    rows = parts.only(context)
    rows = rows[rows["variant"].isin([AS_PUBLISHED, "added"])]
    with_mala = set(rows.loc[rows["algorithm"] == "dp_mala", "problem"])
    rows = rows[rows["algorithm"].isin(["dp_penalty", "dp_hmc", "dp_mala"])]
    problems = [name for name in context.problems(rows) if name in with_mala]
    if not problems:
        return style.note("This run holds no results of DP-MALA.")
    looks = parts.looks_of(rows)
    figure = parts.grid(context, rows, problems, "mmd", looks, 2, MMD_TOP, aligned=False)
    parts.heading(figure, context, "DP-MALA on the models where it was run", "added")
    return figure


@style.styled
def figure_variants(context: Context) -> Figure:
    """Draw the algorithms that have several variants against the epsilon that holds.

    Reads runs of one experiment. One row per model, one column per algorithm: medians of MMD with
    quartiles, one line per variant.
    """
    rows = parts.only(context)
    grouped = rows.groupby(["problem", "algorithm"])["variant"]
    rows = rows[grouped.transform("nunique") > 1]
    if rows.empty:
        return style.note("This run holds one variant of each algorithm.")
    problems = context.problems(rows)
    algorithms = parts.looks_of(rows)
    looks = {v: style.look(v) for v in style.ordered(rows["variant"], style.VARIANTS)}
    height = 0.8 + 1.65 * len(problems)
    figure, axes = style.figure(len(problems), len(algorithms), height, sharex=True, sharey=True)
    capped = False
    for i, problem in enumerate(problems):
        for axis, (name, shape) in zip(axes[i], algorithms.items(), strict=True):
            same = (rows["problem"] == problem) & (rows["algorithm"] == name)
            capped |= _held.variant_panel(axis, context, rows[same], looks)
            title = shape.label.replace(" OCU", "\nOCU")
            axis.set_title(
                f"{title}\n" if i == 0 and "\n" not in title else title if i == 0 else ""
            )
            axis.set_xlabel("ε that holds" if i == len(problems) - 1 else "")
            axis.tick_params(labelbottom=True)
        label = context.problem_label(problem).replace(", ", "\n")
        axes[i, 0].set_ylabel(f"{label}: MMD")
    axes[0, 0].set_ylim(0, None)
    handles = _held.variant_entries(looks, capped)
    figure.legend(handles=handles, loc="outside upper center", ncols=4)
    parts.heading(figure, context, "variants by the ε that holds", "added here")
    return figure


@style.styled
def _clipping(context: Context, variant: str) -> Figure:
    """Draw MMD against the clip bound above, against the fraction of ratios clipped below.

    One column per dimension; a dotted line marks a fraction of 10 %.
    """
    rows = context.experiment("clipping")
    rows = rows[rows["variant"] == variant]
    if rows.empty:
        return style.note(f"This run holds no clipped chains of variant {variant}.")
    looks = parts.looks_of(rows)
    problems = context.problems(rows)
    figure, axes = style.figure(2, len(problems), 4.8, sharey=True)
    ceiling = max(CLIPPING_CEILING, 1.03 * rows["mmd"].max())
    for (above, below), problem in zip(axes.T, problems, strict=True):
        panel_rows = rows[rows["problem"] == problem]
        panels.boxes(above, panel_rows, "clip_bound", "mmd", "algorithm", looks, ceiling)
        panels.points(below, panel_rows, "ratio_clip_fraction", "mmd", "algorithm", looks, ceiling)
        below.axvline(parts.GUIDELINE, color=style.INK, lw=0.7, ls=":")
        below.set_xlim(-0.02, 1.02)
        above.set_title(context.problem_label(problem))
        above.set_xlabel("clip bound")
        below.set_xlabel("fraction of log-likelihood ratios clipped")
        for axis in (above, below):
            panels.levels(axis, context.exact(problem, "mmd"))
    for axis in axes[:, 0]:
        axis.set_ylabel("MMD")
    parts.legend(figure, looks, len(context.exact(problems[0], "mmd")), 4)
    told = {"corrected": "CORRECTED: as the text says, not as run"}
    parts.heading(figure, context, "Figure 6.2, no privacy", told.get(variant, "as published"))
    return figure


@style.styled
def _by_epsilon(
    context: Context,
    name: str,
    wanted: Sequence[str],
    metric: str,
    columns: int,
    top: float | None = None,
) -> Figure:
    """Draw a metric of the as-published runs on the problems `wanted`."""
    rows = parts.as_published(context)
    problems = parts.chosen(context, rows, wanted)
    if not problems:
        return style.note("This run holds none of the models of this figure.")
    rows = rows[rows["problem"].isin(problems)]
    figure = parts.grid(context, rows, problems, metric, parts.looks_of(rows), columns, top)
    parts.heading(figure, context, name)
    return figure


# Figure 6.2: the effect of clipping as the text describes it, and as the public code ran it.
figure6_2 = partial(_clipping, variant="corrected")
figure6_2_published = partial(_clipping, variant=AS_PUBLISHED)
# Figures 6.3 to 6.6: as-published runs of one experiment, one box per algorithm and epsilon.
_mmd = partial(_by_epsilon, metric="mmd", top=MMD_TOP)
figure6_3 = partial(_mmd, name="Figure 6.3", wanted=BANANAS, columns=1)
figure6_4 = partial(_mmd, name="Figure 6.4", wanted=HARDER, columns=3)
figure6_5 = partial(_clip_fractions, name="Figure 6.5", wanted=BANANAS, columns=1)
figure6_6 = partial(_clip_fractions, name="Figure 6.6", wanted=HARDER, columns=3)
