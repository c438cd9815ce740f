"""Figures of Fisher information [alparslan2023thesis, chapter 4]."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import special

from dpmc_papers.outputs import _statsel as parts
from dpmc_papers.pipeline.results import Context
from dpmc_papers.plots import style
from dpmc_papers.plots.style import Look

COMPARED = (
    Look("the same number", "#882255", line="-"),
    Look("the same privacy", "#AA4499", line=(0, (4, 2))),
)


@style.styled
def information_by_theta(context: Context) -> Figure:
    """Draw the Fisher information of several statistics against theta, with noise and without.

    Reads rows of a study ``statsel_information``. One column per epsilon, the last without noise:
    information above, below relative to the largest. Dotted: where another statistic becomes the
    best [alparslan2023thesis, Figures 4.1 to 4.3].
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
        lower.set(xlabel="θ")
        _ratio_axis(lower, panel_rows["share"])
    axes[0, 0].set_ylabel("Fisher information F(θ)")
    axes[1, 0].set_ylabel("F(θ) / largest of them")
    entries = [parts.key(style.look(name).label, style.look(name)) for name in names]
    figure.legend(handles=entries, loc="outside upper center", ncols=len(entries))
    problem = str(rows["problem"].iloc[0])
    numbers = {"normal_mean": "4.1", "normal_variance": "4.2"}
    number = next((words for name, words in numbers.items() if problem.startswith(name)), "4.3")
    style.heading(figure, f"Alparslan 2023, Figure {number} (above) and ratios (below, added)")
    return figure


def _ratio_axis(axis: Axes, ratios: pd.Series[float]) -> None:
    """Show all ratios: on a logarithmic axis if any would be a line at zero."""
    least = float(ratios[ratios > 0].min())
    if least < 0.1:
        axis.set(yscale="log", ylim=(least / 2, 2))
    else:
        axis.set_ylim(0, 1.05)


@style.styled
def information_of_bits(context: Context) -> Figure:
    """Draw the Fisher information of three releases of bits, at equal and at matched privacy.

    Reads rows of a study ``statsel_information`` of bits. One column per theta. First the
    information at the same number called epsilon; then that of randomised response relative to
    noisy bits, at the same number and at the same privacy (mu of Gaussian differential privacy);
    last the formulas as printed, and the exact mixture, relative to the right formulas
    [alparslan2023thesis, Figure 4.4].
    """
    rows = parts.information(context.metrics)
    normal = rows["method"].isin(("noisy_bits", "noisy_mean"))
    rows = rows[~normal | (rows["variant"] == "corrected")].copy()
    rows["ratio"] = _ratios(rows)
    thetas = sorted(rows["theta"].unique())
    methods = style.ordered(rows["method"], style.METHODS)
    others = parts.having(rows, "ratio")
    figure, axes = style.figure(3 if len(others) else 2, len(thetas), 5.9)
    for k, theta in enumerate(thetas):
        panel_rows = rows[rows["theta"] == theta]
        for i, y in ((0, "information"), (2, "ratio")):
            if i >= len(axes):
                continue
            for method in methods:
                same = panel_rows[panel_rows["method"] == method]
                parts.curve(axes[i, k], same, "epsilon", y, style.look(method))
            axes[i, k].set_xscale("log")
        axes[0, k].set(yscale="log", title=f"θ = {theta:g}")
        _first_to_second(axes[1, k], panel_rows)
        axes[1, k].set(xscale="log")
        for line in axes:
            line[k].set_xlabel("ε")
    for row in axes[:2]:  # errors of formulas differ by orders of magnitude, so not the last
        for axis in row[1:]:
            axis.sharey(row[0])
    axes[1, 0].set_ylabel("F₁ / F₂")
    axes[0, 0].set_ylabel("F(θ), the same number ε")
    if len(axes) > 2:
        axes[2, 0].set_ylabel("% off the right F₂, F₃\n(own axis for each θ)")
    entries = [parts.key(style.look(name).label, style.look(name)) for name in methods]
    entries += [parts.key(f"F₁ / F₂ at {look.label}", look) for look in COMPARED]
    figure.legend(handles=entries, loc="outside upper center", ncols=3)
    style.heading(figure, "Alparslan 2023, Figure 4.4 (first row) and what it compares")
    return figure


def _first_to_second(axis: Axes, rows: pd.DataFrame) -> None:
    """Draw the information of randomised response relative to noisy bits, compared in two ways."""
    first, second = (
        rows[rows["method"] == name].groupby(x)["information"].mean()
        for name, x in (("randomised_response", "epsilon"), ("noisy_bits", "epsilon"))
    )
    if first.empty or second.empty:
        return
    axis.axhline(1, color=style.GREY, lw=0.6, zorder=0)
    at = first.index.to_numpy(float)
    places = second.index.to_numpy(float)
    mu = matched_mu(pd.Series(at))
    for x, look in zip((at, mu), COMPARED, strict=True):
        inside = (x >= places.min()) & (x <= places.max())
        logs = np.interp(np.log(x[inside]), np.log(places), np.log(second.to_numpy()))
        ratio = first.to_numpy()[inside] / np.exp(logs)
        axis.plot(at[inside], ratio, color=look.colour, ls=look.line, lw=1.1, label=look.label)


def _ratios(rows: pd.DataFrame) -> pd.Series[float]:
    """By how many % printed formulas, and what is exact, are off the normal approximation."""
    place = pd.MultiIndex.from_frame(rows[["theta", "epsilon"]])
    normal = rows[rows["method"] == "noisy_mean"].groupby(["theta", "epsilon"])["information"]
    exact = rows["information"] / normal.mean().reindex(place).to_numpy()
    printed = rows.get("published_formula", pd.Series(math.nan, rows.index)) / rows["information"]
    return 100 * (printed.where(rows["method"] != "binomial_mean", exact) - 1)


def matched_mu(epsilon: pd.Series[float]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Mu of Gaussian differential privacy that randomised response tightly has.

    2 Phi^-1(e^eps / (1 + e^eps)): its trade-off function touches that of Gaussians there.
    """
    share = special.expit(-epsilon.to_numpy(float))
    return np.asarray(-2 * special.ndtri(share), dtype=np.float64)
