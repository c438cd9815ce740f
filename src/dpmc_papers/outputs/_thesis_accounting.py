"""Iterations that a budget affords, by accountant: Figure 6.1 of Räisä 2021."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpmc_papers.pipeline.results import Context
from dpmc_papers.plots import style
from dpmc_papers.plots.style import Look

# The curves of Figure 6.1.
PUBLISHED = {
    ("dp_penalty", "zcdp"), ("dp_penalty", "gaussian"), ("dp_hmc", "zcdp"), ("dp_hmc", "gaussian"),
    ("minibatch_penalty", "rdp_truncated"), ("minibatch_penalty", "poisson_pair"),
}  # fmt: skip
SAME = 0.02  # curves closer than this share of each other are one
METHODS = ("dp_penalty", "dp_barker", "dp_hmc", "minibatch_penalty")
LOG_SCALE = ("dp_barker",)
# Published accountants first; the same kind of accounting has the same colour everywhere.
ACCOUNTANTS = {
    "zcdp": Look("zCDP", "#0072B2"),
    "gaussian": Look("tight", "#D55E00"),
    "rdp_truncated": Look("RDP, cut short", "#0072B2"),
    "rdp_integer": Look("RDP", "#56B4E9"),
    "rdp": Look("RDP, better conversion", "#009E73"),
    "poisson_pair": Look("Fourier accountant", "#D55E00"),
    "subsampled": Look("tight, no replacement", "#CC79A7"),
    "barker_rdp_published": Look("RDP", "#0072B2"),
    "barker_rdp": Look("tight Rényi bound", "#009E73"),
    "barker_pld": Look("PLD", "#CC79A7"),
}
# Where the thesis proves the count.
THEOREMS = {
    ("dp_penalty", "zcdp"): "Theorem 5",
    ("dp_penalty", "gaussian"): "Theorem 6",
    ("minibatch_penalty", "rdp_integer"): "Theorem 8",
    ("dp_hmc", "zcdp"): "Theorem 10",
    ("dp_hmc", "gaussian"): "Theorem 11",
    ("dp_barker", "barker_rdp_published"): "Theorem 7",
}
NO_BOUND: Any = (0, (1, 1.4))
THICK, THIN = 2.0, 0.8
SETTINGS = {"": "text", "final": "final code"}
FEW = 8  # points of a curve that are marked, so that nobody reads more into it


@style.styled
def figure6_1(context: Context) -> Figure:
    """Draw how many iterations each accountant allows against epsilon.

    Reads curves of ``figure6_1``: columns label, method, accountant, upper_bound, epsilon and
    num_iterations. A label is a setting of its method. One panel per label, those of a method in
    one row with one axis; colours are accountants. A setting of the final code with the same curves
    as that of the text has no panel. Thick curves are those of the thesis, thin ones additions.
    Dotted curves are counts of accountants that prove no upper bound [Räisä 2021, Figure 6.1]. The
    panel of DP-Barker and the curves of `rdp_integer`, `rdp`, `subsampled`, `barker_rdp` and
    `barker_pld` are additions.
    """
    curves = context.curve("figure6_1")
    methods = style.ordered(curves["method"], dict.fromkeys(METHODS, style.look("dp_hmc")))
    shown = [label for method in methods for label in _settings(curves, method)]
    rows = -(-len(shown) // 2)
    figure, axes = style.figure(rows, min(2, len(shown)), 0.4 + 2.4 * rows)
    tops: dict[str, Axes] = {}
    for axis, label in zip(axes.flat, shown, strict=False):
        of_label = curves[curves["label"] == label]
        method = str(of_label["method"].iloc[0])
        if method in tops:
            axis.sharey(tops[method])
        _panel(axis, of_label, method)
        tops.setdefault(method, axis)
        axis.set_title(_title(label, method, shown))
    for axis in axes.flat[len(shown) :]:
        axis.set_axis_off()
    for row in axes:
        row[0].set_ylabel("iterations")
    style.heading(figure, "Räisä 2021, Figure 6.1: thick as published, thin added")
    return figure


def _settings(curves: pd.DataFrame, method: str) -> list[str]:
    """Labels of a method, without those whose curves are those of the first."""
    first, *others = dict.fromkeys(curves.loc[curves["method"] == method, "label"])
    same = curves[curves["label"] == first]
    return [first, *(x for x in others if not _coincide(curves[curves["label"] == x], same))]


def _title(label: str, method: str, shown: Sequence[str]) -> str:
    """Name of a method, with its settings where there are several."""
    rest = label.partition("-")[2]
    several = sum(other.partition("-")[0] == label.partition("-")[0] for other in shown) > 1
    words = f", {SETTINGS.get(rest, rest.replace('_', ' '))}" if several else ""
    return style.look(method).label + words


def _panel(axis: Axes, curves: pd.DataFrame, method: str) -> None:
    """Draw every curve of one setting, with a legend where curves of counts leave room."""
    present = set(curves["accountant"])
    for accountant in [a for a in ACCOUNTANTS if a in present] + sorted(present - set(ACCOUNTANTS)):
        curve = curves[curves["accountant"] == accountant].sort_values("epsilon")
        proved = bool(curve["upper_bound"].all())
        theorem = THEOREMS.get((method, accountant), "")
        remarks = ", ".join(part for part in (theorem, "" if proved else "no bound") if part)
        look = ACCOUNTANTS.get(accountant) or style.look(accountant)
        axis.plot(
            curve["epsilon"], curve["num_iterations"], color=look.colour,
            ls="-" if proved else NO_BOUND, zorder=2 if proved else 3,
            lw=THICK if (method, accountant) in PUBLISHED else THIN,
            marker="o" if len(curve) <= FEW else "", ms=2.5,
            label=look.label + (f" ({remarks})" if remarks else ""),
        )  # fmt: skip
    logarithmic = method in LOG_SCALE
    axis.set(yscale="log" if logarithmic else "linear", xlabel="ε")
    axis.set_xlim(0, 1.02 * curves["epsilon"].max())
    axis.set_ylim(*((1, None) if logarithmic else (0, None)))
    axis.legend(loc="lower right" if logarithmic else "upper left")


def _coincide(one: pd.DataFrame, other: pd.DataFrame) -> bool:
    """Whether curves of two settings are the same but for what nobody can see."""
    both = one.merge(other, on=["accountant", "epsilon"], suffixes=("", "_other"))
    apart = (both["num_iterations"].astype(float) - both["num_iterations_other"]).abs()
    largest = both.groupby("accountant")["num_iterations_other"].transform("max").clip(lower=1)
    return len(both) == len(one) and bool((apart <= SAME * largest).all())
