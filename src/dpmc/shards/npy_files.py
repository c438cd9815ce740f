"""Rows of .npy files, mapped into memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from dpmc.shards.content import Content
from dpmc.types import Array, DpmcError


def content(path: Path) -> Content:
    """Return what a file holds.

    Raises
    ------
    DpmcError
        If it is damaged, or holds no rows of numbers.
    """
    x = _mapped(path)
    if x.ndim != 2 or 0 in x.shape:
        raise DpmcError(f"shard {path.name}: must hold rows and columns, got shape {x.shape}")
    if x.dtype.kind not in "biuf":
        raise DpmcError(f"shard {path.name}: must hold real numbers, got {x.dtype}")
    names = tuple(str(k) for k in range(x.shape[1]))
    return Content(len(x), names, (x.dtype.name,) * len(names))


def pieces(
    path: str, content: Content, first: int, last: int, columns: Sequence[int]
) -> Iterator[Array]:
    """Return rows of a file."""
    x = _mapped(Path(path))
    rows = x[first:last]
    if len(columns) < x.shape[1]:
        rows = rows[:, list(columns)]
    yield rows if rows.dtype.kind == "f" else rows.astype(np.float64)


def _mapped(path: Path) -> Array:
    try:
        x: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        raise DpmcError(
            f"shard {path.name}: must be a whole .npy file, and is damaged or cut off"
        ) from None
    return x
