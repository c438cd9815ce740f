"""Smooth sensitivity of an order statistic, straight from its definition."""

from __future__ import annotations

import math

from dpmc.types import Array


def by_definition(
    s: Array, rank: int, low: float, high: float, beta: float, average: bool = False
) -> float:
    """Return the smooth sensitivity by the double loop of its definition, for comparison.

    Parameters
    ----------
    s : ndarray of shape (n,)
        Sorted.
    rank, low, high, beta
        See `smooth_sensitivity`.
    average : bool
        Of the mean of ranks m and m + 1.
    """
    n = len(s)

    def padded(i: int) -> float:
        return low if i < 1 else (high if i > n else float(s[i - 1]))

    top, factor = (rank + 1, 0.5) if average else (rank, 1.0)
    return max(
        factor * math.exp(-k * beta) * (padded(top + t) - padded(rank + t - k - 1))
        for k in range(n + 1)
        for t in range(k + 2)
    )
