"""Results in Parquet files: the same values give the same bytes, and no file is ever half written.

Draws are kept exactly. What belongs to a whole replicate (totals, ledger, guarantee,
plan) is JSON in the metadata of the file, and so is what the file was made from. Nothing says when,
where or how fast. A digest covers all metadata; pages have checksums.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from dpmc.fits import Fit
from dpmc.numerics.source_digest import short_digest
from dpmc.types import (
    Array,
    Dataset,
    Diagnostic,
    DpmcError,
    Guarantee,
    Plan,
    UnavailableError,
)
from dpmc_papers.pipeline.files import ABSENT, replacing

if TYPE_CHECKING:
    import pandas as pd

NOTHING: Mapping[str, Any] = MappingProxyType({})
# Keys of metadata: what a file was made from, and the digest of all others.
MADE, DIGEST = "dpmc_made", "dpmc_digest"
NOT_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
KEYS = ("replicate", "chain", "iteration")
# Rows that are read at once, so that a data set is held once in memory and not twice.
ROWS_PER_GROUP = 2**15


def write_fits(
    path: str | Path, fits: Iterable[tuple[int, Fit]], made: Mapping[str, Any] = NOTHING
) -> None:
    """Write replicates, one row per (replicate, chain, iteration).

    Each replicate is written as it comes, so that one at a time is in memory. The file appears
    under its name once it is complete and on disk. `made` is what it is made from, plain values
    only.
    """
    heads: list[dict[str, Any]] = []
    with replacing(Path(path)) as unfinished:
        writer: pq.ParquetWriter | None = None
        try:
            for replicate, fit in fits:
                table = _rows(replicate, fit)
                writer = writer or _writer(unfinished, table.schema)
                if table.schema != writer.schema:
                    raise DpmcError(f"{path}: replicate {replicate} records other columns")
                writer.write_table(table, row_group_size=max(1, len(table)))
                heads.append(_head(replicate, fit))
            if writer is None:
                raise DpmcError(f"`fits` of {path} must be one or more, got none")
            writer.add_key_value_metadata(_texts({"dpmc_fits": heads}, made))
        finally:
            if writer is not None:
                writer.close()


def read_fits(path: str | Path) -> tuple[dict[str, Any], list[tuple[int, Fit]]]:
    """What a file of replicates was made from, and these in the order of their writing."""
    metadata, file = _open(path, "dpmc_fits")
    heads = metadata["dpmc_fits"]
    fits = []
    for group, head in enumerate(heads):
        columns = _columns(path, partial(file.read_row_group, group))
        fits.append((int(head["replicate"]), _fit(head, columns)))
    return metadata.get(MADE, {}), fits


def write_dataset(path: str | Path, dataset: Dataset, made: Mapping[str, Any] = NOTHING) -> None:
    """Write a data set, one row per individual."""
    columns = {f"x_{k}": column for k, column in enumerate(np.asarray(dataset.x).T)}
    truth = None if dataset.truth is None else np.asarray(dataset.truth).tolist()
    head = {
        "name": dataset.name,
        "bounds": dict(dataset.bounds),
        "bounds_source": dataset.bounds_source,
        "truth": truth,
        "facts": dict(dataset.facts),
    }
    if dataset.invalid_rows != "refuse":
        head["invalid_rows"] = dataset.invalid_rows
    _write(path, columns, {"dpmc_dataset": head}, made)


def read_dataset(path: str | Path, order: Literal["features", "rows"] = "features") -> Dataset:
    """Read what `write_dataset` wrote, a group of rows at a time, into one array.

    Parameters
    ----------
    path : str or Path
        File to read.
    order : {"features", "rows"}
        Which axis of ``x`` is contiguous; methods say which they read.

    Raises
    ------
    UnavailableError
        If the file says that the data cannot be had here.
    DpmcError
        If the file is missing, truncated, damaged or of another kind.
    """
    metadata, file = _open(path, "dpmc_dataset")
    head = metadata["dpmc_dataset"]
    if ABSENT in head:
        raise UnavailableError(head[ABSENT])
    shape = (file.metadata.num_rows, file.metadata.num_columns)
    x = np.empty(shape, order="F" if order == "features" else "C")
    first = 0
    for group in range(file.num_row_groups):
        columns = _columns(path, partial(file.read_row_group, group))
        last = first + file.metadata.row_group(group).num_rows
        for k, column in enumerate(columns.values()):
            x[first:last, k] = column
        first = last
    truth = None if head["truth"] is None else np.asarray(head["truth"], dtype=np.float64)
    invalid = head.get("invalid_rows", "refuse")
    return Dataset(
        head["name"], x, head["bounds"], head["bounds_source"], truth, invalid, head["facts"]
    )


def write_absence(path: str | Path, reason: str, made: Mapping[str, Any] = NOTHING) -> None:
    """Write in place of a data set that it cannot be had here, and why."""
    _write(path, {"x_0": np.empty(0)}, {"dpmc_dataset": {ABSENT: reason}}, made)


def write_array(path: str | Path, array: Array, made: Mapping[str, Any] = NOTHING) -> None:
    """Write an array of one or more dimensions, its last axis as columns."""
    values = np.ascontiguousarray(array, dtype=np.float64)
    columns = {f"x_{k}": column for k, column in enumerate(values.reshape(-1, values.shape[-1]).T)}
    _write(path, columns, {"dpmc_array": list(values.shape)}, made)


def read_array(path: str | Path) -> Array:
    """Read what `write_array` wrote."""
    metadata, file = _open(path, "dpmc_array")
    columns = list(_columns(path, file.read).values())
    values: Array = np.ascontiguousarray(np.stack(columns).T).reshape(metadata["dpmc_array"])
    return values


def write_table(
    path: str | Path,
    table: pd.DataFrame,
    made: Mapping[str, Any] = NOTHING,
    head: Mapping[str, Any] = NOTHING,
) -> None:
    """Write a data frame, its index aside; `head` is what it should say of itself besides."""
    rows = pa.Table.from_pandas(table, preserve_index=False).replace_schema_metadata()
    columns = {name: rows.column(name) for name in rows.column_names}
    _write(path, columns, {"dpmc_table": head}, made)


def read_head(path: str | Path) -> dict[str, Any]:
    """What a table says of itself."""
    return dict(_open(path, "dpmc_table")[0]["dpmc_table"])


def made_from(path: str | Path) -> dict[str, Any]:
    """What a result was made from; of one that does not say, nothing."""
    return dict(_open(path, "")[0].get(MADE, {}))


def check(path: str | Path, digest: str) -> None:
    """Refuse a result that was made from something else than the settings of this digest."""
    if short_digest(made_from(path)) != digest:
        raise DpmcError(
            f"{path}: must be made with the settings of the configuration, got others: "
            f"`snakemake --cores 1 --forcerun {path}`"
        )


def read_tables(paths: Iterable[str | Path]) -> pd.DataFrame:
    """Read what `write_table` wrote, one file below the other, with the columns of all."""
    tables = []
    for path in paths:
        _, file = _open(path, "dpmc_table")
        tables.append(_table(path, file.read))
    if not tables:
        raise DpmcError("`paths` must name at least one table, got none")
    frame: pd.DataFrame = pa.concat_tables(tables, promote_options="default").to_pandas(
        ignore_metadata=True
    )
    return frame


def _writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    return pq.ParquetWriter(
        path, schema, compression="zstd", use_dictionary=False, write_page_checksum=True
    )


def _write(
    path: str | Path,
    columns: Mapping[str, Any],
    metadata: Mapping[str, Any],
    made: Mapping[str, Any],
) -> None:
    table = pa.table({name: _column(values) for name, values in columns.items()})
    with replacing(Path(path)) as unfinished, _writer(unfinished, table.schema) as writer:
        writer.write_table(table, row_group_size=ROWS_PER_GROUP)
        writer.add_key_value_metadata(_texts(metadata, made))


def _texts(metadata: Mapping[str, Any], made: Mapping[str, Any]) -> dict[str, str]:
    """The metadata of a file as texts, with their digest."""
    given = {**metadata, MADE: made} if made else metadata
    texts = {key: to_json(value) for key, value in given.items()}
    return {**texts, DIGEST: _digest(texts)}


def _digest(texts: Mapping[str, str]) -> str:
    joined = json.dumps(sorted(texts.items()))
    return hashlib.sha256(joined.encode()).hexdigest()


def _open(path: str | Path, kind: str) -> tuple[dict[str, Any], pq.ParquetFile]:
    try:
        file = pq.ParquetFile(path, page_checksum_verification=True)
        texts = file.metadata.metadata or {}
    except FileNotFoundError:
        raise DpmcError(f"{path}: no such file") from None
    except (pa.ArrowException, OSError) as error:
        raise DpmcError(_damaged(path, error)) from None
    own = {key.decode(): value.decode() for key, value in texts.items() if key[:4] == b"dpmc"}
    if own.pop(DIGEST, _digest(own)) != _digest(own):
        raise DpmcError(_damaged(path, "its metadata are not those that were written"))
    if kind and kind not in own:
        raise DpmcError(f"{path} must be a file with {kind} metadata, got one without")
    return {key: from_json(value) for key, value in own.items()}, file


def to_json(value: object) -> str:
    """JSON of nested values, keys sorted, with numbers that JSON does not know."""
    return json.dumps(_encoded(value), sort_keys=True, allow_nan=False)


def _encoded(value: object) -> object:
    # JSON has no infinity: it becomes an object, so that no text is taken for a number.
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"not_finite": str(value)}
    if isinstance(value, Mapping):
        return {str(key): _encoded(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_encoded(entry) for entry in value]
    return value


def from_json(text: str) -> Any:
    """The value of which :func:`to_json` made a text."""

    def decoded(entry: dict[str, Any]) -> Any:
        return NOT_FINITE[entry["not_finite"]] if set(entry) == {"not_finite"} else entry

    return json.loads(text, object_hook=decoded)


def _table(path: str | Path, read: Callable[[], pa.Table]) -> pa.Table:
    try:
        return read()
    except (pa.ArrowException, OSError) as error:
        raise DpmcError(_damaged(path, error)) from None


def _columns(path: str | Path, read: Callable[[], pa.Table]) -> dict[str, npt.NDArray[Any]]:
    table = _table(path, read)
    return {name: _values(table.column(name).combine_chunks()) for name in table.column_names}


def _values(column: pa.Array) -> npt.NDArray[Any]:
    """Column without gaps, of numbers or truth values.

    PyArrow's own way imports pandas, which takes half a second.
    """
    kind, buffer = column.type, column.buffers()[1]
    start, stop = column.offset, column.offset + len(column)
    if buffer is None or not len(column):
        return np.empty(0, dtype=kind.to_pandas_dtype())
    if pa.types.is_boolean(kind):
        bits = np.frombuffer(buffer, dtype=np.uint8)
        return np.unpackbits(bits, count=stop, bitorder="little")[start:].astype(bool)
    values: npt.NDArray[Any] = np.frombuffer(buffer, dtype=kind.to_pandas_dtype())[start:stop]
    return values


def _column(values: Any) -> Any:
    """Array of numbers or truth values as a column, and a column as it is.

    PyArrow's own way imports pandas.
    """
    if not isinstance(values, np.ndarray):
        return values
    truths = values.dtype == np.bool_
    data = np.packbits(values, bitorder="little") if truths else np.ascontiguousarray(values)
    kind = pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(data)])


def _damaged(path: str | Path, error: object) -> str:
    reason = str(error).splitlines()[0].rstrip(".")
    return f"{path}: truncated or damaged ({reason}); delete it and run again"


def _rows(replicate: int, fit: Fit) -> pa.Table:
    shapes = {name: values.shape for name, values in fit.info.items()}
    if fit.draws is not None:
        shapes["draws"] = fit.draws.shape[:2]
    if len(set(shapes.values())) > 1:
        raise DpmcError(f"`fit` must have one shape (chains, draws), got {shapes}")
    chains, iterations = next(iter(shapes.values()), (0, 0))
    chain, iteration = np.divmod(np.arange(chains * iterations), max(iterations, 1))
    columns: dict[str, npt.NDArray[Any]] = {
        "replicate": np.full(chain.size, replicate, dtype=np.int32),
        "chain": chain.astype(np.int16),
        "iteration": iteration.astype(np.int32),
    }
    if fit.draws is not None:
        for k in range(fit.draws.shape[2]):
            columns[f"theta_{k}"] = fit.draws[:, :, k].ravel()
    columns |= {name: values.ravel() for name, values in fit.info.items()}
    return pa.table({name: _column(values) for name, values in columns.items()})


def _head(replicate: int, fit: Fit) -> dict[str, Any]:
    guarantee = {**vars(fit.guarantee), "outside": list(fit.guarantee.outside)}
    totals = {key: [v.dtype.str, v.tolist()] for key, v in fit.totals.items()}
    head = {
        "replicate": replicate,
        "shape": None if fit.draws is None else list(fit.draws.shape),
        "chains": int(next((v.shape[0] for v in fit.info.values()), 0)),
        "totals": totals,
        "status": fit.status,
        "ledger": [list(entry) for entry in fit.ledger],
        "guarantee": guarantee,
        "plan": fit.plan.values(),
        "warm_up": fit.warm_up,
    }
    if fit.diagnostics:
        head["diagnostics"] = {
            name: [one.value, one.standard_error] for name, one in fit.diagnostics.items()
        }
    return head


def _fit(head: Mapping[str, Any], columns: Mapping[str, npt.NDArray[Any]]) -> Fit:
    shape = head["shape"]
    chains = max(1, shape[0] if shape else head["chains"])
    grid = {name: values.reshape(chains, -1) for name, values in columns.items()}
    draws = None
    if shape:
        draws = np.empty(shape)
        for k in range(shape[2]):
            draws[:, :, k] = grid[f"theta_{k}"]
    guarantee = {**head["guarantee"], "outside": tuple(head["guarantee"]["outside"])}
    return Fit(
        draws=draws,
        info={
            name: np.ascontiguousarray(values)
            for name, values in grid.items()
            if name not in KEYS and not name.startswith("theta_")
        },
        totals={key: np.asarray(v, dtype=dtype) for key, (dtype, v) in head["totals"].items()},
        status=head["status"],
        ledger=tuple((str(event), int(count)) for event, count in head["ledger"]),
        guarantee=Guarantee(**guarantee),
        plan=Plan.of(head["plan"]),
        diagnostics={k: Diagnostic(*values) for k, values in head.get("diagnostics", {}).items()},
        warm_up=head["warm_up"],
        made_with={},  # a job keeps the digest of its code
    )
