"""Figure of a ranking of statistics: Fisher information against epsilon and against theta."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from dpmc.statsel.information_curves import value_or_nan
from dpmc.statsel.types import Population
from dpmc.types import Array

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_INK = "#222222"
_GREY = "#767676"
_STYLE: Any = {
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.2,
}
# Points of each curve, and of curves of order statistics, whose information is simulated.
NUM_POINTS, FEW_POINTS = 61, 31


class RankedCurves(Protocol):
    """What the figure takes from a :class:`dpmc.statsel.ranking.Ranking`."""

    @property
    def population(self) -> Population:
        """Distribution of one record."""

    @property
    def epsilon(self) -> float:
        """Budget of the comparison."""

    @property
    def theta(self) -> float:
        """Parameter of the comparison."""

    @property
    def crossovers(self) -> pd.DataFrame:
        """Where candidates change places."""

    @property
    def epsilons(self) -> tuple[float, float]:
        """Where crossovers were looked for."""

    @property
    def curves(self) -> Mapping[str, Callable[[float, float], float]]:
        """Information of each candidate, by its name."""

    @property
    def simulated(self) -> bool:
        """Whether an information is simulated."""


def draw(ranking: RankedCurves) -> Figure:
    """Return the information against epsilon, with crossovers, and against theta.

    Parameters
    ----------
    ranking : RankedCurves
        From :func:`dpmc.statsel.rank`.

    Returns
    -------
    matplotlib.figure.Figure
        To the left theta is fixed, to the right epsilon; dashed lines mark the ranking.
    """
    import matplotlib as mpl

    with mpl.rc_context({**mpl.rcParamsDefault, **_STYLE}):
        return _drawn(ranking)


def _drawn(ranking: RankedCurves) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.75, 2.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    names = list(ranking.curves)
    number = FEW_POINTS if ranking.simulated else NUM_POINTS
    budgets = np.geomspace(*_budgets(ranking), number)
    thetas = _around(ranking.population, ranking.theta, number)
    for place, name in enumerate(names):
        curve, look = ranking.curves[name], _look(place)
        left.plot(
            budgets, [value_or_nan(curve, e, ranking.theta) for e in budgets], label=name, **look
        )
        right.plot(thetas, [value_or_nan(curve, ranking.epsilon, t) for t in thetas], **look)
    for axis, value in ((left, ranking.epsilon), (right, ranking.theta)):
        axis.axvline(value, color=_GREY, lw=0.6, ls=(0, (2, 2)), zorder=0)
    _mark(ranking, left)
    left.set(xscale="log", yscale="log", xlabel="ε", ylabel="Fisher information on θ")
    left.set_title(f"θ = {ranking.theta:g}")
    left.xaxis.set_major_formatter("{x:g}")
    right.set(yscale="log", xlabel="θ")
    right.set_title(f"ε = {ranking.epsilon:g}")
    for axis in (left, right):
        axis.yaxis.set_major_formatter("{x:g}")
    figure.legend(loc="outside right center")
    return figure


def _budgets(ranking: RankedCurves) -> tuple[float, float]:
    """Return the range of epsilon to draw: the ranking and its crossovers, and some more."""
    places = [ranking.epsilon, *ranking.crossovers["epsilon"]]
    low, high = ranking.epsilons
    return max(low, min(places) / 10), min(high, max(places) * 4)


def _mark(ranking: RankedCurves, axis: Axes) -> None:
    """Mark the epsilons where the best candidate changes."""
    leading = ranking.crossovers[ranking.crossovers["leads"]]
    for row in leading.itertuples():
        place = float(row.epsilon)  # type: ignore[arg-type]
        height = value_or_nan(ranking.curves[str(row.above)], place, ranking.theta)
        axis.plot(place, height, "o", color=_INK, ms=3.5, zorder=4)
        # The best curve is the highest one: above it there is room.
        axis.annotate(
            f"{place:.3g}",
            (place, height),
            (-2, 3),
            textcoords="offset points",
            ha="right",
            va="bottom",
            fontsize=7,
        )


def _around(population: Population, theta: float, number: int) -> Array:
    """Return values of theta about the one of the ranking, inside of the domain."""
    low, high = population.theta_domain
    near = (theta / 4, theta * 4) if theta > 0 else (theta - 2, theta + 2)
    first, last = max(low, near[0]), min(high, near[1])
    grid = np.linspace(first, last, number)
    return grid[(grid > low) & (grid < high)]


def _look(number: int) -> dict[str, Any]:
    """Return the colour and the dashes of one curve."""
    colours = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#222222")
    dashes = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (4, 1.2, 1.2, 1.2)))
    return {"color": colours[number % len(colours)], "ls": dashes[number % len(dashes)]}
