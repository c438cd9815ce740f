"""Small raw files in the exact formats of the published ones, shared by the tests."""

from __future__ import annotations

import dataclasses
import zipfile
from pathlib import Path

import numpy as np

from dpmc_papers.data import uci

FORM = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'


def shrink(monkeypatch, name: str, num_rows: int, **changes) -> uci.UCITable:
    """Let the table `name` have so many rows, of numbers that nobody knows."""
    changes = {"file_sha256": None, "numbers_sha256": None, "num_rows": num_rows, **changes}
    table = dataclasses.replace(uci.TABLES[name], **changes)
    monkeypatch.setitem(uci.TABLES, name, table)
    return table


def some_numbers(table: uci.UCITable, num_rows: int, seed: int = 0) -> np.ndarray:
    """Return numbers for the columns that are read, with two decimals."""
    rng = np.random.default_rng(seed)
    return np.round(rng.normal(5.0, 20.0, (num_rows, len(table.columns))), 2)


def lines(table: uci.UCITable, numbers: np.ndarray) -> str:
    """Return the text of a raw file."""
    mark = {"comma": ",", "semicolon": ";", "spaces": "   "}[table.kind]
    head = [mark.join(f'"{name}"' for name in table.header)] if table.named else []
    rows = []
    for row in numbers:
        cells = dict(zip(table.columns, map(repr, map(float, row)), strict=True))
        rows.append(mark.join(cells.get(name, "1/1/11") for name in table.header))
    start = "   " if table.kind == "spaces" else ""
    return "".join(f"{start}{line}\r\n" for line in head + rows)


def write_workbook(path: Path, table: uci.UCITable, numbers: np.ndarray) -> None:
    """Write a workbook of one sheet, with formatted empty cells below the numbers."""
    rows = ["".join(f'<c r="{c}1" t="s"><v>{k}</v></c>' for k, c in enumerate(letters(table)))]
    for r, row in enumerate(numbers, start=2):
        cells = dict(zip(table.columns, map(repr, map(float, row)), strict=True))
        rows.append(
            "".join(
                f'<c r="{c}{r}" s="1"><v>{cells.get(name, "38056")}</v></c>'
                for c, name in zip(letters(table), table.header, strict=True)
            )
        )
    rows.append(f'<c r="A{len(rows) + 1}" s="1"/>')
    body = "".join(f'<row r="{k}">{row}</row>' for k, row in enumerate(rows, start=1))
    texts = "".join(f"<si><t>{name}</t></si>" for name in table.header)
    with zipfile.ZipFile(path, "w") as book:
        book.writestr("xl/sharedStrings.xml", f"<sst {FORM}>{texts}</sst>")
        sheet = f"<worksheet {FORM}><sheetData>{body}</sheetData></worksheet>"
        book.writestr("xl/worksheets/sheet1.xml", sheet)


def letters(table: uci.UCITable) -> str:
    return "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[: len(table.header)]


def write(path: Path, table: uci.UCITable, numbers: np.ndarray) -> Path:
    """Write a raw file at `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if table.kind == "workbook":
        write_workbook(path, table, numbers)
    else:
        path.write_text(lines(table, numbers), encoding="utf-8", newline="")
    return path
