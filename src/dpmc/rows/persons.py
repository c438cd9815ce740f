"""Private rows of persons, who may have several each: what is clipped is the sum of a person.

Neighbours have as many persons, one of whom is another one, with as many rows as may be. So the
number of persons is public, and that of rows is not: nothing but sums over persons may depend on
it. Persons are in the order of their first rows.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpmc.types import Array, Dataset, DpmcError, InvalidRows, entries, frames

# Kinds of arrays that hold identifiers: numbers, and objects, texts and bytes.
NUMBERS, TEXTS = "biuf", "OUST"
Key = int | float | bytes | Decimal


@dataclass(frozen=True)
class Persons:
    """Private rows in which those of a person lie together.

    Parameters
    ----------
    rows : Dataset
        Private, their number too; those that are invalid, or nobody's, are left out.
    starts : ndarray of shape (n + 1,)
        Where the rows of each of n persons begin, and where the last ones end; private.
    unit : str
        What a person is called, as ``"patient"``.
    """

    rows: Dataset = field(repr=False)
    starts: NDArray[np.int64] = field(repr=False)
    unit: str

    @classmethod
    def of(cls, dataset: Dataset, identifiers: Any, unit: str) -> Persons:
        """Rows by the person that each belongs to.

        Parameters
        ----------
        dataset : Dataset
        identifiers : array_like of shape (rows,)
            Of persons: integers or texts. Those that are one number are one person, 7, 7.0 and "7".
            A row without one is invalid.
        unit : str

        Raises
        ------
        DpmcError
            If these are no identifiers, one for each row, or one is missing and invalid rows are
            refused.
        """
        places, num_persons = numbered(identifiers, unit, dataset.invalid_rows)
        if len(places) != len(dataset.x):
            raise DpmcError(
                f"`unit` must have one identifier of a {unit} for each row, got another number"
            )
        valid = places >= 0
        if dataset.invalid_rows == "zero":
            valid &= np.isfinite(dataset.x).all(axis=1)
        kept = np.flatnonzero(valid)
        order = kept[np.argsort(places[kept], kind="stable")]
        starts = np.zeros(num_persons + 1, dtype=np.int64)
        np.cumsum(np.bincount(places[kept], minlength=num_persons), out=starts[1:])
        ordered = np.array_equal(order, np.arange(len(dataset.x)))
        # No row of NaN to mark as such is left, and maybe no row at all.
        rows = dataset if ordered else _of_rows(dataset, order)
        return cls(rows, starts, unit)

    @property
    def num_rows(self) -> int:
        """Number of persons, public: what counts as a row is the sum over those of a person."""
        return len(self.starts) - 1

    @property
    def name(self) -> str:
        """Name used in messages."""
        return self.rows.name

    @property
    def num_columns(self) -> int:
        """Number of columns of rows."""
        return int(self.rows.x.shape[1])

    @property
    def bounds(self) -> Mapping[str, float]:
        """Public constants that bound every row."""
        return self.rows.bounds

    @property
    def bounds_source(self) -> Literal["public", "data"]:
        """Whether the bounds were taken from the rows."""
        return self.rows.bounds_source

    @property
    def invalid_rows(self) -> InvalidRows:
        """Treatment of rows with an entry that is not finite."""
        return self.rows.invalid_rows

    def one_each(self) -> Array:
        """One row of each person, drawn by a public generator, or NaN of one who has none."""
        counts = np.diff(self.starts)
        drawn = np.random.default_rng(0).random(len(counts))
        places = self.starts[:-1] + (drawn * counts).astype(np.int64)
        rows = np.full((len(counts), self.num_columns), np.nan)
        some = counts > 0
        rows[some] = self.rows.x[places[some]]
        return rows

    def with_rows(self, x: Array) -> Persons:
        """The same persons with other columns of the same rows."""
        return replace(self, rows=_replaced(self.rows, x))


def _of_rows(dataset: Dataset, order: NDArray[np.int64]) -> Dataset:
    # Columns lie together: that is how row functions read them.
    x = dataset.x.T[:, order].T if dataset.x.T.flags.c_contiguous else dataset.x[order]
    return _replaced(dataset, x)


def _replaced(dataset: Dataset, x: Array) -> Dataset:
    """Data set with other rows, of which there may be none."""
    found = copy.copy(dataset)
    object.__setattr__(found, "x", x)
    return found


def numbered(
    identifiers: Any, unit: str, invalid_rows: InvalidRows
) -> tuple[NDArray[np.int64], int]:
    """Number of the person of each row, by first rows, -1 of nobody's; and number of persons.

    Examples
    --------
    >>> numbered(["b", "a", None, "b", 7, "7"], "patient", "zero")[0].tolist()
    [0, 1, -1, 0, 2, 2]
    """
    given = entries_of(identifiers)
    if given.dtype.kind in TEXTS:
        found: dict[Key, int] = {}
        keys = map(_key, given.tolist())
        places = np.fromiter(
            (-1 if key is None else found.setdefault(key, len(found)) for key in keys),
            np.int64,
            len(given),
        )
        count = len(found)
    else:
        places = np.full(len(given), -1, dtype=np.int64)
        known = np.isfinite(given)
        _, first, codes = np.unique(given[known], return_index=True, return_inverse=True)
        rank = np.empty(len(first), dtype=np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        places[known] = rank[codes]
        count = len(first)
    if invalid_rows == "refuse" and (places < 0).any():
        raise DpmcError(
            f"`unit` must have an integer or a text for the {unit} of every row, unless "
            "`invalid_rows` is 'zero'"
        )
    if not count:
        raise DpmcError(f"`unit` must have the identifier of a {unit}, got none")
    return places, count


def entries_of(identifiers: Any) -> np.ndarray[Any, Any]:
    """Entries of a column of identifiers, in memory.

    In one array of numbers or texts an entry of another type, or a missing one, would round or
    rewrite all others: one row would decide who else is one person.
    """
    several = None
    try:
        if isinstance(identifiers, list | tuple):
            given, several = np.empty(0), identifiers
        else:
            given = frames.entries(identifiers)
            as_list = getattr(identifiers, "to_pylist", getattr(identifiers, "to_list", None))
            if given.dtype.kind == "f" and as_list is not None:  # maybe of integers
                several = as_list()
        if several is not None:
            given = np.fromiter(several, dtype=object, count=len(several))
    except Exception:  # of a type that is no column
        given = np.empty((0, 0))
    if (
        np.ma.isMaskedArray(identifiers)
        or given.ndim != 1
        or given.dtype.kind not in NUMBERS + TEXTS
    ):
        kind = type(identifiers).__name__
        told = f"{kind} of {given.dtype}" if given.ndim == 1 else kind
        raise DpmcError(f"`unit` must be a column of integers or texts, got {told}")
    return given


def _key(entry: object) -> Key | None:
    """What entries that are one person have in common, None for what is none.

    Two persons who are taken for one are as safe as one; one who is taken for two is not.
    """
    try:
        if isinstance(entry, str | bytes):
            text = entry.decode("latin-1") if isinstance(entry, bytes) else entry
            text = text.strip()
            if text.isascii() and text.isdigit():
                return int(text)
            value = entries.number(text)
            if value == value:
                return value
            return text.encode("utf-8", "surrogatepass") or None
        if isinstance(entry, float | int | np.number | np.bool_ | Decimal):
            return entry if entry - entry == 0 else None  # type: ignore[operator, return-value]
    except Exception:  # of a type, or a number, that nobody here knows
        return None
    return None
