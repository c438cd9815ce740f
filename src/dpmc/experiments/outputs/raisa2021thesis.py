"""Figures and tables of Räisä 2021 (MSc thesis), and companions to them.

The figures of chapter 6 show whichever experiment their context holds: the one that the
text describes, or that of the final version of the public code, whose problems carry the
ending ``_final``.
"""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from dpmc.experiments.outputs import _thesis_accounting, _thesis_density, _thesis_tables
from dpmc.experiments.outputs import _thesis_panels as parts
from dpmc.experiments.pipeline.results import Context
from dpmc.experiments.plots import panels, style
from dpmc.experiments.verdicts.evidence import AS_PUBLISHED

BANANAS = ("flat_banana_2d", "flat_banana_10d", "tempered_banana_2d", "tempered_banana_10d")
HARDER = ("gauss_30d", "narrow_banana_2d", "corr_gauss_2d")
CIRCLE = ("circle",)
MMD_TOP = 0.9  # of the published axes
CLIPPING_CEILING = 0.6

figure4_1 = _thesis_density.figure4_1
figure5_1 = _thesis_density.figure5_1
figure6_1 = _thesis_accounting.figure6_1
table5_1 = _thesis_tables.table5_1
budget_table = _thesis_tables.budget_table
comparison_table = _thesis_tables.comparison_table
clipping_table = _thesis_tables.clipping_table


def figure6_2(context: Context) -> Figure:
    """Draw the effect of clipping as the text describes it: variant ``corrected``.

    Parameters
    ----------
    context : Context
        Runs of the experiment ``clipping``.

    Returns
    -------
    matplotlib.figure.Figure
        One column per dimension. MMD against the clip bound above, against the fraction
        of ratios that were clipped below, which a dotted line marks at 10 %.

    References
    ----------
    Räisä 2021, Figure 6.2.
    """
    return _clipping(context, "corrected")


def figure6_2_published(context: Context) -> Figure:
    """Draw the effect of clipping as the public code ran it: variant ``as_published``.

    Parameters
    ----------
    context : Context
        As for :func:`figure6_2`.

    Returns
    -------
    matplotlib.figure.Figure
        As :func:`figure6_2`.
    """
    return _clipping(context, AS_PUBLISHED)


def figure6_3(context: Context) -> Figure:
    """Draw MMD against epsilon on the flat and tempered bananas [Räisä 2021, Figure 6.3].

    Parameters
    ----------
    context : Context
        Runs of one experiment; its as-published variants are drawn.

    Returns
    -------
    matplotlib.figure.Figure
        One row per model, one box per algorithm and epsilon.
    """
    return _by_epsilon(context, BANANAS, "mmd", columns=1, top=MMD_TOP)


def figure6_4(context: Context) -> Figure:
    """Draw MMD against epsilon on the harder models [Räisä 2021, Figure 6.4].

    Parameters and return value are those of :func:`figure6_3`.
    """
    return _by_epsilon(context, HARDER, "mmd", columns=3, top=MMD_TOP)


def figure6_5(context: Context) -> Figure:
    """Draw the fraction of ratios clipped on the bananas [Räisä 2021, Figure 6.5].

    Parameters and return value are those of :func:`figure6_3`; the vertical axis grows with
    the square root of the fraction, and a dotted line marks 10 %.
    """
    figure = _by_epsilon(context, BANANAS, "ratio_clip_fraction", columns=1, top=1.0)
    for axis in figure.axes:
        if axis.axison:
            parts.square_root(axis)
    return figure


def figure6_6(context: Context) -> Figure:
    """Draw the fraction of ratios clipped on the harder models [Räisä 2021, Figure 6.6].

    Parameters and return value are those of :func:`figure6_3`; a dotted line marks 10 %.
    """
    return _by_epsilon(context, HARDER, "ratio_clip_fraction", columns=3)


@style.styled
def figure6_7(context: Context) -> Figure:
    """Draw the results on the circle [Räisä 2021, Figure 6.7].

    Parameters
    ----------
    context : Context
        As for :func:`figure6_3`.

    Returns
    -------
    matplotlib.figure.Figure
        The distance of the mean of the draws from the origin, the fraction of ratios
        clipped, and, in addition, MMD.
    """
    rows = parts.as_published(context)
    problems = parts.chosen(context, rows, CIRCLE)
    if not problems:
        return style.note("This run holds no results on the circle.")
    panel_rows = rows[rows["problem"] == problems[0]]
    looks = parts.looks_of(panel_rows)
    figure, axes = style.figure(1, 3, 2.6)
    for axis, metric in zip(axes.flat, ("mean_norm", "ratio_clip_fraction", "mmd"), strict=True):
        parts.panel(axis, context, panel_rows, metric, looks)
        axis.set_title(parts.NAMES[metric])
        axis.set_xlabel("ε")
    parts.legend(figure, looks, len(context.exact(problems[0], "mmd")), 4)
    return figure


