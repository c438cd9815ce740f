"""Figures of Fisher information [alparslan2023thesis, chapter 4]."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import special

from dpmc.experiments.outputs import _statsel as parts
from dpmc.experiments.pipeline.results import Context
from dpmc.experiments.plots import style


@style.styled
def information_by_theta(context: Context) -> Figure:
    """Draw the Fisher information of several statistics against theta, with noise and without.

    Parameters
    ----------
    context : Context
        Rows of a study ``statsel_information``.

    Returns
    -------
    matplotlib.figure.Figure
        One column per epsilon, the last without noise: information above, below relative to
        the largest. Dotted: where another statistic becomes the best.

    References
    ----------
    [alparslan2023thesis, Figures 4.1 to 4.3].
    """
    rows = parts.information(context.metrics).copy()
    place = ["experiment", "problem", "label", rows["epsilon"].fillna(math.inf), "theta"]
    rows["share"] = rows["information"] / rows.groupby(place)["information"].transform("max")
    panels = list(parts.panels_by_epsilon(rows))
    names = parts.statistics(rows)
    figure, axes = style.figure(2, len(panels), 4.2, sharex=True)
    for (upper, lower), (title, panel_rows) in zip(axes.T, panels, strict=True):
        for name in names:
            statistic_rows, look = panel_rows[panel_rows["statistic"] == name], style.look(name)
            parts.curve(upper, statistic_rows, "theta", "information", look)
            parts.curve(lower, statistic_rows, "theta", "share", look)
        parts.mark_leads(upper, parts.leads(panel_rows, "theta"))
        parts.mark_leads(lower, parts.leads(panel_rows, "theta"))
        parts.fit_scale(upper, panel_rows["information"])
        upper.set(title=title, xlim=(0, panel_rows["theta"].max()))
        lower.set(xlabel="θ", ylim=(0, 1.05))
    axes[0, 0].set_ylabel("Fisher information F(θ)")
    axes[1, 0].set_ylabel("F(θ) / largest of them")
    entries = [parts.key(style.look(name).label, style.look(name)) for name in names]
    figure.legend(handles=entries, loc="outside upper center", ncols=len(entries))
    return figure


@style.styled
def information_of_bits(context: Context) -> Figure:
    """Draw the Fisher information of three releases of bits, at equal and at matched privacy.

    Parameters
    ----------
    context : Context
        Rows of a study ``statsel_information`` of bits.

    Returns
    -------
    matplotlib.figure.Figure
        One column per theta. First against the number that each release calls epsilon, then
        against mu, the parameter of Gaussian differential privacy that each tightly has, and
        last the formulas as printed, and the exact mixture, relative to the right formulas.

    References
    ----------
    [alparslan2023thesis, Figure 4.4].
    """
    rows = parts.information(context.metrics)
    normal = rows["method"].isin(("noisy_bits", "noisy_mean"))
    rows = rows[~normal | (rows["variant"] == "corrected")].copy()
    rows["mu"] = np.where(
        rows["method"] == "randomised_response", matched_mu(rows["epsilon"]), rows["epsilon"]
    )
    rows["ratio"] = _ratios(rows)
    thetas = sorted(rows["theta"].unique())
    methods = style.ordered(rows["method"], style.METHODS)
    others = parts.having(rows, "ratio")
    figure, axes = style.figure(3 if len(others) else 2, len(thetas), 5.6, sharey="row")
    panels = (
        ("epsilon", "information", "ε", "Fisher information"),
        ("mu", "information", "μ (Gaussian DP)", "Fisher information"),
        ("epsilon", "ratio", "ε", "relative to right F₂, F₃"),
    )
    for line, (x, y, name, value) in zip(axes, panels, strict=False):
        for axis, theta in zip(line, thetas, strict=True):
            panel_rows = rows[rows["theta"] == theta]
            for method in methods:
                parts.curve(
                    axis, panel_rows[panel_rows["method"] == method], x, y, style.look(method)
                )
            axis.set(xscale="log", xlabel=name, title=f"θ = {theta:g}" if y != "ratio" else "")
            if y == "information":
                axis.set_yscale("log")
        line[0].set_ylabel(value)
    entries = [parts.key(style.look(name).label, style.look(name)) for name in methods]
    figure.legend(handles=entries, loc="outside upper center", ncols=min(4, len(entries)))
    return figure


def _ratios(rows: pd.DataFrame) -> pd.Series[float]:
    """Return printed formulas, and what is exact, relative to the right normal approximation."""
    place = pd.MultiIndex.from_frame(rows[["theta", "epsilon"]])
    normal = rows[rows["method"] == "noisy_mean"].groupby(["theta", "epsilon"])["information"]
    exact = rows["information"] / normal.mean().reindex(place).to_numpy()
    printed = rows.get("published_formula", pd.Series(math.nan, rows.index)) / rows["information"]
    return printed.where(rows["method"] != "binomial_mean", exact)


def matched_mu(epsilon: pd.Series[float]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Return the mu of Gaussian differential privacy that randomised response tightly has.

    2 Phi^-1(e^eps / (1 + e^eps)): its trade-off function touches that of Gaussians there.
    """
    share = special.expit(-epsilon.to_numpy(float))
    return np.asarray(-2 * special.ndtri(share), dtype=np.float64)
