"""The content of a shard: rows, columns and their type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dpmc.types import DpmcError, InvalidRows

# Type of a column whose entries are read one by one.
PARSED = "entries"
# Type of a column that holds no numbers.
OTHER = "others"
SINGLE = "float32"
DOUBLE = "float64"


@dataclass(frozen=True)
class Content:
    """Rows and columns of a file.

    Parameters
    ----------
    num_rows : int
    columns : tuple of str
        Names, or places where there are none.
    dtypes : tuple of str
        NumPy's names of the types of the columns, or `PARSED` or `OTHER`.
    group_rows : int
        Rows that have to be decoded together, 1 where each can be had by itself.
    index : tuple of str
        What pandas wrote as the index of a frame, among the columns if it has a name.
    """

    num_rows: int
    columns: tuple[str, ...]
    dtypes: tuple[str, ...]
    group_rows: int = 1
    index: tuple[str, ...] = ()

    def refuse_other(self, other: Content, name: str) -> None:
        """Refuse a shard with other columns than this one, the first."""
        if other.columns != self.columns:
            raise DpmcError(
                f"shard {name}: columns must be those of the first shard, "
                f"{list(self.columns)}, got {list(other.columns)}"
            )

    def refuse_types(
        self, other: Content, name: str, columns: Sequence[int], invalid_rows: InvalidRows
    ) -> None:
        """Refuse columns of a shard that hold no numbers, or another type than in this, the first.

        With ``invalid_rows="zero"`` a type that an engine may have chosen for the sake of one
        entry is as good as any: integers, or numbers, or texts.
        """
        for k in columns:
            mine, its = self.dtypes[k], other.dtypes[k]
            told = f"shard {name}: column {self.columns[k]!r} must"
            if its == OTHER or (its == PARSED and invalid_rows == "refuse"):
                raise DpmcError(f"{told} hold real numbers, got others")
            if mine != its and invalid_rows == "refuse":
                raise DpmcError(f"{told} have the type that it has in the first shard, got another")

    def read_as(self, dtype: str) -> Content:
        """Same content, with columns to be read in one type."""
        return replace(self, dtypes=(dtype,) * len(self.columns))


def dtype_of(dtypes: set[str]) -> str:
    """Type that columns of some types are read in."""
    return SINGLE if dtypes <= {"float16", SINGLE} else DOUBLE
