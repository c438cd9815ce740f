"""Likelihood of theta given an order statistic, averaged over simulated data sets.

With noise by smooth sensitivity they are importance draws of
:mod:`dpmc.statsel.posterior.order_proposal`; with constant noise, quadrature nodes of the uniform
of the released rank.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from dpmc.numerics.compiled import assemble
from dpmc.rng import stream
from dpmc.statsel.order_draws import Exponentials, Order, Particles, make_fill, stratify
from dpmc.statsel.posterior import order_proposal
from dpmc.statsel.posterior.order_proposal import DataSets
from dpmc.statsel.targets import PosteriorTarget
from dpmc.statsel.types import Population, Statistic
from dpmc.types import Array

# Data sets that stand for the distribution of an order statistic with its smooth sensitivity: with
# them the deviation of a median of 100 records has a Monte Carlo error of at most 2 %.
# With constant noise, quadrature nodes.
DATA_SETS = 4000
# Values of theta whose data sets are remembered.
MOST_POINTS = 2000
# Parts of the data sets, each with a likelihood of its own, by which its error is estimated.
BLOCKS = 16


class OrderTable:
    """Released order statistics and noise scales of the same data sets at every theta.

    Parameters
    ----------
    population : Population
        Distribution of one record.
    statistic : Statistic
        The released statistic.
    order : Order
        The order statistic and its noise.
    num_data_sets : int
        Simulated data sets, or quadrature nodes.
    seed : int
        Of these data sets.
    """

    def __init__(
        self,
        population: Population,
        statistic: Statistic,
        order: Order,
        num_data_sets: int,
        seed: int,
    ) -> None:
        self._order = order
        rng = stream(seed, "reference", "order statistic", order.num, order.rank)
        key = np.uint64(rng.integers(2**63))
        if order.alpha > 0:
            sets = order_proposal.draw(order, num_data_sets, BLOCKS, key, rng)
        else:
            constant = Exponentials(key, 0, np.empty((num_data_sets, 0)))
            middles = order_proposal.centres(order, num_data_sets)
            sets = DataSets(middles, constant, np.zeros(num_data_sets))
        self._drawn, self._log_weights = sets.exponentials, sets.log_weights
        self._particles = Particles.of(num_data_sets, order.num)
        stratify(order, self._particles, sets.centres)
        self._fill = assemble(make_fill, population.generate, statistic.transform)
        self._cache: dict[float, tuple[Array, Array, Array]] = {}
        self.simulated = order.alpha > 0 or order.averaged == 1

    def log_densities(self, y: float, theta: float) -> Array:
        """Log-density of `y` given each data set, times its weight, shape (num_data_sets,)."""
        if theta not in self._cache:
            if len(self._cache) >= MOST_POINTS:
                self._cache.clear()
            self._cache[theta] = self._at(theta)
        values, scales, offsets = self._cache[theta]
        return offsets - np.abs(y - values) / scales

    def _at(self, theta: float) -> tuple[Array, Array, Array]:
        """Order statistics, scales, and log-densities at the order statistic itself."""
        out = np.empty((2, len(self._particles.lower)))
        self._fill(self._order, self._particles, theta, self._drawn, out)
        return out[0], out[1], self._log_weights - np.log(2 * out[1])


class OrderLikelihood:
    """Log-likelihood of a release as a function of theta, shape (m,) to (m,).

    Parameters
    ----------
    table : OrderTable
        Data sets.
    y : float
        The release.

    Attributes
    ----------
    simulated : bool
        Whether data sets were drawn, so that there is a Monte Carlo error.
    """

    def __init__(self, table: OrderTable, y: float) -> None:
        self._table, self._y = table, y
        self.simulated = table.simulated
        self._shares: dict[float, Array] = {}

    def __call__(self, theta: Array) -> Array:
        """Log-likelihood at each theta."""
        return np.array([self._log_mean(value) for value in theta.tolist()])

    def without_blocks(self, theta: Array) -> Array:
        """Likelihood without each block of data sets, relative to that of all, shape (BLOCKS, m).

        Parameters
        ----------
        theta : ndarray of shape (m,)
            Values at which the likelihood was evaluated.
        """
        return 1 - np.column_stack([self._shares[value] for value in theta.tolist()])

    def _log_mean(self, theta: float) -> float:
        logs = self._table.log_densities(self._y, theta)
        top = logs.max()
        densities = np.exp(logs - top)
        mean = np.mean(densities)
        if self.simulated:
            sums = densities.reshape(-1, BLOCKS).sum(axis=0)
            self._shares[theta] = sums / (mean * densities.size)
        return float(top + math.log(mean))


def likelihood(target: PosteriorTarget, num_data_sets: int, seed: int) -> OrderLikelihood:
    """Log-likelihood of a target; its data sets serve all releases from the same place."""
    order = target.order
    assert order is not None
    num = num_data_sets
    if order.alpha > 0 or order.averaged:  # blocks are of the same size
        num = BLOCKS * -(-num_data_sets // BLOCKS)
    table = _table(target.population, target.statistic, order, num, seed)
    return OrderLikelihood(table, target.y)


@functools.lru_cache(maxsize=8)
def _table(
    population: Population, statistic: Statistic, order: Order, num_data_sets: int, seed: int
) -> OrderTable:
    return OrderTable(population, statistic, order, num_data_sets, seed)
