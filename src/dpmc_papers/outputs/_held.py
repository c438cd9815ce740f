"""Pictures of the epsilon that holds: results against it, and it over the one claimed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.transforms import blended_transform_factory

from dpmc.types import UNAVAILABLE
from dpmc_papers.outputs import _thesis_panels as parts
from dpmc_papers.outputs._regression import EXACT, replaced
from dpmc_papers.pipeline.results import Context
from dpmc_papers.plots import drawn, panels, style
from dpmc_papers.plots.style import Look

# How much of a marker is filled, by variant; others are filled.
FILLS = {"as_published": "none", "valid_count": "left", "langevin": "bottom"}
EDGES = {"pld": style.INK}
STRIP = 1.8  # the strip of results without a guarantee begins at so many times the largest epsilon
MUCH = 0.3  # of ratios clipped: with so many a chain need not approach the exact posterior
NO_GUARANTEE = "no guarantee"


@style.styled
def figure_held(context: Context) -> Figure:
    """Draw MMD against the epsilon that holds, all methods and variants.

    Reads runs of one experiment. One panel per model: medians of runs with their quartiles. Runs
    without a finite guarantee stand in a strip at the right edge. A grey step line is the lowest
    median that any method reaches within each epsilon.
    """
    rows = parts.only(context)
    rows = rows[rows["epsilon"].notna()]
    problems = context.problems(rows)
    height = -(-len(problems) // 2)
    figure, axes = style.figure(
        height, min(2, len(problems)), 1.3 + 1.7 * height, sharex="row", sharey=True
    )
    strip = bool(np.isinf(rows["guarantee_epsilon"]).any())
    capped = False
    for k in range(height):
        in_row = problems[k * axes.shape[1] : (k + 1) * axes.shape[1]]
        low, high = _limits(rows[rows["problem"].isin(in_row)])
        for axis, problem in zip(axes[k], in_row, strict=False):
            panel_rows = rows[rows["problem"] == problem]
            capped |= _held_panel(axis, context, panel_rows, high * STRIP)
            axis.set_title(context.problem_label(problem))
            axis.set(xscale="log", xlim=(low, high * (STRIP**2 if strip else 1)))
            if strip:
                _strip(axis, high, high * STRIP**2)
    axes[0, 0].set_ylim(0, None)
    parts.finish(axes, len(problems), "MMD")
    for axis in axes.flat[: len(problems)]:
        axis.set_xlabel("ε that holds" if axis.get_xlabel() else "")
    handles = _held_entries(rows)
    exact = max(len(context.exact(problem, "mmd")) for problem in problems)
    if exact:
        handles.append(Patch(facecolor="#d9d9d9", label=f"{exact} exact samples"))
    handles.append(Line2D([], [], color=style.GREY, lw=0.8, label="lowest median within ε"))
    if capped:
        handles.append(Line2D([], [], color=style.INK, label="iterations capped", **RING))
    figure.legend(handles=handles, loc="outside upper center", ncols=2 if len(handles) > 10 else 3)
    names = {"text": "settings of the text", "final": "FINAL code"}
    told = names.get(str(rows["experiment"].iloc[0]))
    title = "Results by the ε that holds, all methods and variants"
    style.heading(figure, f"{title}, {told}" if told else title)
    return figure


def _limits(rows: pd.DataFrame) -> tuple[float, float]:
    """Ends of an axis that shows every finite guarantee."""
    finite = rows.loc[np.isfinite(rows["guarantee_epsilon"]), "guarantee_epsilon"]
    return (finite.min() / 1.4, finite.max() * 1.4) if len(finite) else (0.1, 10.0)


def _held_panel(axis: Axes, context: Context, rows: pd.DataFrame, beyond: float) -> bool:
    """Draw one model; return whether any of its runs was cut off before its budget was spent."""
    _exact(axis, context, rows)
    reached, any_capped = [], False
    for label, (look, options) in _held_looks(rows).items():
        points = _spans(rows[rows["label"] == label])
        if points.empty:
            continue
        at = points["held"].where(np.isfinite(points["held"]), beyond)
        bars = [points["median"] - points["low"], points["high"] - points["median"]]
        drawn.record(axis, f"{look.label}: median", points["held"], points["median"])
        drawn.record(axis, f"{look.label}: lower quartile", points["held"], points["low"])
        drawn.record(axis, f"{look.label}: upper quartile", points["held"], points["high"])
        finite = points[np.isfinite(points["held"])]
        axis.plot(finite["held"], finite["median"], ls=look.line, color=look.colour, lw=0.7)
        axis.errorbar(
            at, points["median"], yerr=bars, fmt=look.marker, color=look.colour, ms=4.2, lw=0.7,
            zorder=3, **options,
        )  # fmt: skip
        reached.append(finite)
        any_capped |= _ringed(axis, context, rows[rows["label"] == label], points)
    if reached:
        _frontier(axis, pd.concat(reached))
    return any_capped


def variant_panel(axis: Axes, context: Context, rows: pd.DataFrame, looks: dict[str, Look]) -> bool:
    """Draw the variants of one algorithm on one model; return whether any run was capped.

    Runs without a finite guarantee are not drawn.
    """
    axis.set_xscale("log")
    if rows.empty:
        axis.annotate("not run", (0.5, 0.5), xycoords="axes fraction", ha="center", fontsize=7)
        return False
    _exact(axis, context, rows)
    any_capped = False
    for variant, look in looks.items():
        runs = rows[rows["variant"] == variant]
        points = _spans(runs)
        points = points[np.isfinite(points["held"])]
        if points.empty:
            continue
        bars = [points["median"] - points["low"], points["high"] - points["median"]]
        for name in ("low", "median", "high"):
            drawn.record(axis, f"{look.label}: {name}", points["held"], points[name])
        axis.errorbar(
            points["held"], points["median"], yerr=bars, fmt=look.marker, color=look.colour, ms=4,
            lw=0.8, ls=look.line, mew=0.4, mec="white", zorder=3,
        )  # fmt: skip
        any_capped |= _ringed(axis, context, runs, points)
    return any_capped


def variant_entries(looks: dict[str, Look], capped: bool) -> list[Any]:
    """Legend entries of :func:`variant_panel`."""
    handles: list[Any] = [
        Line2D([], [], color=k.colour, marker=k.marker, ls=k.line, lw=0.8, ms=4, mew=0.4,
               mec="white", label=k.label)
        for k in looks.values()
    ]  # fmt: skip
    handles.append(Patch(facecolor="#d9d9d9", label="exact samples"))
    if capped:
        handles.append(Line2D([], [], color=style.INK, label="iterations capped", **RING))
    return handles


def _exact(axis: Axes, context: Context, rows: pd.DataFrame) -> None:
    """Draw what exact samples of a problem reach."""
    exact = context.exact(str(rows["problem"].iloc[0]), "mmd")
    if exact:
        axis.axhspan(min(exact), max(exact), color="#d9d9d9", lw=0, zorder=0)
        drawn.record(axis, "exact sample", np.nan, exact)


def _ringed(axis: Axes, context: Context, rows: pd.DataFrame, points: pd.DataFrame) -> bool:
    """Draw a ring round points of a method that was cut off; return whether there are any."""
    methods: Any = context.config.get("experiments", {})
    for name in ("experiment", "methods", "problem", "label"):
        methods = methods.get(name if name == "methods" else str(rows[name].iloc[0]), {})
    capped = points[points["iterations"] >= methods.get("max_iterations", math.inf)]
    axis.plot(
        capped["held"], capped["median"], "o", color=style.INK, ms=8, mfc="none", mew=0.7,
        zorder=4,
    )  # fmt: skip
    return bool(len(capped))


RING: dict[str, Any] = {"ls": "", "marker": "o", "ms": 7.5, "mfc": "none", "mew": 0.7}


def _spans(rows: pd.DataFrame) -> pd.DataFrame:
    """Quartiles of MMD and the epsilon that holds, for each that was asked for."""
    points = []
    for _, runs in rows.groupby("epsilon", sort=True):
        values = runs["mmd"].dropna().to_numpy(float)
        if len(values):
            low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
            held, count = runs["guarantee_epsilon"].max(), runs["num_iterations"].max()
            points.append((float(held), low, middle, high, float(count)))
    return pd.DataFrame(
        points, columns=["held", "low", "median", "high", "iterations"], dtype=float
    )


def _frontier(axis: Axes, points: pd.DataFrame) -> None:
    ordered = points.sort_values("held")
    best = ordered["median"].cummin()
    axis.step(ordered["held"], best, where="post", color=style.GREY, lw=0.8, zorder=1)


def _held_looks(rows: pd.DataFrame) -> dict[str, tuple[Look, dict[str, Any]]]:
    """How each label is drawn: colour and marker of its algorithm, fill by variant."""
    pairs = rows[["label", "algorithm", "variant"]].drop_duplicates()
    looks: dict[str, tuple[Look, dict[str, Any]]] = {}
    order = style.ordered(pairs["algorithm"], style.METHODS)
    for algorithm in order:
        same = pairs[pairs["algorithm"] == algorithm]
        for variant in style.ordered(same["variant"], style.VARIANTS):
            label = str(same.loc[same["variant"] == variant, "label"].iloc[0])
            look = style.look(algorithm)
            several = len(same) > 1
            words = f"{look.label}, {style.look(variant).label}" if several else look.label
            words += _clipped(rows[rows["label"] == label])
            fill = FILLS.get(variant, "full") if several else "full"
            options = {
                "fillstyle": fill,
                "mec": EDGES.get(variant, look.colour),
                "mew": 0.9 if fill != "full" or variant in EDGES else 0.3,
            }
            looks[label] = (Look(words, look.colour, look.marker, look.line), options)
    return looks


def _clipped(rows: pd.DataFrame) -> str:
    """Which shares of ratios were clipped, where they reach ``MUCH`` on some model."""
    if "ratio_clip_fraction" not in rows:
        return ""
    medians = rows.groupby(["problem", "epsilon"])["ratio_clip_fraction"].median().dropna()
    if medians.empty or medians.max() < MUCH:
        return ""
    low, high = (round(100 * float(value)) for value in (medians.min(), medians.max()))
    return f" ({low}–{high} % clipped)" if low < high else f" ({low} % clipped)"


def _held_entries(rows: pd.DataFrame) -> list[Any]:
    return [
        Line2D([], [], color=k.colour, marker=k.marker, ls=k.line, lw=0.7, ms=4.2, label=k.label,
               **options)
        for k, options in _held_looks(rows).values()
    ]  # fmt: skip


def _strip(axis: Axes, begin: float, end: float) -> None:
    axis.axvspan(begin, end, color="#f3e3e0", lw=0, zorder=0)
    across = blended_transform_factory(axis.transData, axis.transAxes)
    axis.text(
        begin * STRIP**1.7, 0.97, NO_GUARANTEE, transform=across, rotation=90, ha="center",
        va="top", fontsize=7,
    )  # fmt: skip


@style.styled
def figure_claimed(context: Context) -> Figure:
    """Draw the epsilon that holds as a multiple of the epsilon that was claimed.

    Reads runs that are private or claim to be. One row per method and variant, one mark per problem
    and epsilon, at the very ratio: right of the line at 1 there is less privacy than claimed.
    Within a row epsilon grows downwards. Results without a finite guarantee stand in a strip at the
    right edge.
    """
    import seaborn

    points = claimed(context.metrics)
    if points.empty:
        return style.note("This run holds no results with an epsilon.")
    labels = [
        style.method_label(algorithm, variant)
        for algorithm in style.ordered(points["algorithm"], style.METHODS)
        for variant in style.ordered(
            points.loc[points["algorithm"] == algorithm, "variant"], style.VARIANTS
        )
    ]
    pairs = zip(points["algorithm"], points["variant"], strict=True)
    points["label"] = [style.method_label(*pair) for pair in pairs]
    points["ratio"] = points["held"] / points["epsilon"]
    rank = points["epsilon"].rank(method="dense") - 1
    within = 0.7 * (rank / max(1, rank.max()) - 0.5)
    finite = points.loc[np.isfinite(points["ratio"]), "ratio"]
    low, high = 0.8 * min(1.0, finite.min()), 1.25 * max(1.0, finite.max())
    end = high * (high / low) ** 0.25 if len(finite) < len(points) else high
    figure, axes = style.figure(1, 1, 1.2 + 0.19 * len(labels))
    axis = axes[0, 0]
    seaborn.scatterplot(
        x=points["ratio"].where(np.isfinite(points["ratio"]), math.sqrt(high * end)),
        y=points["label"].map(labels.index) + within, hue=points["epsilon"], hue_norm=LogNorm(),
        palette="flare", s=11, linewidth=0.3, legend="full", zorder=3, ax=axis,
    )  # fmt: skip
    for place, label in enumerate(labels):
        here = points[points["label"] == label]
        drawn.record(axis, label, here["ratio"], here["epsilon"])
        above = int((here["ratio"] > 1 + panels.TOLERANCE).sum())
        axis.annotate(
            f"{above} of {len(here)}", (1.02, place), xycoords=("axes fraction", "data"),
            va="center", fontsize=7, fontweight="bold" if above else "normal",
        )  # fmt: skip
        axis.axhline(place + 0.5, color="#e6e6e6", lw=0.5, zorder=0)
    axis.axvline(1, color=style.INK, lw=0.8, zorder=1)
    axis.annotate(
        "less privacy\nthan claimed",
        (1.02, 1.01),
        xycoords="axes fraction",
        va="bottom",
        fontsize=7,
    )
    axis.set(xscale="log", xlim=(low, end), ylim=(len(labels) - 0.5, -0.5))
    axis.set(xlabel="ε that holds / ε claimed", ylabel="ε claimed ↓")
    axis.set_yticks(range(len(labels)), labels)
    if end > high:
        axis.axvspan(high, end, color="#f3e3e0", lw=0, zorder=0)
        axis.annotate(
            NO_GUARANTEE.replace(" ", "\n"), (math.sqrt(high * end), 1.01),
            xycoords=("data", "axes fraction"), ha="center", va="bottom", fontsize=7,
        )  # fmt: skip
    handles, names = axis.get_legend_handles_labels()
    axis.get_legend().remove()
    words = [f"ε {float(name):g}" for name in names]
    figure.legend(handles, words, loc="outside upper center", ncols=min(8, len(words)))
    style.heading(figure, "Privacy that holds, as a multiple of the ε claimed")
    return figure


def claimed(metrics: pd.DataFrame) -> pd.DataFrame:
    """Each result that claims an epsilon, with the one that holds.

    One row per problem, algorithm, variant and epsilon: ``held`` is infinite where there is no
    guarantee. Where guarantees for both relations of neighbours are known, that for the replacement
    of a row counts. Estimators that are meant to be exact claim nothing.
    """
    rows = metrics[(metrics["epsilon"] > 0) & ~metrics["algorithm"].isin(EXACT)]
    rows = rows[~rows["status"].fillna("").str.startswith(UNAVAILABLE)]
    keys = ["problem", "algorithm", "variant", "epsilon"]
    held = replaced(rows).fillna(math.inf)
    table = rows.assign(held=held).groupby(keys, sort=False)["held"].max()
    return table.reset_index()
