"""Figures of the league: the price of the accept test, and who wins at which budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dpmc.checks import require_extra
from dpmc.league import theory
from dpmc.league.price import Price
from dpmc.league.submission import rivals
from dpmc.league.table import Row, standings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LABELS = {
    "langevin": "unadjusted Langevin",
    "kinetic_langevin": "kinetic Langevin",
    "penalty": "DP-penalty by rule",
    "hmc": "DP-HMC by rule",
}
LINES = (
    ("k", theory.langevin),
    ("0.331 k / d", theory.penalty),
    ("0.114 k / d", theory.hmc),
)


def price_figure(prices: Sequence[Price]) -> Figure:
    """Return effective draws over k against the dimension, with two standard errors."""
    require_extra("matplotlib", "price_figure")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.0, 3.2), layout="constrained")
    axis = figure.subplots()
    dims = np.geomspace(2, 50, 50)
    for label, line in LINES:
        values = [line(1.0, dim) for dim in dims]
        axis.plot(dims, values, color="0.6", linewidth=1, zorder=1)
        axis.annotate(label, (dims[-1], values[-1]), xytext=(9, 0), textcoords="offset points",
                      fontsize=7, color="0.4", va="center")  # fmt: skip
    for number, (method, label) in enumerate(LABELS.items()):
        points = [one for one in prices if one.method == method]
        axis.errorbar(
            [one.dim * 1.03 ** (number - 1.5) for one in points],
            [one.share for one in points],
            yerr=[2 * one.error for one in points],
            fmt="osD^"[number], markersize=4, linewidth=1, color=f"C{number}", label=label,
        )  # fmt: skip
    axis.set(xscale="log", yscale="log", xlabel="dimension d", xlim=(1.7, 130))
    axis.set_ylabel("effective draws / k")
    axis.set_xticks([2, 5, 10, 20, 50], ["2", "5", "10", "20", "50"])
    axis.minorticks_off()
    axis.legend(fontsize=7, frameon=False)
    return figure


def winners_figure(rows: Sequence[Row]) -> Figure:
    """Return the median sliced distance of each method: a panel a budget, a line of dots a task."""
    require_extra("matplotlib", "winners_figure")
    from matplotlib.figure import Figure

    found = standings(rows)
    epsilons = sorted({one.epsilon for one in found})
    tasks = list(dict.fromkeys(one.task for one in found))
    known = [name for name in rivals() if any(one.method == name for one in found)]
    others = [m for m in dict.fromkeys(one.method for one in found) if m not in known]
    methods = known + others
    size = (1.6 + 2.2 * len(epsilons), 1.2 + 0.3 * len(tasks))
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(1, len(epsilons), squeeze=False, sharey=True)[0]
    for panel, epsilon in zip(panels, epsilons, strict=True):
        for number, method in enumerate(methods):
            points = [
                one for one in found
                if one.scored and one.method == method and one.epsilon == epsilon
            ]  # fmt: skip
            heights = [tasks.index(one.task) + 0.05 * (number - len(methods) / 2) for one in points]
            panel.plot(
                [one.sliced_wasserstein for one in points], heights, "osD^v<>phX"[number % 10],
                color=f"C{number % 10}", markersize=4, label=method, linestyle="none",
            )  # fmt: skip
        panel.set(xscale="log", xlabel="sliced distance")
        panel.set_title(f"epsilon {epsilon:g}", fontsize=8)
        panel.tick_params(labelsize=7)
        panel.grid(axis="y", linewidth=0.3)
    panels[0].set_yticks(range(len(tasks)), tasks, fontsize=7)
    panels[0].invert_yaxis()
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3,
                  fontsize=7, frameon=False)  # fmt: skip
    return figure
