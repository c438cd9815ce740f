"""Sources of private rows: anything that gives them in order, a piece at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, Protocol

import numpy as np

from dpmc.types import Array, Dataset, InvalidRows

# Rows that one process holds of a source at a time: a multiple of every block of rows.
SPAN = 1 << 17
# Numbers that a block of rows may take in one array.
BLOCK = 1 << 20


class Source(Protocol):
    """Private rows that need not be in memory, and what is public about them."""

    @property
    def name(self) -> str:
        """Name used in messages."""

    @property
    def num_rows(self) -> int:
        """Number n of rows, public under the substitution relation."""

    @property
    def num_columns(self) -> int:
        """Number p of columns."""

    @property
    def bounds(self) -> Mapping[str, float]:
        """Public constants that bound every row."""

    @property
    def bounds_source(self) -> Literal["public", "data"]:
        """Whether the bounds were taken from the rows."""

    @property
    def invalid_rows(self) -> InvalidRows:
        """Treatment of rows with an entry that is not finite."""

    @property
    def part_rows(self) -> int:
        """Rows that a worker takes at once, a multiple of `SPAN`."""

    def pieces(self, first: int, last: int) -> Iterator[Array]:
        """Rows from `first` on and before `last`, in order, in arrays of any length."""

    def check(self) -> None:
        """Refuse rows that are not those which were first seen."""

    def run(self, work: Callable[[Any], Array], tasks: Iterator[Any]) -> Iterator[Array]:
        """Results of tasks, in their order, by whatever workers there are."""


class InMemory:
    """The rows of a data set, as a source.

    Parameters
    ----------
    dataset : Dataset
        The private rows.
    """

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self.name = dataset.name
        self.num_rows, self.num_columns = dataset.x.shape
        self.bounds, self.bounds_source = dataset.bounds, dataset.bounds_source
        self.invalid_rows = dataset.invalid_rows
        self.part_rows = SPAN

    def pieces(self, first: int, last: int) -> Iterator[Array]:
        """Rows asked for, as they lie."""
        yield self.dataset.x[first:last]

    def check(self) -> None:
        """Do nothing: rows in memory stay."""

    def run(self, work: Callable[[Any], Array], tasks: Iterator[Any]) -> Iterator[Array]:
        """Do one task after the other."""
        return map(work, tasks)


def block_rows(numbers_per_row: int) -> int:
    """Rows of a block, a power of two.

    A sum over rows is a sum over the blocks of all of them, in order, of the sums over each block.
    Where a block begins depends on no file, no worker and no number of either.

    Parameters
    ----------
    numbers_per_row : int
        What a block holds of each row.

    Examples
    --------
    >>> block_rows(10)
    65536
    """
    return min(SPAN, 1 << max(0, (BLOCK // numbers_per_row).bit_length() - 1))


def spans(source: Source, first: int, last: int) -> Iterator[Array]:
    """Rows of a part in arrays of `SPAN` rows, the last one perhaps shorter."""
    held: list[Array] = []
    count = 0
    for piece in source.pieces(first, last):
        while len(piece):
            taken, piece = piece[: SPAN - count], piece[SPAN - count :]
            held.append(taken)
            count += len(taken)
            if count == SPAN:
                yield _joined(held)
                held, count = [], 0
    if held:
        yield _joined(held)


def _joined(held: list[Array]) -> Array:
    if len(held) == 1:
        return held[0]
    # Columns lie together: that is how row functions read them.
    out = np.empty((held[0].shape[1], sum(map(len, held))), dtype=np.result_type(*held))
    first = 0
    for piece in held:
        out[:, first : first + len(piece)] = piece.T
        first += len(piece)
    return out.T
