"""The tail of row gradients: how much clipping takes from a sum, and in which direction.

Rows of heavy tails pull together: in a regression whose residuals are not normal nearly all large
gradients point towards a larger noise. Norms beyond a clip bound are taken to fall as those below
it do: through the number of all rows and two noisy counts goes a stretched exponential, as norms
that are bounded, normal or exponential have it. One that is stretched by much is what a power law
looks like from near, and taken for one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from dpmc.automatic.curvature import in_basis
from dpmc.types import Array

# Least power of a stretched exponential: there it is taken for a power law.
POWER_LAW = 0.6
# Largest power of a stretched exponential that is believed.
LARGEST_POWER = 8.0
# The exponent of a power law grows by a power of the norm: the least that is reckoned with.
LEAST_GROWTH = 0.05
# Change of the logarithm of a clip bound that makes earlier counts tell little of the last.
OTHER_BOUND = 1.0
# Exponent of the power law that is believed before anything is known.
USUAL_EXPONENT = 4.0
# Counted rows that this belief is worth.
PRIOR_ROWS = 2.0
# Mean excess of a clipped row, in bounds, before anything is known.
USUAL_EXCESS = 0.5
# Largest mean excess of a clipped row, in bounds.
MOST_EXCESS = 1.0
# Largest share of the rows beyond the lower threshold that is believed.
MOST_FAR = 0.98
# How many times the squared noise of a mean direction, for its length to be signal.
CLEAR = 1.0
# How directions agree beyond a clip bound, if those before it have a mean direction of length l:
# with a length of 1 - (1 - l) to this power.
AGREEMENT = 1.5


@dataclass(frozen=True)
class Tail:
    """Excess and direction of row gradients beyond a clip bound, from noisy releases.

    Parameters
    ----------
    num_rows : int
        All rows.
    ratio : float
        Of the clip bound over a threshold, and of this over a lower one.
    near, far : float
        Mean numbers of rows beyond the thresholds, over releases, weighted by their cost.
    pull : ndarray of shape (d,)
        Mean sum of the directions of the rows beyond the higher threshold, as a gradient of theta.
    noise : float
        Standard deviation of its entries in whitened coordinates.
    log_bound : float
        Mean logarithm of the clip bounds, in units that do not depend on the whitening.
    cost : float
        Of all releases.
    """

    num_rows: int
    ratio: float
    near: float
    far: float
    pull: Array
    noise: float
    log_bound: float
    cost: float

    @classmethod
    def unknown(cls, dim: int, num_rows: int, ratio: float) -> Tail:
        """Tail before anything is known."""
        return cls(num_rows, ratio, 0.0, 0.0, np.zeros(dim), 0.0, 0.0, 0.0)

    def seen(
        self,
        near: float,
        far: float,
        pull: Array,
        noise: float,
        bound: float,
        basis: Array,
        cost: float,
    ) -> Tail:
        """Tail after one more release.

        Parameters
        ----------
        near, far : float
            Noisy numbers of rows.
        pull : ndarray of shape (d,)
            Noisy sum of whitened directions.
        noise : float
            Standard deviation of its entries.
        bound : float
            Clip bound of whitened gradients.
        basis : ndarray of shape (d, d)
            Whitening coordinates.
        cost : float
        """
        log_bound = _log_size(bound, basis)
        moved = (log_bound - self.log_bound) / OTHER_BOUND
        known = self.cost * math.exp(-(moved**2)) if self.cost else 0.0
        both = known + cost
        old, new = known / both, cost / both
        return replace(
            self,
            near=old * self.near + new * near,
            far=old * self.far + new * far,
            pull=old * self.pull + new * in_basis(basis.T, pull),
            noise=math.hypot(old * self.noise, new * noise),
            log_bound=old * self.log_bound + new * log_bound,
            cost=both,
        )

    @property
    def _law(self) -> tuple[float, float]:
        """Growth of the exponent of the law, and the exponent at the higher threshold."""
        near = max(self.near, 0.0) + PRIOR_ROWS
        far = max(self.far, 0.0) + PRIOR_ROWS * self.ratio**USUAL_EXPONENT
        far = min(far, MOST_FAR * self.num_rows)
        falls = [math.log(self.num_rows / min(rows, far)) for rows in (far, near)]
        power = math.log(falls[1] / falls[0]) / math.log(self.ratio)
        growth = (power - POWER_LAW) / (1 - POWER_LAW) if power < 1 else power
        growth = min(max(growth, LEAST_GROWTH), LARGEST_POWER)
        exponent = (falls[1] - falls[0]) * growth / (1 - self.ratio**-growth)
        return growth, max(exponent, 1e-3)

    def clipped(self, size: float, most: float) -> float:
        """Number of rows that a clip bound of a size clips, at most so many."""
        if not self.cost:
            return most
        growth, exponent = self._law
        # Rows beyond r thresholds fall as exp(-start r^growth).
        start = exponent / growth
        fall = start * (size * self.ratio) ** growth
        near = max(self.near, 0.0) + PRIOR_ROWS
        return min(near * math.exp(min(max(start - fall, -700.0), 50.0)), self.num_rows, most)

    def size(self, bound: float, basis: Array) -> float:
        """Clip bound of whitened gradients over that of the releases."""
        return math.exp(min(max(_log_size(bound, basis) - self.log_bound, -50.0), 50.0))

    def lost(self, size: float, most: float) -> float:
        """Length that clipping takes from all rows together, in bounds of the size given.

        Parameters
        ----------
        size : float
            Clip bound over that of the releases.
        most : float
            Rows that may have been clipped.
        """
        if not self.cost:
            return USUAL_EXCESS * most
        growth, exponent = self._law
        fall = exponent / growth * (size * self.ratio) ** growth
        # Integral of the law beyond the bound, over its value there and the bound.
        beyond = float(special.gammaincc(1 / growth, fall)) * math.exp(math.lgamma(1 / growth))
        exact = beyond > 0 and fall < 100
        shape: float = math.exp(fall) * fall ** (-1 / growth) if exact else 1 / fall
        excess: float = shape * (beyond if exact else 1.0) / growth
        return self.clipped(size, most) * min(excess, MOST_EXCESS * max(1.0, 1 / size))

    def taken(self, bound: float, basis: Array, most: float) -> tuple[Array, float]:
        """Part of a whitened score that clipping took, and the variance of the rest.

        Parameters
        ----------
        bound : float
            Clip bound of whitened gradients.
        basis : ndarray of shape (d, d)
            Whitening coordinates of the score.
        most : float
            Rows that may have been clipped.

        Returns
        -------
        taken : ndarray of shape (d,)
            In the direction that large rows have in common.
        apart : float
            Variance in each direction of what has no common one, or none that is known.
        """
        dim = len(basis)
        size = self.size(bound, basis)
        whole = bound * self.lost(size, most)
        if not self.cost:
            return np.zeros(dim), whole**2 / dim
        near = max(self.near, 1.0)
        mean, variance = basis.T @ self.pull / near, (self.noise / near) ** 2
        squared = float(mean @ mean)
        known = max(0.0, 1 - CLEAR * dim * variance / squared) if squared else 0.0
        length = min(math.sqrt(known * squared), 1.0)
        # The larger rows are the more they agree: their mean is longer than that of all of them.
        longer = 1 - (1 - length) ** AGREEMENT
        taken: Array = whole * longer / math.sqrt(squared) * mean if length else np.zeros(dim)
        # Before it is seen the mean has a length of 1 in the root mean square.
        unknown = variance / (1 + dim * variance)
        # Rows that only a lower bound clips were not asked where they point.
        others = max(whole - bound * self.lost(1.0, most) / size, 0.0)
        return taken, whole**2 * AGREEMENT**2 * (1 - length) * unknown + others**2 / dim


def _log_size(bound: float, basis: Array) -> float:
    """Logarithm of a clip bound in units that do not depend on the whitening."""
    # By logarithms: a determinant of two hundred rows overflows.
    volume = float(np.linalg.slogdet(basis)[1])
    return math.log(bound) - max(volume, -1e6) / len(basis)
