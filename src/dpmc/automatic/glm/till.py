"""Releases of a search, paid for by parts of one budget, each with its name in the plan."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpmc.privacy.clipped import Clipped, V, row_sum
from dpmc.privacy.ledger import Ledger
from dpmc.rows.vectors import unpack
from dpmc.types import Array, Neighbours


@dataclass
class Till:
    """A ledger that is a filter, the generator of its noise, and what was paid for.

    Parameters
    ----------
    ledger : Ledger
        Made with a `GaussianBudget`.
    rng : numpy.random.Generator
        Of privacy noise alone.
    """

    ledger: Ledger
    rng: np.random.Generator
    total: float = field(init=False)
    stages: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.total = self.ledger.remaining

    @property
    def left(self) -> float:
        """Remaining mu^2."""
        return self.ledger.remaining

    @property
    def neighbours(self) -> Neighbours:
        """Relation that the budget is for."""
        return self.ledger.neighbours or "replace"

    @property
    def moved(self) -> float:
        """Sensitivity of a sum of vectors of length 1."""
        return row_sum(0.0, 1.0, self.neighbours).sensitivity

    def part(self, noise: float, target: float, least: float, most: float) -> float:
        """Cost at which noise is `target`, within shares of the budget.

        Parameters
        ----------
        noise : float
            Standard deviation at a cost of 1.
        target : float
        least, most : float
            Shares of mu^2.
        """
        wanted = (noise / target) ** 2 if target > 0 else math.inf
        return min(max(wanted, least * self.total), most * self.total, self.left)

    def release(self, name: str, value: Clipped[V], cost: float) -> tuple[V, float]:
        """Value with noise, and the standard deviation of the noise.

        Parameters
        ----------
        name : str
            Of the release, in the plan.
        value : Clipped
            Private.
        cost : float
            Part of mu^2.
        """
        multiplier = max(1 / math.sqrt(cost), self.ledger.least_multiplier())
        noisy = self.ledger.release(value, multiplier, self.rng)
        share = 1 / multiplier**2 / self.total
        if self.stages and self.stages[-1]["release"] == name:
            self.stages[-1]["share"] += share
        else:
            self.stages.append({"release": name, "share": share})
        return noisy, value.sensitivity * multiplier

    def matrix(self, name: str, packed: Clipped[Array], cost: float) -> tuple[Array, float]:
        """Symmetric matrix with noise, and the standard deviation on its diagonal."""
        noisy, noise = self.release(name, packed, cost)
        return unpack(noisy, (math.isqrt(8 * noisy.size + 1) - 1) // 2), noise
