"""Rows of a folder of shards, as a source that sums are taken over."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from dpmc import checks
from dpmc.rows.sources import SPAN
from dpmc.shards import workers as engines
from dpmc.shards.content import dtype_of
from dpmc.shards.files import Shard, list_files, read_shards, refuse_change
from dpmc.types import Array, DpmcError, InvalidRows, is_unnamed

# Parts have so many groups of rows that are decoded together: at either end of a part one is
# decoded in vain, in part.
GROUPS = 4


@dataclass(frozen=True)
class ShardedRows:
    """Private rows in files; made by `open_rows`.

    Parameters
    ----------
    name : str
        Of the folder.
    folders : tuple of str
    shards : tuple of Shard
    columns : tuple of int
        Places of the columns that are read.
    part_rows : int
        Rows that a worker takes at once.
    workers, time_limit, bounds, bounds_source, invalid_rows
        As `open_rows` has them.
    """

    name: str
    folders: tuple[str, ...]
    shards: tuple[Shard, ...]
    columns: tuple[int, ...]
    part_rows: int
    workers: Any
    time_limit: float
    bounds: Mapping[str, float] = field(default_factory=dict)
    bounds_source: Literal["public", "data"] = "public"
    invalid_rows: InvalidRows = "refuse"

    @property
    def num_rows(self) -> int:
        """Number of rows of all shards, public under the substitution relation."""
        return sum(shard.content.num_rows for shard in self.shards)

    @property
    def num_columns(self) -> int:
        """Number of columns that are read."""
        return len(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns that are read."""
        return tuple(self.shards[0].content.columns[k] for k in self.columns)

    def pieces(self, first: int, last: int) -> Iterator[Array]:
        """Rows from `first` on and before `last`, in order, in arrays of any length."""
        begin = 0
        for shard in self.shards:
            end = begin + shard.content.num_rows
            if end > first and begin < last:
                low, high = max(first, begin) - begin, min(last, end) - begin
                yield from shard.pieces(low, high, self.columns)  # type: ignore[misc]
            begin = end

    def check(self) -> None:
        """Refuse shards that are no longer the files that were opened."""
        refuse_change(self.shards)

    def check_folders(self) -> None:
        """Refuse folders that hold other files than they did."""
        refuse_change(self.shards)
        known = {shard.path for shard in self.shards}
        for folder in self.folders:
            for path in list_files(Path(folder)):
                if str(path) not in known:
                    raise DpmcError(
                        f"folder {folder}: must stay as it is during a fit, got {path.name!r}"
                    )

    def run(self, work: Callable[[Any], Array], tasks: Iterator[Any]) -> Iterator[Array]:
        """Results of tasks, in their order, by threads or the workers given."""
        self.check_folders()
        # A client has no place in what is sent to its workers.
        alone = replace(self, workers=1)
        found = (replace(task, source=alone) for task in tasks)
        yield from engines.run(work, found, self.workers, self.time_limit, self.name)
        self.check_folders()


