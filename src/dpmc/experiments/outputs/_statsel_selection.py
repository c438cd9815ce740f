"""Figure of two-stage selection of a statistic [alparslan2023thesis, section 6.5]."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpmc.experiments.outputs import _statsel as parts
from dpmc.experiments.pipeline.results import Context
from dpmc.experiments.plots import style
from dpmc.experiments.plots.style import Look

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


@style.styled
def selection_by_theta(context: Context) -> Figure:
    """Draw what choosing the statistic by initial data gains, and which statistics it chooses.

    Parameters
    ----------
    context : Context
        Rows of a study ``statsel_selection``.

    Returns
    -------
    matplotlib.figure.Figure
        One column per problem and epsilon. First mean squared errors and their 90 % intervals,
        then relative to the release of |x| on all rows, last quartiles of the selected power
        and whiskers, without outliers.

    References
    ----------
    [alparslan2023thesis, Figure 6.5].
    """
    rows = parts.having(context.metrics, "mse")
    cells = [(str(title), cell) for title, cell in _cells(context, rows)]
    figure, axes = style.figure(3, len(cells), 5.8, sharex="col", sharey="row")
    labels = style.ordered(rows["label"], dict.fromkeys(SELECTIONS, style.look(ONCE)))
    for column, (title, panel_rows) in zip(axes.T, cells, strict=True):
        whole = _means(panel_rows[panel_rows["label"] == ONCE])
        for label in labels:
            statistic_rows, look = panel_rows[panel_rows["label"] == label], style.look(label)
            _selection_line(column[0], statistic_rows, look)
            ratio = (_means(statistic_rows) / whole).dropna()
            if len(ratio):
                column[1].plot(ratio.index, ratio, marker=look.marker, ls=look.line, lw=1.1,
                               color=look.colour, ms=3.2, mew=0.4, mec="white")  # fmt: skip
        _boxes(column[2], panel_rows)
        column[0].set(yscale="log", title=title)
        column[2].set(xlabel="θ")
    axes[0, 0].set_ylabel("mean squared error")
    axes[1, 0].set_ylabel("relative to |x| once")
    axes[2, 0].set_ylabel("selected power a")
    entries = [
        parts.key(k.label, k, marker=k.marker, ms=3.5, mec="white", mew=0.4)
        for k in map(style.look, labels)
    ]
    figure.legend(handles=entries, loc="outside upper center", ncols=min(3, len(entries)))
    return figure


def _cells(context: Context, rows: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    panels = []
    for problem in context.problems(rows):
        panel_rows = rows[rows["problem"] == problem]
        for epsilon, cell in panel_rows.groupby("epsilon", sort=True):
            name = context.problem_label(problem)
            panels.append((f"{name}\nε = {float(str(epsilon)):g}", cell))
    return panels


def _selection_line(axis: Axes, rows: pd.DataFrame, look: Look) -> None:
    curve = np.array(
        [(float(str(t)), *parts.pooled(group)) for t, group in rows.groupby("theta", sort=True)]
    )
    if len(curve):
        place, mean, low, high = curve.T
        low = np.maximum(low, mean / 10)
        axis.fill_between(place, low, high, color=look.colour, alpha=0.18, lw=0)
        axis.plot(place, mean, marker=look.marker, ls=look.line, color=look.colour, ms=3.2,
                  mew=0.4, mec="white", lw=1.1)  # fmt: skip


def _means(rows: pd.DataFrame) -> pd.Series[float]:
    """Return the mean squared error of each theta."""
    means = {float(str(t)): parts.pooled(group).mean for t, group in rows.groupby("theta")}
    return pd.Series(means, dtype=float).sort_index()


def _boxes(axis: Axes, rows: pd.DataFrame) -> None:
    """Draw boxes of the selected powers, side by side for every way to select."""
    counted = rows[rows["selected_counts"].map(len) > 2]
    labels = [label for label in SELECTIONS if label in set(counted["label"])]
    thetas = sorted(rows["theta"].unique())
    step = min(np.diff(thetas)) if len(thetas) > 1 else 0.1
    width = 0.7 * min(step, 0.1) / max(1, len(labels))
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
    axis.set_ylim(0, None)
