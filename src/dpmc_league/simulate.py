"""Rows of tasks, simulated from fixed seeds to six decimals: the same on all machines."""

from __future__ import annotations

import numpy as np

from dpmc.rng import stream
from dpmc.types import Array

SEED = 20261124
DECIMALS = 6


def generator(name: str) -> np.random.Generator:
    """Generator of the rows of a task."""
    return stream(SEED, "data", "league", name)


def rounded(rows: Array) -> Array:
    """Rows to six decimals."""
    values: Array = np.round(rows, DECIMALS) + 0.0
    return values


def regression_features(num_rows: int, num_features: int, rng: np.random.Generator) -> Array:
    """Independent standard normal features, cut off at 2 on either side."""
    return rounded(np.clip(rng.standard_normal((num_rows, num_features)), -2.0, 2.0))
