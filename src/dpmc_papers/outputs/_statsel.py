"""Shared parts of figures of statistic selection [alparslan2023thesis, chapters 4 and 6]."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from scipy import special

from dpmc.types import Array, DpmcError
from dpmc_papers.plots import style
from dpmc_papers.plots.panels import Centre
from dpmc_papers.plots.style import Look

# Of all intervals over replicates.
CONFIDENCE = 0.9
QUADRATURE = "quadrature"
# What an algorithm of Monte Carlo integration estimates, and what computes it without noise.
ESTIMATED = {
    "laplace_monte_carlo": "laplace_clt",
    "smooth_monte_carlo": "smooth",
    "per_record_monte_carlo": "per_record",
}


class Interval(NamedTuple):
    """A mean over replicates, and between which values it may be."""

    mean: float
    low: float
    high: float


def half_width(values: Array) -> float:
    """Half of the 90 % Student interval of a mean, NaN for fewer than two values."""
    if len(values) < 2:
        return math.nan
    quantile = float(special.stdtrit(len(values) - 1, 0.5 + CONFIDENCE / 2))
    return quantile * float(np.std(values, ddof=1)) / math.sqrt(len(values))


def interval(values: Iterable[float]) -> Interval:
    """Mean with its 90 % Student interval; NaN are left out."""
    finite = _finite(values)
    mean = float(np.mean(finite)) if len(finite) else math.nan
    half = half_width(finite)
    return Interval(mean, mean - half, mean + half)


MEANS = Centre("mean", "90 % interval", interval)


def positive_interval(values: Iterable[float]) -> Interval:
    """Mean of positive numbers with a 90 % interval that is positive too.

    The Student interval of the mean is carried over to its logarithm by the delta method, so
    that it can be drawn on a logarithmic axis.
    """
    finite = _finite(values)
    mean = float(np.mean(finite)) if len(finite) else math.nan
    factor = math.exp(half_width(finite) / mean) if mean > 0 else math.nan
    return Interval(mean, mean / factor, mean * factor)


def _finite(values: Iterable[float]) -> Array:
    numbers: Array = np.asarray(list(values), dtype=np.float64)
    return numbers[np.isfinite(numbers)]


def having(rows: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """Rows that have a number in each of `columns`."""
    if not set(columns) <= set(rows.columns):
        return rows.iloc[:0]
    return rows.dropna(subset=list(columns))


def information(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows that have a Fisher information."""
    informed = having(rows, "information")
    if informed.empty:
        known = ", ".join(sorted(set(rows["experiment"]))) or "none"
        raise DpmcError(f"`information` is missing in the results of {known}")
    return informed


