"""What is protected, as users say it: identifiers of persons beside rows, or a column of them."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dpmc.rows.persons import Persons, entries_of
from dpmc.shards.files import read_shards
from dpmc.shards.rows import ShardedRows, open_rows
from dpmc.types import (
    Dataset,
    DpmcError,
    InvalidRows,
    collected,
    frames,
    is_frame,
    is_lazy,
    labels,
)

# What is protected where it has no name.
PERSON = "person"


@dataclass(frozen=True)
class Column:
    """Identifiers of persons, and the name of their column.

    Parameters
    ----------
    name : str
    entries : array_like of shape (rows,)
        Private.
    """

    name: str
    entries: Any = field(repr=False)


def by_person(data: Any, unit: Any, invalid_rows: InvalidRows, name: str = "data") -> Persons:
    """Rows of persons.

    Rows in files are gathered in memory, from whichever shards those of a person are in.

    Parameters
    ----------
    data : Dataset, array_like, data frame, path of a folder or ShardedRows
    unit : str or array_like of shape (rows,)
        Name of the column that says whose a row is, which is no column of the model; or, of rows in
        memory, identifiers.
    invalid_rows : {"refuse", "zero"}
        As of `dpmc.fit`.
    name : str
        Of a data set.

    Raises
    ------
    DpmcError
        If there is no such column, or identifiers are refused.
    """
    of_files = isinstance(data, ShardedRows | str | os.PathLike)
    if isinstance(unit, str):
        if of_files:
            return _of_files(data, unit, invalid_rows)
        data = collected(data)
        frame, identifiers = without(data, unit)
        return Persons.of(Dataset.of(name, frame, invalid_rows), identifiers, unit)
    if of_files or is_lazy(data):
        what = "rows in files" if of_files else "a query"
        raise DpmcError(f"`unit` must be the name of a column of {what}, got other than a text")
    frames.check_index("unit", unit, name, data)
    dataset = data if isinstance(data, Dataset) else Dataset.of(name, data, invalid_rows)
    whose = column_of(unit)
    return Persons.of(dataset, whose.entries, whose.name)


def column_of(unit: Any) -> Column:
    """Identifiers as a column with a name."""
    return unit if isinstance(unit, Column) else Column(PERSON, unit)


def without(frame: Any, unit: str) -> tuple[Any, Any]:
    """Data frame without the column that says whose rows are, and this column."""
    refused = f"`unit` must name one column of a data frame, got {unit!r}"
    if not is_frame(frame):
        raise DpmcError(f"{refused} for {'None' if frame is None else type(frame).__name__}")
    texts = [str(label) for label in labels(frame)]
    if texts.count(unit) != 1:
        raise DpmcError(f"{refused}, which {'several are' if unit in texts else 'none is'}")
    places = [k for k, text in enumerate(texts) if text != unit]
    if hasattr(frame, "iloc"):
        rest = frame.iloc[:, places]
    else:
        rest = frame.select([labels(frame)[k] for k in places])
    return rest, frames.column(frame, unit)


def _of_files(data: Any, unit: str, invalid_rows: InvalidRows) -> Persons:
    if isinstance(data, ShardedRows):
        rows, names = data, [name for name in data.names if name != unit]
    else:
        known = read_shards([Path(data).expanduser().absolute()])[0].content.columns
        names = [name for name in known if name != unit]
        rows = open_rows(data, columns=names, invalid_rows=invalid_rows)
    known = rows.shards[0].content.columns
    if unit not in known:
        raise DpmcError(f"`unit` must be a column of the files, {list(known)}, got {unit!r}")
    places = [rows.columns[rows.names.index(name)] for name in names]
    pieces = [
        np.asarray(piece)
        for shard in rows.shards
        for piece in shard.pieces(0, shard.content.num_rows, places)
    ]
    identifiers = [_entries(shard.path, unit, known.index(unit)) for shard in rows.shards]
    rows.check_folders()
    dataset = Dataset(
        rows.name,
        np.concatenate(pieces),
        bounds=rows.bounds,
        bounds_source=rows.bounds_source,
        invalid_rows=rows.invalid_rows,
    )
    alike = len({one.dtype for one in identifiers}) == 1
    joined = identifiers if alike else [one.astype(object) for one in identifiers]
    return Persons.of(dataset, np.concatenate(joined), unit)


def _entries(path: str, name: str, place: int) -> np.ndarray[Any, Any]:
    """Column of a shard, of any type."""
    if Path(path).suffix == ".npy":
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False)[:, place])
    import pyarrow.parquet as pq

    return entries_of(pq.read_table(path, columns=[name]).column(name))
