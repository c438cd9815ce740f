"""Noisy counts of residuals: how large they are, and which bound on them costs least."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpmc.types import Array

# Sizes of residuals, in their usual unit, by halves of octaves.
SIZES = 2.0 ** (np.arange(-16, 21) / 2)
EDGES = np.concatenate([-SIZES[::-1], [0.0], SIZES])
CLEAR = 4.0
MEDIAN = 0.6744897501960817
# Share of what a bound takes away that may pull one way.
ONE_WAY = 0.2


@dataclass(frozen=True)
class Residuals:
    """Counts of residuals by size, of either sign.

    Parameters
    ----------
    above, below : ndarray of shape (k,)
        Rows whose residual is positive, or negative, of each size; 0 where noise hides them.
    sizes : ndarray of shape (k,)
    noise : float
        Standard deviation of a count.
    """

    above: Array
    below: Array
    sizes: Array
    noise: float = 0.0

    @classmethod
    def of(cls, counts: Array, noise: float, unit: float) -> Residuals:
        """Residuals from noisy counts between `EDGES` times a unit."""
        clear = np.where(counts > CLEAR * noise, counts, 0.0)
        half = len(clear) // 2
        sizes = unit * np.append(SIZES[0] / 2, SIZES * 2**0.25)
        return cls(clear[half:], clear[:half][::-1], sizes, noise)

    def median(self) -> float:
        """Median size, 0 where there is none."""
        both = self.above + self.below
        total = np.cumsum(both)
        if not total[-1]:
            return 0.0
        k = int(np.searchsorted(total, total[-1] / 2))
        share = (total[-1] / 2 - (total[k - 1] if k else 0.0)) / max(both[k], 1.0)
        return float(self.sizes[k] * 2 ** ((share - 0.5) / 2))

    def bound(
        self,
        noise: float,
        dim: int,
        least: float,
        most: float,
        usual: Callable[[float], tuple[float, float]],
    ) -> float:
        """Bound that costs least: noise for each of it, against what it takes away.

        What it takes from all rows moves the mode if it is more on one side than on the other. Rows
        that pull against each other here may be apart in other directions, if the model is not
        right: so `ONE_WAY` of all that is taken and is not the model's counts as one way at least,
        and the bound grows with the budget until it covers all such rows.

        Parameters
        ----------
        noise : float
            Of a gradient per unit of the bound.
        dim : int
        least, most : float
            Bounds between which to choose.
        usual : callable
            What the model itself has beyond a bound in all rows, above less below and in size:
            no bias.
        """
        best, found = math.inf, most
        for bound in np.geomspace(least, most, 41):
            over = np.maximum(self.sizes - bound, 0.0)
            signed, size = usual(bound)
            one_way = abs(float((self.above - self.below) @ over) - signed)
            seen = over * (self.above + self.below > 0)
            one_way = max(one_way - 2 * self.noise * math.sqrt(float(seen @ seen)), 0.0)
            both = float((self.above + self.below) @ over) - size
            one_way = max(one_way, ONE_WAY * both)
            apart = float((self.above + self.below) @ over**2)
            error = one_way**2 + dim * apart + dim * (noise * bound) ** 2
            if error < best:
                best, found = error, float(bound)
        return found

    def score_bound(self, noise: float, num_rows: float) -> tuple[float, float]:
        """Bound on squared residuals, and the sum of what they have beyond it.

        That is what normal residuals have, or more where counts show it.
        """
        both = self.above + self.below
        best, found, lost = math.inf, 9.0, 0.0
        for bound in np.array([6.0, 9.0, 12.0, 18.0, 27.0, 40.0, 80.0, 160.0, 640.0]):
            root = math.sqrt(bound)
            density = math.exp(-bound / 2) / math.sqrt(2 * math.pi)
            normal = 2 * root * density + (1 - bound) * math.erfc(root / math.sqrt(2))
            counted = float(both @ np.maximum(self.sizes**2 - bound, 0.0))
            over = max(counted, num_rows * normal)
            error = (0.5 * over) ** 2 + (noise * bound) ** 2
            if error < best:
                best, found, lost = error, float(bound), over
        return found, lost