def chains(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of Markov chains, each with the result of quadrature on the same release."""
    runs = having(rows, "squared_error")
    runs = runs[runs["method"] != QUADRATURE]
    without = set(runs["method"]) - set(having(runs, "reference_squared_error")["method"])
    if runs.empty or without:
        which = ", ".join(sorted(without)) or "any chain"
        raise DpmcError(f"`reference_squared_error` by quadrature is missing for {which}")
    return runs


def references(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of quadrature alone, which can have many more replicates."""
    known = having(rows, "reference_squared_error")
    return known[known["method"] == QUADRATURE]


def statistics(rows: pd.DataFrame) -> list[str]:
    """Statistics of `rows` in the order in which they are drawn."""
    return style.ordered(rows["statistic"], style.STATISTICS)


def noiseless(rows: pd.DataFrame) -> pd.Series[bool]:
    """Which rows are about releases without noise."""
    flags: pd.Series[bool] = ~np.isfinite(rows["epsilon"])
    return flags


def panels_by_epsilon(rows: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Rows of each epsilon, ascending, and last those without noise; with a title."""
    without = noiseless(rows)
    for epsilon, panel_rows in rows[~without].groupby("epsilon", sort=True):
        yield f"ε = {float(str(epsilon)):g}", panel_rows
    if without.any():
        yield "no noise (ε = ∞)", rows[without]


class Lead(NamedTuple):
    """Where another statistic becomes the best, along an axis."""

    place: float
    before: str
    after: str


def leads(rows: pd.DataFrame, x: str, value: str = "information") -> list[Lead]:
    """Where the largest of several curves changes from one statistic to another.

    Crossings are interpolated between neighbouring points, logarithms of values over
    logarithms of places.
    """
    wide = rows.pivot_table(value, x, "statistic", "mean").dropna()
    if wide.shape[1] < 2 or len(wide) < 2 or (wide <= 0).any(axis=None):
        return []
    places, logs = np.log(wide.index.to_numpy(float)), np.log(wide.to_numpy())
    best = np.argmax(logs, axis=1)
    changes = []
    for k in np.flatnonzero(np.diff(best)):
        before, after = best[k], best[k + 1]
        gaps = logs[k : k + 2, after] - logs[k : k + 2, before]
        share = -gaps[0] / (gaps[1] - gaps[0])
        place = math.exp(places[k] + share * (places[k + 1] - places[k]))
        changes.append(Lead(place, str(wide.columns[before]), str(wide.columns[after])))
    return changes


def mark_leads(axis: Axes, changes: Sequence[Lead], digits: int = 2, top: bool = False) -> None:
    """Draw a dotted line with its number wherever another statistic becomes the best."""
    for lead in changes:
        axis.axvline(lead.place, color=style.GREY, lw=0.7, ls=(0, (1, 2)), zorder=0)
        axis.annotate(
            f"{lead.place:.{digits}f}", (lead.place, 0.98 if top else 0.02), (2, 0),
            textcoords="offset points", xycoords=("data", "axes fraction"), fontsize=7,
            color=style.INK, rotation=90, va="top" if top else "bottom",
        )  # fmt: skip


def fit_scale(axis: Axes, values: pd.Series[float]) -> None:
    """Make the vertical axis logarithmic where positive values span more than a decade."""
    positive = values[values > 0]
    if len(positive) and positive.max() > 10 * positive.min():
        axis.set_yscale("log")


def curve(axis: Axes, rows: pd.DataFrame, x: str, y: str, look: Look, **options: Any) -> None:
    """Draw the means of a column against another as a line."""
    means = rows.groupby(x)[y].mean().dropna()
    if len(means):
        drawn = {"color": look.colour, "ls": look.line, "lw": 1.2, **options}
        axis.plot(means.index.to_numpy(float), means.to_numpy(), **drawn)


def band(axis: Axes, rows: pd.DataFrame, x: str, y: str, look: Look) -> None:
    """Draw means of a positive column as a line in a band: where the means may be."""
    means = [
        (float(str(at)), *positive_interval(group[y])) for at, group in rows.groupby(x, sort=True)
    ]
    if means:
        place, mean, low, high = np.array(means).T
        axis.plot(place, mean, color=look.colour, ls=look.line, lw=1.1)
        if np.isfinite(low).any():
            axis.fill_between(place, low, high, color=look.colour, alpha=0.16, lw=0)


def marks(
    axis: Axes,
    points: Sequence[tuple[float, Interval]],
    look: Look,
    open_: bool = False,
) -> None:
    """Draw means as markers and their intervals as bars."""
    if not points:
        return
    place = [at for at, _ in points]
    middle = np.array([span.mean for _, span in points])
    ends = np.array([[span.low, span.high] for _, span in points])
    bars = np.where(np.isfinite(ends), np.abs(ends - middle[:, None]), 0).T
    axis.errorbar(
        place, middle, yerr=bars, fmt=look.marker, color=look.colour, ms=4, mew=0.7, lw=0.9,
        mec=look.colour if open_ else "white", mfc="white" if open_ else look.colour, zorder=3,
    )  # fmt: skip


def chain_looks(rows: pd.DataFrame) -> dict[tuple[str, str], str]:
    """Printed name of each method and variant of chains, as published ones last."""
    pairs = list(rows[["method", "variant"]].drop_duplicates().itertuples(index=False, name=None))
    many = {method for method, _ in pairs if sum(m == method for m, _ in pairs) > 1}
    names = {}
    for method, variant in sorted(pairs, key=lambda pair: (pair[0], pair[1] == "as_published")):
        name = style.look(method).label
        names[method, variant] = f"{name}, {style.look(variant).label}" if method in many else name
    return names


def key(label: str, look: Look, **options: Any) -> Line2D:
    """Entry of a legend."""
    drawn: dict[str, Any] = {"color": look.colour, "ls": look.line, "lw": 1.2, "label": label}
    return Line2D([], [], **{**drawn, **options})


def powers(counts: Iterable[str]) -> pd.Series[float]:
    """How often each power was selected, over all of the JSON texts `counts`."""
    total: dict[float, float] = {}
    for text in counts:
        for power, count in json.loads(text).items():
            total[float(power)] = total.get(float(power), 0.0) + float(count)
    counts_by_power = pd.Series(total, dtype=float).sort_index()
    return counts_by_power[counts_by_power > 0]


def box(counts: pd.Series[float]) -> dict[str, Any]:
    """Quartiles and whiskers of counted values, as ``Axes.bxp`` takes them.

    Whiskers end at the furthest value within 1.5 spans of the quartiles.
    """
    values, share = counts.index.to_numpy(float), counts.to_numpy().cumsum() / counts.sum()
    q1, middle, q3 = (float(values[np.searchsorted(share, q - 1e-12)]) for q in (0.25, 0.5, 0.75))
    reach = 1.5 * (q3 - q1)
    inside = values[(values >= q1 - reach - 1e-9) & (values <= q3 + reach + 1e-9)]
    return {
        "q1": q1, "med": middle, "q3": q3, "whislo": float(inside.min()),
        "whishi": float(inside.max()), "fliers": [],
    }  # fmt: skip


def pooled(rows: pd.DataFrame) -> Interval:
    """Mean squared error over chunks of runs, each with its own standard error."""
    runs = rows["num_runs"].to_numpy(float)
    share = runs / runs.sum()
    mean = float(share @ rows["mse"].to_numpy(float))
    error = math.sqrt(float(np.sum((share * rows["mse_se"].to_numpy(float)) ** 2)))
    half = float(special.ndtri(0.5 + CONFIDENCE / 2)) * error
    return Interval(mean, mean - half, mean + half)
