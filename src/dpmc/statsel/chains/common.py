"""Shared parts of the compiled chains of all samplers, and their assembly.

One compiled call runs a chain of one release, from a state that it leaves behind, so that
chains can be run in parts. Functions of the population are compiled into it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from dpmc.numerics.small_matrices import compiled


class ThetaWalk(NamedTuple):
    """The random walk on theta, and the interval outside of which it is rejected."""

    low: float
    high: float
    step: float


class Faults(NamedTuple):
    """Deviations from the right algorithm: what the thesis prints, and what tests have to see.

    Parameters
    ----------
    weights_at_old_theta : bool
        Weights of the estimate at theta' divide the density at theta by that of their
        proposal [alparslan2023thesis, Algorithms 2 and 10 as printed].
    inverted_ratio : bool
        ``sum w / sum w'`` [alparslan2023thesis, equation 2.7 as printed].
    rejected_with_new_weights : bool
        On rejection a particle is taken in proportion to w'.
    index_at_old_theta : bool
        On acceptance a particle is taken in proportion to its density at theta.
    current_left_out : bool
        The current particle is neither in the sums nor to be taken.
    drawn_at_old_theta : bool
        Particles of Algorithm 11 are drawn at theta, not at the middle of theta and theta': a
        distribution that is not symmetric in the two.
    """

    weights_at_old_theta: bool = False
    inverted_ratio: bool = False
    rejected_with_new_weights: bool = False
    index_at_old_theta: bool = False
    current_left_out: bool = False
    drawn_at_old_theta: bool = False


RIGHT = Faults()


@compiled
def accepts(log_ratio: float, rng: Any) -> bool:
    """Whether to move; a ratio that is not a number does not."""
    if log_ratio >= 0.0:
        return True
    return math.log(1.0 - rng.random()) < log_ratio


@compiled
def exponentiate(logs: Any, first: int) -> tuple[float, float]:
    """Replace logarithms by weights relative to the largest; return its logarithm and the sum.

    Entries before `first` become 0. If all are -inf the sum is 0.
    """
    top = -math.inf
    for j in range(first, logs.size):
        top = max(top, logs[j])
    if top == -math.inf:
        for j in range(logs.size):
            logs[j] = 0.0
        return top, 0.0
    total = 0.0
    for j in range(first):
        logs[j] = 0.0
    for j in range(first, logs.size):
        logs[j] = math.exp(logs[j] - top)
        total += logs[j]
    return top, total


@compiled
def pick(weights: Any, total: float, rng: Any) -> int:
    """Draw an index in proportion to weights of this sum."""
    left = rng.random() * total
    last = 0
    for j in range(weights.size):
        if weights[j] > 0.0:
            last = j
            left -= weights[j]
            if left < 0.0:
                break
    return last
