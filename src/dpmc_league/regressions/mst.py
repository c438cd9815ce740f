"""Synthetic data from a tree of noisy margins: MST [McKenna, Miklau and Sheldon 2021].

A third of mu^2 goes to the margins of single columns, a third to the choice of a spanning tree of
pairs, a third to the margins of these pairs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpmc.types import Array, Budget
from dpmc_league import synthetic
from dpmc_league.contest import Estimate, Table
from dpmc_league.synthetic import Desk

Params = synthetic.Params


def fit(
    tables: Sequence[Table], params: Params, budget: Budget, seeds: Sequence[int]
) -> list[Estimate]:
    """Fit each table."""
    return synthetic.fit(release, tables, params, budget, seeds)


def release(desk: Desk, mu: float) -> Array:
    """Chances of the cells, by margins of all columns and of a tree of pairs."""
    columns, third = range(len(desk.cells.sizes)), mu / math.sqrt(3)
    singles = [desk.measure((k,), third / math.sqrt(len(columns))) for k in columns]
    each = third / math.sqrt(len(columns) - 1)
    apart = synthetic.most_entropy(singles, desk.total).chances
    left, part, tree = desk.cells.pairs(), list(columns), []
    while left:
        a, b = left[desk.choose(desk.distances(left, apart), each)]
        tree.append(desk.measure((a, b), each))
        part = [part[a] if one == part[b] else one for one in part]
        left = [(a, b) for a, b in left if part[a] != part[b]]
    return synthetic.most_entropy(singles + tree, desk.total).chances
