"""Clip bounds of whitened rows, found by noisy counts, and shares of the budget."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from dpmc.automatic import counted
from dpmc.automatic.federated import FederatedRows
from dpmc.automatic.purse import WIDEST, Purse, count_noise, search
from dpmc.automatic.whitened import WhitenedRows
from dpmc.types import Array

# Share of the budget that stages before the last may spend, and of what is left of it that one may.
EXPLORE = 0.5
PORTION = 0.2
# Share of the budget at which the rest of it is explored in one stage.
WHOLE = 0.075
# Share of the budget at which nothing more is explored.
NOTHING = 0.03
# Error over the distance that is left, as a share of the noise of a last gradient, below which no
# more is explored.
SETTLED = 0.5
# The same error above which a stage comes in between, with so large a share of what is left.
UNSETTLED = 0.7
# Distance in each direction, in deviations of the posterior, from which on it may be settled:
# over a longer one curvature changes more than the number of rows tells.
NEAR = 1.5
SETTLE = 0.35
# How much more is spent where a step is mostly noise.
GROWTH = 4.0
# Noise of the first gradient, as a share of what all rows together could contribute at the bound.
FIRST_NOISE = 1 / 30
# Share of a stage before the last for counts.
COUNTS = 0.15
# Share of the last stage for counts.
LAST_COUNTS = 0.1
# Share of a stage before the last for a line search.
LINE = 0.08
# Share of a stage for the tail of row gradients.
TAIL = 0.1
# Share of the budget from which on a stage looks at that tail.
TAIL_WORTH = 0.03
# Share of the budget for a look at the rows after the last stage.
CHECK = 0.02
# The same for the sum of outer products of gradients, where widths follow it.
OUTER = 0.05
# Share of that look for the sum of squared gradients.
SQUARES = 0.5
# Share of its stage that the last gradient has, about.
LAST_GRADIENT = 0.68
# Least and largest share of curvature and gradient together that the curvature gets.
SPLIT = (0.15, 0.6)
# The same shares in the last stage.
LAST_SPLIT = (0.05, 0.25)


def of_curvature(ratio: float, last: bool) -> float:
    """Share of curvature and gradient together that the curvature gets.

    Parameters
    ----------
    ratio : float
        Noise of the curvature over the distance to the mode, over that of the gradient, if both
        cost the same. This share to that of the gradient makes the sum of both errors least.
    last : bool
        Of the last stage.
    """
    least, most = LAST_SPLIT if last else SPLIT
    return min(max(ratio / (1 + ratio), least), most)


# Length of a gradient that says anything.
LEAST = 2.0**-WIDEST
# Share of the rows that a search before the last may clip, where the budget can tell so few: where
# one kind of row is rare all of its pull is in as few rows, and a bound that clips them all sends
# the point to where the rare kind does not count.
FEW = 0.004
# Most of the budget that the first counts have for it, and that those of a later stage have.
MOST_FEW = (0.03, 0.01)
# Noise of the first counts, as a share of the rows, at least.
FIRST_COUNTS = 1 / 16
# Most of the budget that the first counts have.
MOST_FIRST = 0.3
# Share of the counts for the clip bound of gradients; the rest is for that of curvatures.
GRADIENT_COUNTS = 0.75
# Bisections of the first search, from 1e-30 to 1e30.
FIRST_BISECTIONS = 7
# Bisections of later searches, and log2 of how far they reach each way.
BISECTIONS = 3
REACH = 1.5
# The same of the last search, which knows more.
LAST_BISECTIONS = 3
LAST_REACH = 0.75
# Standard deviations of a count that the rows to clip lie above zero, in the first search: as long
# as they are at most half of all rows.
FIRST_CLEAR = 4.0
# The same in later searches, and at least of gradients that a count cannot find among few rows: a
# bound that is too large by chance costs less than one that clips all rows of a rare kind.
CLEAR, UNCLEAR = 2.5, 1.25
# The same in the last search.
LAST_CLEAR = 1.0
# Largest noise of a count of the first search that decides anything, as a share of the rows. That
# search is wrong by orders of magnitude if one of its counts is: at this noise no row and all of
# them are 3.5 deviations from half of the rows.
FIRST_DECIDES = 1 / 7
# The same of later counts, which move a bound that is about right by little.
DECIDES = 1 / 2


@dataclass(frozen=True)
class Bounds:
    """Log2 of clip bounds, in the units of one basis."""

    gradient: float
    curvature: float

    def rescaled(self, typical: float) -> Bounds:
        """Bounds in a basis where curvatures are smaller by a factor, given as its log2."""
        return Bounds(self.gradient - 0.5 * typical, self.curvature - typical)


def count_valid(
    rows: WhitenedRows | FederatedRows, purse: Purse, start: Array
) -> tuple[float, float]:
    """Noisy number of rows that say anything at the start, and the deviation of its noise.

    Most of the rows that may be invalid may be: a share of all of them to clip is never found.
    """
    some = rows.gradients_beyond(start, np.eye(len(start)), [LEAST])[LEAST]
    return purse.total(some, counted.SHARE * purse.left)


def count_cost(known: bool, cost: float, last: bool, num_rows: int, total: float) -> float:
    """Cost of the counts of a stage, in parts of mu^2.

    Parameters
    ----------
    known : bool
        Whether bounds have been found before.
    cost : float
        Of the stage.
    last : bool
    num_rows : int
    total : float
        The budget.
    """
    if known and last:
        return LAST_COUNTS * cost
    if known:
        few = BISECTIONS / GRADIENT_COUNTS * (CLEAR / (FEW * num_rows)) ** 2
        return max(COUNTS * cost, min(few, MOST_FEW[1] * total))
    # The first search is wrong by orders of magnitude if one count is.
    needed = 2 * FIRST_BISECTIONS / (FIRST_COUNTS * num_rows) ** 2
    few = 2 * FIRST_BISECTIONS * (FIRST_CLEAR / (FEW * num_rows)) ** 2
    return max(COUNTS * cost, min(needed, MOST_FIRST * total), min(few, MOST_FEW[0] * total))


def is_least(found: Bounds) -> bool:
    """True if the first search found next to no row that contributes anything."""
    return found.gradient <= 2 * WIDEST / 2.0**FIRST_BISECTIONS - WIDEST


def fewest_rows(mu: float, spread: float = 1.0) -> float:
    """Number of rows from which on the first counts tell anything.

    Of fewer nothing can be known, not even the scale of what they contribute.

    Parameters
    ----------
    mu : float
        The budget.
    spread : float
        Of `Purse`.
    """
    return spread * count_noise(2 * FIRST_BISECTIONS, MOST_FIRST * mu**2) / FIRST_DECIDES


def find(
    rows: WhitenedRows | FederatedRows,
    purse: Purse,
    place: tuple[Array, Array],
    known: Bounds | None,
    cost: float,
    last_left: float | None,
) -> tuple[Bounds, float]:
    """Clip bounds, and how many row gradients the first may clip.

    Parameters
    ----------
    rows : WhitenedRows or FederatedRows
    purse : Purse
    place : tuple of ndarray
        Point and basis.
    known : Bounds, optional
        Of the stage before, in this basis.
    cost : float
        Of all counts.
    last_left : float, optional
        What was left of the budget when the last stage began; None of earlier stages.
    """
    found, targets = [], []
    near = known or Bounds(0.0, 0.0)
    share = GRADIENT_COUNTS if known else 0.5
    if known is None:
        steps, reach = FIRST_BISECTIONS, WIDEST
    elif last_left is None:
        steps, reach = BISECTIONS, REACH
    else:
        steps, reach = LAST_BISECTIONS, LAST_REACH
    for beyond, middle, part, clear in (
        (rows.gradients_beyond, near.gradient, share * cost, UNCLEAR),
        (rows.curvatures_beyond, near.curvature, (1 - share) * cost, CLEAR),
    ):
        noise = purse.spread * count_noise(steps, part)
        targets.append(_target(rows, noise, clear if known else None, last_left, purse.moved))
        if known is not None and noise > DECIDES * rows.num_rows:
            found.append(middle)
            continue
        counts = functools.partial(beyond, *place)
        bound = search(purse, counts, targets[-1], middle - reach, middle + reach, steps, part)
        found.append(math.log2(bound))
    return Bounds(*found), targets[0]


def _target(
    rows: WhitenedRows | FederatedRows,
    noise: float,
    clear: float | None,
    last_left: float | None,
    moved: float,
) -> float:
    """Number of rows to clip, at least `clear` deviations of a count, which is None of the first.

    The bias of m clipped rows is at most about m bounds, the noise of the gradient s / mu of them
    in each direction, if a row moves it by s: m of s sqrt(d) / mu makes them alike.
    """
    most = rows.num_rows / 4
    if clear is None:
        return max(FEW * rows.num_rows, min(FIRST_CLEAR * noise, 2 * most))
    if last_left is not None:
        target = max(LAST_CLEAR * noise, moved * math.sqrt(rows.dim / last_left))
    else:
        target = min(CLEAR * noise, max(clear * noise, FEW * rows.num_rows))
    return min(max(target, 1.0), most)
