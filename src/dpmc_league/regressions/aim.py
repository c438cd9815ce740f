"""Synthetic data from the margins that fit worst so far: AIM [McKenna et al. 2022].

All pairs of columns are wanted. After the margins of single columns each round measures one that
is chosen for its distance from the law of most entropy so far, less what noise alone would make of
it. Where a round has changed that law by no more than noise, the next ones get four times as much.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpmc.types import Array, Budget
from dpmc_league import synthetic
from dpmc_league.contest import Estimate, Table
from dpmc_league.synthetic import Desk

Params = synthetic.Params
ROUNDS, MEASURED = 16, 0.9  # rounds a column that are planned, and the share of mu^2 for noise


def fit(
    tables: Sequence[Table], params: Params, budget: Budget, seeds: Sequence[int]
) -> list[Estimate]:
    """Fit each table."""
    return synthetic.fit(release, tables, params, budget, seeds)


def release(desk: Desk, mu: float) -> Array:
    """Chances of the cells, by as many rounds as `mu` allows."""
    columns, pairs = range(len(desk.cells.sizes)), desk.cells.pairs()
    subsets = [*((k,) for k in columns), *pairs]
    # How many columns a margin has in common with all that are wanted.
    weights = np.array([sum(len({*one} & {*pair}) for pair in pairs) for one in subsets])
    bins = np.array([math.prod(desk.cells.sizes[k] for k in one) for one in subsets])
    left, planned = mu**2, mu**2 / (ROUNDS * len(columns))
    margins = [desk.measure(one, math.sqrt(MEASURED * planned)) for one in subsets[: len(columns)]]
    left -= len(columns) * MEASURED * planned
    found = synthetic.most_entropy(margins, desk.total)
    while left > 0:
        if left <= 2 * planned:
            planned = left
        left -= planned
        spent = math.sqrt(MEASURED * planned)
        alone = math.sqrt(2 / math.pi) * math.sqrt(2) / spent * bins
        scores = weights * (desk.distances(subsets, found.chances) - alone)
        best = desk.choose(scores, math.sqrt((1 - MEASURED) * planned), weights.max())
        margins.append(desk.measure(subsets[best], spent))
        before = found.chances @ margins[-1].features
        found = synthetic.most_entropy(margins, desk.total, found.weights)
        moved = desk.total * np.abs(found.chances @ margins[-1].features - before).sum()
        if moved <= alone[best]:
            planned *= 4
    return found.chances
