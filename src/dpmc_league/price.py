"""The price of the accept test, measured: chains of the league on a normal target without rows.

The code of the chains is that of the league's methods. Only what the rows say is replaced, by the
normal posterior of :mod:`dpmc_league.theory` with k given, so that shape, clipping and warm-up play
no part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpmc.privacy.budgets import GaussianBudget
from dpmc.privacy.clipped import Clipped, asserted
from dpmc.privacy.ledger import Ledger
from dpmc.rng import Streams
from dpmc.types import Array
from dpmc_league import theory, trajectories
from dpmc_league.rivals import kinetic_langevin, langevin, penalty

# Exact draws that the budget is worth, for each dimension: chains have some ten effective draws.
WORTH_PER_DIM = 30.0
NO_LIMIT = 10**7


@dataclass(frozen=True, eq=False)
class Normal:
    """The target N(0, I), each release with the noise that a budget of k exact draws leaves.

    Parameters
    ----------
    start : ndarray of shape (d,)
    bound : float
    mu : float
    streams : Streams
    """

    start: Array
    bound: float
    mu: float
    streams: Streams

    @classmethod
    def of(cls, dim: int, k: float, streams: Streams) -> Normal:
        """Target of a budget worth k exact draws, begun at an exact draw."""
        return cls(streams.chain.standard_normal(dim), 0.5 / math.sqrt(k), 1.0, streams)

    def gradient(self, z: Array, ledger: Ledger, multiplier: float) -> Array:
        """Release -z."""
        slope = asserted(-z, 2 * self.bound)
        return ledger.release(slope, multiplier, self.streams.noise)

    def ratio(self, z: Array, z_new: Array, ledger: Ledger, multiplier: float) -> float:
        """Release the log-density ratio."""
        ratio = 0.5 * float(z @ z - z_new @ z_new)
        change: Clipped[float] = asserted(ratio, 2 * self.bound * math.dist(z, z_new))
        return ledger.release(change, multiplier, self.streams.noise)


# Chains, and their effective draws by theory: with so many leapfrog steps, where there are any.
CHAINS: Mapping[str, Callable[[Normal, Ledger, int], Array]] = {
    "langevin": lambda ground, ledger, _: langevin.chain(ground, ledger, NO_LIMIT),
    "kinetic_langevin": lambda ground, ledger, _: kinetic_langevin.chain(ground, ledger, NO_LIMIT)[
        0
    ],
    "penalty": lambda ground, ledger, _: penalty.chain(ground, ledger, NO_LIMIT),
    "hmc": lambda ground, ledger, steps: trajectories.run(ground, ledger, NO_LIMIT, steps).states,
}
THEORY: Mapping[str, Callable[[float, int, int], float]] = {
    "langevin": lambda k, dim, _: theory.langevin(k, dim),
    "kinetic_langevin": lambda k, dim, _: theory.langevin(k, dim),
    "penalty": lambda k, dim, _: theory.penalty(k, dim),
    "hmc": lambda k, dim, steps: theory.hmc(k, dim, theory.noisy_gradients(steps)),
}


class Measured(NamedTuple):
    """What one chain comes to.

    Parameters
    ----------
    square_error : float
        Mean square of the means of its components, in posterior standard deviations.
    acceptance_rate : float
        Share of iterations that moved.
    """

    square_error: float
    acceptance_rate: float


def chain(method: str, dim: int, worth: float, seed: int, num_leapfrog_steps: int = 1) -> Measured:
    """Run one chain, one of ``CHAINS``, with a budget worth k exact draws; see the theory."""
    ground = Normal.of(dim, worth, Streams.of(seed, "league", "price", method, dim))
    ledger = Ledger(GaussianBudget(ground.mu * (1 + 1e-9)))
    states = CHAINS[method](ground, ledger, num_leapfrog_steps)
    moved = np.any(np.diff(states, axis=0) != 0, axis=1)
    return Measured(float(np.mean(states.mean(axis=0) ** 2)), float(np.mean(moved)))
