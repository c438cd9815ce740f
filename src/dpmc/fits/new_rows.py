"""New rows as a fit reads them: by the formula that it was made by, where there is one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dpmc.types import Array, DpmcError, collected, is_frame, labels


def read(likelihood: Mapping[str, Any], x: Any) -> tuple[Any, Array | None]:
    """Features of new rows, and offsets if the formula has some; arrays as they are.

    Parameters
    ----------
    likelihood : mapping
        What a fit says of it in its plan.
    x : data frame or array_like
        Public.

    Raises
    ------
    DpmcError
        If a table lacks a column, or an entry is none that the formula knows.
    """
    if "formula" not in likelihood or isinstance(x, np.ndarray | list):
        return x, None
    from dpmc.formulas.design import Design, refuse_missing_columns

    design, frame = Design.of(**likelihood["formula"]), collected(x)
    if not is_frame(frame):
        got = type(frame).__name__
        raise DpmcError(f"`x` must be a data frame with columns of the formula, got {got}")
    refuse_missing_columns(labels(frame), design.new_columns, "`x`")
    if list(design.names) != likelihood["columns"]:
        raise DpmcError("`x` must be an array of features: the formula is read otherwise by now")
    features, offset = design.x(frame), design.added(frame)
    known = np.isfinite(features).all() and (offset is None or np.isfinite(offset).all())
    if not known:
        raise DpmcError(
            "`x` must have a number, or a declared level, in all columns of the formula, got others"
        )
    return features, offset
