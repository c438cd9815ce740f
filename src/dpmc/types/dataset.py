"""Private rows, together with what is public about them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from dpmc.types.entries import InvalidRows
from dpmc.types.errors import DpmcError
from dpmc.types.frames import as_numbers, is_frame, is_name, labels
from dpmc.types.numbers import Array, is_real


@dataclass(frozen=True)
class Dataset:
    """Private rows together with what is public about them.

    Parameters
    ----------
    name : str
        Name used in messages and file names.
    x : ndarray of shape (n, p)
        One row per individual.
    bounds : mapping of str to float, optional
        Constants that bound every row, such as ``{"row_norm": 8.0}``.
    bounds_source : {"public", "data"}
        ``"data"`` says that bounds, or facts, were taken from the private rows; a guarantee then
        lists them as outside of it.
    truth : ndarray of shape (d,), optional
        The parameter that generated synthetic rows.
    facts : mapping of str to float or int, optional
        What else is known of the rows and bounds none, such as how many are for training.
    invalid_rows : {"refuse", "zero"}
        What becomes of rows with an entry that is no finite number. To refuse them depends on
        private rows, and no guarantee covers it. ``"zero"`` makes all of such a row NaN, in
        a copy: it contributes nothing to any sum. Each entry is then read by itself, texts too,
        and none is refused, whatever its type.

    Raises
    ------
    DpmcError
        If `x` has no rows and columns, or holds what is no finite number and is to be refused;
        the message names a column, never a row or a value.

    Examples
    --------
    >>> import numpy as np
    >>> rows = Dataset("rows", np.zeros((5, 2)), bounds={"row_norm": 1.0})
    >>> rows.num_rows
    5
    """

    name: str
    x: Array = field(repr=False)
    bounds: Mapping[str, float] = field(default_factory=dict)
    bounds_source: Literal["public", "data"] = "public"
    truth: Array | None = None
    invalid_rows: InvalidRows = "refuse"
    facts: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise DpmcError(f"`name` must be a text, got {type(self.name).__name__}")
        if self.invalid_rows not in ("refuse", "zero"):
            raise DpmcError(f"`invalid_rows` must be 'refuse' or 'zero', got {self.invalid_rows!r}")
        given = self.x
        x = as_numbers(f"data {self.name!r}:", given, self.invalid_rows)
        if x.ndim != 2 or 0 in x.shape:
            raise DpmcError(
                f"data {self.name!r}: `x` must have rows and columns, got shape {x.shape}"
            )
        if x is not self.x:
            object.__setattr__(self, "x", x)
        _check_numbers(self.name, "bounds", self.bounds)
        _check_numbers(self.name, "facts", self.facts)
        if self.bounds_source not in ("public", "data"):
            raise DpmcError(
                f"`bounds_source` must be 'public' or 'data', got {self.bounds_source!r}"
            )
        if self.invalid_rows == "refuse":
            refuse_not_finite(f"data {self.name!r}:", x, given)
        elif _columns_not_finite(x):
            x = x.copy(order="K")
            x[~np.isfinite(x).all(axis=1)] = np.nan
            object.__setattr__(self, "x", x)

    @classmethod
    def of(
        cls, name: str, data: Any, invalid_rows: InvalidRows = "refuse", hidden: bool = False
    ) -> Dataset:
        """Data set of an array, nested list or data frame of real numbers.

        Parameters
        ----------
        name, data, invalid_rows
            As of the class.
        hidden : bool
            Whether nothing may tell how many rows there are: none of them are one that counts as
            nothing, and no message has their number.

        Raises
        ------
        DpmcError
            If `data` is no array of real numbers, or its rows are refused.
        """
        if hidden:
            data = as_numbers(f"data {name!r}:", data, invalid_rows)
            if data.ndim != 2 or not data.shape[1]:
                raise DpmcError(
                    f"data {name!r}: `x` must have rows and columns, got {data.ndim} dimensions"
                )
            if not len(data):
                data, invalid_rows = np.full((1, data.shape[1]), math.nan), "zero"
        return cls(name, data, invalid_rows=invalid_rows)

    @property
    def num_rows(self) -> int:
        """Number of rows, public under the substitution relation."""
        return int(self.x.shape[0])


def _check_numbers(name: str, what: str, given: Any) -> None:
    if not isinstance(given, Mapping):
        raise DpmcError(f"data {name!r}: `{what}` must be a mapping of numbers, got {given!r}")
    for key, value in given.items():
        if not (is_real(value) and math.isfinite(value)):
            one = what.removesuffix("s")
            raise DpmcError(f"data {name!r}: {one} {key!r} must be a finite number, got {value!r}")


def refuse_not_finite(told: str, x: Array, given: Any) -> None:
    """Refuse numbers that are not finite, by the name of their column if what was given has one."""
    for k in _columns_not_finite(x):
        named = is_frame(given) and is_name(labels(given)[k])
        raise DpmcError(
            f"{told} column {repr(labels(given)[k]) if named else k} must hold finite numbers "
            "only, unless `invalid_rows` is 'zero'"
        )


def _columns_not_finite(x: Array) -> list[int]:
    """Columns with an entry that is not finite; a finite sum rules out all of them."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(np.sum(x)):
            return []
    return [k for k, column in enumerate(x.T) if not np.isfinite(column).all()]