@style.styled
def figure6_8(context: Context) -> Figure:
    """Draw the fraction of row gradients that DP-HMC clipped [Räisä 2021, Figure 6.8].

    Parameters
    ----------
    context : Context
        As for :func:`figure6_3`.

    Returns
    -------
    matplotlib.figure.Figure
        One panel per model.
    """
    rows = parts.as_published(context)
    rows = rows[rows["algorithm"] == "dp_hmc"]
    problems = parts.chosen(context, rows, (*BANANAS, *HARDER, *CIRCLE))
    if not problems:
        return style.note("This run holds no results of DP-HMC.")
    looks = parts.looks_of(rows)
    height = -(-len(problems) // 2)
    figure, axes = style.figure(height, 2, 0.3 + 1.45 * height, sharey=True)
    for axis, problem in zip(axes.flat, problems, strict=False):
        panel_rows = rows[rows["problem"] == problem]
        parts.panel(axis, context, panel_rows, "gradient_clip_fraction", looks, 1.0)
        axis.set_title(context.problem_label(problem))
    parts.finish(axes, len(problems), "fraction clipped")
    return figure


@style.styled
def figure_mala(context: Context) -> Figure:
    """Draw MMD of DP-MALA, DP-penalty and DP-HMC on the problems of DP-MALA.

    Parameters
    ----------
    context : Context
        Runs of one experiment.

    Returns
    -------
    matplotlib.figure.Figure
        One panel per model.
    """
    rows = parts.only(context)
    rows = rows[rows["variant"].isin([AS_PUBLISHED, "added"])]
    with_mala = set(rows.loc[rows["algorithm"] == "dp_mala", "problem"])
    rows = rows[rows["algorithm"].isin(["dp_penalty", "dp_hmc", "dp_mala"])]
    problems = [name for name in context.problems(rows) if name in with_mala]
    if not problems:
        return style.note("This run holds no results of DP-MALA.")
    looks = parts.looks_of(rows)
    return parts.grid(context, rows, problems, "mmd", looks, 2, MMD_TOP, aligned=False)


@style.styled
def figure_variants(context: Context) -> Figure:
    """Draw the algorithms that have several variants, and the epsilon that holds for each.

    Parameters
    ----------
    context : Context
        Runs of one experiment.

    Returns
    -------
    matplotlib.figure.Figure
        One row per model: a panel of MMD per algorithm, and the epsilon that each variant
        really has against the epsilon that was asked for.
    """
    rows = parts.only(context)
    grouped = rows.groupby(["problem", "algorithm"])["variant"]
    rows = rows[grouped.transform("nunique") > 1]
    if rows.empty:
        return style.note("This run holds one variant of each algorithm.")
    problems = context.problems(rows)
    algorithms = parts.looks_of(rows)
    looks = {v: style.look(v) for v in style.ordered(rows["variant"], style.VARIANTS)}
    columns = len(algorithms) + 1
    height = 0.7 + 1.6 * len(problems)
    figure, axes = style.figure(len(problems), columns, height)
    for i, problem in enumerate(problems):
        panel_rows = rows[rows["problem"] == problem]
        for axis, (name, shape) in zip(axes[i], algorithms.items(), strict=False):
            runs = panel_rows[panel_rows["algorithm"] == name]
            if runs.empty:
                axis.set_axis_off()
                continue
            panels.boxes(axis, runs, "epsilon", "mmd", "variant", looks)
            panels.levels(axis, context.exact(problem, "mmd"))
            axis.set_ylim(0, max(MMD_TOP, 1.03 * rows["mmd"].max()))
            axis.set_title(shape.label.replace(" OCU", "\nOCU") if i == 0 else "")
            axis.set_xlabel("ε asked for" if i == len(problems) - 1 else "")
        panels.guarantees(axes[i, -1], panel_rows, "algorithm", algorithms, "variant", looks)
        axes[i, -1].set_title("guarantee" if i == 0 else "")
        if i < len(problems) - 1:
            axes[i, -1].set_xlabel("")
        label = context.problem_label(problem).replace(", ", "\n")
        axes[i, 0].set_ylabel(f"{label}: MMD")
    exact = max(len(context.exact(problem, "mmd")) for problem in problems)
    parts.legend(figure, looks, exact, 5)
    parts.markers(figure, algorithms)
    return figure


@style.styled
def _clipping(context: Context, variant: str) -> Figure:
    rows = context.experiment("clipping")
    rows = rows[rows["variant"] == variant]
    if rows.empty:
        return style.note(f"This run holds no clipped chains of variant {variant}.")
    looks = parts.looks_of(rows)
    problems = context.problems(rows)
    figure, axes = style.figure(2, len(problems), 5.0, sharey=True)
    for (above, below), problem in zip(axes.T, problems, strict=True):
        panel_rows = rows[rows["problem"] == problem]
        panels.boxes(above, panel_rows, "clip_bound", "mmd", "algorithm", looks, CLIPPING_CEILING)
        panels.points(
            below, panel_rows, "ratio_clip_fraction", "mmd", "algorithm", looks, CLIPPING_CEILING
        )
        below.axvline(parts.GUIDELINE, color=style.INK, lw=0.7, ls=":")
        below.set_xlim(-0.02, 1.02)
        above.set_title(context.problem_label(problem), pad=12)
        above.set_xlabel("clip bound $b_l$")
        below.set_xlabel("fraction of log-likelihood ratios clipped")
        for axis in (above, below):
            panels.levels(axis, context.exact(problem, "mmd"))
    for axis in axes[:, 0]:
        axis.set_ylabel("MMD")
    parts.legend(figure, looks, len(context.exact(problems[0], "mmd")), 3)
    return figure


@style.styled
def _by_epsilon(
    context: Context,
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
    return parts.grid(context, rows, problems, metric, parts.looks_of(rows), columns, top)
