"""Rows of .npy files, mapped into memory."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpmc.shards.content import DOUBLE, OTHER, PARSED, SINGLE, Content
from dpmc.types import Array, DpmcError, numbers

# Rows that the system is asked to read, in units of those that are needed now.
AHEAD = 3


def content(path: Path) -> Content:
    """Contents of a file."""
    x = _mapped(path)
    if x.ndim != 2 or 0 in x.shape:
        raise DpmcError(f"shard {path.name}: must hold rows and columns, got shape {x.shape}")
    names = tuple(str(k) for k in range(x.shape[1]))
    kind = x.dtype.kind
    dtype = x.dtype.name if kind in "biuf" else PARSED if kind in "USc" else OTHER
    return Content(len(x), names, (dtype,) * len(names))


def pieces(
    path: str, content: Content, first: int, last: int, columns: Sequence[int]
) -> Iterator[Array]:
    """Rows of a file; an entry that is no number is NaN."""
    x = _mapped(Path(path))
    _read_ahead(path, x, first, last)
    rows = x[first:last]
    if len(columns) < x.shape[1]:
        rows = rows[:, list(columns)]
    found, dtype = numbers("entries must be", rows, "zero"), content.dtypes[0]
    yield found.astype(dtype) if dtype in (SINGLE, DOUBLE) and found.dtype.name != dtype else found


def _read_ahead(path: str, x: np.memmap[Any, Any], first: int, last: int) -> None:
    """Have the system read rows, and as many twice over behind them, before they are asked for.

    Pages that are read when they are first touched come one after the other, in small pieces,
    and whoever touches them waits for each.
    """
    if hasattr(os, "posix_fadvise") and x.flags.c_contiguous:
        each = x.strides[0]
        start, size = x.offset + first * each, AHEAD * (last - first) * each
        with contextlib.suppress(OSError), Path(path).open("rb") as file:
            os.posix_fadvise(file.fileno(), start, size, os.POSIX_FADV_WILLNEED)


def _mapped(path: Path) -> np.memmap[Any, Any]:
    try:
        x: np.memmap[Any, Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        raise DpmcError(
            f"shard {path.name}: must be a whole .npy file, and is damaged or cut off"
        ) from None
    return x
