"""Files that appear under their names only once they are complete and on disk."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

# Marker stored instead of a data set that is unavailable, and the largest size of such a file in
# bytes.
ABSENT = "unavailable"
LARGEST_ABSENCE = 10_000


def write_text(path: str | Path, text: str) -> None:
    """Write a text file that appears under its name once it is complete."""
    with replacing(Path(path)) as partial:
        partial.write_text(text, encoding="utf-8")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary name beside `path` to write to; at the end it becomes `path`, on disk.

    Nothing is left if the writing fails. A killed process leaves one hidden file, which
    the next one overwrites.

    Parameters
    ----------
    path : Path
        File to write; its folder is made if need be.

    Yields
    ------
    Path
        Name with the same ending.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".partial.{path.name}")
    try:
        yield partial
        flush([partial])
        partial.replace(path)
        flush([path.parent])
    finally:
        partial.unlink(missing_ok=True)


def exists(path: Path | str) -> bool:
    """Return whether a file is there that is no absence."""
    return Path(path).is_file() and not is_absence(path)


def flush(paths: Iterable[Path]) -> None:
    """Wait until files, or the names in folders, are on disk."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def is_absence(path: Path | str) -> bool:
    """Return whether `store.write_absence` wrote a file; nothing heavy is imported."""
    found = Path(path)
    small = found.is_file() and found.stat().st_size < LARGEST_ABSENCE
    return small and f'"{ABSENT}"'.encode() in found.read_bytes()
