"""Shards that are refused: one sentence each, and no draw from part of the rows."""

from __future__ import annotations

import os
import threading
from concurrent.futures import Executor, Future

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpmc
from dpmc.automatic.whitened import WhitenedRows
from dpmc.rows import sources
from dpmc.shards.rows import ShardedRows
from dpmc.types import DpmcError
from tests.shards.folders import write
from tests.support.clipped import values
from tests.support.posteriors import gaussian_model

X = np.random.default_rng(0).standard_normal((600, 2))
BUDGET = {"epsilon": 1, "delta": 1e-6}


@pytest.fixture
def folder(tmp_path):
    return write(tmp_path / "rows", X, [200, 400], "parquet")


def message(folder, **options) -> str:
    with pytest.raises(DpmcError) as caught:
        dpmc.fit(gaussian_model(2), dpmc.open_rows(folder, **options), **BUDGET)
    text = str(caught.value)
    assert "\n" not in text
    return text


def column(folder, name, values, file="part-001.parquet"):
    table = pq.read_table(folder / file)
    columns = {one: table[one] for one in table.column_names} | {name: values}
    pq.write_table(pa.table(columns), folder / file)


def test_another_schema_is_refused(folder):
    column(folder, "c2", np.zeros(200))
    assert "part-001.parquet: columns must be those of the first shard" in message(folder)


def test_another_type_is_refused(folder):
    column(folder, "c1", np.zeros(200, dtype=np.int32))
    assert "column 'c1' must be float64, as in the first shard, got int32" in message(folder)


def test_a_column_that_holds_no_numbers_is_refused(folder):
    column(folder, "c1", ["a"] * 200)
    assert "column 'c1' must hold real numbers, got string" in message(folder)


@pytest.mark.parametrize("kind", ["npy", "parquet"])
@pytest.mark.parametrize("kept", [0, 10, 0.5, 0.99])
def test_a_shard_that_is_cut_off_is_refused(tmp_path, kind, kept):
    folder = write(tmp_path / "rows", X, [200], kind)
    last = sorted(folder.iterdir())[-1]
    data = last.read_bytes()
    last.write_bytes(data[: kept if isinstance(kept, int) else int(kept * len(data))])
    assert "damaged or cut off" in message(folder)


def test_a_damaged_page_is_refused_while_it_is_read(tmp_path):
    folder = write(tmp_path / "rows", X, [200], "parquet")
    path = folder / "part-001.parquet"
    data = bytearray(path.read_bytes())
    data[4:400] = bytes(396)
    path.write_bytes(data)
    assert "damaged" in message(folder)


def test_folders_that_are_empty_missing_or_mixed_are_refused(folder, tmp_path):
    (tmp_path / "empty").mkdir()
    assert "must hold Parquet or .npy files, got none" in message(tmp_path / "empty")
    assert "is not there" in message(tmp_path / "nothing")
    np.save(folder / "more.npy", X)
    assert "must hold files of one kind" in message(folder)
    (folder / "more.npy").rename(folder / "part-003.parquet.tmp")
    assert "must hold Parquet or .npy files only, got 'part-003.parquet.tmp'" in message(folder)


def test_notes_of_engines_are_not_read(folder):
    (folder / "_SUCCESS").touch()
    assert dpmc.open_rows(folder).num_rows == len(X)


def test_two_folders_of_one_name_are_refused(folder, tmp_path):
    other = write(tmp_path / "elsewhere" / "rows", X, [], "parquet")
    for pair in ((folder, other), (folder, folder)):
        with pytest.raises(DpmcError, match="must have different names, got 'rows' twice"):
            dpmc.open_rows(*pair)
    (tmp_path / "alias").symlink_to(folder)
    with pytest.raises(DpmcError, match="twice"):
        dpmc.open_rows(folder, tmp_path / "alias")


def test_a_file_that_is_there_twice_is_refused(folder):
    os.link(folder / "part-001.parquet", folder / "part-009.parquet")
    assert "must be a file of its own" in message(folder)


def changed(folder):
    path = folder / "part-001.parquet"
    pq.write_table(pa.table({"c0": np.zeros(200), "c1": np.zeros(200)}), path)


