"""Printed numbers beside the same numbers rerun, and rerun with valid privacy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpmc.types import UNAVAILABLE
from dpmc_papers.outputs._regression import replaced
from dpmc_papers.outputs._statsel import MEANS
from dpmc_papers.plots import panels, style
from dpmc_papers.plots.style import Look

COLUMNS = ("printed", "rerun", "valid")


def draw(
    axis: Axes, rows: pd.DataFrame, metric: str, printed: Mapping[str, float],
    labels: Mapping[str, Sequence[str]], looks: Mapping[str, Look],
) -> None:  # fmt: skip
    """Draw one line per look over the three columns, as far as it has numbers.

    Those of runs are means with their 90 % intervals. `printed` has what print has of a look,
    `labels` the labels of its runs in the second and third column, "" for none.
    """
    points = [pd.DataFrame({"line": list(printed), "place": 0, "value": list(printed.values())})]
    for line, names in labels.items():
        for place, name in enumerate(names, 1):
            values = rows.loc[rows["label"] == name, metric]
            points.append(pd.DataFrame({"line": line, "place": place, "value": values}))
    table = pd.concat(points, ignore_index=True).dropna()
    panels.centres(
        axis, table, "place", "value", "line", looks, range(len(COLUMNS)), MEANS,
        linestyles=[look.line for look in looks.values()],
    )  # fmt: skip
    axis.set_xticks(range(len(COLUMNS)), COLUMNS)


def privacy(axis: Axes, rows: pd.DataFrame, rerun: str, valid: str) -> None:
    """Write below the columns the epsilon that is claimed, and those that hold."""
    claims = rows[rows["epsilon"].notna()]
    if claims.empty:
        return
    words = [held_text(claims["epsilon"])]
    words += [held_text(replaced(claims[claims["variant"] == name])) for name in (rerun, valid)]
    texts = [f"{text}\nε {word}" for text, word in zip(COLUMNS, words, strict=True)]
    axis.set_xticks(range(len(COLUMNS)), texts)


def available(rows: pd.DataFrame) -> pd.DataFrame:
    """Runs whose data could be had."""
    return rows[~rows["status"].fillna("").str.startswith(UNAVAILABLE)]


def heading(figure: Figure, absent: Sequence[str], title: str) -> None:
    """Say above all panels what they show, below which data sets could not be had."""
    style.heading(figure, title)
    if absent:
        figure.supxlabel(f"Data not available: {', '.join(absent)}", fontsize=style.SMALLEST)


def held_text(values: pd.Series[float]) -> str:
    """Range of the epsilon that holds, in words where there is none."""
    numbers = values.dropna()
    if numbers.empty:
        return "–"
    if np.isinf(numbers).all():
        return "none"
    low, high = (style.epsilon_text(float(v)) for v in (numbers.min(), numbers.max()))
    return low if low == high else f"{low}–{high}"
