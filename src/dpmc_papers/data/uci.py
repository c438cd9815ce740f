"""Public tables for regression: their files, columns and verified numbers.

Nine tables of the UCI Machine Learning Repository and of Delve, see ``TABLES``. Raw files are
looked for in the folder that ``DPMC_UCI_DIR`` names (``<folder>/<data set>/<file>``), then in
the user's cache, and downloaded otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from dpmc.types import Array, Dataset, DpmcError
from dpmc_papers.data import _uci
from dpmc_papers.data._uci import FOLDER_VARIABLE, InterruptedDownloadError
from dpmc_papers.data._uci_read import read
from dpmc_papers.data._uci_tables import ALIASES, TABLES, UCITable

__all__ = [
    "ALIASES",
    "FOLDER_VARIABLE",
    "TABLES",
    "InterruptedDownloadError",
    "Params",
    "RawTable",
    "UCITable",
    "fetch",
    "find",
    "generate",
    "load",
    "resolve",
]


@dataclass(frozen=True)
class RawTable:
    """The numbers of a table as published.

    Parameters
    ----------
    name : str
        Key in ``TABLES``.
    columns : tuple of str
        Features in the order of the file, then the target.
    numbers : ndarray of shape (N, p + 1)
        Rows in the order of the file, in its units.
    verified : {"numbers", "shape"}
        Whether every number was compared by digest, or, where none is known, only the
        shape and format.
    """

    name: str
    columns: tuple[str, ...]
    numbers: Array
    verified: Literal["numbers", "shape"]


@dataclass(frozen=True)
class Params:
    """A table in its own units.

    Parameters
    ----------
    dataset : str
        Key in ``TABLES``, or one of ``ALIASES``.
    """

    dataset: str

    def __post_init__(self) -> None:
        resolve(self.dataset)


def generate(params: Params, rng: np.random.Generator, path: Path | None = None) -> Dataset:
    """Features and the target, x of shape (N, p + 1); nothing bounds them.

    They are read from `path`, or else from the file that :func:`load` finds.
    """
    table = load(params.dataset, path)
    return Dataset(table.name, table.numbers)


def raw_file(params: Any) -> str:
    """Key in ``TABLES`` of the raw file of parameters that name a `dataset`."""
    return resolve(params.dataset)


def resolve(name: str) -> str:
    """Key in ``TABLES`` of a table or alias."""
    key = ALIASES.get(name, name)
    if key not in TABLES:
        known = ", ".join(sorted([*TABLES, *ALIASES]))
        raise DpmcError(f"`dataset` must be one of {known}, got {name!r}")
    return key


def find(name: str) -> Path | None:
    """Path of a raw file if it is on this machine; it is not read."""
    key = resolve(name)
    return _uci.find(key, TABLES[key].file)


def fetch(name: str) -> Path:
    """Path of a raw file with the right content, downloaded if need be.

    Raises
    ------
    UnavailableError
        If it is not on this machine and cannot be downloaded.
    DpmcError
        If there is no such table, or the file has other contents.
    """
    key = resolve(name)
    table = TABLES[key]
    return _uci.fetch(
        key, table.file, table.url, table.file_sha256, lambda path: _checked(table, path)
    )


def load(name: str, path: Path | None = None) -> RawTable:
    """Numbers of a table, the target last.

    Parameters
    ----------
    name : str
        Key in ``TABLES``, or one of ``ALIASES``.
    path : Path, optional
        The raw file; by default it is found, or else downloaded.

    Raises
    ------
    UnavailableError
        If the raw file is not on this machine and cannot be downloaded.
    DpmcError
        If there is no such table, or the file has other contents.
    """
    key = resolve(name)
    table = TABLES[key]
    numbers = _checked(table, path or find(key) or fetch(key))
    columns = (*table.features, table.target)
    wanted = [table.columns.index(column) for column in columns]
    verified: Literal["numbers", "shape"] = "numbers" if table.numbers_sha256 else "shape"
    return RawTable(key, columns, np.ascontiguousarray(numbers[:, wanted]), verified)


def _checked(table: UCITable, path: Path) -> Array:
    """Numbers of a file, or refuse it."""
    numbers = read(table, path)
    _uci.check_numbers(path, numbers, table.shape, table.numbers_sha256)
    return numbers
