"""Figure of two-stage selection of a statistic [alparslan2023thesis, section 6.5]."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpmc_papers.outputs import _statsel as parts
from dpmc_papers.pipeline.results import Context
from dpmc_papers.plots import style
from dpmc_papers.plots.style import Look

# Labels of ways to release records in two parts, in the order in which they are drawn, and the
# one that the others are compared with.
SELECTIONS = (
    "selected-as_published",
    "selected-mean_log",
    "second_only-as_published",
    "second_only-fixed",
    "fixed_split",
    "fixed_all",
)
ONCE = "fixed_all"
# The two that the thesis compares.
PUBLISHED = ("selected-as_published", "fixed_split")
# Ways to choose a statistic: other releases make the same choices.
CHOICES = ("selected-as_published", "selected-mean_log")
THICK, THIN = 1.8, 0.7
PANELS = (
    "mean squared error",
    "relative to |x| once",
    "selected power a:\nboxes as coloured above",
)


@style.styled
def selection_by_theta(context: Context) -> Figure:
    """Draw what choosing the statistic by initial data gains, and which statistics it chooses.

    Reads rows of a study ``statsel_selection``. One row per problem and epsilon. Left, mean squared
    errors and their 90 % intervals; in the middle, relative to the release of |x| on all rows;
    right, quartiles of the selected power and whiskers, without outliers. What the thesis shows is
    set off by thick lines [alparslan2023thesis, Figure 6.5].
    """
    rows = parts.having(context.metrics, "mse")
    cells = [(str(title), cell) for title, cell in _cells(context, rows)]
    labels = style.ordered(rows["label"], dict.fromkeys(SELECTIONS, style.look(ONCE)))
    figure, axes = style.figure(len(cells), 3, 1.0 + 1.7 * len(cells), sharex=True)
    for row, (title, panel_rows) in zip(axes, cells, strict=True):
        whole = _means(panel_rows[panel_rows["label"] == ONCE])
        for label in labels:
            statistic_rows, look = panel_rows[panel_rows["label"] == label], style.look(label)
            _selection_line(row[0], statistic_rows, look, label in PUBLISHED)
            ratio = (_means(statistic_rows) / whole).dropna()
            if len(ratio):
                row[1].plot(ratio.index, ratio, **_line(look, label in PUBLISHED))
        _boxes(row[2], panel_rows)
        row[0].set(yscale="log", ylabel=title)
        for axis in row:
            axis.tick_params(labelbottom=True)
    for axis, title in zip(axes[0], PANELS, strict=True):
        axis.set_title(title)
    for axis in axes[-1]:
        axis.set(xlabel="θ", xticks=(0.2, 0.4, 0.6, 0.8, 1), xlim=(0.03, 1.07))
    entries = [
        parts.key(k.label, k, marker=k.marker, ms=3.5, mec="white", mew=0.4,
                  lw=THICK if label in PUBLISHED else THIN)
        for label in labels
        for k in [style.look(label)]
    ]  # fmt: skip
    figure.legend(handles=entries, loc="outside upper center", ncols=3)
    style.heading(figure, "Alparslan 2023, Figure 6.5 (thick) and added baselines (thin)")
    return figure


def _cells(context: Context, rows: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    panels = []
    for problem in context.problems(rows):
        panel_rows = rows[rows["problem"] == problem]
        for epsilon, cell in panel_rows.groupby("epsilon", sort=True):
            name = context.problem_label(problem)
            panels.append((f"{name}\nε = {float(str(epsilon)):g}", cell))
    return panels


def _line(look: Look, published: bool) -> dict[str, Any]:
    width = THICK if published else THIN
    size = 3.8 if published else 2.6
    return {
        "marker": look.marker, "ls": look.line, "lw": width, "color": look.colour, "ms": size,
        "mew": 0.4, "mec": "white", "label": look.label, "zorder": 3 if published else 2,
    }  # fmt: skip


def _selection_line(axis: Axes, rows: pd.DataFrame, look: Look, published: bool) -> None:
    curve = np.array(
        [(float(str(t)), *parts.pooled(group)) for t, group in rows.groupby("theta", sort=True)]
    )
    if len(curve):
        place, mean, low, high = curve.T
        low = np.maximum(low, mean / 10)
        axis.fill_between(place, low, high, color=look.colour, alpha=0.18, lw=0)
        axis.plot(place, mean, **_line(look, published))


def _means(rows: pd.DataFrame) -> pd.Series[float]:
    """Mean squared error of each theta."""
    means = {float(str(t)): parts.pooled(group).mean for t, group in rows.groupby("theta")}
    return pd.Series(means, dtype=float).sort_index()


def _boxes(axis: Axes, rows: pd.DataFrame) -> None:
    """Draw boxes of the selected powers, side by side for every way to select."""
    counted = rows[rows["selected_counts"].map(len) > 2]
    labels = [label for label in CHOICES if label in set(counted["label"])]
    thetas = sorted(rows["theta"].unique())
    step = min(np.diff(thetas)) if len(thetas) > 1 else 0.1
    width = 0.84 * min(step, 0.1) / max(1, len(labels))
    for k, label in enumerate(labels):
        look, shift = style.look(label), (k - (len(labels) - 1) / 2) * width
        groups = list(counted[counted["label"] == label].groupby("theta", sort=True))
        drawn = axis.bxp(
            [parts.box(parts.powers(group["selected_counts"])) for _, group in groups],
            positions=[float(str(theta)) + shift for theta, _ in groups],
            widths=0.85 * width, showfliers=False, patch_artist=True, manage_ticks=False,
        )  # fmt: skip
        for part in ("boxes", "whiskers", "caps", "medians"):
            for line in drawn[part]:
                line.set(color=style.INK if part == "medians" else look.colour, linewidth=0.8)
        for patch in drawn["boxes"]:
            patch.set(facecolor=look.colour, alpha=0.4)
    for edge in np.array(thetas[:-1]) + step / 2:
        axis.axvline(edge, color="#e6e6e6", lw=0.5, zorder=0)
    axis.set_ylim(0, None)
