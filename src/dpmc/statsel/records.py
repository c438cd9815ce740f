"""Checks and clipping of private records before a statistic."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from dpmc import checks
from dpmc.types import Array, DpmcError

InvalidRows = Literal["refuse", "zero"]
INVALID_ROWS: tuple[InvalidRows, ...] = ("refuse", "zero")


def check_invalid_rows(invalid_rows: str) -> None:
    """Refuse anything but ``"refuse"`` and ``"zero"``."""
    if invalid_rows not in INVALID_ROWS:
        raise DpmcError(f"`invalid_rows` must be 'refuse' or 'zero', got {invalid_rows!r}")


def checked(x: npt.ArrayLike, invalid_rows: InvalidRows) -> Array:
    """Records as finite numbers.

    `x`, shape (n,): n >= 1. `invalid_rows` in {"refuse", "zero"}: what becomes of a record that is
    no finite number: it is an error, or it counts as 0 before it is clipped.
    """
    check_invalid_rows(invalid_rows)
    records = checks.real_array("x", x, invalid_rows)
    if records.ndim != 1 or records.size == 0:
        raise DpmcError(f"`x` must be one or more numbers in a row, got shape {records.shape}")
    finite = np.isfinite(records)
    if finite.all():
        return records
    if invalid_rows == "refuse":
        raise DpmcError("`x` must be finite numbers, unless invalid_rows='zero'")
    return np.where(finite, records, 0.0)


def bits(clipped: Array, invalid_rows: InvalidRows) -> Array:
    """Records that are bits.

    `clipped`: clipped to [0, 1]. `invalid_rows` in {"refuse", "zero"}: what becomes of one that is
    neither 0 nor 1.
    """
    known = (clipped == 0.0) | (clipped == 1.0)
    if known.all():
        return clipped
    if invalid_rows == "refuse":
        raise DpmcError(
            "`x` must be bits, 0 or 1, for randomised_response, unless invalid_rows='zero'"
        )
    return np.where(known, clipped, 0.0)


def clip(x: Array, support: tuple[float, float]) -> Array:
    """Records in the support, of any shape: NaN counts as 0, infinity as the end."""
    clipped = np.clip(x, *support)
    lost = np.isnan(clipped)
    if lost.any():
        clipped[lost] = np.clip(0.0, *support)
    return clipped
