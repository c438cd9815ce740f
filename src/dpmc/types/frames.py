"""Data frames, of pandas, polars or alike, by what they have: named columns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpmc.types.errors import DpmcError
from dpmc.types.numbers import Array, is_real


def is_frame(data: object) -> bool:
    """Return whether data are a data frame, of pandas, polars or alike: named columns."""
    return hasattr(data, "columns") and hasattr(data, "to_numpy")


def frame_numbers(frame: Any, told: str) -> Array:
    """Return the numbers of a data frame, shape (n, p); what is missing is NaN.

    Parameters
    ----------
    frame : data frame
    told : str
        Before the message.

    Raises
    ------
    DpmcError
        Naming the first column that does not hold real numbers; nothing is said of a value.
    """
    columns = []
    for k, label in enumerate(frame.columns):
        column = frame.iloc[:, k] if hasattr(frame, "iloc") else frame[label]
        values = np.asarray(column)
        if values.dtype.kind == "O":
            entries = [math.nan if _is_missing(entry) else entry for entry in values]
            if all(is_real(entry) or isinstance(entry, bool | np.bool_) for entry in entries):
                values = np.array(entries, dtype=np.float64)
        if values.dtype.kind not in "biuf":
            raise DpmcError(
                f"{told}column {str(label)!r} must hold real numbers, got dtype {column.dtype}"
            )
        columns.append(values.astype(np.float64, copy=False))
    return np.stack(columns, axis=1) if columns else np.empty((len(frame), 0))


def _is_missing(entry: object) -> bool:
    """Return whether an entry of a data frame says that there is no number."""
    return entry is None or type(entry).__name__ == "NAType"
