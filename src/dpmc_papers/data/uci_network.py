"""Tables of the UCI repository as rows for small networks, split as in [vinaroz2022dpsep].

Nine tenths of the rows are for training, drawn by a seed. Either all is standardised by the
training rows, as the paper has it, or by public constants; then no row has a say in another.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from dpmc import checks
from dpmc.types import Array, Dataset, DpmcError
from dpmc_papers.data import uci, uci_regression
from dpmc_papers.data._uci_network_public import NETWORK_RANGES

TRAIN, TEST = 0.9, 0.1
# A public range stands for four standard deviations.
DEVIATIONS = 4

raw_file = uci.raw_file


@dataclass(frozen=True)
class Params:
    """Which table, which split of it, and who says how large its numbers are.

    Parameters
    ----------
    dataset : str
        One of ``kin8nm``, ``naval``, ``power``, ``protein``, ``wine`` and ``year``, or what
        :mod:`dpmc_papers.data.uci` calls them.
    seed : int
        Of the split, 0 to 2**32 - 1. The split of ``year`` is part of the table.
    preprocess : {"public_bounds", "authors"}
        ``"public_bounds"``: each column is clipped to a public range, less its typical value,
        over a quarter of the range; targets of test rows are not clipped. ``"authors"``: mean
        and standard deviation of the training rows, which are not private.
    """

    dataset: str
    seed: int = 1
    preprocess: Literal["public_bounds", "authors"] = "public_bounds"

    def __post_init__(self) -> None:
        if uci.ALIASES.get(self.dataset, self.dataset) not in NETWORK_RANGES:
            known = ", ".join(sorted([*NETWORK_RANGES, "power", "wine"]))
            raise DpmcError(f"`dataset` must be one of {known}, got {self.dataset!r}")
        checks.at_least("seed", self.seed, 0)
        if self.seed >= 2**32:
            raise DpmcError(f"`seed` must be below 2**32, got {self.seed}")
        checks.one_of("preprocess", self.preprocess, ("public_bounds", "authors"))


class NetworkSplit(NamedTuple):
    """Training and test part of a data set, and the units of its target.

    Parameters
    ----------
    x : ndarray of shape (num_train, d)
    y : ndarray of shape (num_train,)
    x_test : ndarray of shape (num_test, d)
    y_test : ndarray of shape (num_test,)
        Standardised as `y`.
    y_shift, y_scale : float
        A target in its own units is ``y_shift + y_scale * y``.
    """

    x: Array
    y: Array
    x_test: Array
    y_test: Array
    y_shift: float
    y_scale: float


def generate(params: Params, rng: np.random.Generator, path: Path | None = None) -> Dataset:
    """Features and target, x of shape (N, d + 1), the training rows first.

    ``facts`` has ``num_train``, ``y_shift`` and ``y_scale``, and ``num_clipped``, the
    training rows that a public range clipped.
    """
    table = uci.load(params.dataset, path)
    train, test = row_split(len(table.numbers), params.seed, uci.TABLES[table.name].num_train)
    numbers = table.numbers[np.concatenate((train, test))]
    num_train, num_clipped = len(train), 0
    if params.preprocess == "authors":
        shift, scale = _of_the_rows(numbers[:num_train])
    else:
        ranges = [NETWORK_RANGES[table.name][name] for name in table.columns]
        low, shift, high = np.transpose(np.asarray(ranges, dtype=np.float64))
        scale = (high - low) / DEVIATIONS
        inside = np.clip(numbers, low, high)
        num_clipped = int(np.any(inside != numbers, axis=1)[:num_train].sum())
        inside[num_train:, -1] = numbers[num_train:, -1]
        numbers = inside
    facts = {
        "num_train": num_train,
        "num_clipped": num_clipped,
        "y_shift": float(shift[-1]),
        "y_scale": float(scale[-1]),
    }
    source: Literal["data", "public"] = "data" if params.preprocess == "authors" else "public"
    return Dataset(table.name, (numbers - shift) / scale, {}, source, facts=facts)


def split(dataset: Dataset) -> NetworkSplit:
    """Training and test part of what :func:`generate` made."""
    x, y, x_test, y_test = map(np.ascontiguousarray, uci_regression.split(dataset))
    missing = [name for name in ("y_shift", "y_scale") if name not in dataset.facts]
    if missing:
        raise DpmcError(f"`{missing[0]}` is missing in the facts of data {dataset.name!r}")
    return NetworkSplit(x, y, x_test, y_test, dataset.facts["y_shift"], dataset.facts["y_scale"])


def row_split(
    num_rows: int, seed: int, num_train: int | None = None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Rows for training and for testing.

    Parameters
    ----------
    num_rows : int
        At least 2.
    seed : int
        Of NumPy's older generator, whose permutation begins with the test rows: the split of
        scikit-learn's ``train_test_split`` with ``random_state=seed``, as the paper has it.
    num_train : int, optional
        The first rows, where the table prescribes a split.
    """
    if num_train is not None:
        rows = np.arange(num_rows)
        return rows[:num_train], rows[num_train:]
    num_test, kept = math.ceil(TEST * num_rows), math.floor(TRAIN * num_rows)
    order = np.random.RandomState(seed).permutation(num_rows)
    return order[num_test : num_test + kept], order[:num_test]


def _of_the_rows(rows: Array) -> tuple[Array, Array]:
    """Means and standard deviations, 1 for a column of equal numbers."""
    constant = np.ptp(rows, axis=0) == 0
    return rows.mean(axis=0), np.where(constant, 1.0, rows.std(axis=0))
