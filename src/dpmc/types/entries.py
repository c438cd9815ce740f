"""Entries of private rows: what number each of them is, by itself."""

from __future__ import annotations

import math
from decimal import Decimal
from numbers import Real
from typing import Any, Literal

import numpy as np

from dpmc.types.errors import DpmcError
from dpmc.types.numbers import Array

InvalidRows = Literal["refuse", "zero"]
# As files have them.
FLAGS = {"true": 1.0, "false": 0.0}
# Kinds of arrays whose entries are no numbers, or not all of them, as far as their type says:
# objects, texts, bytes, texts of any length, complex numbers.
PARSED = "OUSTc"
TEXTS = "OUST"


def number(entry: object) -> float:
    """Finite number that an entry is, of whatever type; NaN if it is none.

    No other entry has a say in it, and nothing is raised.

    Examples
    --------
    >>> number("1e3"), number(True), number("false"), number(2**64)
    (1000.0, 1.0, 0.0, 1.8446744073709552e+19)
    >>> number("1,234"), number("1_000"), number("0x10"), number(None), number(10**400)
    (nan, nan, nan, nan, nan)
    """
    try:
        if isinstance(entry, str | bytes):
            value = _of_text(entry)
        elif isinstance(entry, complex | np.complexfloating):
            value = float(entry.real) if entry.imag == 0 else math.nan
        elif _is_number(entry):
            value = float(entry)  # type: ignore[arg-type]
        else:
            return math.nan
    except Exception:  # of a type that nobody here knows: what it says may depend on its value
        return math.nan
    return value if math.isfinite(value) else math.nan


def _is_number(entry: object) -> bool:
    """Whether an entry has the type of a real number or flag."""
    known = isinstance(entry, Real | Decimal | np.bool_)
    return known and not isinstance(entry, np.timedelta64)


def _of_text(text: str | bytes) -> float:
    """Number that a text is in the notation of Python, but for underscores."""
    if isinstance(text, bytes):
        text = text.decode("latin-1")
    if "_" in text or not text.isascii():
        return math.nan
    flag = FLAGS.get(text.strip().lower())
    return float(text) if flag is None else flag


def numbers(what: str, values: np.ndarray[Any, Any], invalid_rows: InvalidRows) -> Array:
    """Numbers of an array of entries, of its shape; an array of floats as it is.

    Parameters
    ----------
    what : str
        Before "real numbers" in a message, such as "`y` must be".
    values : ndarray
    invalid_rows : {"refuse", "zero"}
        Whether an entry that is no number, and not missing, is refused, or NaN.
    """
    kind = values.dtype.kind
    if kind == "f":
        return values
    if kind in "biu":
        return values.astype(np.float64)
    if kind in PARSED:
        entries = values.ravel().tolist()
        if invalid_rows == "zero" or (kind == "O" and all(map(_is_number_or_missing, entries))):
            found = np.fromiter(map(number, entries), np.float64, len(entries))
            return found.reshape(values.shape)
    cure = ""
    if kind in TEXTS:
        cure = ": a formula of dpmc.regression declares categories, C(name, levels=['a', 'b'])"
    elif kind in "mM":
        cure = ", dates or durations: give numbers, such as the days since a public date"
    raise DpmcError(f"{what} real numbers, got others{cure}")


def _is_number_or_missing(entry: object) -> bool:
    return entry is None or type(entry).__name__ in ("NAType", "NaTType") or _is_number(entry)
