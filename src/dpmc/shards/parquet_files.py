"""Rows of Parquet files, decoded a batch at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmc.shards import arrow_schema
from dpmc.shards.content import Content, dtype_of
from dpmc.types import Array, DpmcError, arrow_entries, numbers

if TYPE_CHECKING:
    import pyarrow.parquet as pq

# Rows that are decoded at once.
BATCH = 1 << 16


def content(path: Path) -> Content:
    """Contents of a file."""
    with _opened(path) as file:
        schema, metadata = file.schema_arrow, file.metadata
        places, index = arrow_schema.columns(schema, f"shard {path.name}:")
        if not (metadata.num_rows and places):
            raise DpmcError(
                f"shard {path.name}: must hold rows and columns, got shape "
                f"({metadata.num_rows}, {len(places)})"
            )
        fields = [schema.field(k) for k in places]
        groups = [metadata.row_group(k).num_rows for k in range(metadata.num_row_groups)]
        return Content(
            metadata.num_rows,
            tuple(field.name for field in fields),
            tuple(arrow_schema.dtype(field.type) for field in fields),
            max(groups),
            index,
        )


def pieces(
    path: str, content: Content, first: int, last: int, columns: Sequence[int]
) -> Iterator[Array]:
    """Rows of a file; an entry that is missing or no number is NaN."""
    import pyarrow as pa

    names = [content.columns[k] for k in columns]
    dtype = np.dtype(dtype_of({content.dtypes[k] for k in columns}))
    with _opened(Path(path)) as file:
        groups, start = _groups(file, first, last)
        skip, wanted = first - start, last - first
        try:
            for batch in file.iter_batches(BATCH, groups, names, use_threads=False):
                if skip >= batch.num_rows:
                    skip -= batch.num_rows
                    continue
                rows = batch.slice(skip, min(batch.num_rows - skip, wanted))
                skip = 0
                wanted -= rows.num_rows
                out = np.empty((len(names), rows.num_rows), dtype)
                for k, name in enumerate(names):
                    out[k] = _numbers(rows.column(name))
                yield out.T
                if not wanted:
                    return
        except (OSError, pa.ArrowException):
            raise _damaged(Path(path)) from None


def _groups(file: pq.ParquetFile, first: int, last: int) -> tuple[list[int], int]:
    """Row groups that hold some rows, and the first row of the first of them."""
    groups: list[int] = []
    start = end = 0
    for k in range(file.metadata.num_row_groups):
        begin, end = end, end + file.metadata.row_group(k).num_rows
        if end > first and begin < last:
            start = start if groups else begin
            groups.append(k)
    return groups, start


def _numbers(column: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        return numbers("entries must be", arrow_entries(column), "zero")
    if column.null_count:
        return column.to_numpy(zero_copy_only=False).astype(np.float64)
    return column.to_numpy(zero_copy_only=True)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[pq.ParquetFile]:
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path, memory_map=True, pre_buffer=False)
    except (OSError, ValueError):
        if not path.exists():
            raise DpmcError(f"shard {path.name}: must be there, and is not") from None
        raise _damaged(path) from None
    with file:
        yield file


def _damaged(path: Path) -> DpmcError:
    return DpmcError(f"shard {path.name}: must be a whole Parquet file, and is damaged or cut off")
