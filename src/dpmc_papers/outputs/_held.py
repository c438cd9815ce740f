"""Pictures of the epsilon that holds: results against it, and it over the one claimed."""

from __future__ import annotations

import math
from dataclasses import replace
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
from dpmc_papers.verdicts.evidence import AS_PUBLISHED

# Of an algorithm with several variants, those that are drawn beside other algorithms.
ENDS = (AS_PUBLISHED, "corrected")
STRIP = 1.8  # the strip of results without a guarantee begins at so many times the largest epsilon
MUCH = 0.3  # of ratios clipped: with so many a chain need not approach the exact posterior
NO_GUARANTEE = "no guarantee"
FRONTIER: dict[str, Any] = {"color": "#f2d98c", "lw": 3.5}  # wide enough to show under marks


@style.styled
def figure_held(context: Context) -> Figure:
    """Draw MMD against the epsilon that holds, all methods, as published and corrected.

    Reads runs of one experiment. One panel per model: medians of runs with their quartiles. Runs
    without a finite guarantee stand in a strip at the right edge. A grey step line is the lowest
    median that any method reaches within each epsilon.
    """
    rows = parts.only(context)
    rows = rows[rows["epsilon"].notna()]
    problems = context.problems(rows)
    height = -(-len(problems) // 2)
    figure, axes = style.figure(
        height, min(2, len(problems)), 1.3 + 1.7 * height, sharex=True, sharey=True
    )
    strip = bool(np.isinf(rows["guarantee_epsilon"]).any())
    capped = False
    low, high = _limits(rows)
    for axis, problem in zip(axes.flat, problems, strict=False):
        capped |= _held_panel(axis, context, rows[rows["problem"] == problem], high * STRIP)
        axis.set(title=context.problem_label(problem), xscale="log")
        axis.set_xlim(low, high * (STRIP**2 if strip else 1))
        axis.tick_params(labelbottom=True)
        if strip:
            _strip(axis, high, high * STRIP**2)
    axes[0, 0].set_ylim(0, None)
    parts.finish(axes, len(problems), "MMD")
    for axis in axes.flat[: len(problems)]:
        axis.set_xlabel("ε that holds" if axis.get_xlabel() else "")
    handles = _held_entries(rows)
    exact = max(len(context.exact(problem, "mmd")) for problem in problems)
    if exact:
        handles.append(Patch(facecolor=panels.EXACT, label=f"{exact} exact samples"))
    handles.append(Line2D([], [], **FRONTIER, label="lowest median within ε"))
    if capped:
        handles.append(Line2D([], [], color=style.INK, label="iterations capped", **RING))
    figure.legend(handles=handles, loc="outside upper center", ncols=2 if len(handles) > 10 else 3)
    names = {"text": "settings of the text", "final": "FINAL code"}
    told = names.get(str(rows["experiment"].iloc[0]))
    title = "Results by the ε that holds, as published and corrected"
    style.heading(figure, f"{title}, {told}" if told else title)
    return figure


def _limits(rows: pd.DataFrame) -> tuple[float, float]:
    """Ends of an axis that shows every finite guarantee."""
    finite = rows.loc[np.isfinite(rows["guarantee_epsilon"]), "guarantee_epsilon"]
    return (finite.min() / 1.4, finite.max() * 1.4) if len(finite) else (0.1, 10.0)


def _held_panel(axis: Axes, context: Context, rows: pd.DataFrame, beyond: float) -> bool:
    """Draw one model; return whether any of its runs was cut off before its budget was spent."""
    panels.levels(axis, context.exact(str(rows["problem"].iloc[0]), "mmd"))
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
    panels.levels(axis, context.exact(str(rows["problem"].iloc[0]), "mmd"))
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
    handles.append(Patch(facecolor=panels.EXACT, label="exact samples"))
    if capped:
        handles.append(Line2D([], [], color=style.INK, label="iterations capped", **RING))
    return handles


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
    """Quartiles of MMD for each epsilon that holds.

    Runs that were cut off stand for several that were asked for.
    """
    runs = rows[rows["mmd"].notna() & rows["epsilon"].notna()]
    exact = runs.groupby("epsilon")["guarantee_epsilon"].transform("max")
    held = exact.map(lambda value: float(f"{value:.6g}"))
    groups = runs.groupby(held.rename("held"))
    shares = {"low": 0.25, "median": 0.5, "high": 0.75}
    quartiles = {name: groups["mmd"].quantile(share) for name, share in shares.items()}
    return pd.DataFrame({**quartiles, "iterations": groups["num_iterations"].max()}).reset_index()


def _frontier(axis: Axes, points: pd.DataFrame) -> None:
    ordered = points.sort_values("held")
    best = ordered["median"].cummin()
    axis.step(ordered["held"], best, where="post", zorder=1, **FRONTIER)


def _held_looks(rows: pd.DataFrame) -> dict[str, tuple[Look, dict[str, Any]]]:
    """How each label is drawn: as its algorithm, hollow as published where it is corrected too.

    Variants between these two are not drawn.
    """
    looks: dict[str, tuple[Look, dict[str, Any]]] = {}
    for algorithm in style.ordered(rows["algorithm"], style.METHODS):
        look, same = style.look(algorithm), rows[rows["algorithm"] == algorithm]
        variants = style.ordered(same["variant"], style.VARIANTS)
        both = set(ENDS) <= set(variants)
        for variant in ENDS if both else variants:
            runs = same[same["variant"] == variant]
            words = f"{look.label}, {style.look(variant).label}" if both else look.label
            hollow = both and variant == AS_PUBLISHED
            options = {"mfc": "white" if hollow else look.colour, "mec": look.colour, "mew": 0.8}
            named = replace(look, label=words + _clipped(runs))
            looks[str(runs["label"].iloc[0])] = (named, options)
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
