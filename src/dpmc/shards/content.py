"""The content of a shard: rows, columns and their type."""

from __future__ import annotations

from dataclasses import dataclass

from dpmc.types import DpmcError


@dataclass(frozen=True)
class Content:
    """Rows and columns of a file.

    Parameters
    ----------
    num_rows : int
    columns : tuple of str
        Names, or places where there are none.
    dtypes : tuple of str
        NumPy's names of the types of the columns.
    group_rows : int
        Rows that have to be decoded together, 1 where each can be had by itself.
    """

    num_rows: int
    columns: tuple[str, ...]
    dtypes: tuple[str, ...]
    group_rows: int = 1

    def refuse_other(self, other: Content, name: str) -> None:
        """Refuse a shard with other columns than this one, the first.

        Raises
        ------
        DpmcError
            Naming the difference.
        """
        if other.columns != self.columns:
            raise DpmcError(
                f"shard {name}: columns must be those of the first shard, "
                f"{list(self.columns)}, got {list(other.columns)}"
            )
        for column, mine, its in zip(self.columns, self.dtypes, other.dtypes, strict=True):
            if mine != its:
                raise DpmcError(
                    f"shard {name}: column {column!r} must be {mine}, as in the first shard, "
                    f"got {its}"
                )
