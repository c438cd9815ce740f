"""Fisher information as a function of epsilon and theta, NaN where it does not exist."""

from __future__ import annotations

import math
from collections.abc import Callable

from dpmc.types import DpmcError

Curve = Callable[[float, float], float]


def value_or_nan(curve: Curve, epsilon: float, theta: float) -> float:
    """Return an information, NaN where the mechanism refuses the budget or theta."""
    try:
        return curve(float(epsilon), float(theta))
    except DpmcError:
        return math.nan
