"""Everything that comes out of a call, as text: to look for what must not."""

from __future__ import annotations

import contextlib
import io
import logging
import pickle
import struct
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

import dpmc

# A text and a number that no row but one has, and no method makes.
TEXT, NUMBER = "Zaphodia", 31415.926535
# What is left of them in another notation, of fewer digits, in upper case, or as bytes.
TRACES = ("zaphod", "31415.9", "31415,9", "3.14159265", "3.1416e+04", "31415926535")
BYTES = (struct.pack("<d", NUMBER), struct.pack(">d", NUMBER))


def traces(found: str) -> list[str]:
    """Return what of the secrets is in a text."""
    text = found.lower()
    packed = [repr(one) for one in BYTES if one in found.encode("latin-1", "replace")]
    return [one for one in TRACES if one in text] + packed


def outlets(call: Callable[[], Any], folder: Path) -> tuple[str, BaseException | None]:
    """Return all that a call lets out, and what it raised.

    Results with what can be made of them, the error with its causes, warnings, logs, both streams
    of the process, and the files that are new in a folder.
    """
    logged, out, error = io.StringIO(), io.StringIO(), io.StringIO()
    handler = logging.StreamHandler(logged)
    logging.getLogger().addHandler(handler)
    level = logging.getLogger().level
    logging.getLogger().setLevel(logging.DEBUG)
    before = set(folder.rglob("*"))
    found: list[str] = []
    raised = None
    try:
        with (
            warnings.catch_warnings(record=True) as told,
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(error),
        ):
            warnings.simplefilter("always")
            try:
                found += described(call(), folder)
            except Exception as caught:
                raised = caught
                found += of_error(caught)
    finally:
        logging.getLogger().removeHandler(handler)
        logging.getLogger().setLevel(level)
    found += [str(one.message) for one in told]
    found += [stream.getvalue() for stream in (logged, out, error)]
    for path in set(folder.rglob("*")) - before:
        found += [path.name, *(of_file(path) if path.is_file() else ())]
    return "\n".join(found), raised


def of_error(error: BaseException) -> Iterator[str]:
    """Return an error, and those behind it, shown or not, as text."""
    yield "".join(traceback.format_exception(error, chain=False)[-1:])
    yield repr(error.args)
    for behind in (error.__cause__, error.__context__):
        if behind is not None:
            yield from of_error(behind)


def described(result: Any, folder: Path) -> Iterator[str]:
    """Return a result in each of the ways in which it is shown."""
    yield repr(result)
    yield str(result)
    if hasattr(result, "_repr_html_"):
        yield result._repr_html_()
    if isinstance(result, dpmc.Comparison):
        for one in result.fits.values():
            yield from described(one, folder)
        yield result.table().to_string()
    if not isinstance(result, dpmc.Fit):
        return
    for part in (result.names, result.plan, result.remarks, result.guarantee, result.ledger):
        yield repr(part)
    for part in (result.info, result.totals, result.diagnostics, result.status):
        yield repr(part)
    yield repr(result.draws.tolist())
    yield str(result.summary())
    yield result.summary().to_dataframe().to_string()
    yield pickle.dumps(result).decode("latin-1")
    data = result.to_arviz()
    yield from (str(data), repr(data.posterior.coords), repr(data.posterior.attrs))
    result.save(folder / f"fit{len(list(folder.iterdir()))}.parquet")


def of_file(path: Path) -> Iterator[str]:
    """Return the bytes of a file, and what a Parquet file holds."""
    yield path.read_bytes().decode("latin-1")
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        yield from (str(table.schema), str(table.schema.metadata), str(table.to_pydict()))


def with_secret(rows: np.ndarray, place: tuple[int, int], secret: Any) -> list[list[Any]]:
    """Return rows as lists, with a secret in one place."""
    listed: list[list[Any]] = rows.tolist()
    listed[place[0]][place[1]] = secret
    return listed