def open_rows(
    *folders: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    workers: Any = None,
    time_limit: float = 3600.0,
    bounds: Mapping[str, float] | None = None,
    bounds_source: Literal["public", "data"] = "public",
    invalid_rows: InvalidRows = "refuse",
) -> ShardedRows:
    """Open folders of Parquet or .npy files as the rows of a fit; nothing is held in memory.

    Shards are read in the order of the folders and, in each, by name. Their rows are summed in
    blocks of a fixed number of rows, counted over all shards, and blocks are added in order: the
    result has the same bytes however many shards and workers there are, and as for the same rows
    in memory.

    Parameters
    ----------
    *folders : str or Path
        Each with files of one kind and the same columns.
    columns : sequence of str, optional
        The columns to read, in this order; by default all of them, as they stand in the first
        shard, which is refused where one was the index of a data frame. Columns of .npy files are
        called "0", "1", and so on.
    workers : int, concurrent.futures.Executor or distributed.Client, optional
        Threads of this process, by default one for each processor; or who is given the parts.
        Workers on other machines have to see the files under the same paths.
    time_limit : float
        Seconds that a part of the rows may take before the fit is given up.
    bounds, bounds_source, invalid_rows
        As `dpmc.Dataset` has them.

    Returns
    -------
    ShardedRows
        Takes the place of rows in `dpmc.fit`.

    Raises
    ------
    DpmcError
        If a folder or a shard is refused; during a fit also if a shard changes.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> folder = tempfile.TemporaryDirectory()
    >>> for k in range(3):
    ...     np.save(f"{folder.name}/part-{k}.npy", np.full((100, 2), float(k)))
    >>> rows = open_rows(folder.name)
    >>> rows.num_rows, rows.num_columns
    (300, 2)
    >>> folder.cleanup()
    """
    paths = [_folder(one) for one in folders]
    if not paths:
        raise DpmcError("`folders` must be at least one, got none")
    for places in ([path.name for path in paths], [str(path.resolve()) for path in paths]):
        twice = [place for place in places if places.count(place) > 1]
        if twice:
            raise DpmcError(f"`folders` must have different names, got {twice[0]!r} twice")
    checks.positive("time_limit", time_limit)
    checks.one_of("bounds_source", bounds_source, ("public", "data"))
    checks.one_of("invalid_rows", invalid_rows, ("refuse", "zero"))
    shards = read_shards(paths)
    chosen = _columns(shards, columns)
    shards = _typed(shards, chosen, invalid_rows)
    group = max(shard.content.group_rows for shard in shards)
    rows = ShardedRows(
        name=str(paths[0]) if len(paths) == 1 else ", ".join(path.name for path in paths),
        folders=tuple(map(str, paths)),
        shards=shards,
        columns=chosen,
        part_rows=SPAN * max(1, -(-GROUPS * group // SPAN) if group > 1 else 2),
        workers=_workers(workers),
        time_limit=float(time_limit),
        bounds=dict(bounds or {}),
        bounds_source=bounds_source,
        invalid_rows=invalid_rows,
    )
    rows.check_folders()
    return rows


def _folder(folder: Any) -> Path:
    if not isinstance(folder, str | os.PathLike):
        raise DpmcError(f"`folders` must be paths, got {type(folder).__name__}")
    return Path(folder).expanduser().absolute()


def _columns(shards: Sequence[Shard], wanted: Sequence[str] | None) -> tuple[int, ...]:
    known = shards[0].content.columns
    if wanted is None:
        for shard in shards:
            content = shard.content
            others = [*content.index, *(name for name in content.columns if is_unnamed(name))]
            if others:
                raise DpmcError(
                    f"shard {Path(shard.path).name}: {others[0]!r} was written as the index of a "
                    "frame: name the columns to read by `columns` of `dpmc.open_rows`, among "
                    f"{list(known)}"
                )
        return tuple(range(len(known)))
    names = list(wanted)
    for name in names:
        if name not in known:
            raise DpmcError(f"`columns` must be among {list(known)}, got {name!r}")
    if not names or len(set(names)) < len(names):
        raise DpmcError(f"`columns` must be different names, got {names}")
    return tuple(map(known.index, names))


def _typed(
    shards: Sequence[Shard], columns: Sequence[int], invalid_rows: InvalidRows
) -> tuple[Shard, ...]:
    """Shards whose columns are read in one type, refusing types that hold no numbers."""
    first = shards[0].content
    for shard in shards:
        first.refuse_types(shard.content, Path(shard.path).name, columns, invalid_rows)
    found = [{shard.content.dtypes[k] for k in columns} for shard in shards]
    if all(dtypes == found[0] for dtypes in found):
        return tuple(shards)
    dtype = dtype_of(set().union(*found))
    return tuple(replace(shard, content=shard.content.read_as(dtype)) for shard in shards)


def _workers(workers: Any) -> Any:
    if workers is None:
        return (
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count() or 1
        )
    if isinstance(workers, bool) or not (isinstance(workers, int) or hasattr(workers, "submit")):
        raise DpmcError(
            "`workers` must be a number of threads, an executor or a Dask client, got "
            f"{type(workers).__name__}"
        )
    if isinstance(workers, int):
        checks.at_least("workers", workers, 1)
    return workers
