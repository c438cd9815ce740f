"""Arrays, lists and data frames of users as arrays of numbers, and names of columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from dpmc.types.entries import InvalidRows, numbers
from dpmc.types.errors import DpmcError
from dpmc.types.numbers import Array, is_integer

# What pandas calls a column or an index that has no name.
UNNAMED = re.compile(r"(Unnamed: \d+(_level_\d+)?|__index_level_\d+__)?")
EXPONENT = re.compile(r"(?<=[\d.])[eEdDqQ][-+]?(?=\d)|(?<=[\d.])[ijIJ](?![^\W\d_])")
# Numbers with letters, and flags; a second one of a kind has a number behind it in pandas.
WORDS = re.compile(
    r"[-+]?(nan|inf|infinity|true|false|0x[\da-f]*(\.[\da-f]*)?(p[-+]?\d+)?)(\.\d+)?", re.IGNORECASE
)


def is_frame(data: object) -> bool:
    """Whether data are a data frame, of pandas, polars, Arrow or alike: named columns."""
    return _is_arrow(data) or (hasattr(data, "to_numpy") and hasattr(data, "columns"))


def _is_arrow(data: object) -> bool:
    """Whether data are a table of Arrow, whose `columns` are values and no names."""
    return hasattr(data, "column_names") and hasattr(data, "schema")


def labels(frame: Any) -> list[Any]:
    """Labels of the columns of a data frame."""
    return list(frame.column_names if _is_arrow(frame) else frame.columns)


def is_name(label: object) -> bool:
    """Whether a label is one that somebody gave: an integer, or a text that is no number.

    A file without a header that is read as if it had one has a private row in the place of names.

    Examples
    --------
    >>> is_name("age"), is_name("2nd visit"), is_name(0)
    (True, True, True)
    >>> is_name("0.12573"), is_name("-1e-05.1"), is_name("1,5"), is_name("nan"), is_name(0.5)
    (False, False, False, False, False)
    """
    if is_integer(label):
        return True
    if not isinstance(label, str):
        return False
    text = EXPONENT.sub("", label).strip()
    digits, letters = any(map(str.isdigit, text)), any(map(str.isalpha, text))
    return not (WORDS.fullmatch(text) or (digits and not letters))


def label(name: str) -> str | int:
    """Name that somebody gave, as a label: an integer if it is one, since texts of digits may not.

    Examples
    --------
    >>> label("age"), label("2020")
    ('age', 2020)
    """
    return int(name) if name.isdecimal() else name


def is_unnamed(label: object) -> bool:
    """Whether a label says that a column has no name, as an index written as a column."""
    return label is None or (isinstance(label, str) and UNNAMED.fullmatch(label) is not None)


def as_numbers(what: str, data: Any, invalid_rows: InvalidRows) -> Array:
    """Numbers that data hold, of any shape; an array of floats as it is.

    Each entry is a number by itself. With ``invalid_rows="zero"`` one that is none is NaN, and
    makes no other something else, as texts in a list would by way of NumPy.

    Parameters
    ----------
    what : str
        Before a message, such as "`y`" or "data 'rows':".
    data : array_like or data frame
    invalid_rows : {"refuse", "zero"}
    """
    data = collected(data)
    if np.ma.isMaskedArray(data):
        raise DpmcError(
            f"{what} must be an ordinary array, with NaN for masked entries and "
            "invalid_rows='zero', got a masked one"
        )
    if is_frame(data):
        return _frame_numbers(what, data, invalid_rows)
    return numbers(f"{what} must be", array(what, data), invalid_rows)


def is_lazy(data: object) -> bool:
    """Whether data are a query of which the table is yet to be made, of DuckDB, Dask or polars."""
    if _is_dask(data):
        return True
    if isinstance(data, np.ndarray | Sequence) or is_frame(data):
        return False
    import narwhals.stable.v2 as nw

    return isinstance(nw.from_native(data, pass_through=True), nw.LazyFrame)


def collected(data: Any) -> Any:
    """Table that a query makes; other data as they are."""
    if not is_lazy(data):
        return data
    import narwhals.stable.v2 as nw

    try:
        return data.compute() if _is_dask(data) else nw.from_native(data).collect().to_native()
    except Exception as error:  # what it says may depend on private rows
        raise DpmcError(
            f"data must be a query that can be run, got one that ends in {type(error).__name__}"
        ) from None


def _is_dask(data: object) -> bool:
    return hasattr(data, "compute") and hasattr(data, "columns")


def column(frame: Any, name: str) -> Any:
    """Column of a data frame by the text of its label, which is that of one column."""
    return _at(frame, [str(label) for label in labels(frame)].index(name))


def check_index(name: str, given: Any, what: str, rows: Any) -> None:
    """Refuse an argument beside rows that has labels of rows, but others.

    Parameters
    ----------
    name : str
        Of the argument.
    given : array_like or Series
    what : str
        Name of the rows.
    rows : array_like or data frame
    """
    indexes: list[Any] = [getattr(part, "index", None) for part in (rows, given)]
    if all(hasattr(one, "equals") for one in indexes) and not indexes[0].equals(indexes[1]):
        raise DpmcError(
            f"`{name}` must have the index of `{what}`, label for label, got another: align them, "
            f"or give {name}.to_numpy() to go by the order of rows"
        )


def is_categorical(column: Any) -> bool:
    """Whether a column is declared to hold categories."""
    import narwhals.stable.v2 as nw

    return isinstance(_dtype(column), nw.Categorical | nw.Enum)


def is_temporal(column: Any) -> bool:
    """Whether a column is declared to hold dates, times or durations."""
    dtype = _dtype(column)
    return dtype is not None and bool(dtype.is_temporal())


def _dtype(column: Any) -> Any:
    import narwhals.stable.v2 as nw

    return getattr(nw.from_native(column, series_only=True, pass_through=True), "dtype", None)


def entries(column: Any) -> np.ndarray[Any, Any]:
    """Entries of a column of a data frame."""
    return arrow_entries(column) if _is_of_arrow(column) else np.asarray(column)


def _frame_numbers(what: str, frame: Any, invalid_rows: InvalidRows) -> Array:
    columns = []
    for k, label in enumerate(labels(frame)):
        told = f"{what.removesuffix(':')}: column {repr(str(label)) if is_name(label) else k}"
        if is_unnamed(label):
            raise DpmcError(
                f"{told} must be no index that was written as a column, and has no name: leave it "
                "out or name it"
            )
        found = entries(_at(frame, k))
        if found.ndim != 1:  # of a type whose entries are rows themselves
            raise DpmcError(f"{told} must hold real numbers, got others")
        values = numbers(f"{told} must hold", found, invalid_rows)
        with np.errstate(over="ignore", invalid="ignore"):  # longer floats become infinite
            columns.append(values.astype(np.float64, copy=False))
    return np.stack(columns, axis=1) if columns else np.empty((len(frame), 0))


def _at(frame: Any, k: int) -> Any:
    """Column of a data frame by its place."""
    if _is_arrow(frame):
        return frame.column(k)
    return frame.iloc[:, k] if hasattr(frame, "iloc") else frame[labels(frame)[k]]


def _is_of_arrow(data: object) -> bool:
    return type(data).__module__.startswith("pyarrow")


def arrow_entries(column: Any) -> np.ndarray[Any, Any]:
    """Entries of a column of Arrow: categories by what they say, texts as bytes of any encoding."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):  # in NumPy what is missing has the last category
        column = column.cast(column.type.value_type)
    if pa.types.is_string(column.type):  # which need not be UTF-8
        column = column.cast(pa.binary())
    elif pa.types.is_large_string(column.type):
        column = column.cast(pa.large_binary())
    return np.asarray(column)


def array(what: str, data: Any) -> np.ndarray[Any, Any]:
    """Array of data; those in lists keep their types where one of them is no number."""
    if isinstance(data, np.ndarray):
        return np.asarray(data)  # a matrix multiplies, and is sliced, in another way
    if _is_of_arrow(data):
        return arrow_entries(data)
    found: np.ndarray[Any, Any] | None
    try:
        found = np.asarray(data)
    except Exception:  # of rows that differ in length, and of entries of any type
        found = None
    listed = isinstance(data, Sequence) and not isinstance(data, str | bytes)
    if listed and found is not None and found.dtype.kind in "biuf":
        return found.astype(np.float64)  # one entry of another precision changes no other
    if found is None or listed:
        try:
            found = np.array(data, dtype=object)
        except Exception:
            found = None
    kind = "None" if data is None else type(data).__name__
    if found is None or (found.ndim == 1 and found.size and all(map(_is_row, found))):
        raise DpmcError(f"{what} must be rows of equal length, got {kind}")
    if found.ndim == 0:
        raise DpmcError(f"{what} must be rows of numbers, got {kind}")
    return found


def _is_row(entry: object) -> bool:
    return isinstance(entry, list | tuple) or (isinstance(entry, np.ndarray) and entry.ndim > 0)
