"""Single files of rows by the names of their columns, whatever their format."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dpmc.shards.arrow_files import SUFFIXES, ArrowFile, open_arrow
from dpmc.shards.csv_lines import (
    COMPRESSED,
    DELIMITERS,
    CsvFile,
    open_csv,
    refuse_other_delimiter,
    shown,
)
from dpmc.types import DpmcError

Table = CsvFile | ArrowFile


def open_table(path: Path, names: Sequence[str] | None = None, told: str = "the file") -> Table:
    """Open a file by its suffix; no row is read.

    Parameters
    ----------
    path : Path
    names : sequence of str, optional
        Of the columns of a CSV file without a header.
    told : str
        What is asked for the file, before a message.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    kind = next((suffix for suffix in reversed(suffixes) if suffix != COMPRESSED), "")
    if kind in DELIMITERS:
        return open_csv(path, names)
    if kind not in SUFFIXES or suffixes[-1] == COMPRESSED:
        *known, last = *DELIMITERS, *SUFFIXES
        raise DpmcError(f"{told} must be a {', '.join(known)} or {last} file, got {path.name}")
    if names is not None:
        raise DpmcError(f"`names` must be left out beside {path.name}, which has some")
    return open_arrow(path)


def refuse_missing(table: Table, wanted: Sequence[str], told: str = "") -> None:
    """Refuse a file that has not one column of each name; `told` comes before the message."""
    for name in wanted:
        if table.names.count(name) == 1:
            continue
        missing = f"{told}{name!r} must be a column of {table.path}"
        if name in table.names:
            raise DpmcError(f"{missing}, and is the name of several")
        if isinstance(table, CsvFile):
            refuse_other_delimiter(table.path, table.names, table.delimiter, name)
        raise DpmcError(f"{missing}{shown(table.names)}")