def touched(folder):
    os.utime(folder / "part-001.parquet", ns=(1, 1))


def missing(folder):
    (folder / "part-001.parquet").unlink()


def added(folder):
    pq.write_table(pa.table({"c0": [0.0], "c1": [0.0]}), folder / "part-100.parquet")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (changed, "must stay as it is during a fit, and has changed"),
        (touched, "must stay as it is during a fit, and has changed"),
        (missing, "must be there, and is not"),
        (added, "must stay as it is during a fit, got 'part-100.parquet'"),
    ],
)
@pytest.mark.parametrize("within", [True, False])
def test_rows_that_change_are_refused(folder, monkeypatch, change, text, within):
    """Between two passes, and within one."""
    rows = dpmc.open_rows(folder, workers=1)
    whitened = WhitenedRows(gaussian_model(2), rows)
    values(whitened.gradient_sum(np.zeros(2), np.eye(2), 1.0))
    if within:
        original = ShardedRows.pieces

        def pieces(self, first, last):
            yield from original(self, first, last)
            change(folder)

        monkeypatch.setattr(ShardedRows, "pieces", pieces)
    else:
        change(folder)
    with pytest.raises(DpmcError, match=text):
        values(whitened.gradient_sum(np.zeros(2), np.eye(2), 1.0))


def test_rows_that_are_not_finite_are_treated_as_in_memory(tmp_path):
    x = X.copy()
    x[450, 1] = np.nan
    for kind in ("npy", "parquet"):
        folder = write(tmp_path / kind, x, [200, 400], kind)
        assert "column 1 must hold finite numbers only" in message(folder)
        there, here = (
            dpmc.fit(gaussian_model(2), rows, invalid_rows="zero", seed=1, num_draws=20, **BUDGET)
            for rows in (folder, x)
        )
        assert there.draws.tobytes() == here.draws.tobytes()


def test_what_is_missing_from_a_parquet_file_is_not_a_number(folder):
    values = [None, *X[201:400, 0].tolist()]
    column(folder, "c0", pa.array(values, pa.float64()))
    assert "column 0 must hold finite numbers only" in message(folder)
    rows = np.concatenate([*dpmc.open_rows(folder, invalid_rows="zero").pieces(0, 600)])
    assert np.isnan(rows).sum() == 1


class Never(Executor):
    """Takes everything and answers nothing."""

    def submit(self, function, /, *args, **kwargs):
        return Future()


class Lost(Executor):
    """An executor whose workers die."""

    def submit(self, function, /, *args, **kwargs):
        future = Future()
        future.set_exception(MemoryError("row 17 is 3.5"))
        return future


def test_a_worker_that_never_answers_ends_the_fit(folder, monkeypatch):
    text = message(folder, workers=Never(), time_limit=0.05)
    assert "a worker must answer within 0.05 s (`time_limit`), and one did not" in text
    monkeypatch.setattr(ShardedRows, "pieces", lambda *_: threading.Event().wait())
    assert "a worker must answer" in message(folder, workers=2, time_limit=0.05)


def test_a_worker_that_is_lost_ends_the_fit_and_tells_nothing_of_rows(folder):
    text = message(folder, workers=Lost())
    assert "one was lost (MemoryError); nothing was drawn" in text
    assert "3.5" not in text


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"workers": 0}, "`workers`"),
        ({"workers": "two"}, "`workers` must be a number of threads, an executor or a Dask client"),
        ({"time_limit": 0}, "`time_limit`"),
        ({"columns": ["c0", "c7"]}, "`columns` must be among"),
        ({"columns": ["c0", "c0"]}, "`columns` must be different names"),
        ({"invalid_rows": "drop"}, "`invalid_rows`"),
    ],
)
def test_options_are_checked(folder, options, text):
    assert text in message(folder, **options)


def test_methods_that_hold_rows_in_memory_say_so(folder):
    with pytest.raises(DpmcError, match="rows in memory for a method of your choice, got a path"):
        dpmc.fit("dp_penalty", gaussian_model(2), folder, **BUDGET, clip_bound=1.0)


def test_a_part_is_a_whole_number_of_spans(folder):
    assert dpmc.open_rows(folder).part_rows % sources.SPAN == 0
