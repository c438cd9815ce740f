"""Rows of a regression, of persons, in units: what the contests of the league are fitted to.

Columns are the number of a person, the features and the response. Features are normal, cut where
rows in units of their own would end; public ranges reach `width` standard deviations to each side.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpmc import checks
from dpmc.types import Array, Dataset, DpmcError
from dpmc_league.contest import LINEAR, LOGISTIC, Table

CUT = 2.5  # standard deviations at which features end, and the least width of a range
RESPONSE = 8.0  # half of the range of a linear response over `width` / 2.5, its noise is 1


@dataclass(frozen=True)
class Params:
    """How rows are drawn, and what is public of them.

    Parameters
    ----------
    num_rows : int
    family : {"linear", "logistic"}
    effects : sequence of float
        Of a standard deviation of each feature.
    constant : float
    units : sequence of (float, float), optional
        Mean and standard deviation of each feature; 0 and 1 by default.
    width : float
        Half of the public range of a feature in its standard deviations, at least 2.5.
    per_person : int
    shared : float
        Standard deviation of what the responses of a person share.
    correlation : float
        Of each two features, before they are cut; in [0, 1).
    levels : sequence of int, optional
        How many values each feature has, the middles of bins of equal width; at least 2.
    draw : int
        Number of the draw.
    """

    num_rows: int = 20_000
    family: str = LINEAR
    effects: Sequence[float] = (1.0, -0.5, 0.3)
    constant: float = 0.0
    units: Sequence[Sequence[float]] | None = None
    width: float = CUT
    per_person: int = 1
    shared: float = 0.0
    correlation: float = 0.0
    levels: Sequence[int] | None = None
    draw: int = 0

    def __post_init__(self) -> None:
        checks.at_least("num_rows", self.num_rows, 100)
        checks.one_of("family", self.family, (LINEAR, LOGISTIC))
        if not self.width >= CUT:
            raise DpmcError(f"`width` must be at least {CUT}, got {self.width}")
        checks.at_least("per_person", self.per_person, 1)
        checks.at_least("draw", self.draw, 0)
        if not 0 <= self.correlation < 1:
            raise DpmcError(f"`correlation` must be in [0, 1), got {self.correlation}")
        if self.levels is not None:
            if len(self.levels) != len(self.effects):
                raise DpmcError(
                    f"`levels` must be {len(self.effects)} numbers, got {len(self.levels)}"
                )
            for number in self.levels:
                checks.at_least("levels", number, 2)

    def scales(self) -> Array:
        """Mean and standard deviation of each feature, shape (p, 2)."""
        return np.array(self.units or [(0.0, 1.0)] * len(self.effects), dtype=np.float64)


def generate(params: Params, rng: np.random.Generator) -> Dataset:
    """Draw the rows; ``truth`` holds the slopes in the units of the features."""
    shape = params.num_rows, len(params.effects)
    z = rng.standard_normal(shape)
    if params.correlation:
        common = rng.standard_normal((params.num_rows, 1))
        z = math.sqrt(1 - params.correlation) * z + math.sqrt(params.correlation) * common
    z = np.clip(z, -CUT, CUT)
    if params.levels is not None:
        z = _binned(z, np.asarray(params.levels))
    person = np.arange(params.num_rows) // params.per_person
    habit = params.shared * rng.standard_normal(person[-1] + 1)
    expected = params.constant + z @ np.asarray(params.effects) + habit[person]
    if params.family == LOGISTIC:
        y = (rng.random(params.num_rows) < 1 / (1 + np.exp(-expected))).astype(np.float64)
    else:
        y = expected + rng.standard_normal(params.num_rows)
    scales = params.scales()
    x = np.column_stack([person, scales[:, 0] + scales[:, 1] * z, y])
    return Dataset("league_regression", x, truth=np.asarray(params.effects) / scales[:, 1])


def table(params: Params, dataset: Dataset) -> Table:
    """Rows and what is public of them."""
    scales = params.scales()
    response = RESPONSE * params.width / CUT
    half = np.append(params.width * scales[:, 1], response)
    middle = np.append(scales[:, 0], params.constant)
    levels = None
    if params.levels is not None:
        levels = tuple(
            mean + sd * _binned(np.linspace(-CUT, CUT, 2 * number + 1)[1::2], np.array(number))
            for number, (mean, sd) in zip(params.levels, scales, strict=True)
        )
    x = dataset.x
    return Table(
        x[:, 1:-1], x[:, -1], x[:, 0].astype(np.int64), params.per_person, middle - half,
        middle + half, params.family, levels,
    )  # fmt: skip


def _binned(z: Array, numbers: Array) -> Array:
    """Middles of the bins of equal width, within the cut, that values are in."""
    bins = np.minimum(np.floor((z + CUT) / (2 * CUT) * numbers), numbers - 1)
    middles: Array = (2 * bins + 1) / numbers * CUT - CUT
    return middles
