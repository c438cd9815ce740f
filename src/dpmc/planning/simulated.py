"""Plans of automatic fits, by fits of public rows whose exact posterior is known."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dpmc import checks, plots
from dpmc.automatic import run as automatic
from dpmc.automatic.centre import locate
from dpmc.automatic.glm import run as glm
from dpmc.automatic.glm.till import Till
from dpmc.automatic.noise_aware import NoiseAware
from dpmc.automatic.prior import Prior, starting_point
from dpmc.automatic.purse import Purse
from dpmc.automatic.whitened import WhitenedRows
from dpmc.families.regression import MODELS, built, regression
from dpmc.fits import Fit
from dpmc.fitting import PosteriorWarning
from dpmc.planning import made_up
from dpmc.planning.exact import Exact, normal
from dpmc.privacy.budgets import GaussianBudget
from dpmc.privacy.ledger import Ledger
from dpmc.rng import stream
from dpmc.types import Array, Dataset, DpmcError, Model, Neighbours, as_numbers, check_epsilon

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Data sets, more of them than the fewest as long as they have no more than all rows together, and
# rows of one at most: of regressions, and of other models, whose search takes longer. Errors of
# more rows are not those of fewer times a power of their number: what a model is wrong by stays.
DATA_SETS, FEWEST = 10, 3
ALL_ROWS, MOST_ROWS = (1_500_000, 300_000), (1_000_000, 100_000)
# A budget under which noise hides nothing of them.
NO_NOISE = 1e5
DRAWS = 2000
# Of what comes of data sets.
LARGE = 0.9


@dataclass(frozen=True)
class Simulation:
    """Fits of public rows.

    Parameters
    ----------
    what : Model or str
        A model, or the likelihood of a regression.
    num_columns : int
    delta : float
    rows : ndarray of shape (k, p) or callable, optional
        Public rows to draw from, with or without the response that a regression has last, or what
        simulates some, as of `dpmc.plan`.
    rate : float, optional
        Mean response of a regression whose responses have no scale.
    options : mapping
        Of `dpmc.regression`; ``trials`` is a number.
    neighbours : {"replace", "add_remove"}
    """

    what: Model | str
    num_columns: int
    delta: float
    rows: Array | Callable[..., Any] | None
    rate: float | None
    options: dict[str, Any]
    neighbours: Neighbours = "replace"

    @property
    def whole(self) -> bool:
        """Whether public rows, with their responses, are given."""
        rows = self.rows
        return callable(rows) or (rows is not None and rows.shape[1] == self.num_columns)

    def drawn(self, num_rows: int, number: int) -> Array:
        """One data set, shape (n, p)."""
        rng = stream(0, "plan", num_rows, number)
        rows = self.rows
        if callable(rows):
            return self._simulated(rows(rng, num_rows), num_rows)
        if rows is None and isinstance(self.what, Model):
            rows = self.what.example_rows
        if rows is not None:
            x = rows[rng.integers(len(rows), size=num_rows)]
        elif isinstance(self.what, Model):
            x = rng.standard_normal((num_rows, self.num_columns))
        else:
            x = made_up.columns(rng, num_rows, self.num_columns - 1)
        if x.shape[1] == self.num_columns:
            return x
        given = {name: self.options[name] for name in ("classes", "trials") if name in self.options}
        y = made_up.responses(rng, str(self.what), x, self.rate, **given)
        return np.column_stack([x, y])

    def _simulated(self, given: Any, num_rows: int) -> Array:
        found = as_numbers("`rows`", given, "refuse")
        if found.shape != (num_rows, self.num_columns):
            raise DpmcError(
                f"`rows` must simulate an array of shape {(num_rows, self.num_columns)}, got shape "
                f"{found.shape}"
            )
        return found

    def size(self, num_rows: int) -> tuple[int, int]:
        """How many data sets stand for so many private rows, and the rows of each."""
        kind = self.what not in MODELS
        some = min(num_rows, MOST_ROWS[kind])
        return min(max(ALL_ROWS[kind] // some, FEWEST), DATA_SETS), some

    def source(self) -> str:
        """In words which rows are fitted."""
        if self.whole:
            return "public, as given"
        if self.rows is not None:
            return f"public columns, as given, and made-up responses{self._mean()}"
        if not isinstance(self.what, Model):
            return f"made-up columns, correlated, some 0/1 or skewed, and responses{self._mean()}"
        return "standard normal columns" if self.what.example_rows is None else "the example rows"

    def _mean(self) -> str:
        if self.what not in made_up.RATES:
            return ""
        mean = made_up.RATES[str(self.what)][0] if self.rate is None else self.rate
        return f" of mean {mean:g}"

    def plan(self, num_rows: int, epsilon: float) -> Plan:
        """Plan for a number of rows and a budget."""
        return Plan.of(self, num_rows, epsilon, self.fits(num_rows, [epsilon])[epsilon])

    def fit(self, rows: Array, epsilon: float, seed: int) -> Fit:
        """Fit of public rows."""
        given: dict[str, Any] = {"num_chains": 1, "num_draws": DRAWS, "seed": seed}
        given |= {"neighbours": self.neighbours}
        if isinstance(self.what, Model):
            return automatic.fit(self.what, Dataset.of("rows", rows), epsilon, self.delta, **given)
        given |= {"likelihood": self.what, "progress": False, **self.options}
        if "trials" in given:
            given["trials"] = np.full(len(rows), given["trials"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PosteriorWarning)
            return regression(rows[:, :-1], rows[:, -1], epsilon=epsilon, delta=self.delta, **given)

    def fits(self, num_rows: int, epsilons: Sequence[float]) -> dict[float, list[Outcome]]:
        """What came of all data sets of so many rows, by epsilon."""
        found: dict[float, list[Outcome]] = {epsilon: [] for epsilon in epsilons}
        count, some = self.size(num_rows)
        for number in range(count):
            rows = self.drawn(some, number)
            exact = self._exact(rows)
            for epsilon in epsilons:
                fit = self.fit(rows, epsilon, number)
                found[epsilon].append(Outcome.of(fit, *exact(fit)))
        return found

    def _exact(self, rows: Array) -> Callable[[Fit], tuple[Array, Array]]:
        """What gives mean and deviations of the posterior under the prior of a fit."""
        ledger = Ledger(GaussianBudget.of(NO_NOISE, self.delta))
        rng, dataset = stream(0, "plan", "exact"), Dataset.of("rows", rows)
        if isinstance(self.what, Model):
            prior = Prior.of(self.what)
            point = starting_point(self.what, prior, None)
            centre = locate(WhitenedRows(self.what, dataset), prior, Purse(ledger, rng), point)
            draws, _ = NoiseAware.of(centre, prior).draws(DRAWS, 1, rng)
            mean, sd = draws[0].mean(axis=0), draws[0].std(axis=0)
            return lambda fit: (mean, sd)
        if self.what not in MODELS:
            known = self.fit(rows, NO_NOISE, 0).kept()[0]
            return lambda fit: (known.mean(axis=0), known.std(axis=0))
        intercept = bool(self.options.get("intercept", True))
        freedom = float(self.options.get("degrees_of_freedom", 4.0))
        found, frame, *_ = glm.search(
            Till(ledger, rng), dataset, glm.KINDS[self.what], intercept, None, freedom, False
        )
        start, covariance = glm.posterior(found, frame, False)
        model = built(self.what, rows.shape[1] - 1, intercept, prior_sd=1.0, freedom=freedom)
        exact, basis = Exact(model, rows), _root(covariance)

        def posterior(fit: Fit) -> tuple[Array, Array]:
            mean, precision = (np.array(fit.plan.prior[key]) for key in ("mean", "precision"))
            return exact.posterior(normal(mean, precision), start, basis)

        return posterior


@dataclass(frozen=True)
class Outcome:
    """What came of one fit.

    Parameters
    ----------
    error : float
        Root mean square error of the means, in deviations of the exact posterior.
    width : float
        Of the widest interval, over that of the exact posterior.
    remarks : tuple of str
    """

    error: float
    width: float
    remarks: tuple[str, ...]

    @classmethod
    def of(cls, fit: Fit, mean: Array, sd: Array) -> Outcome:
        """Outcome of a fit beside the exact posterior."""
        assert fit.draws is not None
        draws = fit.draws[0]
        error = float(np.sqrt(np.mean(((draws.mean(axis=0) - mean) / sd) ** 2)))
        return cls(error, float((draws.std(axis=0) / sd).max()), fit.remarks)


@dataclass(frozen=True)
class Plan:
    """What the automatic method is expected to give: quantiles over simulated data sets.

    Parameters
    ----------
    num_rows : int
    epsilon, delta : float
        The budget.
    error, large_error : float
        Root mean square error of the posterior means, in standard deviations of the exact
        posterior: its median, and its 90 % quantile.
    width, large_width : float
        Of the widest interval, over that of the exact posterior: the same.
    rows : str
        Which rows were fitted.
    remarks : tuple of str
        Of the fit with the median error.
    """

    num_rows: int
    epsilon: float
    delta: float
    error: float
    large_error: float
    width: float
    large_width: float
    rows: str
    remarks: tuple[str, ...]
    simulation: Simulation = field(repr=False)

    @classmethod
    def of(
        cls, simulation: Simulation, num_rows: int, epsilon: float, outcomes: Sequence[Outcome]
    ) -> Plan:
        """Plan that outcomes of fits are."""
        ordered = sorted(outcomes, key=lambda one: one.error)
        errors = np.quantile([one.error for one in outcomes], [0.5, LARGE])
        widths = np.quantile([one.width for one in outcomes], [0.5, LARGE])
        return cls(
            num_rows,
            epsilon,
            simulation.delta,
            float(errors[0]),
            float(errors[1]),
            float(widths[0]),
            float(widths[1]),
            simulation.source(),
            ordered[len(ordered) // 2].remarks,
            simulation,
        )

    def curve(
        self,
        *,
        epsilon: float | Sequence[float] | None = None,
        num_rows: int | Sequence[int] | None = None,
    ) -> pd.DataFrame:
        """Table of plans over budgets and numbers of private rows.

        Parameters
        ----------
        epsilon : float or sequence of float, optional
        num_rows : int or sequence of int, optional
            Those of the plan by default.

        Returns
        -------
        DataFrame
            A row for each pair, with the quantiles that `Plan` has.

        Examples
        --------
        >>> from dpmc import plan
        >>> planned = plan("linear", (1000, 3), epsilon=1, delta=1e-6)
        >>> curve = planned.curve(epsilon=[1, 4], num_rows=[1000, 4000])
        >>> curve["epsilon"].tolist(), bool(curve["error"].iloc[-1] < planned.error)
        ([1.0, 4.0, 1.0, 4.0], True)
        """
        epsilons = _listed(self.epsilon if epsilon is None else epsilon)
        sizes = _listed(self.num_rows if num_rows is None else num_rows)
        for one in epsilons:
            check_epsilon(one)
        for size in sizes:
            checks.at_least("num_rows", size, 1)
        epsilons = [float(one) for one in epsilons]
        plans = [
            Plan.of(self.simulation, int(size), one, outcomes)
            for size in sizes
            for one, outcomes in self.simulation.fits(int(size), epsilons).items()
        ]
        names = "num_rows", "epsilon", "error", "large_error", "width", "large_width"
        return pd.DataFrame([{name: getattr(one, name) for name in names} for one in plans])

    def plot(self, *, epsilon: Sequence[float] = (), num_rows: Sequence[int] = ()) -> Figure:
        """Errors and widths over budgets, and over numbers of private rows.

        Parameters
        ----------
        epsilon, num_rows : sequence, optional
            By default a quarter to four times those of the plan. Each is a `curve` of its own, with
            the other one as in the plan.

        Raises
        ------
        DpmcError
            If a value is refused, or seaborn is not installed.
        """
        checks.require_extra("seaborn", "Plan.plot", "plot")
        epsilons = epsilon or [self.epsilon * factor for factor in (0.25, 0.5, 1, 2, 4)]
        sizes = num_rows or [max(1, self.num_rows * 2**k // 4) for k in range(5)]
        panels = {"epsilon": self.curve(epsilon=epsilons), "num_rows": self.curve(num_rows=sizes)}
        marked = {"epsilon": self.epsilon, "num_rows": float(self.num_rows)}
        return plots.curves(panels, marked)

    def _lines(self) -> Iterator[str]:
        yield (
            f"Privacy is expected to displace means by {self.error:.2g} posterior standard "
            f"deviations, {self.large_error:.2g} in one of ten data sets, and to make the widest "
            f"interval {self.width:.3g} times as wide, {self.large_width:.3g} in one of ten."
        )
        count, some = self.simulation.size(self.num_rows)
        more = "" if some == self.num_rows else ", no more: noise would displace means by less"
        yield f"By fits of {count} data sets of {some:,} rows{more}: {self.rows}."
        if not self.simulation.whole:
            yield (
                "Heavier tails, rarer groups, responses that spread more and columns more alike "
                "cost more: public `rows`, made up or older, tell how much."
            )
        yield from (f"A typical fit says: {remark}" for remark in self.remarks)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "".join(f"<p>{escape(line)}</p>" for line in self._lines())


def _listed(values: Any) -> list[Any]:
    several = isinstance(values, Iterable) and not isinstance(values, str)
    return list(values) if several else [values]


def _root(covariance: Array) -> Array:
    """Root of a covariance, whatever the units of its entries."""
    sd = np.sqrt(np.diag(covariance))
    values, vectors = np.linalg.eigh(covariance / np.outer(sd, sd))
    root: Array = sd[:, None] * vectors * np.sqrt(np.maximum(values, 1e-12))
    return root
