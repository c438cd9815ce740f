"""Candidate statistics in the order of their Fisher information [alparslan2023thesis, chapter 4].

Which statistic is most informative about theta depends on how much noise there is:
without noise another one may win than under strong privacy. A ranking therefore
comes with the epsilons at which two candidates change places.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmc import checks
from dpmc.statsel.fisher import information
from dpmc.statsel.fisher.information import Curve, value_or_nan
from dpmc.statsel.fisher.order_statistics import Simulation
from dpmc.statsel.types import Mechanism, Population, Statistic, check_parts
from dpmc.types import Array, DpmcError, Guarantee, check_epsilon, is_real

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
# Points of each curve in a figure.
NUM_POINTS = 61
# Points of curves of order statistics, whose information is simulated.
FEW_POINTS = 31
# Range in which crossovers are looked for.
EPSILONS = (0.05, 100.0)
# Epsilons that are tried before roots are refined.
_TRIED = 41
# Epsilons that are tried for order statistics, whose information is simulated.
_FEW = 21
# Simulation behind curves; the ranking itself takes more draws.
_QUICK = Simulation(num_draws=6400)


@dataclass(frozen=True)
class Ranking:
    """Candidates in the order of their information, the best first.

    Parameters
    ----------
    population : Population
        Distribution of one record.
    mechanism : Mechanism
        Noise of the release.
    epsilon, theta : float
        Budget and parameter of the comparison.
    num_rows : int
        n.
    guarantee : Guarantee
        What the release of any one candidate really has.
    table : pandas.DataFrame
        Columns ``statistic``, ``information`` (on theta, in all records), ``relative`` (to the
        best) and ``sd``: ``1 / sqrt(information)``, the error of an efficient estimate.
    crossovers : pandas.DataFrame
        One row for each epsilon at which two candidates change places: ``epsilon``, which is
        better ``below`` it and which ``above``, and whether the best one changes there
        (``leads``).
    epsilons : (float, float)
        Where crossovers were looked for.
    curves : dict of callable ``(epsilon, theta) -> information``
        Of each candidate, by its name.
    simulated : bool
        Whether the information of a candidate is simulated.
    """

    population: Population
    mechanism: Mechanism
    epsilon: float
    num_rows: int
    theta: float
    guarantee: Guarantee
    table: pd.DataFrame
    crossovers: pd.DataFrame
    epsilons: tuple[float, float]
    curves: dict[str, Curve] = field(repr=False)
    simulated: bool = field(repr=False, default=False)

    @property
    def best(self) -> str:
        """Name of the most informative candidate."""
        return str(self.table["statistic"].iloc[0])

    def __str__(self) -> str:
        lines = "\n".join(
            f"at epsilon {row.epsilon:.4g} {row.above} overtakes {row.below}"
            for row in self.crossovers.itertuples()
        )
        low, high = self.epsilons
        return (
            f"{self.num_rows} records of {self.population.name} at theta = {self.theta:g}, "
            f"{self.mechanism.name} noise at epsilon = {self.epsilon:g}: {self.guarantee}\n"
            f"{self.table.to_string(float_format='{:.5g}'.format)}\n"
            + (lines or f"no crossover between epsilon {low:g} and {high:g}")
        )

    def plot(self) -> Figure:
        """Information against epsilon, with crossovers, and against theta."""
        checks.require_extra("matplotlib", "Ranking.plot", "plot")
        return draw(self)


def rank(
    population: Population,
    candidates: Sequence[Statistic],
    mechanism: Mechanism,
    epsilon: float,
    n: int,
    theta: float,
    delta: float | None = None,
    epsilons: tuple[float, float] = EPSILONS,
) -> Ranking:
    """Rank candidate statistics by the Fisher information on theta in their release.

    Parameters
    ----------
    population : Population
        Distribution of one record.
    candidates : sequence of Statistic
        At least one, with names of their own.
    mechanism : Mechanism
        Which adds the noise.
    epsilon : float
        Finite and > 0, as the mechanism takes it.
    n : int
        Number of records.
    theta : float
        Where the information is compared, in the domain of the population.
    delta : float, optional
        For mechanisms that need one; for Gaussian noise, the delta of the guarantee.
    epsilons : (float, float)
        Where to look for crossovers.

    Returns
    -------
    Ranking

    Raises
    ------
    DpmcError
        If there is no candidate, two have one name, a number is out of range, or the mechanism
        does not release a candidate.

    Examples
    --------
    >>> from dpmc import statsel
    >>> candidates = [statsel.statistic(text) for text in ("abs_1", "abs_2")]
    >>> records = statsel.population("normal_variance", bound=10.0)
    >>> rank(records, candidates, statsel.mechanism("laplace"), 5.0, 100, 2.0).best
    '|x|'
    """
    checks.instance("candidates", candidates, Sequence, _STATISTICS)
    if len(candidates) == 0:
        raise DpmcError("`candidates` must be one or more statistics, got none")
    for candidate in candidates:
        checks.instance("candidates", candidate, Statistic, _STATISTICS)
        check_parts(population, candidate, mechanism)
    names = [candidate.name for candidate in candidates]
    if len(set(names)) < len(names):
        raise DpmcError(f"`candidates` must have different names, got {', '.join(names)}")
    check_epsilon(epsilon)
    checks.at_least("n", n, 1)
    population.check_theta(theta)
    _check_range(epsilons)
    guarantee = mechanism.guarantee(epsilon, delta)
    curves = {
        entry.name: information.curve(population, entry, mechanism, n, delta, _QUICK)
        for entry in candidates
    }
    values = [
        information.information(population, entry, mechanism, epsilon, n, theta, delta)
        for entry in candidates
    ]
    simulated = any(entry.kind == "order" for entry in candidates)
    tried = _FEW if simulated else _TRIED
    return Ranking(
        population,
        mechanism,
        float(epsilon),
        n,
        float(theta),
        guarantee,
        _table(names, values),
        _crossovers(curves, float(theta), np.geomspace(*epsilons, tried)),
        epsilons,
        curves,
        simulated,
    )


_STATISTICS = "statistics of dpmc.statsel.statistic"


def _check_range(epsilons: tuple[float, float]) -> None:
    low, high = epsilons
    if not (is_real(low) and is_real(high) and 0 < low < high < math.inf):
        raise DpmcError(f"`epsilons` must be two finite numbers > 0 in order, got {epsilons}")


def _table(names: list[str], values: list[float]) -> pd.DataFrame:
    import pandas as pd

    table = pd.DataFrame({"statistic": names, "information": values})
    table = table.sort_values("information", ascending=False, kind="stable", ignore_index=True)
    table["relative"] = table["information"] / table["information"].max()
    table["sd"] = table["information"] ** -0.5
    table.index = pd.RangeIndex(1, len(table) + 1, name="rank")
    return table


def _crossovers(curves: dict[str, Curve], theta: float, tried: Array) -> pd.DataFrame:
    import pandas as pd

    values = {
        name: np.array([value_or_nan(curve, e, theta) for e in tried])
        for name, curve in curves.items()
    }
    rows = [
        row
        for first, second in itertools.combinations(curves, 2)
        for row in _pair(curves, values, first, second, theta, tried)
    ]
    columns = ["epsilon", "below", "above", "leads"]
    table = pd.DataFrame(rows, columns=columns).astype({"epsilon": "float64", "leads": "bool"})
    return table.sort_values("epsilon", kind="stable", ignore_index=True)


def _pair(
    curves: dict[str, Curve],
    values: dict[str, Array],
    first: str,
    second: str,
    theta: float,
    tried: Array,
) -> list[dict[str, Any]]:
    """Crossovers of two candidates: sign changes on the grid, refined."""
    from scipy.optimize import brentq

    def lead(log_epsilon: float) -> float:
        epsilon = math.exp(log_epsilon)
        return math.log(
            value_or_nan(curves[first], epsilon, theta)
            / value_or_nan(curves[second], epsilon, theta)
        )

    signs = np.sign(values[first] - values[second])
    rows = []
    for k in np.flatnonzero(signs[:-1] * signs[1:] < 0):
        root = math.exp(float(brentq(lead, math.log(tried[k]), math.log(tried[k + 1]), rtol=1e-10)))
        below, above = (first, second) if signs[k] > 0 else (second, first)
        at = {name: value_or_nan(curve, root, theta) for name, curve in curves.items()}
        others = [value for name, value in at.items() if name not in (first, second)]
        leads = all(value <= at[above] for value in others if not math.isnan(value))
        rows.append({"epsilon": root, "below": below, "above": above, "leads": leads})
    return rows


def draw(ranking: Ranking) -> Figure:
    """Information against epsilon, with crossovers, and against theta.

    `ranking`: from :func:`dpmc.statsel.rank`.

    To the left theta is fixed, to the right epsilon; dashed lines mark the ranking.
    """
    import matplotlib as mpl

    with mpl.rc_context({**mpl.rcParamsDefault, **_STYLE}):
        return _drawn(ranking)


def _drawn(ranking: Ranking) -> Figure:
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


def _budgets(ranking: Ranking) -> tuple[float, float]:
    """Range of epsilon to draw: the ranking and its crossovers, and some more."""
    places = [ranking.epsilon, *ranking.crossovers["epsilon"]]
    low, high = ranking.epsilons
    return max(low, min(places) / 10), min(high, max(places) * 4)


def _mark(ranking: Ranking, axis: Axes) -> None:
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
    """Values of theta about the one of the ranking, inside of the domain."""
    low, high = population.theta_domain
    near = (theta / 4, theta * 4) if theta > 0 else (theta - 2, theta + 2)
    first, last = max(low, near[0]), min(high, near[1])
    grid = np.linspace(first, last, number)
    return grid[(grid > low) & (grid < high)]


def _look(number: int) -> dict[str, Any]:
    """Colour and the dashes of one curve."""
    colours = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#222222")
    dashes = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (4, 1.2, 1.2, 1.2)))
    return {"color": colours[number % len(colours)], "ls": dashes[number % len(dashes)]}
