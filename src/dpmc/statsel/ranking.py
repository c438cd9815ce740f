"""Candidate statistics in the order of their Fisher information [alparslan2023thesis, chapter 4].

Which statistic tells most of theta depends on how much noise there is: without noise another
one may win than under strong privacy. A ranking therefore comes with the epsilons at which two
candidates change places.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmc import checks
from dpmc.statsel.fisher import information
from dpmc.statsel.fisher.order_statistics import Simulation
from dpmc.statsel.types import Mechanism, Population, Statistic
from dpmc.types import Array, DpmcError, Guarantee, check_epsilon

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


Curve = Callable[[float, float], float]
# Where crossovers are looked for, and how many epsilons are tried before roots are refined.
EPSILONS = (0.05, 100.0)
_TRIED, _DRAWN = 41, 61
# The same of order statistics, whose information is simulated.
_FEW = 21, 31
# Of curves of simulated information; the ranking itself takes more draws.
_QUICK = Simulation(num_draws=6400)


@dataclass(frozen=True)
class Ranking:
    """Candidates in the order of their information, the best first.

    Parameters
    ----------
    population : Population
    mechanism : Mechanism
    epsilon, theta : float
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
    _curves: dict[str, Curve] = field(repr=False)
    _simulated: bool = field(repr=False, default=False)

    @property
    def best(self) -> str:
        """Name of the most informative candidate."""
        return str(self.table["statistic"].iloc[0])

    def __str__(self) -> str:
        found = "\n".join(
            f"at epsilon {row.epsilon:.4g} {row.above} overtakes {row.below}"
            for row in self.crossovers.itertuples()
        )
        low, high = self.epsilons
        return (
            f"{self.num_rows} records of {self.population.name} at theta = {self.theta:g}, "
            f"{self.mechanism.name} noise at epsilon = {self.epsilon:g}: {self.guarantee}\n"
            f"{self.table.to_string(float_format='{:.5g}'.format)}\n"
            + (found or f"no crossover between epsilon {low:g} and {high:g}")
        )

    def figure(self) -> Figure:
        """Return the information against epsilon, with crossovers, and against theta."""
        checks.require_extra("matplotlib", "Ranking.figure")
        import matplotlib as mpl

        with mpl.rc_context({**mpl.rcParamsDefault, **_STYLE}):
            return self._drawn()

    def _drawn(self) -> Figure:
        from matplotlib.figure import Figure

        made = Figure(figsize=(6.75, 2.6), layout="constrained")
        left, right = made.subplots(1, 2)
        names = list(self._curves)
        number = _FEW[1] if self._simulated else _DRAWN
        budgets = np.geomspace(*self._shown(), number)
        thetas = _around(self.population, self.theta, number)
        for place, name in enumerate(names):
            curve, look = self._curves[name], _look(place)
            left.plot(budgets, [_value(curve, e, self.theta) for e in budgets], label=name, **look)
            right.plot(thetas, [_value(curve, self.epsilon, t) for t in thetas], **look)
        for axis, chosen in ((left, self.epsilon), (right, self.theta)):
            axis.axvline(chosen, color=_GREY, lw=0.6, ls=(0, (2, 2)), zorder=0)
        self._mark(left)
        left.set(xscale="log", yscale="log", xlabel="ε", ylabel="Fisher information on θ")
        left.set_title(f"θ = {self.theta:g}")
        left.xaxis.set_major_formatter("{x:g}")
        right.set(yscale="log", xlabel="θ")
        right.set_title(f"ε = {self.epsilon:g}")
        for axis in (left, right):
            axis.yaxis.set_major_formatter("{x:g}")
        made.legend(loc="outside right center")
        return made

    def _shown(self) -> tuple[float, float]:
        """Return the range of epsilon to draw: the ranking and its crossovers, and some more."""
        places = [self.epsilon, *self.crossovers["epsilon"]]
        low, high = self.epsilons
        return max(low, min(places) / 10), min(high, max(places) * 4)

    def _mark(self, axis: Axes) -> None:
        """Mark the epsilons where the best candidate changes."""
        leading = self.crossovers[self.crossovers["leads"]]
        for row in leading.itertuples():
            place = float(row.epsilon)  # type: ignore[arg-type]
            height = _value(self._curves[str(row.above)], place, self.theta)
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
    checks.require_extra("pandas", "dpmc.statsel.rank")
    if len(candidates) == 0:
        raise DpmcError("candidates: none, allowed at least one statistic")
    names = [candidate.name for candidate in candidates]
    if len(set(names)) < len(names):
        raise DpmcError(f"candidates: {', '.join(names)}, allowed names that differ")
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
    tried = _FEW[0] if simulated else _TRIED
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


def _check_range(epsilons: tuple[float, float]) -> None:
    low, high = epsilons
    if not (0 < low < high < math.inf):
        raise DpmcError(f"epsilons: {epsilons}, allowed two finite numbers > 0 in order")


def _table(names: list[str], values: list[float]) -> pd.DataFrame:
    import pandas as pd

    found = pd.DataFrame({"statistic": names, "information": values})
    found = found.sort_values("information", ascending=False, kind="stable", ignore_index=True)
    found["relative"] = found["information"] / found["information"].max()
    found["sd"] = found["information"] ** -0.5
    found.index = pd.RangeIndex(1, len(found) + 1, name="rank")
    return found


def _value(curve: Curve, epsilon: float, theta: float) -> float:
    """Return an information, NaN where the mechanism refuses the budget or theta."""
    try:
        return curve(float(epsilon), float(theta))
    except DpmcError:
        return math.nan


def _crossovers(curves: dict[str, Curve], theta: float, tried: Array) -> pd.DataFrame:
    import pandas as pd

    values = {
        name: np.array([_value(curve, e, theta) for e in tried]) for name, curve in curves.items()
    }
    rows = [
        row
        for first, second in itertools.combinations(curves, 2)
        for row in _pair(curves, values, first, second, theta, tried)
    ]
    columns = ["epsilon", "below", "above", "leads"]
    found = pd.DataFrame(rows, columns=columns).astype({"epsilon": "float64", "leads": "bool"})
    return found.sort_values("epsilon", kind="stable", ignore_index=True)


def _pair(
    curves: dict[str, Curve],
    values: dict[str, Array],
    first: str,
    second: str,
    theta: float,
    tried: Array,
) -> list[dict[str, Any]]:
    """Return the crossovers of two candidates: sign changes on the grid, refined."""
    from scipy.optimize import brentq

    def lead(log_epsilon: float) -> float:
        epsilon = math.exp(log_epsilon)
        return math.log(
            _value(curves[first], epsilon, theta) / _value(curves[second], epsilon, theta)
        )

    signs = np.sign(values[first] - values[second])
    rows = []
    for k in np.flatnonzero(signs[:-1] * signs[1:] < 0):
        root = math.exp(float(brentq(lead, math.log(tried[k]), math.log(tried[k + 1]), rtol=1e-10)))
        below, above = (first, second) if signs[k] > 0 else (second, first)
        at = {name: _value(curve, root, theta) for name, curve in curves.items()}
        others = [value for name, value in at.items() if name not in (first, second)]
        leads = all(value <= at[above] for value in others if not math.isnan(value))
        rows.append({"epsilon": root, "below": below, "above": above, "leads": leads})
    return rows


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
