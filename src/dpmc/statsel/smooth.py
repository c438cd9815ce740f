"""Smooth sensitivity of order statistics, exact [nissim2007, section 3.1].

Of records in [low, high], sorted, ``s_1 <= ... <= s_n``, with ``s_i = low`` for i < 1 and
``s_i = high`` for i > n, the local sensitivity of rank m at distance k from the data is
``A_k = max over t = 0..k+1 of s_(m+t) - s_(m+t-k-1)``, and the smooth sensitivity
``max over k = 0..n of exp(-k beta) A_k``. The thesis leaves the padding, the rank and the median
of an even number of records open [alparslan2023thesis, section 6.3], and prints epsilon^beta for
e^beta [definition 7].

The mean of ranks m and m + 1 moves by half as much as the two together: there
``A_k = max over t = 0..k+1 of (s_(m+1+t) - s_(m+t-k-1)) / 2``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpmc.numerics.compiled import kept
from dpmc.statsel.types import Statistic
from dpmc.types import Array, DpmcError

# Distances looked at one by one before all of them are, in O(n log n).
MOST_DISTANCES = 128
# Entries of a stack of rows and columns, four for each halving of the rows.
_STACK = 4 * 64


@kept
def _widest(s: Any, first: int, last: int, gap: int) -> Any:
    """Largest s[i + gap] - s[i] for first <= i < last, 0 if there is none."""
    best = 0.0
    for i in range(first, last):
        best = max(best, s[i + gap] - s[i])
    return best


@kept
def _search(
    s: Any, bottom: int, top: int, low: float, high: float, beta: float, factor: float
) -> Any:
    """Largest ``factor exp(-k beta) (s_j - s_i)`` with i <= bottom <= top <= j.

    k = j - i - 1, less 1 where two ranks are averaged, is the distance from the data. The search
    ends where no further k can win: up to the distance of the ends of the range no difference
    exceeds ``s_n - s_1``, and beyond it none exceeds ``high - low``.
    """
    n = s.size
    shrink = math.exp(-beta)
    best, weight = 0.0, factor
    # The gap j - i at distance k = 0, and the distance at which i = 0 or j = n + 1 is reached.
    least = 1 if top == bottom else 2
    ends = min(top, n + 1 - bottom) - least
    # Upper bounds of all differences to come: `inner` between records, where `weight` is of the
    # present distance, and `outer` with an end of the range, discounted to its first distance.
    inner, outer = s[n - 1] - s[0], (high - low) * math.exp(-beta * max(ends, 0)) * factor
    for k in range(n + 1):
        if max(weight * inner, min(outer, weight * (high - low))) <= best:
            break
        # A beta that is small next to 1 / n keeps all distances in play: divide and conquer.
        if k >= MOST_DISTANCES:
            return max(best, _divided(s, bottom, top, low, high, beta, factor))
        # Ranks i from top - gap to bottom with j = i + gap, then i = 0, then j = n + 1.
        gap = k + least
        widest = _widest(s, max(0, top - gap - 1), min(bottom, n - gap), gap)
        if top <= gap:
            widest = max(widest, (high if gap > n else s[gap - 1]) - low)
        if n + 1 - gap <= bottom:
            widest = max(widest, high - (low if gap > n else s[n - gap]))
        best = max(best, weight * widest)
        weight *= shrink
    return best


@kept
def _divided(
    s: Any, bottom: int, top: int, low: float, high: float, beta: float, factor: float
) -> Any:
    """Result of `_search`, in O(n log n) for any beta.

    The best j of a rank i does not decrease with i: where a larger j wins, it does so for every
    higher s_i. Ranks i are halved, and ranks j split where the best one lies.
    """
    n = s.size
    least = 1 if top == bottom else 2
    best = 0.0
    stack = np.empty(_STACK, np.int64)
    stack[0], stack[1], stack[2], stack[3] = 0, bottom, top, n + 1
    size = 4
    while size > 0:
        size -= 4
        # Ranks i in [first, last] have their best j in [left, right].
        first, last, left, right = stack[size], stack[size + 1], stack[size + 2], stack[size + 3]
        i = (first + last) // 2
        floor = low if i < 1 else s[i - 1]
        # Search all of [left, right] for the middle i only; ties go to the larger j.
        highest, at = -1.0, max(left, i + least)
        for j in range(at, right + 1):
            ceiling = high if j > n else s[j - 1]
            value = (ceiling - floor) * math.exp(-beta * (j - i - least))
            if value >= highest:
                highest, at = value, j
        best = max(best, factor * highest)
        # Smaller ranks i have theirs in [left, at], larger ones in [at, right]: each level of
        # the recursion looks at every j once, and there are log2 n levels.
        if first < i:
            stack[size], stack[size + 1], stack[size + 2], stack[size + 3] = first, i - 1, left, at
            size += 4
        if i < last:
            stack[size], stack[size + 1], stack[size + 2], stack[size + 3] = i + 1, last, at, right
            size += 4
    return best


@kept
def smooth_sensitivity(s: Any, rank: int, low: float, high: float, beta: float) -> Any:
    """Smooth sensitivity of one rank.

    `s`, shape (n,): sorted, in [low, high]. `rank`: m, from 1 to n.

    In O(n log n) at worst. For a beta that does not vanish with n the search ends after a number of
    distances K that does not grow with n, and takes K^2 / 2 differences.
    """
    return _search(s, rank, rank, low, high, beta, 1.0)


@kept
def smooth_sensitivity_average(s: Any, rank: int, low: float, high: float, beta: float) -> Any:
    """Smooth sensitivity of the mean of ranks m and m + 1, m < n.

    `s`, shape (n,): sorted, in [low, high]. `rank`: m, from 1 to n - 1.
    """
    return _search(s, rank, rank + 1, low, high, beta, 0.5)


def of(s: Array, statistic: Statistic, support: tuple[float, float], beta: float) -> float:
    """Smooth sensitivity of a released order statistic.

    Parameters
    ----------
    s : ndarray of shape (n,)
        Of clipped records, in any order.
    support : (float, float)
        Of the records.
    beta : float
        Finite and >= 0.
    """
    low, high = statistic.range(support)
    ordered = np.sort(np.asarray(s, dtype=np.float64))
    if ordered.ndim != 1 or not ordered.size or not low <= ordered[0] <= ordered[-1] <= high:
        raise DpmcError(
            f"`s` must be one or more numbers from {low:g} to {high:g} in a row, got shape "
            f"{ordered.shape}"
        )
    if not 0 <= beta < math.inf:
        raise DpmcError(f"`beta` must be finite and >= 0, got {beta}")
    rank = checked_rank(statistic, ordered.size)
    search = smooth_sensitivity_average if statistic.averages(ordered.size) else smooth_sensitivity
    return float(search(ordered, rank, low, high, beta))


def checked_rank(statistic: Statistic, n: int) -> int:
    """Rank that is released of n records."""
    if statistic.rank is None:
        raise DpmcError(f"`statistic` must be an order statistic, got {statistic.name!r}")
    rank = statistic.rank(n)
    if not 1 <= rank <= n:
        raise DpmcError(f"`rank` of {statistic.name} must be from 1 to {n}, got {rank}")
    return rank


def released(s: Array, statistic: Statistic) -> float:
    """Order statistic itself.

    `s`, shape (n,): in any order.
    """
    ordered, rank = np.sort(s), checked_rank(statistic, len(s))
    if statistic.averages(len(s)):
        return float(ordered[rank - 1] + ordered[rank]) / 2
    return float(ordered[rank - 1])
