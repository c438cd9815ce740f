"""Releases paid for by a share of a Gaussian budget, and clip bounds found by noisy counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from dpmc.privacy.clipped import Clipped, row_sum
from dpmc.privacy.ledger import Ledger
from dpmc.privacy.nodes import NodeNoise, NodeValues
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
    nodes : NodeNoise, optional
        How nodes add noise, where values are those of nodes.
    kept : float
        Part of mu^2 that is for somebody else.

    Notes
    -----
    A cost is a part of mu^2: a release of cost s has noise multiplier 1 / sqrt(s).
    """

    ledger: Ledger
    rng: np.random.Generator
    nodes: NodeNoise | None = None
    kept: float = 0.0

    @property
    def spread(self) -> float:
        """Standard deviation of the noise of a sum, over what its cost says: 1 at one place."""
        return 1.0 if self.nodes is None else self.nodes.spread

    @property
    def moved(self) -> float:
        """Largest distance by which one row moves a sum of vectors of length 1."""
        return row_sum(0.0, 1.0, self.ledger.neighbours or "replace").sensitivity

    @property
    def left(self) -> float:
        """Rest of mu^2."""
        return self.ledger.remaining - self.kept

    def count(self, number: Clipped[float] | NodeValues, cost: float) -> float:
        """Number of rows with noise of standard deviation ``spread / sqrt(cost)``."""
        return float(self.total(number, cost)[0])

    @overload
    def total(self, value: Clipped[float], cost: float) -> tuple[float, float]: ...
    @overload
    def total(self, value: Clipped[Array], cost: float) -> tuple[Array, float]: ...
    @overload
    def total(self, value: Any, cost: float) -> tuple[Any, float]: ...
    def total(self, value: Any, cost: float) -> tuple[Any, float]:
        """Sum over rows with noise, and the standard deviation of the noise."""
        multiplier = self._multiplier(cost)
        if isinstance(value, NodeValues):
            assert self.nodes is not None
            noisy = self.nodes.release(self.ledger, value, multiplier)
            sensitivity = value.values[0].sensitivity
        else:
            noisy = self.ledger.release(value, multiplier, self.rng)
            sensitivity = value.sensitivity
        return noisy, sensitivity * multiplier * self.spread

    def _multiplier(self, cost: float) -> float:
        return max(1 / math.sqrt(cost), self.ledger.least_multiplier())


# How many rows are longer than each of some lengths.
Counts = Callable[[list[float]], Mapping[float, Clipped[float] | NodeValues]]


def search(
    purse: Purse,
    beyond_each: Counts,
    target: float,
    low: float,
    high: float,
    steps: int,
    cost: float,
) -> float:
    """Clip bound that about `target` rows exceed, by bisection with noisy counts.

    Where more exceed the whole interval, it is left upwards, for further counts of the same cost:
    norms may be of two kinds, as those of rows with and without an event are.

    Parameters
    ----------
    purse : Purse
    beyond_each : callable
        Counts rows whose contribution is longer than each of some lengths; private. It is asked
        once, for all lengths that the search may come to.
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
    reach, end = (high - low) / 2, high
    leaps = MOST_LEAPS if high < WIDEST else 0
    levels = [*_middles(low, high, steps), *_leaps(high, reach, leaps)]
    counts = beyond_each([2.0**level for level in levels])

    def beyond(level: float) -> bool:
        return purse.count(counts[2.0**level], cost / steps) > target

    for _ in range(steps):
        middle = (low + high) / 2
        if beyond(middle):
            low = middle
        else:
            high = middle
    if high == end:
        for level in _leaps(high, reach, leaps):
            if not beyond(level):
                break
            high = level + reach
    return float(2.0**high)


def _middles(low: float, high: float, steps: int) -> list[float]:
    """All levels that bisection may ask for."""
    if not steps:
        return []
    middle = (low + high) / 2
    return [middle, *_middles(low, middle, steps - 1), *_middles(middle, high, steps - 1)]


def _leaps(high: float, reach: float, count: int) -> list[float]:
    levels = []
    for _ in range(count):
        levels.append(high)
        high += reach
    return levels


def count_noise(steps: int, cost: float) -> float:
    """Standard deviation of the noise of one of the counts of `search`."""
    return math.sqrt(steps / cost)
