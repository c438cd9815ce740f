"""Iterations that a budget affords, by accountant: Figure 6.1 of Räisä 2021."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dpmc.experiments.pipeline.results import Context
from dpmc.experiments.plots import style
from dpmc.experiments.plots.style import Look

CEILING = 3000  # of the panels that the thesis has
METHODS = ("dp_penalty", "minibatch_penalty", "dp_hmc", "dp_barker")
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
WIDTHS = (1.6, 0.7, 0.4)  # of the settings of one method
SETTINGS = {"": "text", "final": "final code"}
FEW = 8  # points of a curve that are marked, so that nobody reads more into it


@style.styled
def figure6_1(context: Context) -> Figure:
    """Draw how many iterations each accountant allows against epsilon.

    Parameters
    ----------
    context : Context
        Curves of ``figure6_1``: columns label, method, accountant, upper_bound, epsilon
        and num_iterations. A label is a setting of its method.

    Returns
    -------
    matplotlib.figure.Figure
        One panel per method; colours are accountants, thinner curves further settings.
        Dotted curves are counts of accountants that prove no upper bound.

    Raises
    ------
    DpmcError
        If the context holds no such curves.

    References
    ----------
    Räisä 2021, Figure 6.1. The panel of DP-Barker and the curves of `rdp_integer`, `rdp`,
    `subsampled`, `barker_rdp` and `barker_pld` are additions.
    """
    curves = context.curve("figure6_1")
    present = set(curves["method"])
    methods = [m for m in METHODS if m in present] + sorted(present - set(METHODS))
    rows = -(-len(methods) // 2)
    figure, axes = style.figure(rows, min(2, len(methods)), 0.2 + 2.7 * rows)
    for axis, method in zip(axes.flat, methods, strict=False):
        _panel(axis, curves[curves["method"] == method], method)
    for axis in axes.flat[len(methods) :]:
        axis.set_axis_off()
    for row in axes:
        row[0].set_ylabel("iterations")
    return figure


def _panel(axis: Axes, curves: pd.DataFrame, method: str) -> None:
    """Draw every curve of one method, with its legend."""
    logarithmic = method in LOG_SCALE
    axis.set_yscale("log" if logarithmic else "linear")
    labels = list(dict.fromkeys(curves["label"]))
    present = set(curves["accountant"])
    ordered = [a for a in ACCOUNTANTS if a in present] + sorted(present - set(ACCOUNTANTS))
    for label, width in zip(labels, _widths(labels), strict=True):
        for accountant in ordered:
            curve = curves[(curves["label"] == label) & (curves["accountant"] == accountant)]
            if not curve.empty:
                _curve(axis, curve.sort_values("epsilon"), width, _look(accountant).colour)
    handles = [_entry(method, a, curves[curves["accountant"] == a]) for a in ordered]
    if len(labels) > 1:
        handles += [
            Line2D([], [], color=style.INK, lw=width, label=_setting(label))
            for label, width in zip(labels, _widths(labels), strict=True)
        ]
    axis.set_title(style.look(method).label)
    axis.set_xlim(0, 1.02 * curves["epsilon"].max())
    axis.set_ylim(*((1, None) if logarithmic else (0, CEILING)))
    axis.set_xlabel("ε")
    # Below the panel: curves fill every corner of it.
    axis.legend(
        handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2, columnspacing=1
    )


def _curve(axis: Axes, curve: pd.DataFrame, width: float, colour: str) -> None:
    proved = bool(curve["upper_bound"].all())
    look: dict[str, Any] = {"ls": "-" if proved else NO_BOUND, "zorder": 2 if proved else 3}
    counts = curve["num_iterations"]
    if axis.get_yscale() == "log":
        counts = counts.where(counts > 0)
    marker = "o" if len(curve) <= FEW else ""
    name = f"{curve['label'].iloc[0]}, {curve['accountant'].iloc[0]}"
    axis.plot(
        curve["epsilon"], counts, color=colour, lw=width, marker=marker, ms=2.5, label=name, **look
    )


def _entry(method: str, accountant: str, curves: pd.DataFrame) -> Line2D:
    """Return the legend entry of an accountant: name, theorem, and whether it proves a bound."""
    proved = bool(curves["upper_bound"].all())
    name = _look(accountant).label
    theorem = THEOREMS.get((method, accountant), "")
    remarks = [part for part in (theorem, "" if proved else "no bound") if part]
    text = name + (f" ({', '.join(remarks)})" if remarks else "")
    line = "-" if proved else NO_BOUND
    return Line2D([], [], color=_look(accountant).colour, ls=line, lw=1.4, label=text)


def _look(accountant: str) -> Look:
    return ACCOUNTANTS.get(accountant) or style.look(accountant)


def _widths(labels: list[str]) -> list[float]:
    return [WIDTHS[min(k, len(WIDTHS) - 1)] for k in range(len(labels))]


def _setting(label: str) -> str:
    """Return what a label says beyond its algorithm."""
    rest = label.partition("-")[2]
    return f"settings: {SETTINGS.get(rest, rest.replace('_', ' ').replace('-', ', '))}"
