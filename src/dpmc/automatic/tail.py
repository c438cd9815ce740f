"""The tail of row gradients: how much clipping takes from a sum, and in which direction.

Rows of heavy tails pull together: in a regression whose residuals are not normal nearly all large
gradients point towards a larger noise. The norms beyond a clip bound follow a power law about as
those beyond lower thresholds do, and point where those point.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpmc.automatic.curvature import in_basis
from dpmc.types import Array

# Exponents of a power law that are believed: a smaller one has next to no mean.
LEAST_EXPONENT, LARGEST_EXPONENT = 1.5, 20.0
# What is believed before anything is known: such an exponent, as if from so many counted rows.
USUAL_EXPONENT, PRIOR_ROWS = 4.0, 10.0
# How many times the squared noise of a direction, for its length to be signal.
CLEAR = 2.0
# Share of a power law in the excess, by ratio; the rest is of an exponential one.
POWER = 0.75
# Mean excess, in bounds, that what has no common direction is charged with: measured on regressions
# whose rows have none.
APART_EXCESS = 0.5


@dataclass(frozen=True)
class Tail:
    """Excess and direction of row gradients beyond a clip bound, from noisy releases.

    Parameters
    ----------
    ratio : float
        Of the clip bound over a threshold, and of this over a lower one.
    near, far : float
        Mean numbers of rows beyond the thresholds, over releases, weighted by their cost.
    pull : ndarray of shape (d,)
        Mean sum of the directions of the rows beyond the lower threshold, as a gradient of theta.
    noise : float
        Standard deviation of its entries in whitened coordinates.
    cost : float
        Of all releases.
    """

    ratio: float
    near: float
    far: float
    pull: Array
    noise: float
    cost: float

    @classmethod
    def unknown(cls, dim: int, ratio: float) -> Tail:
        """Return the tail before anything is known."""
        return cls(ratio, 0.0, 0.0, np.zeros(dim), 0.0, 0.0)

    def seen(
        self, near: float, far: float, pull: Array, noise: float, basis: Array, cost: float
    ) -> Tail:
        """Return what is known after one more release.

        Parameters
        ----------
        near, far : float
            Noisy numbers of rows.
        pull : ndarray of shape (d,)
            Noisy sum of whitened directions.
        noise : float
            Standard deviation of its entries.
        basis : ndarray of shape (d, d)
            Whitening coordinates.
        cost : float
        """
        both = self.cost + cost
        old, new = self.cost / both, cost / both
        return replace(
            self,
            near=old * self.near + new * near,
            far=old * self.far + new * far,
            pull=old * self.pull + new * in_basis(basis.T, pull),
            noise=math.hypot(old * self.noise, new * noise),
            cost=both,
        )

    @property
    def excess(self) -> float:
        """Mean of what a clipped row has beyond the bound, in bounds.

        Between a power law and an exponential one through both counts: nearer to the middle of the
        rows heavy tails look no different from light ones.
        """
        near = max(self.near, 0.0) + PRIOR_ROWS
        far = max(self.far, 0.0) + PRIOR_ROWS * self.ratio**USUAL_EXPONENT
        fall = math.log(max(far / near, 1.0))
        exponent = min(max(fall / math.log(self.ratio), LEAST_EXPONENT), LARGEST_EXPONENT)
        rate = exponent * math.log(self.ratio) / (1 / self.ratio - 1 / self.ratio**2)
        return math.exp(-POWER * math.log(exponent - 1) - (1 - POWER) * math.log(rate))

    def taken(self, clipped: float, basis: Array) -> tuple[Array, float]:
        """Return what clipping took from a whitened score together, and the variance of the rest.

        Parameters
        ----------
        clipped : float
            Rows that were clipped, times the bound.
        basis : ndarray of shape (d, d)
            Whitening coordinates of the score.

        Returns
        -------
        taken : ndarray of shape (d,)
            In the direction that large rows have in common.
        apart : float
            Variance in each direction of what has no common one, or none that is known.
        """
        whole = self.excess * clipped
        pull = basis.T @ self.pull
        squared = float(pull @ pull)
        known = max(0.0, 1 - CLEAR * len(pull) * self.noise**2 / squared) if squared else 0.0
        length = math.sqrt(known * squared) / max(self.far, 1.0)
        # The larger rows are the more they agree: their mean is longer than that of all of them.
        length = 1 - (1 - min(length, 1.0)) ** 1.5
        taken: Array = whole * length * pull / math.sqrt(squared) if known else np.zeros(len(pull))
        rest = APART_EXCESS * clipped
        return taken, rest**2 * (1 - length**2 * known) / len(pull)
