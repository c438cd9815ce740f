"""Parts of a table: taken from an earlier table that has them, or else computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpmc import registry
from dpmc.progress import Progress, silent
from dpmc.types import Array, Dataset, DpmcError, UnavailableError
from dpmc_papers.config import grids, kept_draws
from dpmc_papers.pipeline import folders, store
from dpmc_papers.pipeline.jobs import StudyPart

if TYPE_CHECKING:
    import pandas as pd

Measure = Callable[[StudyPart, Sequence[int], Progress], "pd.DataFrame"]


def earlier(folder: Path, problem: str, wanted: Iterable[str]) -> dict[str, list[pa.Table]]:
    """Return the parts of a problem that finished tables of a folder have.

    Parameters
    ----------
    folder : Path
        Of an experiment or a study. Tables are called ``<problem>-<8 digits>.parquet``.
    problem : str
    wanted : iterable of str
        Digests of parts.

    Returns
    -------
    dict of str to list of pyarrow.Table
        By digest. A table that is damaged, or is not what its log tells of, has none.
    """
    known: dict[str, list[pa.Table]] = {}
    digests = set(wanted)
    for path in sorted(folder.glob(f"{problem}-????????.parquet")):
        with suppress(DpmcError):
            folders.check([path])
            for digest, rows in store.read_parts(path):
                if digest in digests:
                    known.setdefault(digest, []).append(rows)
    return known


def run_parts(
    parts: Sequence[StudyPart],
    known: Mapping[str, Sequence[pa.Table]],
    measure: Measure,
    tell: Callable[[str], object] = lambda line: None,
    progress: Progress = silent,
) -> Iterator[tuple[str, pa.Table]]:
    """Yield the rows of each part: of replicates that are known, and of those that are not.

    Parameters
    ----------
    parts : sequence of StudyPart
        What is wanted.
    known : mapping of str to sequence of pyarrow.Table
        Rows by the digest of their part, as `earlier` finds them.
    measure : callable
        Returns the rows of some replicates of a part, such as :func:`measured`.
    tell : callable
        Told in a line how long each part took.
    progress : callable
        Handed to `measure`.

    Yields
    ------
    (str, pyarrow.Table)
        The digest of a part, and its rows in the order of points and replicates.

    Notes
    -----
    Computing starts at a part that depends on the name of the problem. Jobs that measure the same
    methods on several problems at once then begin with different ones, and neither waits for what
    the other compiles.
    """
    done = {}
    for place in _turned(parts):
        done[place] = _rows_of(parts[place], known, measure, tell, progress)
    for place, part in enumerate(parts):
        yield part.digest, done[place]


def measured(
    part: StudyPart, replicates: Sequence[int], rows: Callable[[], Dataset], progress: Progress
) -> pd.DataFrame:
    """Return what the module of a study measures of some replicates.

    Parameters
    ----------
    part : StudyPart
    replicates : sequence of int
    rows : callable
        Returns the rows of the problem. If it says that they cannot be had, the table says so.
    progress : callable
    """
    study = registry.load("study", part.setup.study)
    try:
        table: pd.DataFrame = study.run(part.setup, rows(), replicates, progress)
    except UnavailableError as error:
        table = study.unavailable(part.setup, replicates, str(error))
    return table


def draws_of(part: StudyPart, dataset: Dataset, progress: Progress = silent) -> Array:
    """Return the draws of the first replicate of a part at its first point.

    Returns
    -------
    ndarray of shape (k, chains, d)

    Raises
    ------
    DpmcError
        If the method of the part draws no chain, or its run ended before it did.
    """
    study = registry.load("study", part.setup.study)
    with kept_draws.kept() as found:
        study.run(part.setup, dataset, [part.first], progress)
    name = grids.name(part.setup.points[0])
    if (name, part.first) not in found:
        raise DpmcError(f"`label` must be a method that draws a chain, got {part.label!r}")
    return found[name, part.first]


def _turned(parts: Sequence[StudyPart]) -> list[int]:
    """Return the places of all parts in the order in which they are computed."""
    first = crc32(parts[0].setup.problem.name.encode()) % len(parts) if parts else 0
    return [*range(first, len(parts)), *range(first)]


def _rows_of(
    part: StudyPart,
    known: Mapping[str, Sequence[pa.Table]],
    measure: Measure,
    tell: Callable[[str], object],
    progress: Progress,
) -> pa.Table:
    start = process_time()
    found = dict(_by_replicate(known.get(part.digest, ())))
    wanted = range(part.first, part.last + 1)
    missing = [replicate for replicate in wanted if replicate not in found]
    tables = [found[replicate] for replicate in wanted if replicate in found]
    if missing:
        tables.append(store.to_rows(measure(part, missing, progress)))
    rows = _in_order(part, pa.concat_tables(tables))
    taken = f", {len(wanted) - len(missing)} taken over" if len(missing) < len(wanted) else ""
    tell(f"{process_time() - start:.3f} s of processor time{taken}: {part.told}")
    return rows


def _by_replicate(tables: Iterable[pa.Table]) -> Iterator[tuple[int, pa.Table]]:
    for table in tables:
        for replicate in pc.unique(table.column("replicate")).to_pylist():
            yield replicate, table.filter(pc.equal(table.column("replicate"), replicate))


def _in_order(part: StudyPart, table: pa.Table) -> pa.Table:
    names = [grids.name(point) for point in part.setup.points]
    places = [names.index(name) for name in table.column("point").to_pylist()]
    order = np.lexsort((table.column("replicate").to_numpy(), places))
    return table.take(pa.array(order))
