"""Shards that are refused: one sentence each, and no draw from part of the rows."""

from __future__ import annotations

import os
import threading
from concurrent.futures import Executor, Future
from decimal import Decimal

import numpy as np
import pandas as pd
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


def test_types_that_one_entry_decides_are_not_refused_with_zero(folder):
    """Integers with one missing, numbers with a text: other rows are what they were."""
    right = np.concatenate([*dpmc.open_rows(folder).pieces(0, 600)])
    entries = X[200:400, 1].tolist()
    forms = {
        "a text": pa.array(["?", *map(str, entries[1:])]),
        "categories": pa.array(["?", *map(str, entries[1:])]).dictionary_encode(),
        "bytes": pa.array([b"\xff", *(str(entry).encode() for entry in entries[1:])]),
        "a missing decimal": pa.array([None, *map(Decimal, map(str, entries[1:]))]),
        "nothing": pa.array([None, *entries[1:]], pa.float64()),
    }
    for entry in forms.values():
        column(folder, "c1", entry)
        rows = dpmc.open_rows(folder, invalid_rows="zero")
        found = np.concatenate([*rows.pieces(0, 600)])
        assert np.isnan(found[200, 1])
        assert np.delete(found, 200, axis=0).tobytes() == np.delete(right, 200, axis=0).tobytes()


def test_an_index_of_a_frame_is_named_and_not_read(tmp_path):
    frame = pd.DataFrame(X, columns=["x", "y"])
    for name, kept, index in (
        ("filtered", frame[frame["x"] > -1], "__index_level_0__"),
        ("named", frame.set_index("x"), "x"),
        ("written", frame.rename(columns={"x": "Unnamed: 0"}), "Unnamed: 0"),
    ):
        folder = tmp_path / name
        folder.mkdir()
        kept.to_parquet(folder / "a.parquet")
        assert f"{index!r} was written as the index of a frame" in message(folder)
    rows = dpmc.open_rows(tmp_path / "filtered", columns=["x", "y"])
    assert rows.names == ("x", "y")
    assert np.concatenate([*rows.pieces(0, rows.num_rows)]).tolist() == X[X[:, 0] > -1].tolist()
    assert "`columns` must be among" in message(
        tmp_path / "filtered", columns=["__index_level_0__"]
    )
    assert dpmc.open_rows(tmp_path / "named", columns=["x", "y"]).names == ("x", "y")


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
    assert "is a file: read it, or give its folder" in message(folder / "part-000.parquet")
    np.save(folder / "more.npy", X)
    assert "must hold files of one kind" in message(folder)
    (folder / "more.npy").rename(folder / "part-003.parquet.tmp")
    assert "must hold Parquet or .npy files only, got 'part-003.parquet.tmp'" in message(folder)


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


@pytest.mark.parametrize("workers", [1, 2])
def test_a_thread_that_fails_tells_nothing_of_rows(folder, monkeypatch, workers):
    def fail(*_):
        raise ValueError("row 17 is 3.5")

    monkeypatch.setattr(ShardedRows, "pieces", fail)
    text = message(folder, workers=workers)
    assert "one was lost (ValueError)" in text
    assert "3.5" not in text


def test_a_worker_that_is_lost_ends_the_fit_and_tells_nothing_of_rows(folder):
    text = message(folder, workers=Lost())
    assert "one was lost (MemoryError); nothing was drawn" in text
    assert "3.5" not in text


def test_another_type_is_refused(folder):
    column(folder, "c1", np.zeros(200, dtype=np.int32))
    assert "column 'c1' must have the type that it has in the first shard, got another" in message(
        folder
    )


def test_a_column_that_holds_no_numbers_is_refused(folder):
    column(folder, "c1", ["a"] * 200)
    assert "column 'c1' must hold real numbers, got others" in message(folder)


def test_decimals_and_categories_of_numbers_are_numbers(folder):
    right = np.concatenate([*dpmc.open_rows(folder).pieces(0, 600)])
    for file in ("part-000.parquet", "part-001.parquet", "part-002.parquet"):
        table = pq.read_table(folder / file)
        column(folder, "c0", pa.array(map(Decimal, map(str, table["c0"].to_pylist()))), file)
        column(folder, "c1", table["c1"].combine_chunks().dictionary_encode(), file)
    found = np.concatenate([*dpmc.open_rows(folder).pieces(0, 600)])
    assert found.tobytes() == right.tobytes()


def test_texts_in_npy_files_are_read_one_by_one(tmp_path):
    folder = write(tmp_path / "rows", X, [200], "npy")
    np.save(
        folder / "part-000.npy",
        np.where(np.arange(400).reshape(200, 2) == 9, "?", X[:200].astype(str)),
    )
    assert "column '0' must hold real numbers, got others" in message(folder)
    found = np.concatenate([*dpmc.open_rows(folder, invalid_rows="zero").pieces(0, 600)])
    assert np.isnan(found[4]).tolist() == [False, True]
    assert np.delete(found, 4, axis=0).tobytes() == np.delete(X, 4, axis=0).tobytes()


def test_names_that_may_be_a_row_are_refused_and_not_shown(tmp_path):
    for k, columns in enumerate((["0.12573", "y"], ["x", "-1.5"], [0, 1])):
        folder = tmp_path / str(k)
        folder.mkdir()
        pd.DataFrame(X, columns=columns).to_parquet(folder / "a.parquet")
    for k in (0, 1):
        told = message(tmp_path / str(k))
        assert f"column {k} has a number in the place of one" in told
        assert "0.12573" not in told
        assert "-1.5" not in told
    assert dpmc.open_rows(tmp_path / "2").names == ("0", "1")


@pytest.mark.parametrize(
    "noted", [b"{", b'{"index_columns": 3}', b'{"column_indexes": [3]}', b"\xff"]
)
def test_what_is_noted_in_the_place_of_pandas_is_refused_in_one_line(tmp_path, noted):
    table = pa.table({"a": [1.0], "b": [2.0]}).replace_schema_metadata({b"pandas": noted})
    pq.write_table(table, tmp_path / "a.parquet")
    assert "what pandas notes in a file must be its own" in message(tmp_path)


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
        dpmc.fit(gaussian_model(2), folder, method="dp_penalty", **BUDGET, ratio_clip_bound=1.0)


def test_a_part_is_a_whole_number_of_spans(folder):
    assert dpmc.open_rows(folder).part_rows % sources.SPAN == 0
