"""Roots of monotone functions: a bracket that closes in, and the epsilon that a delta has."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from dpmc.types.numbers import check_delta

MAX_EPSILON = 1e4  # of numerical accountants
EPSILON_PRECISION = 1e-7


@dataclass
class Bracket:
    """A root of an increasing function between two points, by the Illinois rule.

    The value at an end that has stayed twice is halved, so that both ends close in.
    """

    low: float
    at_low: float
    high: float
    at_high: float
    side: int = 0
    steps: int = 0

    def share(self) -> float:
        """Place of the root, from 0 at the low end to 1 at the high end."""
        self.steps += 1
        gap = self.at_high - self.at_low
        return -self.at_low / gap if self.steps % 8 and math.isfinite(gap) and gap > 0 else 0.5

    def narrow(self, x: float, value: float) -> None:
        """Replace an end by `x`."""
        side = 1 if value > 0 else -1
        stays = side == self.side
        if side > 0:
            self.high, self.at_high = x, value
            self.at_low *= 0.5 if stays else 1.0
        else:
            self.low, self.at_low = x, value
            self.at_high *= 0.5 if stays else 1.0
        self.side = side


def smallest_epsilon(
    delta_at: Callable[[float], float], delta: float, most: float = MAX_EPSILON
) -> float:
    """Epsilon with ``delta_at(epsilon) <= delta``, at most 1e-7 (relative) too large.

    Parameters
    ----------
    delta_at : callable ``(float) -> float``
        Decreasing in epsilon.
    delta : float
        In (0, 1).
    most : float
        The largest epsilon that is looked for.

    Returns
    -------
    float
        ``inf`` where no epsilon up to four times `most` will do.
    """
    check_delta(delta)

    def excess(epsilon: float) -> float:
        value = delta_at(epsilon)
        return math.log(value / delta) if value > 0 else -math.inf

    low, high = 0.0, 1.0
    at_low = excess(low)
    if at_low <= 0:
        return 0.0
    at_high = excess(high)
    while at_high > 0:
        if high >= most:
            return math.inf
        low, at_low, high = high, at_high, 4 * high
        at_high = excess(high)
    bracket = Bracket(low, -at_low, high, -at_high)
    while (gap := bracket.high - bracket.low) > EPSILON_PRECISION * bracket.high:
        shift = 0.4 * EPSILON_PRECISION * bracket.high  # off an estimate that is already good
        estimate = bracket.low + gap * bracket.share() + (-shift if bracket.side > 0 else shift)
        epsilon = min(max(estimate, bracket.low + shift), bracket.high - shift)
        value = excess(epsilon)
        bracket.narrow(epsilon, -value if value else 5e-324)
    return bracket.high
