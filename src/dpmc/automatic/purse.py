"""Releases paid for by a share of a Gaussian budget, and clip bounds found by noisy counts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from dpmc.privacy.ledger import Ledger
from dpmc.types import Array

# Log2 of the largest and smallest clip bound that is looked for: about 1e30 and 1e-30.
WIDEST = 100.0
# How often a search for a clip bound may leave its interval.
MOST_LEAPS = 6


@dataclass(frozen=True)
class Purse:
    """A ledger that is a filter, and the generator of its noise.

    Parameters
    ----------
    ledger : Ledger
        Made with a `GaussianBudget`.
    rng : numpy.random.Generator
        Of privacy noise alone.

    Notes
    -----
    A cost is a part of mu^2: a release of cost s has noise multiplier 1 / sqrt(s).
    """

    ledger: Ledger
    rng: np.random.Generator

    @property
    def left(self) -> float:
        """What is left of mu^2."""
        return self.ledger.remaining

    def count(self, number: int, cost: float) -> float:
        """Return a number of rows with noise of standard deviation ``1 / sqrt(cost)``."""
        return self.ledger.release(float(number), 1.0, self._multiplier(cost), self.rng)

    @overload
    def total(self, value: float, bound: float, cost: float) -> tuple[float, float]: ...
    @overload
    def total(self, value: Array, bound: float, cost: float) -> tuple[Array, float]: ...
    def total(self, value: Any, bound: float, cost: float) -> tuple[Any, float]:
        """Return a sum of what rows contribute, clipped to norm `bound`, with noise.

        A substituted row moves it by at most twice the bound. The standard deviation of the noise
        is returned beside it.
        """
        multiplier = self._multiplier(cost)
        return self.ledger.release(value, 2 * bound, multiplier, self.rng), 2 * bound * multiplier

    def _multiplier(self, cost: float) -> float:
        return max(1 / math.sqrt(cost), self.ledger.least_multiplier())


def search(
    purse: Purse, norms: Array, target: float, low: float, high: float, steps: int, cost: float
) -> float:
    """Return a clip bound that about `target` rows exceed, by bisection with noisy counts.

    Where more exceed the whole interval, it is left upwards, for further counts of the same cost:
    norms may be of two kinds, as those of rows with and without an event are.

    Parameters
    ----------
    purse : Purse
    norms : ndarray of shape (n,)
        Private norms of what the rows contribute; NaN counts as 0.
    target : float
        Rows that may be clipped.
    low, high : float
        Log2 of the interval that is searched.
    steps : int
        Counts to release.
    cost : float
        Of all counts together.

    Returns
    -------
    float
        At least ``2**low``.
    """

    def beyond(level: float) -> bool:
        rows = int(np.count_nonzero(norms > 2.0**level))
        return purse.count(rows, cost / steps) > target

    reach, end = (high - low) / 2, high
    for _ in range(steps):
        middle = (low + high) / 2
        if beyond(middle):
            low = middle
        else:
            high = middle
    if high == end < WIDEST:
        for _ in range(MOST_LEAPS):
            if not beyond(high):
                break
            high += reach
    return float(2.0**high)


def count_noise(steps: int, cost: float) -> float:
    """Return the standard deviation of the noise of one of the counts of `search`."""
    return math.sqrt(steps / cost)
