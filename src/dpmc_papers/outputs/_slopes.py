"""Printed numbers beside the same numbers rerun, and rerun with valid privacy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from dpmc.types import UNAVAILABLE
from dpmc_papers.plots import drawn, style

PRINTED, RERUN, VALID = range(3)  # places of the three columns of points


def means(rows: pd.DataFrame, metric: str) -> float:
    """Mean of a metric over the runs that could be made, NaN for none."""
    ran = rows[~rows["status"].fillna("").str.startswith(UNAVAILABLE)]
    values = ran[metric].dropna()
    return float(values.mean()) if len(values) else math.nan


def lines(axis: Axes, values: Mapping[str, Sequence[float]], ends: Mapping[str, str]) -> None:
    """Draw one line per method over the three columns, as far as it has numbers.

    `values` has up to three numbers for each name of a line, `ends` the method whose look it has. A
    line of another name than its method is drawn with open markers.
    """
    count = len(values)
    for k, (name, numbers) in enumerate(values.items()):
        look = style.look(ends[name])
        drawn.record(axis, name, np.arange(len(numbers)), numbers)
        at = np.arange(len(numbers)) + 0.05 * (k - (count - 1) / 2)
        fill = look.colour if name == look.label else "white"
        known = np.isfinite(np.asarray(numbers, float))
        if known.any():
            axis.plot(
                at[known], np.asarray(numbers, float)[known], marker=look.marker, ls=look.line,
                color=look.colour, mfc=fill, mec=look.colour, mew=0.8, ms=3.6, lw=0.9,
            )  # fmt: skip


def columns(axis: Axes, words: Sequence[str]) -> None:
    """Name the three columns of points."""
    axis.set_xticks(range(3), list(words))
    axis.set_xlim(-0.4, 2.4)


def privacy(axes: Sequence[Axes], rows: pd.DataFrame, rerun: str, valid: str) -> None:
    """Write the claimed epsilon, and those that hold, below the columns of points."""
    claims = rows[rows["variant"].isin([rerun, valid]) & rows["epsilon"].notna()]
    if claims.empty:
        return
    held = claims["guarantee_epsilon"]
    if "epsilon_replace" in claims:
        held = claims["epsilon_replace"].where(claims["epsilon_replace"].notna(), held)
    known = ~claims["status"].fillna("").str.startswith(UNAVAILABLE)
    words = [held_text(claims["epsilon"])]
    words += [held_text(held[known & claims["variant"].eq(name)]) for name in (rerun, valid)]
    for axis in axes:
        texts = ["printed", "rerun", "valid"]
        columns(axis, [f"{text}\nε {word}" for text, word in zip(texts, words, strict=True)])


def absent(axis: Axes) -> None:
    """Say in a panel that the rows for its numbers could not be had."""
    axis.annotate(
        "data not\navailable", (0.97, 0.95), xycoords="axes fraction", ha="right", va="top",
        fontsize=7,
    )  # fmt: skip


def entries(names: Mapping[str, str]) -> list[Line2D]:
    """Legend entries of lines."""
    return [
        Line2D(
            [], [], color=k.colour, marker=k.marker, ls=k.line, ms=3.6, lw=0.9, mew=0.8,
            mfc=k.colour if name == k.label else "white", label=name,
        )
        for name, method in names.items()
        for k in [style.look(method)]
    ]  # fmt: skip


def held_text(values: pd.Series[float]) -> str:
    """Range of the epsilon that holds, in words where there is none."""
    numbers = values.dropna()
    if numbers.empty:
        return "–"
    if np.isinf(numbers).all():
        return "none"
    low, high = (style.epsilon_text(float(v)) for v in (numbers.min(), numbers.max()))
    return low if low == high else f"{low}–{high}"
