"""Shares of the budget, of a stage of a search, and of the last one."""

from __future__ import annotations

# Share of the budget that stages before the last may spend, and of what is left of it that one may.
EXPLORE = 0.5
PORTION = 0.2
# Shares of the budget at which the rest of it is explored in one stage, or not at all.
WHOLE, NOTHING = 0.075, 0.03
# Errors over the distance that is left, as a share of the noise of a last gradient: below the first
# no more is explored; above the second a stage comes in between, with so large a share of what is
# left.
SETTLED, UNSETTLED = 0.5, 0.7
# Distance in each direction, in deviations of the posterior, from which on the first may be so:
# over a longer one curvature changes more than the number of rows tells.
NEAR = 1.5
SETTLE = 0.35
# How much more is spent where a step is mostly noise.
GROWTH = 4.0
# Noise of the first gradient, as a share of what all rows together could contribute at the bound.
FIRST_NOISE = 1 / 30
# Shares of a stage, and of the last: counts; a line search before the last alone.
COUNTS, LAST_COUNTS = 0.15, 0.1
LINE = 0.08
# Share of a stage for the tail of row gradients, and of the budget that such a stage has.
TAIL, TAIL_WORTH = 0.1, 0.03
# Share of the budget for a look at the rows after the last stage.
CHECK = 0.02
# Of that, the sum of squared gradients.
SQUARES = 0.5
# What the last gradient has of its stage, about.
LAST_GRADIENT = 0.68
# Of curvature and gradient together, for the curvature: least and most, of a stage and of the last.
SPLIT, LAST_SPLIT = (0.15, 0.6), (0.05, 0.25)


def of_curvature(ratio: float, last: bool) -> float:
    """Return the share of curvature and gradient together that the curvature gets.

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
