"""What a run of a method produced: draws, what was released, and the privacy that they have."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dpmc.types import (
    CLIP_COUNTS,
    CLIP_FRACTIONS_OUTSIDE,
    CLIPS_OUTSIDE,
    PUBLIC_INFO,
    Array,
    DpmcError,
    Guarantee,
)

if TYPE_CHECKING:
    from dpmc.fits.summary import Summary


@dataclass(frozen=True)
class Diagnostic:
    """A share of private rows as it was released.

    Parameters
    ----------
    value : float
        In [0, 1], with noise on it.
    standard_error : float
        Standard deviation of the noise, 0 where there is none.
    """

    value: float
    standard_error: float = 0.0


@dataclass(frozen=True, eq=False, repr=False)
class Fit:
    """What a run of a method produced.

    Parameters
    ----------
    draws : ndarray of shape (iterations, chains, d) or None
        Stored states, the start point not among them.
    info : mapping of str to ndarray of shape (iterations, chains)
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
    plan : mapping
        What the budget bought.
    diagnostics : mapping of str to Diagnostic
        Released shares of clipped rows, ``ratio_clipped`` and ``gradient_clipped``.
    names : tuple of str
        Names of the components of theta; numbered where there are none.
    remarks : tuple of str
        What is wrong with the draws and what would help, as far as released numbers show it.

    Examples
    --------
    >>> import numpy as np
    >>> draws = np.arange(8.0).reshape(4, 1, 2)
    >>> none = Guarantee(float("inf"), 0.0)
    >>> Fit(draws, {}, {}, "complete", (), none).kept().shape
    (3, 1, 2)
    """

    draws: Array | None
    info: Mapping[str, npt.NDArray[Any]]
    totals: Mapping[str, npt.NDArray[Any]]
    status: str
    ledger: tuple[tuple[str, int], ...]
    guarantee: Guarantee
    plan: Mapping[str, Any] = field(default_factory=dict)
    diagnostics: Mapping[str, Diagnostic] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    def kept(self) -> Array:
        """Return the draws after warm-up, shape (kept, chains, d).

        Of the k + 1 states from the start point on, rows int((k - 1) / 2) + 1 to k.

        Raises
        ------
        DpmcError
            If the run has no draws.
        """
        if self.draws is None:
            raise DpmcError(f"the fit must have draws, got none (status {self.status!r})")
        return self.draws[max(0, (len(self.draws) - 1) // 2) :]

    def to_arviz(self) -> Any:
        """Return the draws after warm-up as ``arviz.InferenceData`` with variable ``theta``.

        Of `info` it holds what is a function of released numbers, and clip counts where the
        guarantee names them or there is none; released shares are among the attributes.
        """
        import arviz

        kept = self.kept()
        first = 0 if self.draws is None else len(self.draws) - len(kept)
        stats = {
            name: np.moveaxis(values[first:], 1, 0)
            for name, values in self.info.items()
            if self._may_export(name)
        }
        released = {
            f"diagnostics_{name}{suffix}": value
            for name, one in self.diagnostics.items()
            for suffix, value in (("", one.value), ("_standard_error", one.standard_error))
        }
        named: dict[str, Any] = {}
        if self.names:
            named = {"coords": {"parameter": list(self.names)}, "dims": {"theta": ["parameter"]}}
        return arviz.from_dict(
            posterior={"theta": np.moveaxis(kept, 1, 0)},
            sample_stats=stats or None,
            **named,
            attrs={"guarantee": str(self.guarantee), "status": self.status, **released},
        )

    def _may_export(self, name: str) -> bool:
        named = {CLIPS_OUTSIDE, CLIP_FRACTIONS_OUTSIDE} & set(self.guarantee.outside)
        if not self.guarantee.private or name in PUBLIC_INFO:
            return True
        return name in CLIP_COUNTS and bool(named)

    def fraction(self, counted: str, of: str) -> float:
        """Return the ratio of two totals over all chains; NaN where the method has none.

        Where the count is not there but its share was released, that share.
        """
        if counted in self.diagnostics:
            return self.diagnostics[counted].value
        if counted not in self.totals or not self.totals[of].sum():
            return math.nan
        return float(self.totals[counted].sum() / self.totals[of].sum())

    def summary(self) -> Summary:
        """Return means, intervals, convergence and what the budget bought, to be read or printed.

        Raises
        ------
        DpmcError
            If the run has no draws.
        """
        from dpmc.fits.summary import summarise

        return summarise(self)

    def save(self, path: str | Path) -> None:
        """Write the fit to one Parquet file, which `load` reads back.

        Nothing is left half-written: the file takes its name when it is complete.
        """
        from dpmc.fits.files import save

        save(self, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> Fit:
        """Return the fit that `save` wrote.

        Raises
        ------
        DpmcError
            If the file is no fit.
        """
        from dpmc.fits.files import load

        return load(Path(path))

    def __repr__(self) -> str:
        shape = "no draws" if self.draws is None else "x".join(map(str, self.draws.shape))
        told = f", {len(self.remarks)} remarks" if self.remarks else ""
        return f"<Fit: {shape} (iterations x chains x d), {self.guarantee}, {self.status}{told}>"

    def _repr_html_(self) -> str:
        from html import escape

        if self.draws is None:
            return f"<pre>{escape(repr(self))}</pre>"
        html: str = self.summary()._repr_html_()
        return html
