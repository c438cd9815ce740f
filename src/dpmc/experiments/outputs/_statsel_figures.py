"""Figures of statistic selection [alparslan2023thesis, chapters 4 and 6]."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator
from scipy import special

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
    for (upper, lower), (title, here) in zip(axes.T, panels, strict=True):
        for name in names:
            mine, look = here[here["statistic"] == name], style.look(name)
            parts.curve(upper, mine, "theta", "information", look)
            parts.curve(lower, mine, "theta", "share", look)
        parts.mark_leads(upper, parts.leads(here, "theta"))
        parts.mark_leads(lower, parts.leads(here, "theta"))
        parts.fit_scale(upper, here["information"])
        upper.set(title=title, xlim=(0, here["theta"].max()))
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
            here = rows[rows["theta"] == theta]
            for method in methods:
                parts.curve(axis, here[here["method"] == method], x, y, style.look(method))
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


@style.styled
def errors_by_epsilon(context: Context) -> Figure:
    """Draw mean squared errors of chains and of quadrature, and the information, by epsilon.

    Parameters
    ----------
    context : Context
        Rows of studies ``statsel_posterior`` and ``statsel_information``.

    Returns
    -------
    matplotlib.figure.Figure
        Above, mean squared errors of posterior means: markers are chains with 90 % intervals
        over releases, dashes quadrature on the same releases, bands quadrature on many.
        Below on the left the Fisher information, on the right how far estimates of chains are
        from those of quadrature, in posterior standard deviations.

    References
    ----------
    [alparslan2023thesis, Figures 6.1, 6.2 and 6.4].
    """
    rows = context.metrics
    runs, exact, known = parts.chains(rows), parts.references(rows), parts.information(rows)
    names = parts.statistics(runs)
    figure, axes = style.figure(1, 3, 3.0)
    errors, informations, gaps = axes[0]
    _error_panel(errors, runs, exact, names)
    noisy = known[known["epsilon"].map(math.isfinite)]
    for name in names:
        look, mine = style.look(name), noisy[noisy["statistic"] == name]
        parts.curve(informations, mine, "epsilon", "information", look)
    found = parts.leads(noisy, "epsilon")
    parts.mark_leads(errors, found, 1, top=True)
    parts.mark_leads(informations, found, 1)
    _gap_panel(gaps, runs, names)
    errors.set(yscale="log", title="mean squared error")
    informations.set(yscale="log", title="Fisher information F(θ)")
    gaps.set(title="chain minus quadrature", ylabel="in posterior sd")
    for axis in axes.flat:
        epsilon_axis(axis, pd.concat([runs["epsilon"], exact["epsilon"]]))
    figure.legend(handles=_error_entries(runs, exact, names), loc="outside upper center", ncols=3)
    return figure


def epsilon_axis(axis: Axes, values: pd.Series[float]) -> None:
    """Make the horizontal axis one of epsilon, on a logarithmic scale with the grid as ticks."""
    axis.set(xscale="log", xlabel="ε")
    grid = sorted(values.dropna().unique())
    shown: list[float] = []
    for value in grid:
        if not shown or value >= 1.35 * shown[-1]:
            shown.append(float(value))
    axis.set_xticks(shown)
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.xaxis.set_minor_locator(NullLocator())


def _error_panel(axis: Axes, runs: pd.DataFrame, exact: pd.DataFrame, names: list[str]) -> None:
    for name in names:
        mine = exact[exact["statistic"] == name]
        parts.band(axis, mine, "epsilon", "reference_squared_error", style.look(name))
    groups = list(parts.chain_looks(runs))
    for k, (method, variant) in enumerate(groups):
        for j, name in enumerate(names):
            chosen = _chosen(runs, method, variant, name)
            place, count = k * len(names) + j, len(groups) * len(names)
            points, same = [], []
            for epsilon, group in chosen.groupby("epsilon", sort=True):
                at = parts.shifted(float(str(epsilon)), place, count)
                points.append((at, parts.positive_interval(group["squared_error"])))
                same.append((at, float(group["reference_squared_error"].mean())))
            parts.marks(axis, points, style.look(name), open_=k > 0)
            if same:
                x, y = np.array(same).T
                axis.plot(x, y, "_", color=style.INK, ms=7, mew=0.9, zorder=4)


def _gap_panel(axis: Axes, runs: pd.DataFrame, names: list[str]) -> None:
    axis.axhline(0, color=style.GREY, lw=0.6, zorder=0)
    gap = (runs["estimate"] - runs["reference_mean"]) / runs["reference_sd"]
    groups = list(parts.chain_looks(runs))
    for k, (method, variant) in enumerate(groups):
        for j, name in enumerate(names):
            chosen = _chosen(runs.assign(gap=gap), method, variant, name)
            points = [
                (
                    parts.shifted(float(str(epsilon)), k * len(names) + j,
                                  len(groups) * len(names)),
                    parts.interval(group["gap"]),
                )
                for epsilon, group in chosen.groupby("epsilon", sort=True)
            ]  # fmt: skip
            parts.marks(axis, points, style.look(name), open_=k > 0)
    if gap.groupby([runs["label"], runs["epsilon"]]).mean().abs().max() > 1:
        axis.set_yscale("symlog", linthresh=0.1)  # a chain that is none of the posterior


def _chosen(runs: pd.DataFrame, method: str, variant: str, statistic: str) -> pd.DataFrame:
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
    dash = style.look(parts.QUADRATURE)
    entries.append(parts.key("quadrature, same releases", dash, ls="", marker="_", ms=7))
    return entries


@style.styled
def information_and_autocorrelation(context: Context) -> Figure:
    """Draw the information in the median and in the maximum, and how their chains mix.

    Parameters
    ----------
    context : Context
        Rows of studies ``statsel_information`` and ``statsel_autocorrelation`` with lags.

    Returns
    -------
    matplotlib.figure.Figure
        Left: Fisher information against theta. Right: autocorrelation, means over chains and
        their 90 % intervals.

    References
    ----------
    [alparslan2023thesis, Figure 6.3].
    """
    known = parts.information(context.metrics)
    lags = parts.having(context.metrics, "autocorrelation")
    names = parts.statistics(known)
    figure, (line,) = style.figure(1, 2, 2.9)
    for name in names:
        look, mine = style.look(name), known[known["statistic"] == name]
        exact = mine[~mine["method"].isin(parts.ESTIMATED)]
        parts.band(line[0], exact, "theta", "information", look)
        simulated = mine[mine["method"].isin(parts.ESTIMATED)]
        points = [
            (float(str(theta)), _estimated(group))
            for theta, group in simulated.groupby("theta", sort=True)
        ]
        parts.marks(line[0], points, look)
    line[0].set(yscale="log", xlabel="θ", title="Fisher information F(θ)")
    for name in parts.statistics(lags) if len(lags) else []:
        _correlation_line(line[1], lags[lags["statistic"] == name], style.look(name))
    line[1].axhline(0, color=style.GREY, lw=0.6, zorder=0)
    line[1].set(xlabel="lag", title=_correlation_title(lags))
    entries = [parts.key(style.look(name).label, style.look(name)) for name in names]
    if known["method"].isin(parts.ESTIMATED).any():
        dot = Look("", style.INK)
        entries.append(parts.key("Algorithm 7", dot, ls="", marker="o", ms=4, mec="white"))
    figure.legend(handles=entries, loc="outside upper center", ncols=len(entries))
    return figure


def _estimated(group: pd.DataFrame) -> parts.Interval:
    """Return a mean of estimates; from one, by the standard error that it comes with."""
    if len(group) > 1:
        return parts.interval(group["information"])
    value, error = float(group["information"].iloc[0]), float(group["information_se"].iloc[0])
    half = float(special.ndtri(0.5 + parts.CONFIDENCE / 2)) * error
    return parts.Interval(value, value - half, value + half)


def _correlation_line(axis: Axes, rows: pd.DataFrame, look: Look) -> None:
    found = np.array(
        [
            (float(str(lag)), *parts.interval(group["autocorrelation"]))
            for lag, group in rows.groupby("lag", sort=True)
        ]
    )
    axis.plot(found[:, 0], found[:, 1], color=look.colour, ls=look.line, lw=1.1)
    axis.fill_between(found[:, 0], found[:, 2], found[:, 3], color=look.colour, alpha=0.18, lw=0)


def _correlation_title(lags: pd.DataFrame) -> str:
    thetas = sorted(lags["theta"].unique()) if len(lags) else []
    at = f", θ = {thetas[0]:g}" if len(thetas) == 1 else ""
    return f"autocorrelation{at}"


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
    for column, (title, here) in zip(axes.T, cells, strict=True):
        whole = _means(here[here["label"] == ONCE])
        for label in labels:
            mine, look = here[here["label"] == label], style.look(label)
            _selection_line(column[0], mine, look)
            ratio = (_means(mine) / whole).dropna()
            if len(ratio):
                column[1].plot(ratio.index, ratio, marker=look.marker, ls=look.line, lw=1.1,
                               color=look.colour, ms=3.2, mew=0.4, mec="white")  # fmt: skip
        _boxes(column[2], here)
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
    found = []
    for problem in context.problems(rows):
        here = rows[rows["problem"] == problem]
        for epsilon, cell in here.groupby("epsilon", sort=True):
            name = context.problem_label(problem)
            found.append((f"{name}\nε = {float(str(epsilon)):g}", cell))
    return found


def _selection_line(axis: Axes, rows: pd.DataFrame, look: Look) -> None:
    found = np.array(
        [(float(str(t)), *parts.pooled(group)) for t, group in rows.groupby("theta", sort=True)]
    )
    if len(found):
        place, mean, low, high = found.T
        low = np.maximum(low, mean / 10)
        axis.fill_between(place, low, high, color=look.colour, alpha=0.18, lw=0)
        axis.plot(place, mean, marker=look.marker, ls=look.line, color=look.colour, ms=3.2,
                  mew=0.4, mec="white", lw=1.1)  # fmt: skip


def _means(rows: pd.DataFrame) -> pd.Series[float]:
    """Return the mean squared error of each theta."""
    found = {float(str(t)): parts.pooled(group).mean for t, group in rows.groupby("theta")}
    return pd.Series(found, dtype=float).sort_index()


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
