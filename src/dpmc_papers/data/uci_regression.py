"""Tables of the UCI repository as rows for private regression without an intercept.

Either scaled as the public code of the thesis scales them [alparslan2023thesis, section 7.2],
with means, scales and bounds taken from the private rows, or by public constants.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from dpmc.checks import one_of
from dpmc.types import Array, Dataset, DpmcError
from dpmc_papers.data import uci
from dpmc_papers.data._uci_public import RANGES

# What can be had besides the whole table.
VARIANTS: Mapping[str, str] = {
    "bike_sharing": "without_leak",
    "air_quality": "clean",
    "road_3d": "without_id",
}
DROPPED: Mapping[str, tuple[str, ...]] = {
    "without_leak": ("casual", "registered"),
    "clean": ("NMHC(GT)",),
    "without_id": ("OSM_ID",),
}
# Code of a missing value in the air quality table.
MISSING = -200.0
# The public code reads the air quality table from a copy with two decimals.
DECIMALS: Mapping[str, int] = {"air_quality": 2}

raw_file = uci.raw_file


@dataclass(frozen=True)
class Params:
    """Which table, which part of it, and who says how large its numbers are.

    Parameters
    ----------
    dataset : str
        A key of :data:`dpmc_papers.data.uci.TABLES` or one of its aliases.
    preprocess : {"public_bounds", "authors"}
        ``"public_bounds"``: each column is clipped to a public range and scaled to [-1, 1],
        with a typical value at zero; no row has a say in another. ``"authors"``: features
        are standardised and the target centred and divided by its largest absolute value,
        all by the rows themselves, those of the test part included; the bounds are then
        those of the training rows. None of that is private.
    variant : str
        ``"whole"``, or for ``bike_sharing`` ``"without_leak"`` (without ``casual`` and
        ``registered``, whose sum is the target), for ``air_quality`` ``"clean"`` (complete
        rows only, without the mostly missing ``NMHC(GT)``; missing values have the code
        -200 otherwise), for ``road_3d`` ``"without_id"`` (the identifier of the road is a
        feature otherwise).
    """

    dataset: str
    preprocess: Literal["public_bounds", "authors"] = "public_bounds"
    variant: str = "whole"

    def __post_init__(self) -> None:
        name = uci.resolve(self.dataset)
        one_of("preprocess", self.preprocess, ("public_bounds", "authors"))
        variants = ("whole", VARIANTS[name]) if name in VARIANTS else ("whole",)
        one_of("variant", self.variant, variants)
        if self.preprocess == "public_bounds" and name not in RANGES:
            raise DpmcError(f"`preprocess` must be 'authors' for {name}, got 'public_bounds'")


class RegressionSplit(NamedTuple):
    """Training and test part of a data set.

    Parameters
    ----------
    x : ndarray of shape (num_train, d)
    y : ndarray of shape (num_train,)
    x_test : ndarray of shape (num_test, d)
    y_test : ndarray of shape (num_test,)
    """

    x: Array
    y: Array
    x_test: Array
    y_test: Array


def generate(params: Params, rng: np.random.Generator, path: Path | None = None) -> Dataset:
    """Features and target, x of shape (N, d + 1), the training rows first.

    They are the first four fifths of the rows, rounded up, in the order of the file, or the
    part that the table prescribes. ``bounds`` has ``x_norm``, the largest Euclidean norm of
    a training row's features, ``y_abs``, the largest absolute target; ``facts`` has
    ``num_train``, and ``num_clipped``, the training rows that a public range clipped.
    """
    table = uci.load(params.dataset, path)
    columns, numbers = _variant(table, params.variant)
    prescribed = uci.TABLES[table.name].num_train
    num_train = prescribed if prescribed is not None else -(-4 * len(numbers) // 5)
    if params.preprocess == "authors":
        rows = _by_the_rows(_rounded(numbers, DECIMALS.get(table.name)))
        x, y = rows[:num_train, :-1], rows[:num_train, -1]
        x_norm, y_abs = np.linalg.norm(x, axis=1).max(), np.abs(y).max()
        num_clipped = 0
    else:
        rows, clipped = by_ranges(numbers, [RANGES[table.name][name] for name in columns])
        x_norm, y_abs = np.sqrt(len(columns) - 1), 1.0
        num_clipped = int(clipped[:num_train].sum())
    bounds = {"x_norm": float(x_norm), "y_abs": float(y_abs)}
    facts = {"num_train": num_train, "num_clipped": num_clipped}
    source: Literal["data", "public"] = "data" if params.preprocess == "authors" else "public"
    return Dataset(table.name, rows, bounds, source, facts=facts)


def split(dataset: Dataset) -> RegressionSplit:
    """Training and test part of what :func:`generate` made."""
    num_train = int(dataset.facts.get("num_train", 0))
    if not 0 < num_train < dataset.num_rows:
        raise DpmcError(
            f"`num_train` of data {dataset.name!r} must be 1 to {dataset.num_rows - 1}, "
            f"got {num_train}"
        )
    x, y = dataset.x[:, :-1], dataset.x[:, -1]
    return RegressionSplit(x[:num_train], y[:num_train], x[num_train:], y[num_train:])


def by_ranges(numbers: Array, ranges: list[tuple[float, float, float]]) -> tuple[Array, Array]:
    """Clip each column to its range, lowest, typical and highest, and scale it to [-1, 1].

    The typical value goes to zero, the end farther from it to -1 or 1. Returned are rows of the
    shape of `numbers`, and which of them had something beyond a range.
    """
    low, typical, high = np.transpose(np.asarray(ranges, dtype=np.float64))
    inside = np.clip(numbers, low, high)
    rows = (inside - typical) / np.maximum(high - typical, typical - low)
    return rows, np.any(inside != numbers, axis=1)


def _variant(table: uci.RawTable, variant: str) -> tuple[tuple[str, ...], Array]:
    """Columns and rows of a part of a table."""
    columns = tuple(name for name in table.columns if name not in DROPPED.get(variant, ()))
    numbers = table.numbers[:, [table.columns.index(name) for name in columns]]
    if variant == "clean":
        numbers = numbers[np.all(numbers != MISSING, axis=1)]
    return columns, numbers


def _by_the_rows(numbers: Array) -> Array:
    """Standardise the features, centre the target and divide it by its largest size."""
    centred: Array = numbers - numbers.mean(axis=0)
    deviations = numbers[:, :-1].std(axis=0, ddof=1)
    # A column of equal numbers may have a deviation of rounding errors.
    constant = np.ptp(numbers[:, :-1], axis=0) == 0
    centred[:, :-1] /= np.where(constant, 1.0, deviations)
    centred[:, -1] /= np.abs(centred[:, -1]).max()
    return centred


def _rounded(numbers: Array, decimals: int | None) -> Array:
    """Round to decimals, halves away from zero as spreadsheets do; not at all for ``None``."""
    if decimals is None:
        return numbers
    scale = 10.0**decimals
    rounded: Array = np.copysign(np.floor(np.abs(numbers) * scale + 0.5) / scale, numbers)
    return rounded
