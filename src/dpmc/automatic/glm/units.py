"""Location and scale of every column, from bisections with noisy counts: the units of a search.

The scale of a column is a typical difference between two rows that differ in it, so that a rare 0/1
column has the scale of a frequent one; its location is about its median. A search, its clip bounds
and its default prior in these units do not depend on those of the rows, up to noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmc.automatic.counted import Counted
from dpmc.automatic.glm.till import Till
from dpmc.privacy.clipped import row_count, row_counts
from dpmc.types import Array

# Rows that are looked at, about.
ROWS = 1 << 16
# Log2 of the smallest and the largest scale, and of the largest location over its scale.
WIDEST, FARTHEST = 30.0, 30.0
# Octaves to which a scale is found, scales to which a location is, and rounds that has at most.
FINE, NEAR, ROUNDS = 0.5, 1.0, 40
# Noise of a count as a share of those it halves: aimed at, and too much to look at all.
NOISE, BLIND = 0.03, 0.25
# Shares of the budget, least and most, and counts of a column that it is shared by.
LEAST, MOST, COUNTS = 0.001, 0.08, 18
# Noise for which more of the budget is spent, and how much at most.
DIM, DEAR = 0.14, 0.25
# Logarithm by which the odds of a unit fall per octave away from 1.
RARE = 0.4
# Deviations of its noise that a count of differing rows has to exceed.
CLEAR = 4.0
# What the count of differing rows costs, in other counts.
DIFFER = 4


@dataclass(frozen=True)
class Units:
    """Units of the columns; the response, where it has a scale, is the last one.

    Parameters
    ----------
    location, scale : ndarray of shape (q,)
    still : ndarray of shape (q,), bool
        Whether no more rows differ in a column than noise hides.
    seen : bool
        Whether the budget let scales be looked for: otherwise they are 1, around 0.
    beyond : ndarray of shape (q,), bool
        Whether a scale or location is as far as they are looked for, and may be farther.
    """

    location: Array
    scale: Array
    still: NDArray[np.bool_]
    seen: bool
    beyond: NDArray[np.bool_]


def find(till: Till, counted: Counted, x: Array, centred: bool, noise: float = NOISE) -> Units:
    """Units of columns, shape (n, q), some of them NaN.

    Sensitivity: a row is one of those that are looked at, and in one pair of them, or in neither.
    Each count moves by at most 1, the counts of q columns together by sqrt(q). So it is where a row
    is added or removed, see `dpmc.automatic.counted`.

    Parameters
    ----------
    till : Till
    counted : Counted
        How many rows there are.
    x : ndarray of shape (n, q)
        Private.
    centred : bool
        Whether columns have a location: otherwise it is 0, and a scale is a typical size.
    noise : float
        Aim of the noise of a count, as a share of the rows.
    """
    num_columns = x.shape[1]
    rows, number = counted.some(x, ROWS)
    if centred:
        half = len(rows) // 2
        places = counted.order(rows)
        with np.errstate(all="ignore"):
            sizes = np.abs(rows[places[:half]] - rows[places[half : 2 * half]])
    else:
        sizes = np.abs(rows)
    with np.errstate(all="ignore"):
        sizes = np.where(np.isnan(sizes), -math.inf, np.log2(sizes))
    count = max(number // 2 if centred else number, 1.0)
    several = COUNTS * num_columns
    cost = till.part(math.sqrt(several), noise * count, LEAST, MOST)
    cost = max(cost, till.part(math.sqrt(several), DIM * count, LEAST, DEAR))
    cost /= several  # of one count
    location, scale = np.zeros(num_columns), np.ones(num_columns)
    if 1 / math.sqrt(cost) > BLIND * count:
        neither = np.zeros(num_columns, dtype=bool)
        return Units(location, scale, neither, False, neither)
    all_columns = np.arange(num_columns)
    lowest = np.full(num_columns, -math.inf)
    differ, noise_of_it = _beyond(till, sizes, lowest, all_columns, DIFFER * cost)
    deviation = 1 / math.sqrt(cost)
    still = differ < CLEAR * noise_of_it
    varied = differ > CLEAR * deviation
    low, high = np.full(num_columns, -WIDEST), np.full(num_columns, WIDEST)
    while len(active := np.flatnonzero(varied & (high - low > FINE))):
        middle = (low + high) / 2
        beyond, _ = _beyond(till, sizes, middle, active, cost)
        above = _beyond_half(beyond, differ[active], deviation, middle[active])
        low[active[above]], high[active[~above]] = middle[active[above]], middle[active[~above]]
    scale[varied] = np.exp2((low + high) / 2)[varied]
    far = varied & ((low == -WIDEST) | (high == WIDEST))
    if not centred:
        return Units(location, scale, still, True, far)
    low, high = np.full(num_columns, -FARTHEST), np.full(num_columns, FARTHEST)
    for _ in range(ROUNDS):
        ends = scale * np.sinh(high * math.log(2)) - scale * np.sinh(low * math.log(2))
        active = np.flatnonzero(ends > NEAR * scale)
        if not len(active):
            break
        middle = (low + high) / 2
        places_ = scale * np.sinh(middle * math.log(2))
        beyond, _ = _beyond(till, rows, places_, active, cost)
        above = _beyond_half(beyond, np.full(len(active), number), deviation, middle[active])
        low[active[above]], high[active[~above]] = middle[active[above]], middle[active[~above]]
    location = scale * np.sinh((low + high) / 2 * math.log(2))
    distant = (low == -FARTHEST) | (high == FARTHEST)
    # As good as constant: in units of its own, sums of its squares would lose all digits.
    scale = np.where(distant, np.maximum(scale, np.abs(location)), scale)
    far |= distant
    return Units(location, scale, still, True, far)


@dataclass(frozen=True)
class Offset:
    """Part of the linear predictor that rows have as a column.

    Parameters
    ----------
    column : int
        0 where there is none.
    centre : float
        What it is taken from, and the intercept is larger by.
    middle, spread : float
        Mean and standard deviation of what is left, as far as they are known.
    """

    column: int = 0
    centre: float = 0.0
    middle: float = 0.0
    spread: float = 0.0

    @classmethod
    def find(cls, till: Till, counted: Counted, x: Array, column: int, constant: bool) -> Offset:
        """Offset of rows, shape (n, q), for some of the budget."""
        if not column:
            return cls()
        found = find(till, counted, x[:, [column]], True)
        location = float(found.location[0])
        # The median difference of two normal numbers is 0.95 of their deviations.
        spread = 0.0 if found.still[0] or not found.seen else float(found.scale[0]) / 0.95
        return (
            cls(column, location, 0.0, spread) if constant else cls(column, 0.0, location, spread)
        )


def _beyond_half(beyond: Array, whole: Array, deviation: float, place: Array) -> NDArray[np.bool_]:
    """Decisions, by noisy counts, that more than half of some rows are beyond a place (its log2).

    Units are rather near 1 than far from it: far away that takes more than a count by chance.
    """
    odds = RARE * np.maximum(np.abs(place) - 2.0, 0.0) * np.sign(place)
    needed = whole / 2 + odds * deviation**2 / np.maximum(whole, deviation)
    return np.asarray(beyond > needed, dtype=np.bool_)


def upper(till: Till, counted: Counted, y: Array, share: float, cost: float) -> float:
    """Number >= 1 that about a share of responses, at least 0, exceed; sensitivity 1."""
    rows, number = counted.some(y, ROWS)
    rounds = 7
    deviation = math.sqrt(rounds / cost)
    target = max(share * number, 4 * deviation)
    low, high = 0.0, 40.0
    for _ in range(rounds):
        middle = (low + high) / 2
        beyond = row_count(int(np.sum(rows > 2.0**middle)), till.neighbours)
        noisy, _ = till.release("units", beyond, cost / rounds)
        low, high = (middle, high) if noisy > target else (low, middle)
    return float(2.0**high)


def _beyond(
    till: Till, values: Array, places: Array, columns: NDArray[np.int64], cost: float
) -> tuple[Array, float]:
    """Noisy counts of entries of columns that are beyond a place of each; half of a missing one."""
    missing = 0.5 * np.isnan(values).sum(axis=0)
    counts = np.array([float(np.sum(values[:, k] > places[k])) + missing[k] for k in columns])
    size = len(columns)
    return till.release("units", row_counts(counts, till.neighbours), size * cost)
