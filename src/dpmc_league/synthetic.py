"""Synthetic data from noisy margins that the rows have a say in, and what a regression says of it.

Margins are released with Gaussian noise, those to be measured are chosen by the exponential
mechanism, and rows are drawn from the law of most entropy that fits [McKenna, Miklau and Sheldon
2021]. With all cells at hand this law needs no graph. A choice that is epsilon-private is a
function of one bit that is kept with odds e^epsilon, and so of a Gaussian release of
mu = 2 Phi^-1(e^epsilon / (1 + e^epsilon)): all is accounted for as Gaussian.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize, special

from dpmc import checks
from dpmc.privacy import events
from dpmc.privacy.budgets import GaussianBudget
from dpmc.privacy.clipped import row_histogram
from dpmc.privacy.ledger import Ledger
from dpmc.rng import stream
from dpmc.types import Array, Budget
from dpmc_league.cells import Cells, rubin
from dpmc_league.contest import SEEDED, Estimate, Table

REACH = 2.0  # a substituted row moves the distance of a margin from any other by so much
STEPS = 300  # of the search for the law of most entropy


@dataclass(frozen=True)
class Params:
    """What is made of the budget.

    Parameters
    ----------
    releases : int
        How many laws are released, each with an equal share of the budget.
    sets : int
        How many synthetic data sets are drawn from each. One in all is analysed as if it were
        real, several by the rules of Rubin.
    """

    releases: int = 1
    sets: int = 1

    def __post_init__(self) -> None:
        checks.at_least("releases", self.releases, 1)
        checks.at_least("sets", self.sets, 1)


class Margin(NamedTuple):
    """Noisy numbers of rows in the bins of a margin.

    Parameters
    ----------
    features : ndarray of shape (C, bins)
        Which bin each cell is in, as 0 and 1.
    noisy : ndarray of shape (bins,)
    noise : float
        Standard deviation.
    """

    features: Array
    noisy: Array
    noise: float


class Desk:
    """Where margins of private rows are asked for, within one budget.

    Parameters
    ----------
    cells : Cells
    numbers : ndarray of shape (C,)
        Rows in each cell. Their sum is public.
    ledger : Ledger
    rng : numpy.random.Generator
    """

    def __init__(
        self, cells: Cells, numbers: Array, ledger: Ledger, rng: np.random.Generator
    ) -> None:
        self.cells, self.total = cells, round(numbers.sum())
        self._numbers, self._ledger, self._rng = numbers, ledger, rng

    def measure(self, columns: Sequence[int], mu: float) -> Margin:
        """Release the margin of some columns."""
        features, multiplier = self.cells.margin(columns), 1 / mu * (1 + 1e-12)
        histogram = row_histogram(self._numbers @ features)
        noisy = self._ledger.release(histogram, multiplier, self._rng)
        return Margin(features, noisy, histogram.sensitivity * multiplier)

    def distances(self, subsets: Sequence[Sequence[int]], chances: Array) -> Array:
        """How far, in rows, margins are from those of a law: private, for `choose` alone."""
        apart = self._numbers - self.total * chances
        return np.array([np.abs(apart @ self.cells.margin(one)).sum() for one in subsets])

    def choose(self, scores: Array, mu: float, weight: float = 1.0) -> int:
        """Choose by scores, of which one has at most `weight` times a distance, among others."""
        self._ledger.record(events.gaussian(1 / mu * (1 + 1e-12)), 1)
        epsilon = special.log_ndtr(mu / 2) - special.log_ndtr(-mu / 2)
        chances = special.softmax(epsilon / (2 * REACH * weight) * scores)
        return int(self._rng.choice(len(scores), p=chances))


def most_entropy(margins: Sequence[Margin], total: int, start: Array | None = None) -> Fitted:
    """Fit noisy margins by least squares, from weights that an earlier fit had."""
    features = np.hstack([one.features for one in margins])
    target = np.concatenate([one.noisy for one in margins]) / total
    least = min(one.noise for one in margins)
    trust = np.concatenate([np.full(len(one.noisy), (least / one.noise) ** 2) for one in margins])

    def loss(weights: Array) -> tuple[float, Array]:
        chances = special.softmax(features @ weights)
        residual = chances @ features - target
        pull = features @ (trust * residual)
        return float(0.5 * trust @ residual**2), features.T @ (chances * (pull - chances @ pull))

    weights = np.zeros(len(target))
    if start is not None:
        weights[: len(start)] = start
    options: Any = {"maxiter": STEPS, "ftol": 1e-14, "gtol": 1e-9}
    found = optimize.minimize(loss, weights, jac=True, method="L-BFGS-B", options=options)
    return Fitted(special.softmax(features @ found.x), found.x)


class Fitted(NamedTuple):
    """Law of most entropy: chances of the cells, shape (C,), and weights of all bins."""

    chances: Array
    weights: Array


def fit(
    release: Callable[[Desk, float], Array],
    tables: Sequence[Table],
    params: Params,
    budget: Budget,
    seeds: Sequence[int],
) -> list[Estimate]:
    """Fit each table by synthetic data of as many rows.

    Parameters
    ----------
    release : callable ``(desk, mu) -> ndarray of shape (C,)``
        Chances of the cells, for which it spends no more than `mu`.
    tables : sequence of Table
    params : Params
    budget : Budget
    seeds : sequence of int
    """
    estimates = []
    for table, seed in zip(tables, seeds, strict=True):
        cells, given = Cells.of(table), GaussianBudget.of(budget.epsilon, budget.delta)
        rng = stream(seed, "league", "synthetic")
        desk = Desk(cells, cells.numbers(table), Ledger(given), rng)
        mu = given.mu / math.sqrt(params.releases) * (1 - 1e-9)
        made = [
            rng.multinomial(desk.total, release(desk, mu), size=params.sets)
            for _ in range(params.releases)
        ]
        slopes, variances = cells.regress(np.concatenate(made).astype(np.float64))
        if len(slopes) > 1:
            mean, sd = rubin(slopes, variances)
        else:
            mean, sd = slopes[0], np.sqrt(variances[0])
        guarantee = replace(given.guarantee(budget.delta), outside=(SEEDED,))
        estimates.append(Estimate(mean, guarantee, sd))
    return estimates
