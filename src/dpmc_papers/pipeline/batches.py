"""Batches: how the replicates of one setup are divided among jobs, and how small work is joined."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

_NAME = re.compile(r"(\d+)-(\d+)\.parquet")


def batches(folder: Path | str, replicates: int, size: int) -> list[tuple[int, int]]:
    """Divide replicates 0, 1, ... into batches, and keep those whose files are there.

    A replicate is the same whatever its batch, so a finished batch is used again however large a
    new batch may be, and when more replicates are asked for. One that goes on beyond the last
    replicate is not: with fewer of them, its first ones are computed again. What no finished batch
    covers is cut into batches of `size`. While the new batches are being finished, the division
    stays the same.

    Parameters
    ----------
    folder : Path or str
        Where the files ``<first>-<last>.parquet`` of the setup are, if any. Its name holds a
        digest of the setup.
    replicates : int
        How many replicates are wanted.
    size : int
        The most replicates of a new batch.

    Returns
    -------
    list of (int, int)
        First and last replicate of each batch, in order. They cover 0 to `replicates` - 1 once.
    """
    return list(_divided(finished(folder), replicates, size))


def finished(folder: Path | str) -> list[tuple[int, int]]:
    """Return the first and last replicate of each batch that has a file in `folder`, sorted."""
    try:
        names = [path.name for path in Path(folder).iterdir()]
    except OSError:
        return []
    matches = (_NAME.fullmatch(name) for name in names)
    return sorted((int(match[1]), int(match[2])) for match in matches if match)


def filled(parts: Iterable[T], size_of: Callable[[T], float], most: float) -> Iterator[list[T]]:
    """Yield neighbours together, as many as fit.

    Parameters
    ----------
    parts : iterable
        In an order that is kept.
    size_of : callable
        Returns the size of a part.
    most : float
        The largest size of what is joined; a part that is larger stays alone.
    """
    inside: list[T] = []
    total = 0.0
    for part in parts:
        size = size_of(part)
        if inside and total + size > most:
            yield inside
            inside, total = [], 0.0
        inside.append(part)
        total += size
    if inside:
        yield inside


def _divided(
    there: Iterable[tuple[int, int]], replicates: int, size: int
) -> Iterator[tuple[int, int]]:
    longest: dict[int, int] = {}
    for first, last in there:
        if first <= last < replicates:
            longest[first] = max(last, longest.get(first, first))
    start = 0
    while start < replicates:
        if start in longest:
            last = longest[start]
        else:
            gap_end = min((first for first in longest if first > start), default=replicates)
            last = min(start + size, gap_end) - 1
        yield start, last
        start = last + 1
