"""The price of the accept test, measured: chains of the league on a normal target without rows.

The code of the chains is that of the league's methods. Only what the rows say is replaced, by the
normal posterior of :mod:`dpmc.league.theory` with k given, so that shape, clipping and warm-up play
no part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpmc.league import theory, trajectories
from dpmc.league.rivals import kinetic_langevin, langevin, penalty
from dpmc.privacy.budgets import GaussianBudget
from dpmc.privacy.ledger import Ledger
from dpmc.rng import Streams
from dpmc.types import Array

# Exact draws that the budget is worth, for each dimension: chains have some ten effective draws.
WORTH_PER_DIM = 30.0
# Components whose means are measured, in all, and the least number of chains.
COMPONENTS, LEAST_CHAINS = 120, 8
NO_LIMIT = 10**7
DIMS = 2, 5, 10, 20, 50


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
        """Return the target of a budget worth k exact draws, begun at an exact draw."""
        return cls(streams.chain.standard_normal(dim), 0.5 / math.sqrt(k), 1.0, streams)

    def gradient(self, z: Array, ledger: Ledger, multiplier: float) -> Array:
        """Release -z."""
        return ledger.release(-z, 2 * self.bound, multiplier, self.streams.noise)

    def ratio(self, z: Array, z_new: Array, ledger: Ledger, multiplier: float) -> float:
        """Release the log-density ratio."""
        ratio = 0.5 * float(z @ z - z_new @ z_new)
        sensitivity = 2 * self.bound * math.dist(z, z_new)
        return ledger.release(ratio, sensitivity, multiplier, self.streams.noise)


Chain = Callable[[Normal, Ledger], Array]
CHAINS: Mapping[str, Chain] = {
    "langevin": lambda ground, ledger: langevin.chain(ground, ledger, NO_LIMIT),
    "kinetic_langevin": lambda ground, ledger: kinetic_langevin.chain(ground, ledger, NO_LIMIT)[0],
    "penalty": lambda ground, ledger: penalty.chain(ground, ledger, NO_LIMIT),
    "hmc": lambda ground, ledger: trajectories.run(ground, ledger, NO_LIMIT).states,
}
THEORY: Mapping[str, Callable[[float, int], float]] = {
    "langevin": theory.langevin,
    "kinetic_langevin": theory.langevin,
    "penalty": theory.penalty,
    "hmc": theory.hmc,
}


@dataclass(frozen=True)
class Price:
    """Effective draws of a method at one dimension, over k.

    Parameters
    ----------
    method : str
    dim : int
    share : float
        Effective draws over k, by the mean square of the means of all chains and components.
    error : float
        Its standard error: `share` times sqrt(2 / (chains d)).
    theory : float
        What the theory has for it.
    """

    method: str
    dim: int
    share: float
    error: float
    theory: float


def price(method: str, dim: int, seed: int, per_dim: float = WORTH_PER_DIM) -> Price:
    """Measure effective draws over k by the means of independent chains."""
    k = per_dim * dim
    number = max(LEAST_CHAINS, math.ceil(COMPONENTS / dim))
    means = np.empty((number, dim))
    for chain in range(number):
        ground = Normal.of(dim, k, Streams.of(seed, "league", "price", method, dim, chain))
        ledger = Ledger(GaussianBudget(ground.mu * (1 + 1e-9)))
        means[chain] = CHAINS[method](ground, ledger).mean(axis=0)
    share = 1 / float(np.mean(means**2)) / k
    return Price(
        method, dim, share, share * math.sqrt(2 / (number * dim)), THEORY[method](k, dim) / k
    )


def measure(seed: int, dims: Sequence[int] = DIMS) -> list[Price]:
    """Return the price of each method at each dimension."""
    return [price(method, dim, seed) for method in CHAINS for dim in dims]


def write(path: Path, prices: Sequence[Price]) -> None:
    """Write prices as CSV."""
    lines = ["method,dim,share,error,theory"]
    lines += [
        f"{one.method},{one.dim},{one.share:.6g},{one.error:.6g},{one.theory:.6g}" for one in prices
    ]
    part = path.with_suffix(".part")
    part.write_text("\n".join(lines) + "\n", encoding="utf-8")
    part.replace(path)
