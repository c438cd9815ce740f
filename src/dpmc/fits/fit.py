"""A fit as its user meets it: named, summarised, saved, and judged in words."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from dpmc import checks
from dpmc.types import (
    CLIP_COUNTS,
    CLIP_FRACTIONS_OUTSIDE,
    CLIPS_OUTSIDE,
    PUBLIC_INFO,
    Array,
    Diagnostic,
    DpmcError,
    Guarantee,
    Plan,
    is_real,
)
from dpmc.types.registered import made_with

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dpmc.fits.check import Checks
    from dpmc.fits.predictive import Prediction
    from dpmc.fits.summary import Summary


@dataclass(frozen=True, eq=False, repr=False)
class Fit:
    """Result of a run of a method, and ways to read it.

    Parameters
    ----------
    draws : ndarray of shape (chains, draws, d) or None
        Stored states, the start point not among them.
    info : mapping of str to ndarray of shape (chains, draws)
        What was recorded with each stored state.
    totals : mapping of str to ndarray of shape (chains,)
        Counts over all iterations, stored or not: ``num_iterations``, and, where
        the method has them, ``accepted``, ``diverged``, ``ratio_clipped`` of
        ``ratio_rows`` and ``gradient_clipped`` of ``gradient_rows``. The clip counts are
        there, and in `info`, with exact diagnostics only.
    status : str
        ``"complete"``, or why the run stopped early.
    ledger : tuple of (str, int)
        Each kind of release and how often it was made, all chains together.
    guarantee : Guarantee
        The privacy that the draws really have.
    plan : Plan
        What the budget was to buy, and what it bought.
    diagnostics : mapping of str to Diagnostic
        Released shares of clipped rows, ``ratio_clipped`` and ``gradient_clipped``.
    warm_up : int
        How many of the first stored states, of each chain, are no draws from what it samples: 0 of
        independent draws, and of chains that are stored after it.
    names : tuple of str
        Names of the components of theta; numbered where there are none.
    remarks : tuple of str
        What is wrong with the draws and what would help, as far as released numbers show it.
    made_with : mapping of str to str
        Versions of packages, and a digest of the code; empty of files that do not have them.

    Examples
    --------
    >>> import numpy as np
    >>> from dpmc.types import Guarantee
    >>> draws = np.arange(80.0).reshape(1, 40, 2)
    >>> fit = Fit(draws, {}, {}, "complete", (), Guarantee(1.0, 1e-6), names=("a", "b"), warm_up=9)
    >>> fit
    <Fit: 1x40x2 (chains x draws x d), (1, 1e-06)-DP, substitution of one row, complete>
    >>> fit.kept().shape
    (1, 31, 2)
    """

    draws: Array | None
    info: Mapping[str, npt.NDArray[Any]]
    totals: Mapping[str, npt.NDArray[Any]]
    status: str
    ledger: tuple[tuple[str, int], ...]
    guarantee: Guarantee
    plan: Plan = field(default_factory=Plan)
    diagnostics: Mapping[str, Diagnostic] = field(default_factory=dict)
    warm_up: int = 0
    names: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    made_with: Mapping[str, str] = field(default_factory=made_with)

    def kept(self) -> Array:
        """Draws after warm-up, shape (chains, kept, d).

        Raises
        ------
        DpmcError
            If the run has no draws.
        """
        if self.draws is None:
            raise DpmcError(f"the fit must have draws, got none (status {self.status!r})")
        return self.draws[:, self.warm_up :]

    def to_arviz(
        self,
        x: Any = None,
        *,
        offset: Any = None,
        trials: Any = None,
        group: Any = None,
        seed: int | None = None,
        log_likelihood: object = None,
    ) -> Any:
        """Draws after warm-up as ArviZ has them: variable ``theta``, components named.

        Of `info` it holds what is a function of released numbers, and clip counts where the
        guarantee names them or there is none; released shares are among the attributes.

        Parameters
        ----------
        x, offset, trials, group, seed
            As of `predict`: with new rows there is a group ``posterior_predictive`` as well, with
            the variable ``response``.
        log_likelihood
            Refused, though converters of ArviZ have it: LOO and WAIC need one number for each
            private row and draw, and each would be a release.

        Returns
        -------
        ``arviz.InferenceData``, or ``xarray.DataTree`` from version 1 of ArviZ on.

        Raises
        ------
        DpmcError
            If the run has no draws, `predict` refuses the new rows, or a log-likelihood is asked
            for.
        """
        if log_likelihood is not None:
            raise DpmcError(
                "`log_likelihood` must be left out: LOO and WAIC would release a number for each "
                "private row. `Fit.check`, and scores of public rows, say how a model does"
            )
        checks.require_extra("arviz", "Fit.to_arviz", "arviz")
        import arviz

        stats = {
            name: values[:, self.warm_up :]
            for name, values in self.info.items()
            if self._may_export(name)
        }
        released = {
            f"diagnostics_{name}{suffix}": value
            for name, one in self.diagnostics.items()
            for suffix, value in (("", one.value), ("_standard_error", one.standard_error))
        }
        attrs = {"guarantee": str(self.guarantee), "status": self.status, **released}
        groups: dict[str, Any] = {"posterior": {"theta": self.kept()}}
        if stats:
            groups["sample_stats"] = stats
        if x is not None:
            responses = self.predict(x, offset=offset, trials=trials, group=group, seed=seed)
            shaped = responses.reshape(*self.kept().shape[:2], *responses.shape[1:])
            groups["posterior_predictive"] = {"response": shaped}
        named: dict[str, Any] = {}
        if self.names:
            named = {"coords": {"parameter": list(self.names)}, "dims": {"theta": ["parameter"]}}
        if "data" in inspect.signature(arviz.from_dict).parameters:  # from version 1 on
            return arviz.from_dict(groups, attrs={"/": attrs}, **named)
        return arviz.from_dict(**groups, attrs=attrs, **named)

    def _may_export(self, name: str) -> bool:
        named = {CLIPS_OUTSIDE, CLIP_FRACTIONS_OUTSIDE} & set(self.guarantee.outside)
        if not self.guarantee.private or name in PUBLIC_INFO:
            return True
        return name in CLIP_COUNTS and bool(named)

    def fraction(self, counted: str, of: str) -> float:
        """Ratio of two totals over all chains; NaN where the method has none.

        Where the count is not there but its share was released, that share.
        """
        if counted in self.diagnostics:
            return self.diagnostics[counted].value
        if counted not in self.totals or not self.totals[of].sum():
            return math.nan
        return float(self.totals[counted].sum() / self.totals[of].sum())

    def summary(self) -> Summary:
        """Means, intervals, convergence and what the budget bought, to be read or printed.

        Raises
        ------
        DpmcError
            If the run has no draws.
        """
        from dpmc.fits.summary import summarise

        return summarise(self)

    @overload
    def predict(
        self,
        x: Any,
        *,
        kind: str | Callable[[Array, Array], Any] = ...,
        interval: None = ...,
        offset: Any = ...,
        trials: Any = ...,
        group: Any = ...,
        seed: int | None = ...,
    ) -> Array: ...
    @overload
    def predict(
        self,
        x: Any,
        *,
        kind: str | Callable[[Array, Array], Any] = ...,
        interval: float,
        offset: Any = ...,
        trials: Any = ...,
        group: Any = ...,
        seed: int | None = ...,
    ) -> Prediction: ...
    def predict(
        self,
        x: Any,
        *,
        kind: str | Callable[[Array, Array], Any] = "response",
        interval: float | None = None,
        offset: Any = None,
        trials: Any = None,
        group: Any = None,
        seed: int | None = None,
    ) -> Array | Prediction:
        """Responses of new rows, or what is expected of them, under the draws after warm-up.

        Parameters
        ----------
        x : array_like of shape (m, p) or int
            Features of new rows, which are not private, or a table with the columns of a formula;
            of a mixture how many rows to draw.
        kind : {"response", "mean", "probability", "linear"} or callable
            Drawn responses; their means; probabilities of a response of 1, or of each class; linear
            predictors. Of a model of one's own, and of any other, a function of a draw of theta,
            shape (d,), and of rows, shape (m, p), that gives numbers, shape (m,).
        interval : float, optional
            Share of the posterior that intervals hold, such as 0.9: there are means and intervals
            then in place of draws, of at most 1,000 draws, and memory for some of the rows at a
            time.
        offset : array_like of shape (m,), optional
            Of the new rows, if the fit has one; of a fit with an exposure its logarithm is part
            of it.
        trials : array_like of shape (m,), optional
            Of responses of a binomial fit, and of their means.
        group : array_like of shape (m,), optional
            Levels of the new rows, if the fit has groups that are not in a formula.
        seed : int, optional
            Makes the responses repeatable.

        Returns
        -------
        ndarray of shape (k, m), or Prediction
            One row for each draw, one chain after the other; of a mixture (k, m, p). With an
            `interval` the arrays ``mean``, ``low`` and ``high``, shape (m,). Probabilities of
            classes, and linear predictors of a multinomial fit, have one more axis, their last.

        Raises
        ------
        DpmcError
            If the fit does not know how responses arise, or rows do not fit it.
        """
        from dpmc.fits import predictive

        draws = self.kept().reshape(-1, self.kept().shape[2])
        if seed is not None:
            checks.at_least("seed", seed, 0)
        rng = np.random.default_rng(seed)
        told = self.plan.likelihood
        if not callable(kind):
            checks.one_of("kind", kind, predictive.KINDS)
            if not told:
                raise DpmcError(
                    "`kind` must be a function of theta and rows for a model of your own: the fit "
                    f"of a family, such as `dpmc.regression`, has {kind!r}"
                )
        if told.get("name") == predictive.MIXTURE and not callable(kind):
            if kind != predictive.RESPONSE or interval is not None:
                raise DpmcError("`kind` must be 'response' of a mixture, without an `interval`")
            return predictive.responses(told, draws, x, rng)
        predictor = predictive.Predictor.of(told, kind, draws.shape[1], x, offset, trials, group)
        if interval is None:
            cure = "; `interval=0.9` gives means and intervals in little"
            checks.room("x", (len(draws), len(predictor.design)), cure)
            return predictor.values(draws, slice(None), rng)
        if not (is_real(interval) and 0 < interval < 1):
            raise DpmcError(f"`interval` must be between 0 and 1, got {interval!r}")
        return predictor.intervals(draws, float(interval), rng)

    def plot(self, components: Sequence[str] = ()) -> Figure:
        """Marginal densities: with the interval of 90 %, the prior, and the width without noise.

        Parameters
        ----------
        components : sequence of str, optional
            Names of those to draw; by default the first 12.

        Raises
        ------
        DpmcError
            If there is no such component, the run has no draws, or seaborn is not installed.
        """
        from dpmc.fits.pictures import posterior

        return posterior(self, components)

    def plot_budget(self) -> Figure:
        """Shares of the budget, by what was released with them.

        Raises
        ------
        DpmcError
            If nothing was released, not all of it was Gaussian noise on sums over all rows, or
            seaborn is not installed.
        """
        from dpmc.fits.pictures import budget

        return budget(self)

    def check(self) -> Checks:
        """Checks of the model: what was released of residuals beside what the model says of them.

        All of it was released together with the posterior, and paid for: it costs nothing.

        Raises
        ------
        DpmcError
            If the fit has released nothing of the kind, as those of `dpmc.fit` and
            `dpmc.regression` without a `method` have.
        """
        from dpmc.fits.check import Check, Checks

        found = self.plan.details.get("checks")
        if not found:
            raise DpmcError(
                "`check` must have a fit of dpmc.regression or dpmc.fit without a `method`, got "
                f"one by {self.plan.method!r}"
            )
        return Checks(tuple(Check(*one) for one in found))

    def record(self) -> dict[str, Any]:
        """Facts that a report or a registry of releases has to keep, as JSON can hold them.

        The guarantee, as `Guarantee.to_json` has it, with a digest of it and every release;
        means, deviations and intervals; the plan with family, formula and prior; remarks; versions
        of packages and a digest of the code. None of it is private, but for what
        ``guarantee.outside`` names.

        Raises
        ------
        DpmcError
            If the run has no draws.
        """
        from dpmc.fits.files import record

        return record(self)

    def save(self, path: str | Path) -> None:
        """Write the fit to one Parquet file, which `load` reads back.

        Nothing is left half-written: the file takes its name when it is complete.

        Raises
        ------
        DpmcError
            If the fit has no draws, or the folder is not there or cannot be written to.
        """
        from dpmc.fits.files import path_of, save

        save(self, path_of(path))

    @classmethod
    def load(cls, path: str | Path) -> Fit:
        """Fit that `save` wrote.

        Raises
        ------
        DpmcError
            If the file is not there or is no fit.
        """
        from dpmc.fits.files import load, path_of

        return cls(**load(path_of(path)))

    def __repr__(self) -> str:
        shape = "no draws" if self.draws is None else "x".join(map(str, self.draws.shape))
        told = f", {len(self.remarks)} remarks" if self.remarks else ""
        return f"<Fit: {shape} (chains x draws x d), {self.guarantee}, {self.status}{told}>"

    def _repr_html_(self) -> str:
        if self.draws is None:
            return f"<pre>{escape(repr(self))}</pre>"
        html: str = self.summary()._repr_html_()
        return html
