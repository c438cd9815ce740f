"""Iterations that a budget affords, by accountant: Figure 6.1 of Räisä 2021."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dpmc_papers.pipeline.results import Context
from dpmc_papers.plots import style
from dpmc_papers.plots.style import Look

# The curves of Figure 6.1.
PUBLISHED = {
    ("dp_penalty", "zcdp"), ("dp_penalty", "gaussian"), ("dp_hmc", "zcdp"), ("dp_hmc", "gaussian"),
    ("minibatch_penalty", "rdp_truncated"), ("minibatch_penalty", "poisson_pair"),
}  # fmt: skip
SAME = 0.02  # curves closer than this share of each other are one
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
THICK, THIN = 2.0, 0.8
FINAL: Any = (0, (5, 2))
SETTINGS = {"": "text", "final": "final code"}
FEW = 8  # points of a curve that are marked, so that nobody reads more into it


@style.styled
def figure6_1(context: Context) -> Figure:
    """Draw how many iterations each accountant allows against epsilon.

    Reads curves of ``figure6_1``: columns label, method, accountant, upper_bound, epsilon and
    num_iterations. A label is a setting of its method. One panel per method; colours are
    accountants. Thick curves are those of the thesis, thin ones additions; dashed ones have the
    settings of the final code, and are left out where they coincide with the others. Dotted curves
    are counts of accountants that prove no upper bound [Räisä 2021, Figure 6.1]. The panel of
    DP-Barker and the curves of `rdp_integer`, `rdp`, `subsampled`, `barker_rdp` and `barker_pld`
    are additions.
    """
    curves = context.curve("figure6_1")
    present = set(curves["method"])
    methods = [m for m in METHODS if m in present] + sorted(present - set(METHODS))
    rows = -(-len(methods) // 2)
    figure, axes = style.figure(rows, min(2, len(methods)), 0.3 + 3.1 * rows)
    for axis, method in zip(axes.flat, methods, strict=False):
        _panel(axis, curves[curves["method"] == method], method)
    for axis in axes.flat[len(methods) :]:
        axis.set_axis_off()
    for row in axes:
        row[0].set_ylabel("iterations")
    style.heading(figure, "Räisä 2021, Figure 6.1: thick as published, thin added")
    return figure


def _panel(axis: Axes, curves: pd.DataFrame, method: str) -> None:
    """Draw every curve of one method, with its legend."""
    logarithmic = method in LOG_SCALE
    axis.set_yscale("log" if logarithmic else "linear")
    labels = list(dict.fromkeys(curves["label"]))
    present = set(curves["accountant"])
    ordered = [a for a in ACCOUNTANTS if a in present] + sorted(present - set(ACCOUNTANTS))
    further = []
    for label in labels:
        for accountant in ordered:
            same = curves["accountant"] == accountant
            curve = curves[(curves["label"] == label) & same].sort_values("epsilon")
            first = curves[(curves["label"] == labels[0]) & same].sort_values("epsilon")
            if curve.empty or (label != labels[0] and _coincide(curve, first)):
                continue
            if label != labels[0]:
                further.append(label)
            _curve(axis, curve, method, accountant, label != labels[0])
    handles = [_entry(method, a, curves[curves["accountant"] == a]) for a in ordered]
    for label in labels[1:]:
        drawn_too = label in further
        words = f"dashed: {_setting(label)}" if drawn_too else f"{_setting(label)}: the same"
        line = FINAL if drawn_too else ""
        handles.append(Line2D([], [], color=style.INK, lw=THIN, ls=line, label=words))
    axis.set_title(style.look(method).label)
    axis.set_xlim(0, 1.02 * curves["epsilon"].max())
    axis.set_ylim(*((1, None) if logarithmic else (0, None)))
    axis.set_xlabel("ε")
    # Below the panel: curves fill every corner of it.
    axis.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=1)


def _coincide(one: pd.DataFrame, other: pd.DataFrame) -> bool:
    """Whether two curves are the same but for what nobody can see."""
    if len(one) != len(other):
        return False
    a, b = (np.asarray(curve["num_iterations"], dtype=float) for curve in (one, other))
    return bool(np.all(np.abs(a - b) <= SAME * max(float(b.max()), 1.0)))


def _curve(axis: Axes, curve: pd.DataFrame, method: str, accountant: str, further: bool) -> None:
    proved = bool(curve["upper_bound"].all())
    width = THICK if (method, accountant) in PUBLISHED else THIN
    line = (FINAL if further else "-") if proved else NO_BOUND
    look: dict[str, Any] = {"ls": line, "zorder": 2 if proved else 3}
    counts = curve["num_iterations"]
    if axis.get_yscale() == "log":
        counts = counts.where(counts > 0)
    marker = "o" if len(curve) <= FEW else ""
    name = f"{curve['label'].iloc[0]}, {accountant}"
    axis.plot(
        curve["epsilon"], counts, color=_look(accountant).colour, lw=THIN if further else width,
        marker=marker, ms=2.5, label=name, **look,
    )  # fmt: skip


def _entry(method: str, accountant: str, curves: pd.DataFrame) -> Line2D:
    """Legend entry of an accountant: name, theorem, and whether it proves a bound."""
    proved = bool(curves["upper_bound"].all())
    name = _look(accountant).label
    theorem = THEOREMS.get((method, accountant), "")
    remarks = [part for part in (theorem, "" if proved else "no bound") if part]
    text = name + (f" ({', '.join(remarks)})" if remarks else "")
    line = "-" if proved else NO_BOUND
    width = THICK if (method, accountant) in PUBLISHED else THIN
    return Line2D([], [], color=_look(accountant).colour, ls=line, lw=width, label=text)


def _look(accountant: str) -> Look:
    return ACCOUNTANTS.get(accountant) or style.look(accountant)


def _setting(label: str) -> str:
    """What a label says beyond its algorithm."""
    rest = label.partition("-")[2]
    return f"settings: {SETTINGS.get(rest, rest.replace('_', ' ').replace('-', ', '))}"
