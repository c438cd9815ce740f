"""Memory layout of the weights of a network with one hidden layer.

Hidden units come in tiles of eight, the lanes of :mod:`dpmc.numerics.simd`; the bias of the output
is one more unit, which is always 1. Within a tile there is a row of eight weights for each input,
one for the bias of the unit, and one for what the unit contributes to the output. Lanes without
a unit keep shift 0 and precision 1 and have no influence on anything.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpmc import checks
from dpmc.numerics.simd import WIDTH
from dpmc.types import Array

Layers = tuple[Array, Array]


@dataclass(frozen=True)
class Architecture:
    """A network with one hidden layer of rectified linear units, a bias in both layers."""

    hidden: int  # Units H
    inputs: int  # Features d

    def __post_init__(self) -> None:
        checks.at_least("hidden", self.hidden, 1)
        checks.at_least("inputs", self.inputs, 1)

    @property
    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Shapes of the two layers: a row for each unit, the bias last."""
        return (self.hidden, self.inputs + 1), (self.hidden + 1,)

    @property
    def rows(self) -> int:
        """Rows of a tile."""
        return self.inputs + 2

    @property
    def tiles(self) -> int:
        """Tiles of eight units, the bias of the output among them."""
        return -(-(self.hidden + 1) // WIDTH)

    @property
    def size(self) -> int:
        """Numbers in memory, those of lanes without a unit among them."""
        return self.tiles * self.rows * WIDTH

    def pack(self, first: Array, second: Array, empty: float) -> Array:
        """Two layers as they lie in memory, `empty` where there is no weight."""
        units = np.full((self.tiles * WIDTH, self.rows), empty)
        units[: self.hidden, :-1] = first
        units[: self.hidden + 1, -1] = second
        tiles = units.reshape(self.tiles, WIDTH, self.rows).transpose(0, 2, 1)
        return np.ascontiguousarray(tiles).ravel()

    def unpack(self, flat: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Two layers of what `pack` made."""
        tiles = flat.reshape(self.tiles, self.rows, WIDTH).transpose(0, 2, 1)
        units = tiles.reshape(self.tiles * WIDTH, self.rows)
        return units[: self.hidden, :-1].copy(), units[: self.hidden + 1, -1].copy()

    def places(self) -> npt.NDArray[np.int64]:
        """Place of each weight: the first layer unit by unit, then the second."""
        return np.concatenate([layer.ravel() for layer in self.unpack(np.arange(self.size))])

    def lanes(self) -> tuple[Array, Array]:
        """Masks of the lanes: hidden units, and the bias of the output."""
        units = np.arange(self.tiles * WIDTH)
        return (units < self.hidden).astype(np.float64), (units == self.hidden).astype(np.float64)

    def site_bytes(self, num_rows: int) -> int:
        """Memory that a site of its own takes for each row of the data."""
        return num_rows * (2 * self.size + 2) * 8


class Arrays(NamedTuple):
    """State of compiled code; arrays of `Architecture.size` unless said otherwise.

    A Gaussian factor is a shift (precision times mean) and a precision.
    """

    shift: Array  # of the approximation q
    precision: Array
    prior: Array  # precision of the prior, whose mean is zero
    site_shift: Array  # of the factor taken out: one for all rows, or one for each
    site_precision: Array
    mean: Array  # of the cavity
    variance: Array
    factor_shift: Array  # of the factor of a row, where it is clipped or released
    factor_precision: Array
    scaled: Array  # (d + 1,): inputs over the root of their number
    squared: Array  # (d + 1,): squares of these
    unit_mean: Array  # (8 tiles,): of the output of each unit
    unit_variance: Array
    below: Array  # (8 tiles,): the chance of a unit to be off, and on
    above: Array
    slope: Array  # (8 tiles,): derivative of the mean by the variance of its input
    real: Array  # (8 tiles,): 1 for a hidden unit
    bias: Array  # (8 tiles,): 1 for the bias of the output
    gamma: Array  # (2,): shape and rate of the noise precision
    site_gamma: Array  # (1 or rows of the data, 2)
    noise: Array  # normal numbers to come
    position: Any  # (1,): which of them is next
    words: Any  # (32,): state of their source
    counts: Any  # (len(COUNTS),)


class NetworkLoopSettings(NamedTuple):
    """Settings as compiled code reads them."""

    rows: int
    tiles: int
    share: float  # of q that is taken out: 1 / N, or 0
    step: float
    sites: bool  # one for each row of the data
    stepwise: bool  # the factor is clipped or released before it is included
    clip: int  # 0 not, 1 jointly, 2 each block
    clip_bound: float
    noise_sd: float
    floor_share: float  # a precision below floor_share * prior + floor_base
    floor_base: float
    floor_lift: float  # is set to that plus floor_lift
    learned: bool  # the noise precision
    shape: float  # its prior
    rate: float
    input_root: float
    input_share: float
    unit_root: float
    unit_share: float


# Counts of a run: steps, weights whose factor was not valid and left them as they
# were, blocks or vectors that were clipped, precisions that were raised, steps whose
# prediction was not finite, and factors of the noise precision that were not valid.
COUNTS = ("steps", "invalid_weights", "clipped", "raised", "broken_steps", "invalid_noise")
# Counts that follow from settings and released states alone; the others depend on rows.
RELEASED_COUNTS = ("steps", "raised")


def scales(architecture: Architecture) -> dict[str, float]:
    """Scales of the two layers: one over the number of their inputs, and its root."""
    first, second = architecture.inputs + 1, architecture.hidden + 1
    return {
        "input_root": 1 / math.sqrt(first),
        "input_share": 1 / first,
        "unit_root": 1 / math.sqrt(second),
        "unit_share": 1 / second,
    }
