"""The chain for records released one by one: averaged acceptance ratios, record by record.

[alparslan2023thesis, Algorithm 13]: the state is theta and the base variable of every record.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dpmc.numerics.small_matrices import compiled
from dpmc.statsel.chains.common import accepts, exponentiate, pick


class ReleasedRecords(NamedTuple):
    """Released records."""

    y: Any  # (n,)
    scale: float
    base: int  # 0 N(0, 1), 1 U(-1, 1), 2 U(0, 1)
    low: float  # records are clipped to [low, high]
    high: float


class BaseVariables(NamedTuple):
    """Base variables of all records, and their weights in one iteration."""

    z: Any  # (n, N): the current one in the first column
    old: Any  # (n, N): weights at theta
    new: Any  # (n, N): weights at theta'
    sums: Any  # (n, 2)

    @classmethod
    def of(cls, num: int, num_particles: int) -> BaseVariables:
        """Allocate them."""
        shape = (num, num_particles)
        return cls(np.empty(shape), np.empty(shape), np.empty(shape), np.empty((num, 2)))


BASES = ("normal", "symmetric", "unit")


@compiled
def draw_base(base: int, rng: Any) -> Any:
    """Draw a base variable."""
    if base == 0:
        return rng.standard_normal()
    return 2.0 * rng.random() - 1.0 if base == 1 else rng.random()


def make_averaged_ratio(generate: Any, transform: Any, noise: Any, log_prior: Any) -> Any:
    """Chain of Algorithm 13.

    `generate`, `transform`, `noise`, `log_prior`: of population, statistic, mechanism and prior.
    """

    @compiled
    def log_density(records: Any, t: int, z: float, theta: float) -> Any:
        """Log-density of released record t given its base variable."""
        x = min(max(generate(theta, z), records.low), records.high)
        return noise(records.y[t] - transform(x), records.scale)

    @compiled
    def averaged_ratio(
        records: Any,
        walk: Any,
        faults: Any,
        begin: bool,
        latents: Any,
        state: Any,
        rng: Any,
        draws: Any,
    ) -> int:
        """Run Algorithm 13; return the moves made.

        Parameters
        ----------
        records : ReleasedRecords
            Released records and their noise.
        begin : bool
            Draw current base variables from their distribution.
        state : ndarray of shape (1,)
            theta; overwritten.
        """
        theta = state[0]
        z, old, new, sums = latents.z, latents.old, latents.new, latents.sums
        num, num_particles = z.shape
        if begin:
            for t in range(num):
                z[t, 0] = draw_base(records.base, rng)
        first = 1 if faults.current_left_out else 0
        moves = 0
        for i in range(draws.size):
            proposal = theta + walk.step * rng.standard_normal()
            if walk.low < proposal < walk.high:
                change = 0.0
                for t in range(num):
                    for j in range(num_particles):
                        if j > 0:
                            z[t, j] = draw_base(records.base, rng)
                        latent = z[t, j]
                        old[t, j] = log_density(records, t, latent, theta)
                        new[t, j] = log_density(records, t, latent, proposal)
                    top_old, sums[t, 0] = exponentiate(old[t], first)
                    top_new, sums[t, 1] = exponentiate(new[t], first)
                    change += top_new - top_old + math.log(sums[t, 1] / sums[t, 0])
                if faults.inverted_ratio:
                    change = -change
                accepted = accepts(change + log_prior(proposal) - log_prior(theta), rng)
                at_new = accepted
                if accepted:
                    theta = proposal
                    moves += 1
                    at_new = not faults.index_at_old_theta
                elif faults.rejected_with_new_weights:
                    at_new = True
                for t in range(num):
                    if at_new:
                        selected = pick(new[t], sums[t, 1], rng)
                    else:
                        selected = pick(old[t], sums[t, 0], rng)
                    z[t, 0] = z[t, selected]
            draws[i] = theta
        state[0] = theta
        return moves

    return averaged_ratio
