"""Results of a run of a method."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from dpmc.types.errors import DpmcError
from dpmc.types.guarantee import Guarantee
from dpmc.types.numbers import Array
from dpmc.types.plan import Plan

# Columns of `Fit.info` that are functions of released numbers and public randomness alone.
PUBLIC_INFO = ("accepted", "diverged")
# Counts of private rows, which are not, and what a guarantee names them by.
CLIP_COUNTS = ("ratio_clipped", "gradient_clipped")
CLIPS_OUTSIDE = "clip counts in info and totals"
CLIP_FRACTIONS_OUTSIDE = "clip fractions"


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


@dataclass(frozen=True)
class Fit:
    """What a run of a method produced.

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

    Examples
    --------
    >>> import numpy as np
    >>> draws = np.arange(8.0).reshape(1, 4, 2)
    >>> none = Guarantee(float("inf"), 0.0)
    >>> Fit(draws, {}, {}, "complete", (), none, warm_up=1).kept().shape
    (1, 3, 2)
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

    def to_arviz(self) -> Any:
        """Draws after warm-up as ``arviz.InferenceData`` with variable ``theta``.

        Of `info` it holds what is a function of released numbers, and clip counts where the
        guarantee names them or there is none; released shares are among the attributes.
        """
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
        return arviz.from_dict(
            posterior={"theta": self.kept()},
            sample_stats=stats or None,
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


def swapped(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Array by chains of one by draws, or the other way round: its first two axes exchanged."""
    return np.ascontiguousarray(np.moveaxis(values, 0, 1))


def first_half(num_states: int) -> int:
    """Warm-up of chains that were stored from their first move on.

    Of the k + 1 states from the start point on, rows int((k - 1) / 2) + 1 to k are kept.
    """
    return max(0, (num_states - 1) // 2)
