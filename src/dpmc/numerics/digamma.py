"""The digamma function, compiled."""

from __future__ import annotations

import math

from dpmc.numerics.compiled import njit

# From here on the asymptotic series is exact to rounding.
LARGE = 10.0


@njit
def digamma(x: float) -> float:
    """Return the derivative of log gamma at x > 0; NaN elsewhere.

    By the recurrence psi(x) = psi(x + 1) - 1 / x up to 10, then the asymptotic series
    [Abramowitz and Stegun, 6.3.18].

    Examples
    --------
    >>> round(digamma(1.0), 12)
    -0.577215664902
    """
    if not x > 0.0:
        return math.nan
    total = 0.0
    while x < LARGE:
        total -= 1.0 / x
        x += 1.0
    inverse = 1.0 / x
    square = inverse * inverse
    series = square * (-1 / 132 + square * (691 / 32760 - square / 12))
    series = square * (
        1 / 12 - square * (1 / 120 - square * (1 / 252 - square * (1 / 240 + series)))
    )
    return total + math.log(x) - 0.5 * inverse - series
