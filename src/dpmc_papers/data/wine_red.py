"""Red wine quality [Cortez et al. 2009]: 1,599 wines, eleven measurements and a grade.

Measurements are scaled to [-1, 1] by public ranges of what such wines can have, chosen
without the data; what lies outside is moved to the nearest end. Every row is then
bounded by a constant that no private record had a say in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpmc.types import Dataset, DpmcError
from dpmc_papers.data import uci

TABLE = "wine_red"

# Column and public range of each measurement, in the units of the file.
RANGES = {
    "fixed_acidity": (0, 4.0, 16.0),
    "volatile_acidity": (1, 0.0, 1.6),
    "citric_acid": (2, 0.0, 1.0),
    "residual_sugar": (3, 0.0, 16.0),
    "chlorides": (4, 0.0, 0.6),
    "free_sulfur_dioxide": (5, 0.0, 80.0),
    "total_sulfur_dioxide": (6, 0.0, 300.0),
    "density": (7, 0.985, 1.005),
    "ph": (8, 2.5, 4.5),
    "sulphates": (9, 0.0, 2.0),
    "alcohol": (10, 8.0, 15.0),
}


@dataclass(frozen=True)
class Params:
    """Which measurements to use and what counts as good.

    Parameters
    ----------
    columns : sequence of str
        Names of measurements, see ``RANGES``.
    good_from : int
        Grades from here on are good, labelled +1; the others -1.
    """

    columns: Sequence[str] = tuple(RANGES)
    good_from: int = 6

    def __post_init__(self) -> None:
        for name in self.columns:
            if name not in RANGES:
                raise DpmcError(f"`columns` must be among {', '.join(RANGES)}, got {name!r}")


def generate(params: Params, rng: np.random.Generator, path: Path | None = None) -> Dataset:
    """Rows (1, scaled measurements) times their label, x of shape (1599, p + 1).

    The signed row is all that a logistic likelihood reads. Its norm is at most
    ``bounds["row_norm"]``, the square root of p + 1.
    """
    numbers = uci.load(TABLE, path).numbers
    label = np.where(numbers[:, -1] >= params.good_from, 1.0, -1.0)
    scaled = [np.ones(len(numbers))]
    for name in params.columns:
        column, low, high = RANGES[name]
        scaled.append(np.clip(2 * (numbers[:, column] - low) / (high - low) - 1, -1, 1))
    x = label[:, None] * np.stack(scaled, axis=1)
    return Dataset("wine_red", x, {"row_norm": float(np.sqrt(x.shape[1]))})


def raw_file(params: Params) -> str:
    """Key in ``uci.TABLES`` of the raw file."""
    return TABLE
