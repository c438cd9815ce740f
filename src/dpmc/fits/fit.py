"""A fit as its user meets it: named, summarised, saved, and judged in words."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
)

if TYPE_CHECKING:
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

    def to_arviz(self, x: Any = None, *, seed: int | None = None) -> Any:
        """Draws after warm-up as ArviZ has them: variable ``theta``, components named.

        Of `info` it holds what is a function of released numbers, and clip counts where the
        guarantee names them or there is none; released shares are among the attributes.

        Parameters
        ----------
        x, seed
            As of `predict`: with new rows there is a group ``posterior_predictive`` as well, with
            the variable ``response``.

        Raises
        ------
        DpmcError
            If the run has no draws, or `predict` refuses the new rows.
        """
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
            responses = self.predict(x, seed=seed)
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

    def predict(self, x: Any, *, seed: int | None = None) -> Array:
        """Responses of new rows under the draws after warm-up.

        Parameters
        ----------
        x : array_like of shape (m, p) or int
            Features of new rows, which are not private; of a mixture how many rows to draw.
        seed : int, optional
            Makes the responses repeatable.

        Returns
        -------
        ndarray of shape (k, m)
            One row for each draw, one chain after the other; of a mixture (k, m, p).

        Raises
        ------
        DpmcError
            If the fit does not know how responses arise, or rows do not fit it.
        """
        from dpmc.fits.predictive import responses

        if not self.plan.likelihood:
            raise DpmcError(
                "`predict` must have the fit of a family, such as `dpmc.regression`, got one of "
                "a model of your own"
            )
        draws = self.kept().reshape(-1, self.kept().shape[2])
        if seed is not None:
            checks.at_least("seed", seed, 0)
        rng = np.random.default_rng(seed)
        return responses(self.plan.likelihood, draws, x, rng)

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
