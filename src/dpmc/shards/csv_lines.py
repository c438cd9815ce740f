"""Rows of a CSV file, each from one line of it and from nothing else.

Readers of tables look at many lines to guess what one of them means: types, an index, quotes that
are still open, an encoding. A private row could change all others by that. Here a line is a row,
whatever bytes it has; the header is a line too, and says how many fields a row has.
"""

from __future__ import annotations

import array
import contextlib
import csv
import gzip
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from dpmc.types import Array, DpmcError, is_name, number

# Characters between columns, by the suffix of a file; it may be compressed.
DELIMITERS = {".csv": ",", ".tsv": "\t"}
COMPRESSED = ".gz"
CALLED = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars", " ": "spaces"}
# Bytes of a line: what is longer is no row.
LONGEST = 1 << 24


@dataclass(frozen=True)
class CsvFile:
    """A file whose lines are rows; made by `open_csv`.

    Parameters
    ----------
    path : Path
    names : tuple of str
        Of the columns, in their order.
    delimiter : str
    has_header : bool
        Whether the first line has the names.
    """

    path: Path
    names: tuple[str, ...]
    delimiter: str
    has_header: bool

    @property
    def num_rows(self) -> int:
        """Number of lines but for the header."""
        return sum(1 for _ in self._lines())

    def numbers(self, columns: Sequence[str]) -> Array:
        """Numbers of some columns, shape (n, p), in the order given.

        An entry that is no number by itself is NaN, and so are all entries of a line with more or
        fewer fields than there are names.
        """
        places = [self.names.index(name) for name in columns]
        invalid = [np.nan] * len(places)
        found = array.array("d")
        for line in self._lines():
            found.extend(self._entries(line, places) or invalid)
        return np.frombuffer(found).reshape(-1, len(places))

    def frame(self, columns: Sequence[str]) -> Any:
        """Data frame of some columns, whose entries are the bytes between two delimiters.

        All entries of a line with more or fewer fields than there are names are missing.
        """
        import pandas as pd

        places = [self.names.index(name) for name in columns]
        invalid = [None] * len(places)
        rows = [
            invalid if chosen is None else [field.encode("latin-1") for field in chosen]
            for chosen in (self._fields(line, places) for line in self._lines())
        ]
        entries: Any = np.array(rows, dtype=object).reshape(-1, len(places))
        return pd.DataFrame(entries, columns=list(columns))

    def _fields(self, line: bytes, places: list[int]) -> list[str] | None:
        """Fields of a line, none if it has another number of them than a row."""
        fields = split(line.decode("latin-1"), self.delimiter)
        if fields is None or len(fields) != len(self.names):
            return None
        return [fields[k] for k in places]

    def _entries(self, line: bytes, places: list[int]) -> list[float] | None:
        """Numbers of a line, none if it has another number of fields than a row."""
        chosen = self._fields(line, places)
        if chosen is None:
            return None
        if b"_" not in line and line.isascii():
            try:
                return list(map(float, chosen))
            except ValueError:
                pass
        return list(map(number, chosen))

    def _lines(self) -> Iterator[bytes]:
        """Lines, those that are too long as empty ones."""
        with _opened(self.path) as file:
            if self.has_header:
                _line(file)
            while (line := _line(file)) is not None:
                yield line


def open_csv(path: Path, names: Sequence[str] | None = None) -> CsvFile:
    """Open a CSV file, of which the first line is read if it has the names.

    Parameters
    ----------
    path : Path
        With a suffix of `DELIMITERS`, and perhaps ``.gz``.
    names : sequence of str, optional
        Of the columns of a file without a header.
    """
    delimiter = DELIMITERS[[s for s in path.suffixes if s.lower() != COMPRESSED][-1].lower()]
    if names is not None:
        return CsvFile(path, tuple(names), delimiter, has_header=False)
    with _opened(path) as file:
        line = _line(file)
    try:
        header = split((line or b"").decode("utf-8-sig"), delimiter)
    except UnicodeDecodeError:  # which holds the line: no error is raised from here
        header = None
    found = tuple(name.strip() for name in header or ())
    if not any(found) or "\r" in "".join(found) or "\0" in "".join(found):
        raise DpmcError(
            f"{path}: the first line must be names of columns, in UTF-8, and is empty or none"
        )
    parts = re.split(r"[;\t|,]", found[0]) if len(found) == 1 else found
    if not all(is_name(part) for part in parts if part):
        raise DpmcError(
            f"{path}: the first line must be names of columns, and has a number where a name "
            "should be: give a file without a header its `names`"
        )
    if len(found) == 1:
        refuse_other_delimiter(path, found, delimiter)
    return CsvFile(path, found, delimiter, has_header=True)


def refuse_other_delimiter(
    path: Path, names: Sequence[str], delimiter: str, wanted: str | None = None
) -> None:
    """Refuse a header that seems to have been split at the wrong characters.

    Parameters
    ----------
    path : Path
    names : sequence of str
        As the header was split, which alone is looked at.
    delimiter : str
        Where it was.
    wanted : str, optional
        A name that is not among them.
    """
    text = delimiter.join(names)
    found = next((other for other in ";\t|," if other != delimiter and other in text), None)
    if found is None and wanted in text.split():
        found = " "
    if found is not None:
        raise DpmcError(
            f"{path}: columns must be separated by {CALLED[delimiter]}, and those of the first "
            f"line seem to be separated by {CALLED[found]}"
        )


def shown(names: Sequence[str]) -> str:
    """Names of a file for a message, where no part of one could be an entry of a row."""
    parts = [part for name in names for part in re.split(r"[;\t|,\s]+", name) if part]
    return f" ({', '.join(names)})" if all(map(is_name, parts)) else ""


def split(line: str, delimiter: str) -> list[str] | None:
    """Fields of a line, none where its quotes do not pair."""
    try:
        return next(csv.reader((line,), delimiter=delimiter, strict=True, skipinitialspace=True))
    except csv.Error:
        return None


def _line(file: IO[bytes]) -> bytes | None:
    """Next line without its end, an empty one for one that is too long."""
    line = file.readline(LONGEST)
    if not line:
        return None
    if len(line) == LONGEST and not line.endswith(b"\n"):
        while (rest := file.readline(LONGEST)) and not rest.endswith(b"\n"):
            pass
        return b""
    return line.rstrip(b"\r\n")


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a file of bytes; what goes wrong with it is told without what it holds."""
    opened: Any = gzip.open if path.suffix.lower() == COMPRESSED else open
    try:
        with opened(path, "rb") as file:
            yield file
    except (OSError, EOFError, zlib.error) as error:
        reason = "not there" if isinstance(error, FileNotFoundError) else "not readable"
        raise DpmcError(f"{path}: must be a table, and is {reason}") from None
