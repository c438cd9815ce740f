"""Figures of errors and mixing of chains [alparslan2023thesis, sections 6.1 to 6.4]."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator

from dpmc_papers.outputs import _statsel as parts
from dpmc_papers.pipeline.results import Context
from dpmc_papers.plots import drawn, panels, style
from dpmc_papers.plots.style import Look

FAR = 1.5  # times the line from which an estimate is pointed out
LINEAR = 0.1  # of posterior deviations: below it an axis of differences is linear


@style.styled
def errors_by_epsilon(context: Context) -> Figure:
    """Draw mean squared errors of chains and of quadrature, and the information, by epsilon.

    Reads rows of studies ``statsel_posterior`` and ``statsel_information``. Above, mean squared
    errors of posterior means: markers are chains with 90 % intervals over releases, bands
    quadrature on many. Below on the left the Fisher
    information, on the right how far estimates of chains are from those of quadrature, in posterior
    standard deviations [alparslan2023thesis, Figures 6.1, 6.2 and 6.4].
    """
    rows = context.metrics
    runs, exact, known = parts.chains(rows), parts.references(rows), parts.information(rows)
    names = parts.statistics(runs)
    figure, axes = style.figure(1, 3, 3.3)
    errors, informations, gaps = axes[0]
    _error_panel(errors, runs, exact, names)
    noisy = known[known["epsilon"].map(math.isfinite)]
    for name in names:
        look, statistic_rows = style.look(name), noisy[noisy["statistic"] == name]
        parts.curve(informations, statistic_rows, "epsilon", "information", look)
    changes = parts.leads(noisy, "epsilon")
    parts.mark_leads(errors, changes, 1, top=True)
    parts.mark_leads(informations, changes, 1)
    _gap_panel(gaps, runs, names)
    errors.set(yscale="log", title="mean squared error")
    informations.set(yscale="log", title="Fisher information F(θ)")
    gaps.set(title="chain minus quadrature")
    for axis in (errors, informations):
        epsilon_axis(axis, pd.concat([runs["epsilon"], exact["epsilon"]]))
    entries = _error_entries(runs, exact, names)
    figure.legend(handles=entries, loc="outside upper center", ncols=2)
    style.heading(figure, _error_heading(runs))
    return figure


def _error_heading(runs: pd.DataFrame) -> str:
    """Say which mechanism is drawn, and which variants of its chains."""
    method = str(runs["method"].iloc[0])
    number = {"mh": "6.1", "pmmh": "6.2", "sequential": "6.4"}.get(method, "")
    variants = style.ordered(runs["variant"], style.VARIANTS)
    told = " and ".join(style.look(name).label for name in variants)
    return " ".join(["Alparslan 2023, Figure", number]).strip() + f": {told}"


def epsilon_axis(axis: Axes, values: pd.Series[float]) -> None:
    """Make the horizontal axis one of epsilon, on a logarithmic scale with the grid as ticks."""
    axis.set(xscale="log", xlabel="ε")
    grid = sorted(values.dropna().unique())
    shown: list[float] = []
    for value in grid:
        if not shown or value >= 1.7 * shown[-1]:
            shown.append(float(value))
    axis.set_xticks(shown)
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.xaxis.set_minor_locator(NullLocator())


def _error_panel(axis: Axes, runs: pd.DataFrame, exact: pd.DataFrame, names: list[str]) -> None:
    for name in names:
        statistic_rows = exact[exact["statistic"] == name]
        parts.band(axis, statistic_rows, "epsilon", "reference_squared_error", style.look(name))
    for k, (method, variant) in enumerate(parts.chain_looks(runs)):
        for name in names:
            groups = _runs_of(runs, method, variant, name).groupby("epsilon", sort=True)
            points = [
                (float(str(epsilon)), parts.positive_interval(group["squared_error"]))
                for epsilon, group in groups
            ]
            parts.marks(axis, points, style.look(name), open_=k > 0)


def _gap_panel(axis: Axes, runs: pd.DataFrame, names: list[str]) -> None:
    """Draw chains beside each other: differences are near zero for all of them."""
    axis.axhline(0, color=style.GREY, lw=0.6, zorder=0)
    gap = (runs["estimate"] - runs["reference_mean"]) / runs["reference_sd"]
    groups, grid = parts.chain_looks(runs), sorted(runs["epsilon"].unique())
    looks = {(*chain, name): style.look(name) for chain in groups for name in names}
    keys = runs[["method", "variant", "statistic"]].apply(tuple, axis=1)
    table = runs.assign(gap=gap, key=keys)
    for k, chain in enumerate(groups):
        of_chain = (table["method"] == chain[0]) & (table["variant"] == chain[1])
        hollow: dict[str, Any] = {"mfc": "white", "markeredgecolor": None, "markeredgewidth": 0.7}
        panels.centres(
            axis, table[of_chain], "epsilon", "gap", "key", looks, grid, parts.MEANS,
            **(hollow if k > 0 else {}),
        )  # fmt: skip
    axis.set_xlabel("ε")
    axis.set_ylabel("in posterior sd")
    if gap.groupby([runs["label"], runs["epsilon"]]).mean().abs().max() > 1:
        axis.set_yscale("symlog", linthresh=LINEAR)  # a chain that is none of the posterior
        axis.axhspan(-LINEAR, LINEAR, color="#f2f2f2", lw=0, zorder=0)
        axis.set_ylabel("in posterior sd\n(linear in grey)")


def _runs_of(runs: pd.DataFrame, method: str, variant: str, statistic: str) -> pd.DataFrame:
    same = (runs["method"] == method) & (runs["variant"] == variant)
    return runs[same & (runs["statistic"] == statistic)]


def _error_entries(runs: pd.DataFrame, exact: pd.DataFrame, names: list[str]) -> list[Line2D]:
    entries = []
    for k, name in enumerate(parts.chain_looks(runs).values()):
        for statistic in names:
            look = style.look(statistic)
            shown = {"mfc": "white"} if k > 0 else {"mec": "white"}
            entries.append(
                parts.key(f"{name}, {look.label}", look, ls="", marker=look.marker, ms=4.5, **shown)
            )
    if len(exact):
        entries += [
            parts.key(f"quadrature, {style.look(name).label}", style.look(name)) for name in names
        ]
    return entries


@style.styled
def information_and_autocorrelation(context: Context) -> Figure:
    """Draw the information in the median and in the maximum, and how their chains mix.

    Reads rows of studies ``statsel_information`` and ``statsel_autocorrelation`` with lags. Left:
    Fisher information against theta. Right: autocorrelation, means over chains and their 90 %
    intervals [alparslan2023thesis, Figure 6.3].
    """
    known = parts.information(context.metrics)
    lags = parts.having(context.metrics, "autocorrelation")
    names = parts.statistics(known)
    figure, (line,) = style.figure(1, 2, 2.9)
    for name in names:
        look, statistic_rows = style.look(name), known[known["statistic"] == name]
        exact = statistic_rows[~statistic_rows["method"].isin(parts.ESTIMATED)]
        parts.band(line[0], exact, "theta", "information", look)
        drawn.record(line[0], look.label, exact["theta"], exact["information"])
        simulated = statistic_rows[statistic_rows["method"].isin(parts.ESTIMATED)]
        for theta, group in simulated.groupby("theta", sort=True):
            _estimates(line[0], float(str(theta)), group["information"].dropna(), look)
        _furthest(line[0], simulated, exact, look)
    line[0].set(yscale="log", xlabel="θ", title="Fisher information F(θ)")
    for name in parts.statistics(lags) if len(lags) else []:
        _correlation_line(line[1], lags[lags["statistic"] == name], style.look(name))
    line[1].axhline(0, color=style.GREY, lw=0.6, zorder=0)
    line[1].set(xlabel="lag", title=_correlation_title(lags))
    entries = [
        parts.key(f"{style.look(name).label}, common random numbers", style.look(name))
        for name in names
    ]
    if known["method"].isin(parts.ESTIMATED).any():
        dot = Look("", style.INK)
        hollow: dict[str, Any] = {"ls": "", "mfc": "none", "mew": 0.8}
        entries.append(parts.key("Algorithm 7: a run", dot, marker="o", ms=4, **hollow))
        entries.append(parts.key("their mean", dot, ls="", marker="_", ms=9))
    figure.legend(handles=entries, loc="outside upper center", ncols=2)
    style.heading(figure, "Alparslan 2023, Figure 6.3: median and maximum, as published")
    return figure


def _estimates(axis: Axes, theta: float, values: pd.Series[float], look: Look) -> None:
    """Draw every single estimate, and a dash at the mean of several."""
    drawn.record(axis, f"{look.label}: Algorithm 7", theta, values)
    at = [theta] * len(values)
    axis.plot(at, values, look.marker, color=look.colour, ms=4, mfc="none", mew=0.8, zorder=3)
    if len(values) > 1:
        mean = float(values.mean())
        axis.plot([theta], [mean], "_", color=look.colour, ms=9, mew=1.4, zorder=4)


def _furthest(axis: Axes, simulated: pd.DataFrame, exact: pd.DataFrame, look: Look) -> None:
    """Write how many times the line the furthest mean of estimates is, if that is far off."""
    means = simulated.groupby("theta")["information"].mean()
    ratios = (means / exact.groupby("theta")["information"].mean()).dropna()
    if ratios.empty or ratios.max() < FAR:
        return
    theta = float(str(ratios.idxmax()))
    axis.annotate(
        f"{ratios.max():.1f} × the line", (theta, means[theta]), (9, 3), fontsize=style.SMALLEST,
        textcoords="offset points", color=look.colour, va="bottom",
    )  # fmt: skip


def _correlation_line(axis: Axes, rows: pd.DataFrame, look: Look) -> None:
    correlations = np.array(
        [
            (float(str(lag)), *parts.interval(group["autocorrelation"]))
            for lag, group in rows.groupby("lag", sort=True)
        ]
    )
    axis.plot(correlations[:, 0], correlations[:, 1], color=look.colour, ls=look.line, lw=1.1)
    axis.fill_between(
        correlations[:, 0],
        correlations[:, 2],
        correlations[:, 3],
        color=look.colour,
        alpha=0.18,
        lw=0,
    )


def _correlation_title(lags: pd.DataFrame) -> str:
    thetas = sorted(lags["theta"].unique()) if len(lags) else []
    at = f", θ = {thetas[0]:g}" if len(thetas) == 1 else ""
    return f"autocorrelation{at}"
