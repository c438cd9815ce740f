"""A fit as its user meets it: named, summarised, saved, and judged in words."""

from __future__ import annotations

from dataclasses import dataclass, fields
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmc import checks, types
from dpmc.types import Array, DpmcError

if TYPE_CHECKING:
    from dpmc.fits.summary import Summary


@dataclass(frozen=True, eq=False, repr=False)
class Fit(types.Fit):
    """What a run of a method produced, and how it is read.

    Parameters
    ----------
    draws, info, totals, status, ledger, guarantee, plan, diagnostics, warm_up
        See :class:`dpmc.types.Fit`.
    names : tuple of str
        Names of the components of theta; numbered where there are none.
    remarks : tuple of str
        What is wrong with the draws and what would help, as far as released numbers show it.

    Examples
    --------
    >>> import numpy as np
    >>> from dpmc.types import Guarantee
    >>> draws = np.arange(80.0).reshape(1, 40, 2)
    >>> Fit(draws, {}, {}, "complete", (), Guarantee(1.0, 1e-6), names=("a", "b"))
    <Fit: 1x40x2 (chains x draws x d), (1, 1e-06)-DP, substitution of one row, complete>
    """

    names: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    # Arrays have no truth value: a fit is itself alone.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    @classmethod
    def of(cls, fit: types.Fit, names: tuple[str, ...] = (), remarks: tuple[str, ...] = ()) -> Fit:
        """Return the fit of a method with names and remarks."""
        found = {entry.name: getattr(fit, entry.name) for entry in fields(types.Fit)}
        return cls(**found, names=names, remarks=remarks)

    def to_arviz(self, x: Any = None, *, seed: int | None = None) -> Any:
        """Return the draws after warm-up as ``arviz.InferenceData``, components named.

        See :meth:`dpmc.types.Fit.to_arviz`.

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
        data = super().to_arviz()
        if self.names:
            named = data.posterior.rename({"theta_dim_0": "parameter"})
            data.posterior = named.assign_coords(parameter=list(self.names))
        if x is not None:
            import arviz

            responses = self.predict(x, seed=seed)
            shaped = responses.reshape(*self.kept().shape[:2], *responses.shape[1:])
            drawn = {"response": shaped}
            data.extend(arviz.from_dict(posterior_predictive=drawn))
        return data

    def summary(self) -> Summary:
        """Return means, intervals, convergence and what the budget bought, to be read or printed.

        Raises
        ------
        DpmcError
            If the run has no draws.
        """
        from dpmc.fits.summary import summarise

        return summarise(self)

    def predict(self, x: Any, *, seed: int | None = None) -> Array:
        """Return responses of new rows under the draws after warm-up.

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

        save(self, self.names, self.remarks, path_of(path))

    @classmethod
    def load(cls, path: str | Path) -> Fit:
        """Return the fit that `save` wrote.

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
