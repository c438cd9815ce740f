"""Accountants that compose symmetric dominating pairs numerically."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from dpmc.privacy.accountants._composition import compose
from dpmc.privacy.accountants._pairs import Pair
from dpmc.types import check_epsilon
from dpmc.types.roots import smallest_epsilon

if TYPE_CHECKING:
    from dpmc.privacy.events import Counts


class NumericalAccountant:
    """Upper bounds on delta and epsilon of any composition that has dominating pairs.

    Parameters
    ----------
    pairs : callable ``(counts) -> sequence of (Pair, int)``
        A pair for each kind of release, with how often it occurs. It refuses, with a
        `DpmcError`, an event that the accountant does not cover.
    """

    def __init__(self, pairs: Callable[[Counts], Sequence[tuple[Pair, int]]]) -> None:
        self._pairs = pairs

    def delta(self, counts: Counts, epsilon: float) -> float:
        """Upper bound on delta at `epsilon`, in [0, 1].

        Parameters
        ----------
        counts : mapping of event to int
            Releases and how often each was made.
        epsilon : float
            At least 0.
        """
        check_epsilon(epsilon, zero=True)
        pairs = self._pairs(counts)
        return compose(pairs, epsilon) if pairs else 0.0

    def epsilon(self, counts: Counts, delta: float) -> float:
        """Upper bound on epsilon at `delta`."""
        return smallest_epsilon(lambda epsilon: self.delta(counts, epsilon), delta)
