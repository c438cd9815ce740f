"""Names of the files of outputs, and files that appear under their names once they are complete."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpmc_papers.config.settings import Output

# Stands in place of a raw file or a data set that cannot be had.
ABSENT = "unavailable"
# A table with a number in its document: `table6_1` is Table 6.1, `table6_1_draws` is not.
NUMBERED = r"table[0-9]+(?:_[0-9]+)?"
# Of such a table, besides the long one: in the layout of the document.
LAYOUT_ENDINGS = ("layout.csv", "md", "tex")
FIGURE_ENDINGS = ("pdf", "svg", "png", "data.csv")
# What is made of all runs of a document.
OF_DOCUMENT = {
    "verdict": ("verdict.csv", "power.csv", "runs.parquet"),
    "guarantees": ("guarantees.csv",),
}
# Functions of figures that show printed numbers of the document beside ours; numbered tables do.
SHOW_PRINTED = ("figure_networks", "figure_profiles", "figure_slopes")


def is_numbered(name: str) -> bool:
    """Whether an output has the name of a numbered table of the document."""
    return re.fullmatch(NUMBERED, name) is not None


def shows_printed(name: str, output: Output) -> bool:
    """Whether a figure or table shows printed numbers of the document beside ours."""
    return output.function in SHOW_PRINTED or (output.kind == "table" and is_numbered(name))


def endings(name: str, kind: str) -> tuple[str, ...]:
    """The endings of all files of a figure or table, the first of them first."""
    if kind == "figure":
        return FIGURE_ENDINGS
    return ("csv", *LAYOUT_ENDINGS) if is_numbered(name) else ("csv",)


def write_text(path: str | Path, text: str) -> None:
    """Write a text file that appears under its name once it is complete."""
    with replacing(Path(path)) as partial:
        partial.write_text(text, encoding="utf-8")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary name beside `path` to write to; at the end it becomes `path`, on disk.

    It has the same ending, and is of this process alone. Nothing is left if the writing fails; a
    killed process leaves one hidden file. The folder is made if need be.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".partial.{os.getpid()}.{path.name}")
    try:
        yield partial
        flush([partial])
        partial.replace(path)
        flush([path.parent])
    finally:
        partial.unlink(missing_ok=True)


def flush(paths: Iterable[Path]) -> None:
    """Wait until files, or the names in folders, are on disk."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def redate(paths: Iterable[Path]) -> None:
    """Give files that a clock which was ahead has dated the present date, the same for all."""
    now = time.time_ns()
    for path in paths:
        with suppress(FileNotFoundError):  # another job may have replaced it
            if path.stat().st_mtime_ns > now:
                os.utime(path, ns=(now, now))
