"""Scale that chains are given where parameters are left out, all of it released or public."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpmc.types import Array

# Standard deviation of the noise in a decision, at which a walk of small steps is most efficient:
# an accepted share of 2 Phi(-s / 2), at 1 / s^2 of the budget a decision, has its largest product
# with s^2 at 2.38.
DECISION = 2.38
# Iterations of a walk that its steps are made small for.
ITERATIONS = 2000
# Longest step of a walk, in posterior standard deviations over sqrt(d).
LONGEST_STEP = 1.0
# Largest share of the rows in a batch: drawing many more without replacement takes longer than
# reading them.
LARGEST_BATCH = 0.5
# Smallest share of the rows in a batch.
SMALLEST_BATCH = 0.02
# Variance of a decision that its batch may have.
BATCH_VARIANCE = 0.25
# Fewest iterations that steps of Langevin dynamics without a test are made small for.
FEWEST = 200


@dataclass(frozen=True)
class Scale:
    """Centre, shape and budget that parameters of chains are chosen by.

    Parameters
    ----------
    centre : ndarray of shape (d,)
        Where they begin.
    covariance : ndarray of shape (d, d)
        Covariance of the posterior without privacy noise.
    row_gradient : float
        Length that gradients of few rows exceed: the Lipschitz constant, or less.
    mu : float
        Gaussian budget of the chains.
    num_chains, num_rows : int
    tempering : float
        Exponent of the likelihood.
    """

    centre: Array
    covariance: Array
    row_gradient: float
    mu: float
    num_chains: int
    num_rows: int
    tempering: float

    @property
    def smallest(self) -> float:
        """Smallest standard deviation in any direction."""
        return math.sqrt(float(np.linalg.eigvalsh(self.covariance)[0]))

    @property
    def largest(self) -> float:
        """Largest standard deviation in any direction."""
        return math.sqrt(float(np.linalg.eigvalsh(self.covariance)[-1]))

    @property
    def diffusion(self) -> float:
        """Time that Langevin dynamics whose noise is the privacy noise may run.

        A step e with noise of variance 2e on the sum of row gradients costs 2 e c^2 of mu^2, c the
        clip bound and 2c the sensitivity; a batch costs as much as all rows.
        """
        return self.mu**2 / (2 * self.row_gradient**2 * self.num_chains)

    @property
    def deviations(self) -> Array:
        """Posterior standard deviations of the components."""
        deviations: Array = np.sqrt(np.diag(self.covariance))
        return deviations

    def decision_multiplier(self, length: float) -> float:
        """Noise multiplier of a decision on a move of a length."""
        return DECISION / (2 * self.row_gradient * length * self.tempering)

    def walk(self) -> tuple[float, float]:
        """Step of a walk in posterior standard deviations, and the length of a step of 1."""
        spread = float(np.linalg.norm(self.deviations))
        at_one = self.mu**2 * self.decision_multiplier(spread) ** 2 / self.num_chains
        longest = LONGEST_STEP / math.sqrt(len(self.centre))
        return min(longest, math.sqrt(at_one / ITERATIONS)), spread

    def batch(self, share: float) -> int:
        """Size of a batch that has about a share of the rows."""
        return math.ceil(min(max(share, SMALLEST_BATCH), LARGEST_BATCH) * self.num_rows)
