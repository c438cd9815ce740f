"""Private rows with entries that are not finite: refused, or made to contribute nothing."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpmc import checks
from dpmc.types import Array, DpmcError, InvalidRows

CHOICES: tuple[InvalidRows, ...] = ("refuse", "zero")


def as_floats(name: str, values: npt.ArrayLike, invalid_rows: InvalidRows) -> Array:
    """Private values as a contiguous array of 64-bit floats, refusing a masked array."""
    return np.ascontiguousarray(checks.real_array(name, values, invalid_rows))


def without_invalid(invalid_rows: InvalidRows, **parts: Array) -> tuple[Array, ...]:
    """Parts of private rows, invalid rows refused or all NaN.

    A row of NaN has no factor: the compiled loops put in its place one that leaves the state as
    it is, clipped as any other. So it contributes nothing, the number of rows stays the public
    one, and the sensitivity holds as for any row.

    `invalid_rows` in {"refuse", "zero"}: what becomes of a row with an entry that is not finite in
    any part. That one was refused depends on private rows, and no guarantee covers it. `**parts`,
    shape (N,) or (N, d): parts of the rows under their names, such as features and targets; not
    changed.

    The parts in their order; copies where a row is invalid.
    """
    checks.one_of("invalid_rows", invalid_rows, CHOICES)
    if invalid_rows == "refuse":
        for name, values in parts.items():
            _refuse(name, values)
        return tuple(parts.values())
    valid = np.ones(len(next(iter(parts.values()))), dtype=bool)
    for values in parts.values():
        valid &= np.isfinite(values).reshape(len(values), -1).all(axis=1)
    if valid.all():
        return tuple(parts.values())
    copies = tuple(values.copy() for values in parts.values())
    for values in copies:
        values[~valid] = np.nan
    return copies


def _refuse(name: str, values: Array) -> None:
    """Refuse values that are not finite, naming their first column."""
    columns = np.atleast_1d(np.isfinite(values).all(axis=0))
    if columns.all():
        return
    place = f"column {int(np.argmin(columns))} of `{name}`" if values.ndim > 1 else f"`{name}`"
    raise DpmcError(f"{place} must hold finite numbers only, unless invalid_rows='zero'")
