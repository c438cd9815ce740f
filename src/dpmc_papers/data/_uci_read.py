"""Raw files as numbers: text with one row a line, and the first sheet of a workbook."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from dpmc.types import Array, DpmcError
from dpmc_papers.data._uci_tables import UCITable

DELIMITERS = {"comma": ",", "semicolon": ";", "spaces": None}
# Some copies begin with a byte order mark.
ENCODING = "utf-8-sig"
SHEET = "xl/worksheets/sheet1.xml"
STRINGS = "xl/sharedStrings.xml"
SPACE = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


def read(table: UCITable, path: Path) -> Array:
    """Columns of a raw file that are read, shape (rows, ``len(table.columns)``)."""
    try:
        return _workbook(table, path) if table.kind == "workbook" else _text(table, path)
    except DpmcError:
        raise
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, ElementTree.ParseError) as error:
        reason = " ".join(str(error).split())[:200]
        wanted = f"numbers in {len(table.columns)} columns ({table.kind})"
        raise DpmcError(f"{path} must hold {wanted}, got: {reason}") from None


def _text(table: UCITable, path: Path) -> Array:
    delimiter = DELIMITERS[table.kind]
    with path.open(encoding=ENCODING) as file:
        first = [part.strip().strip('"') for part in file.readline().split(delimiter)]
    _check_header(path, first, table.header, table.named)
    wanted = [table.header.index(name) for name in table.columns]
    # Asked for all columns, it refuses lines of another number of them.
    columns = wanted if table.dropped else None
    return np.loadtxt(
        path,
        delimiter=delimiter,
        skiprows=int(table.named),
        usecols=columns,
        encoding=ENCODING,
        ndmin=2,
    )


def _workbook(table: UCITable, path: Path) -> Array:
    names, numbers = first_sheet(path)
    _check_header(path, names, table.header, table.named)
    wanted = numbers[:, [table.header.index(name) for name in table.columns]]
    # Below the table, sheets have rows of formatted cells without a value.
    filled: Array = wanted[~np.isnan(wanted).all(axis=1)]
    return filled


def _check_header(path: Path, first: Sequence[str], header: Sequence[str], named: bool) -> None:
    """Refuse another number of columns, or, where the file names them, other names."""
    if len(first) != len(header):
        raise DpmcError(f"{path} must have {len(header)} columns, got {len(first)}")
    for k, (name, wanted) in enumerate(zip(first, header, strict=True)):
        if named and name != wanted:
            raise DpmcError(f"{path}: column {k} must be {wanted!r}, got {name[:40]!r}")


def first_sheet(path: Path) -> tuple[list[str], Array]:
    """First row of a workbook's first sheet as text, and what is below as numbers.

    A workbook is a zip archive of XML. Numbers have all the digits of the file; cells that
    are empty or hold text are NaN.

    Raises
    ------
    KeyError, ValueError, zipfile.BadZipFile, ElementTree.ParseError
        If the file is no workbook.
    """
    with zipfile.ZipFile(path) as book:
        strings = ElementTree.fromstring(book.read(STRINGS))
        texts = ["".join(item.itertext()) for item in strings]
        with book.open(SHEET) as sheet:
            events = ElementTree.iterparse(sheet)
            rows = [_cells(item, texts) for _, item in events if item.tag == f"{SPACE}row"]
    names = rows[0] if rows else {}
    width = 1 + max(names, default=-1)
    numbers = np.full((max(len(rows) - 1, 0), width), np.nan)
    for row, cells in zip(numbers, rows[1:], strict=True):
        for column, value in cells.items():
            if isinstance(value, float) and column < width:
                row[column] = value
    return [str(names.get(column, "")) for column in range(width)], numbers


def _cells(row: ElementTree.Element, texts: Sequence[str]) -> dict[int, float | str]:
    """Cells of a row that have a value, by column, and forget the row."""
    cells: dict[int, float | str] = {}
    for cell in row:
        value = cell.findtext(f"{SPACE}v")
        if value is None:
            continue
        kind = cell.get("t", "n")
        content = texts[int(value)] if kind == "s" else float(value) if kind == "n" else value
        cells[_column(cell.attrib["r"])] = content
    row.clear()
    return cells


def _column(reference: str) -> int:
    """Column of a cell such as ``"AB12"``, counted from zero."""
    column = 0
    for letter in reference.rstrip("0123456789"):
        column = 26 * column + ord(letter) - ord("A") + 1
    return column - 1
