"""Figures of the league about budgets: iterations by accountant, and batches against all rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dpmc.privacy.budgets import GaussianBudget
from dpmc_league import theory
from dpmc_papers.pipeline.results import Context
from dpmc_papers.plots import style
from dpmc_papers.plots.style import Look

METHODS = {
    "dp_penalty": "DP-penalty, all rows",
    "minibatch_penalty": "minibatch penalty",
    "dp_barker": "DP-Barker",
}
ACCOUNTANTS = {
    "zcdp": Look("zCDP", "#0072B2", "o", (0, (5, 1.5))),
    "gaussian": Look("exact", "#D55E00", "s"),
    "rdp_integer": Look("Rényi, as published", "#56B4E9", "v", (0, (3, 1))),
    "rdp": Look("Rényi, tighter", "#009E73", "^", (0, (1.2, 1.2))),
    "barker_rdp": Look("Rényi, tight", "#E69F00", "P", (0, (6, 1.2, 1.2, 1.2))),
    "subsampled": Look("numerical", "#CC79A7", "D"),
    "barker_pld": Look("numerical", "#CC79A7", "D"),
}
BATCHES = {
    1.0: Look("all rows", "#222222", "o"),
    0.1: Look("a tenth", "#D55E00", "s", (0, (5, 1.5))),
    0.01: Look("a hundredth", "#0072B2", "^", (0, (3, 1))),
    0.001: Look("a thousandth", "#CC79A7", "D", (0, (1.2, 1.2))),
}


@style.styled
def accountants(context: Context) -> Figure:
    """Draw the iterations that a budget buys by each accountant: a panel a method.

    Reads curves ``accountants``. Nothing random enters: these are counts. One of zero has no point.
    """
    curve = context.curve("accountants")
    found = [name for name in METHODS if name in set(curve["label"])]
    figure, axes = style.figure(1, len(found), 2.8)
    for axis, method in zip(axes[0], found, strict=True):
        rows = curve[(curve["label"] == method) & (curve["num_iterations"] > 0)]
        for name, part in rows.groupby("accountant", sort=False):
            look = ACCOUNTANTS[str(name)]
            axis.plot(
                part["epsilon"], part["num_iterations"], **_drawn(look), ms=3.5, label=look.label
            )
        axis.set(title=METHODS[method], xscale="log", yscale="log", xlabel="ε")
    axes[0, 0].set_ylabel("iterations")
    names = [name for name in ACCOUNTANTS if name in set(curve["accountant"])]
    handles = {ACCOUNTANTS[name].label: _key(ACCOUNTANTS[name]) for name in names}
    figure.legend(handles=list(handles.values()), loc="outside upper center", ncols=3)
    style.heading(figure, "What a budget buys, by accountant (δ = 1e-6)")
    return figure


@style.styled
def batches(context: Context) -> Figure:
    """Draw what noisy sums over batches say of a mode, against passes over the rows.

    Reads curves ``batches``. A panel for each epsilon; 1 is what the budget buys of all rows at
    once, whose point is one release. The variance that the choice of rows adds comes on top.
    """
    table = batch_shares(context.curve("batches"), context.config["accounting"]["batches"])
    epsilons = sorted(set(table["epsilon"]))
    figure, axes = style.figure(1, len(epsilons), 2.9, sharey=True)
    for axis, epsilon in zip(axes[0], epsilons, strict=True):
        for rate, look in BATCHES.items():
            rows = table[(table["rate"] == rate) & (table["epsilon"] == epsilon)]
            rows = rows[rows["num_iterations"] > 0].sort_values("passes")
            axis.plot(rows["passes"], rows["share"], **_drawn(look), ms=4, label=look.label)
        axis.axhline(1, color=style.GREY, lw=0.7, ls=(0, (1, 2)), zorder=0)
        axis.set(title=f"ε = {epsilon:g}", xscale="log", xlabel="passes over the rows")
        axis.set_ylim(0, 1.1)
    axes[0, 0].set_ylabel("information about the mode\n(one release of all rows: 1)")
    handles = [_key(look) for look in BATCHES.values()]
    figure.legend(handles=handles, loc="outside upper center", ncols=4)
    style.heading(figure, "What batches buy, with all of a budget")
    return figure


def batch_shares(curve: pd.DataFrame, settings: Mapping[str, Any]) -> pd.DataFrame:
    """Iterations on batches with what they say, see :mod:`dpmc_league.theory`.

    To the curve, whose section of ``accounting`` is `settings`, come ``rate``,
    ``noise_multiplier``, ``passes`` and ``share``.
    """
    rows: list[dict[str, Any]] = []
    for row in curve.to_dict("records"):
        params = settings["settings"][row["label"]]["params"]
        rate = float(params["batch_size"] / settings["num_rows"])
        mu = GaussianBudget.of(float(row["epsilon"]), settings["delta"]).mu
        # Runs that are published have it by its short name.
        multiplier = float(params.get("ratio_noise_multiplier") or params["noise_multiplier"])
        number = int(row["num_iterations"])
        share = theory.batch_share(number, rate, multiplier, mu)
        added = {"rate": rate, "noise_multiplier": multiplier, "passes": number * rate}
        rows.append({**{str(key): value for key, value in row.items()}, **added, "share": share})
    return pd.DataFrame(rows)


def _key(look: Look) -> Line2D:
    return Line2D([], [], **_drawn(look), ms=4, label=look.label)


def _drawn(look: Look) -> dict[str, Any]:
    return {"color": look.colour, "marker": look.marker, "ls": look.line}
