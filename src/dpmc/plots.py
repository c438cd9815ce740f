"""Pictures of fits, plans, comparisons, budgets and audits, from values that were released.

They are drawn by seaborn (``pip install 'dpmc[plot]'``), with settings of their own whatever those
of the user are, and returned as a figure, which notebooks show and ``savefig`` writes.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr, ndtri

from dpmc.checks import require_extra
from dpmc.types import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Ends of the intervals that are drawn.
INTERVAL = 0.05, 0.95
MOST_COLUMNS = 4
# Draws of a density: more do not change what one sees.
ENOUGH = 4000
GREY = "#767676"


@dataclass(frozen=True)
class Marginal:
    """Draws of one component, and what is drawn beside them.

    Parameters
    ----------
    name : str
    draws : ndarray of shape (k,)
    narrower : float, optional
        Width with privacy noise over the width without.
    prior : (float, float), optional
        Mean and standard deviation of a normal prior.
    """

    name: str
    draws: Array
    narrower: float | None = None
    prior: tuple[float, float] | None = None


def marginals(parts: Sequence[Marginal], title: str) -> Figure:
    """Densities with means and 90 % intervals, a panel for each component."""

    def draw(axes: Sequence[Any], sns: Any) -> None:
        color = sns.color_palette("colorblind")[0]
        for ax, part in zip(axes, parts, strict=False):
            values = part.draws[:: max(1, len(part.draws) // ENOUGH)]
            mean, (low, high) = part.draws.mean(), np.quantile(part.draws, INTERVAL)
            if np.ptp(values) > 0:
                sns.kdeplot(x=values, ax=ax, fill=True, alpha=0.35, label="private posterior")
            left, right = ax.get_xlim()
            grid = np.linspace(left, right, 200)
            sd = float(part.draws.std())
            if part.narrower is not None and sd > 0:
                density = _normal(grid, mean, sd / part.narrower)
                label = "as wide as without privacy"
                ax.plot(grid, density, color=GREY, ls="--", lw=1, label=label)
            if part.prior is not None:
                ax.plot(grid, _normal(grid, *part.prior), color=GREY, ls=":", lw=1, label="prior")
            ax.plot([low, high], [0, 0], lw=3, color=color, clip_on=False, solid_capstyle="butt")
            ax.plot(mean, 0, "o", color=color, ms=5, clip_on=False)
            ax.set(title=_plain(part.name), ylabel="", yticks=[])
            ax.set(xlim=(left, right), ylim=(0, None))
            ax.ticklabel_format(axis="x", useOffset=False)
            sns.despine(ax=ax, left=True)

    return _figure(len(parts), draw, title, legend=True)


def intervals(
    labels: Sequence[str], names: Sequence[str], draws: Sequence[Array], failed: Sequence[bool]
) -> Figure:
    """Means and 90 % intervals: a panel for each component, a line for each fit.

    Parameters
    ----------
    labels : sequence of str
        One for each fit.
    names : sequence of str
        One for each component.
    draws : sequence of ndarray of shape (k, d)
    failed : sequence of bool
        Fits that should not be trusted, which are drawn hollow and dotted.
    """

    def draw(axes: Sequence[Any], sns: Any) -> None:
        colors = sns.color_palette("colorblind")
        for k, (ax, name) in enumerate(zip(axes, names, strict=False)):
            for height, (values, wrong) in enumerate(zip(draws, failed, strict=True)):
                low, high = np.quantile(values[:, k], INTERVAL)
                color, line = colors[height % len(colors)], ":" if wrong else "-"
                ax.plot([low, high], [height, height], color=color, ls=line, lw=1.5)
                face = "white" if wrong else color
                ax.plot(values[:, k].mean(), height, "o", color=color, mfc=face, ms=5)
            ax.set(title=_plain(name), yticks=range(len(labels)), ylim=(len(labels) - 0.5, -0.5))
            ax.set_yticklabels(labels)
            ax.tick_params(labelleft=k % MOST_COLUMNS == 0)
            ax.locator_params(axis="x", nbins=3)
            sns.despine(ax=ax)

    title = "hollow: not to be trusted" if any(failed) else ""
    return _figure(len(names), draw, title, 0.9 + 0.26 * len(labels))


def shares(parts: Mapping[str, float], title: str) -> Figure:
    """Bars of the parts of a budget, the first on top."""

    def draw(axes: Sequence[Any], sns: Any) -> None:
        values = [100 * value for value in parts.values()]
        sns.barplot(x=values, y=list(parts), ax=axes[0], alpha=0.8)
        for height, value in enumerate(values):
            axes[0].text(value, height, f" {value:.2g} %", va="center", color=GREY)
        axes[0].set(xlabel="share of mu², %", ylabel="", xlim=(0, 1.15 * max(values)))
        sns.despine(ax=axes[0])

    return _figure(1, draw, title, 0.8 + 0.22 * len(parts), 5.5)


def curves(panels: Mapping[str, Any], marked: Mapping[str, float]) -> Figure:
    """Medians and 90 % quantiles of the error and the width of fits, against what buys them.

    Parameters
    ----------
    panels : mapping of str to DataFrame
        Tables of `dpmc.planning.Plan.curve`, by the column that is across.
    marked : mapping of str to float
        Where the plan itself is.
    """
    rows = {
        "error": "error of means,\nposterior deviations",
        "width": "width of intervals,\ntimes the exact",
    }

    def draw(axes: Sequence[Any], sns: Any) -> None:
        from matplotlib.ticker import LogLocator, NullFormatter

        places = [(row, across) for row in rows for across in panels]
        for ax, (row, across) in zip(axes, places, strict=False):
            table = panels[across]
            ax.fill_between(table[across], table[row], table[f"large_{row}"], alpha=0.25, lw=0)
            ax.plot(table[across], table[row], "o-", ms=3, label="median, and one of ten above")
            ax.axhline(1, color=GREY, lw=0.8, ls=":")
            ax.axvline(marked[across], color=GREY, lw=0.8, ls="--", label="the plan")
            ax.set(xscale="log", yscale="log")
            ax.set_xticks(list(table[across]), [f"{value:,g}" for value in table[across]])
            ax.set_xticks([], minor=True)
            ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            ax.yaxis.set_major_formatter("{x:g}")
            ax.yaxis.set_minor_formatter(NullFormatter())
            ax.set(xlabel={"num_rows": "rows"}.get(across, across), ylabel=rows[row])
            sns.despine(ax=ax)

    return _figure(2 * len(panels), draw, "", 2.2, 3.2, len(panels), legend=True)


Curve = Callable[[Array], Array]


def trade_off(lines: Mapping[str, Curve]) -> Figure:
    """Least false negatives of any test of the pair, against its false positives.

    Parameters
    ----------
    lines : mapping of str to function
        Trade-off functions [Dong, Roth and Su 2022] of arrays in [0, 1].
    """

    def draw(axes: Sequence[Any], sns: Any) -> None:
        grid = np.linspace(0, 1, 501)
        for number, (label, curve) in enumerate(lines.items()):
            axes[0].plot(grid, curve(grid), label=label, ls=("-", "--")[number % 2])
        axes[0].plot(grid, 1 - grid, color=GREY, lw=0.8, ls=":", label="perfect privacy")
        axes[0].set(xlabel="false positives", ylabel="false negatives", xlim=(0, 1), ylim=(0, 1))
        axes[0].legend(loc="upper right")
        sns.despine(ax=axes[0])

    return _figure(1, draw, "", 3.2, 3.4)


def of_epsilon(epsilon: float, delta: float) -> Curve:
    """Trade-off function of an (epsilon, delta)-DP mechanism."""

    def curve(positives: Array) -> Array:
        first = 1 - delta - math.exp(min(epsilon, 700)) * positives
        return np.maximum(0, np.maximum(first, math.exp(-epsilon) * (1 - delta - positives)))

    return curve


def of_mu(mu: float) -> Curve:
    """Trade-off function of a mu-GDP mechanism."""
    return lambda positives: np.asarray(ndtr(ndtri(1 - positives) - mu))


def _figure(
    number: int,
    draw: Callable[[Sequence[Any], Any], None],
    title: str,
    height: float = 1.7,
    width: float = 2.1,
    most: int = MOST_COLUMNS,
    legend: bool = False,
) -> Figure:
    """Figure of so many panels, each of a height and width in inches."""
    require_extra("seaborn", "a picture", "plot")
    import matplotlib as mpl
    import seaborn as sns
    from matplotlib.figure import Figure
    from matplotlib.rcsetup import cycler

    columns = min(number, most)
    rows = math.ceil(number / columns)
    style: Any = {**mpl.rcParamsDefault, **sns.axes_style("ticks"), **sns.plotting_context("paper")}
    style["axes.prop_cycle"] = cycler(color=sns.color_palette("colorblind"))
    with mpl.rc_context(style):
        size = (1.0 + width * columns, 0.5 + height * rows)
        figure = Figure(figsize=size, layout="constrained")
        axes = list(figure.subplots(rows, columns, squeeze=False).flat)
        draw(axes, sns)
        for ax in axes[number:]:
            ax.set_axis_off()
        if title:
            figure.suptitle(textwrap.fill(title, round(13 * size[0])), fontsize="medium")
        if legend:
            handles, labels = axes[0].get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure


def _plain(name: str) -> str:
    """Name as a text without formulas: dollars are those of a column."""
    return name.replace("$", r"\$")


def _normal(x: Array, mean: float, sd: float) -> Array:
    density: Array = np.exp(-0.5 * ((x - mean) / sd) ** 2) / (sd * math.sqrt(2 * math.pi))
    return density
