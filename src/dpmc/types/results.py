"""Parts of results: released shares, names of columns, and the order of axes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

# Columns of `Fit.info` that are functions of released numbers and public randomness alone.
PUBLIC_INFO = ("accepted", "diverged")
# Counts of private rows, which are not, and what a guarantee names them by.
CLIP_COUNTS = ("ratio_clipped", "gradient_clipped")
CLIPS_OUTSIDE = "clip counts in info and totals"
CLIP_FRACTIONS_OUTSIDE = "clip fractions"


@dataclass(frozen=True)
class Diagnostic:
    """A share of private rows as it was released.

    Parameters
    ----------
    value : float
        In [0, 1], with noise on it.
    standard_error : float
        Standard deviation of the noise, 0 where there is none.
    """

    value: float
    standard_error: float = 0.0


def swapped(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Array by chains of one by draws, or the other way round: its first two axes exchanged."""
    return np.ascontiguousarray(np.moveaxis(values, 0, 1))


def first_half(num_states: int) -> int:
    """Warm-up of chains that were stored from their first move on.

    Of the k + 1 states from the start point on, rows int((k - 1) / 2) + 1 to k are kept.
    """
    return max(0, (num_states - 1) // 2)
