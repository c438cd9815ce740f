"""Values of compiled loops on a grid, to which discrete noise is added."""

from __future__ import annotations

import numpy as np

from dpmc.numerics.compiled import njit

# Integers of a value are clamped here: with noise on them they stay below 2**53.
MOST_STEPS = 2.0**52


@njit
def on_steps(value: float, grid: float) -> float:
    """Multiple of a power of two next to a value: NaN counts as 0, ends are clamped."""
    steps = np.rint(value / grid)
    if not -MOST_STEPS <= steps <= MOST_STEPS:
        steps = MOST_STEPS * np.sign(steps) if steps == steps else 0.0
    return float(steps * grid)
