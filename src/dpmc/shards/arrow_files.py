"""Rows of a single Parquet or Feather file, by the names of its columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpmc.shards import arrow_schema
from dpmc.shards.content import OTHER
from dpmc.types import Array, DpmcError, InvalidRows, as_numbers

FEATHER = ".feather"
SUFFIXES = (".parquet", FEATHER)


@dataclass(frozen=True)
class ArrowFile:
    """A file of columns; made by `open_arrow`.

    Parameters
    ----------
    path : Path
    num_rows : int
    names : tuple of str
        Of the columns, in their order.
    index : tuple of str
        Of those that pandas wrote as an index; one without a name is no column.
    """

    path: Path
    num_rows: int
    names: tuple[str, ...]
    index: tuple[str, ...]

    def numbers(self, columns: Sequence[str], invalid_rows: InvalidRows) -> Array:
        """Numbers of some columns, shape (n, p), in the order given."""
        table, _ = _read(self.path, list(columns))
        for name in columns:
            if arrow_schema.dtype(table.schema.field(name).type) == OTHER:
                raise DpmcError(f"{self.path}: column {name!r} must hold real numbers, got others")
        return as_numbers(f"{self.path}:", table.select(list(columns)), invalid_rows)

    def frame(self, columns: Sequence[str]) -> Any:
        """Table of some columns."""
        return _read(self.path, list(columns))[0]


def open_arrow(path: Path) -> ArrowFile:
    """Open a file, of which the names of columns and the number of rows are read."""
    schema, num_rows = _read(path, None)
    places, index = arrow_schema.columns(schema, f"{path}:")
    return ArrowFile(path, num_rows, tuple(schema.names[k] for k in places), index)


def _read(path: Path, columns: list[str] | None) -> tuple[Any, int]:
    """Schema, or a table of some columns, and the number of rows."""
    import pyarrow as pa
    from pyarrow import feather, parquet

    try:
        if path.suffix.lower() == FEATHER:
            table = feather.read_table(path, columns=columns)
            return table.schema if columns is None else table, table.num_rows
        with parquet.ParquetFile(path) as file:  # no column for the name of a folder
            found = file.schema_arrow if columns is None else file.read(columns)
            return found, file.metadata.num_rows
    except (OSError, ValueError, pa.ArrowException) as error:
        reason = "not there" if isinstance(error, FileNotFoundError) else "not readable"
        raise DpmcError(f"{path}: must be a table, and is {reason}") from None
