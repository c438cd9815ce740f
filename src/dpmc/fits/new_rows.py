"""New rows as a fit reads them: by the formula that it was made by, where there is one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmc.formulas.columns import places
from dpmc.types import Array, DpmcError, collected, frames, is_frame, labels


def read(likelihood: Mapping[str, Any], x: Any) -> tuple[Any, Array | None, Array | None]:
    """Features of new rows, and offsets and groups if the formula has some; arrays as they are.

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
    x = collected(x)
    if "formula" not in likelihood or isinstance(x, np.ndarray | list):
        return x, None, None
    from dpmc.formulas.design import Design, refuse_missing_columns

    design = Design.of(**likelihood["formula"])
    if not is_frame(x):
        got = type(x).__name__
        raise DpmcError(f"`x` must be a data frame with columns of the formula, got {got}")
    refuse_missing_columns(labels(x), design.new_columns, "`x`")
    if list(design.names) != likelihood["columns"]:
        raise DpmcError("`x` must be an array of features: the formula is read otherwise by now")
    features, offset = design.x(x), design.added(x)
    group, declared = None, True
    if design.group is not None:
        found = design.places(x).astype(np.int64)
        group = np.array([*likelihood["levels"], None], dtype=object)[found]
        declared = bool((found >= 0).all())
    known = np.isfinite(features).all() and (offset is None or np.isfinite(offset).all())
    if not (known and declared):
        raise DpmcError(
            "`x` must have a number, or a declared level, in all columns of the formula, got others"
        )
    return features, offset, group


def levels(group: Any, known: list[str] | None, num_rows: int) -> NDArray[np.int64]:
    """Place of the group of each new row among those of a fit; zeros where it has none."""
    if (group is not None) != (known is not None):
        must = "be None, as of the fit" if known is None else "be given, as to the fit"
        raise DpmcError(f"`group` must {must}")
    if known is None:
        return np.zeros(num_rows, dtype=np.int64)
    found = places(frames.array("`group`", group), tuple(known))
    if len(found) != num_rows or (found < 0).any():
        raise DpmcError(
            f"`group` must be one of the levels of the fit ({', '.join(known)}) for each of "
            f"{num_rows} rows of `x`, got others"
        )
    return found
