"""Stored results: exact, the same bytes each time, and never half of one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dpmc.fits import Fit
from dpmc.numerics.source_digest import short_digest
from dpmc.rng import stream
from dpmc.types import Dataset, DpmcError, Guarantee, Plan
from dpmc_papers.pipeline import files, store

METADATA = {"chain": {"budget": None, "params": {"step_size": 0.1, "names": ["a"]}}}


def make_fit(replicate: int = 0, draws: bool = True) -> Fit:
    rng = stream(3, "tests", "store", replicate)
    return Fit(
        draws=rng.standard_normal((3, 7, 2)) if draws else None,
        info={
            "accepted": rng.random((3, 7)) < 0.5,
            "ratio_clipped": rng.integers(0, 2**60, (3, 7)),
        },
        totals={"num_iterations": np.full(3, 7), "weights": np.array([0.1, np.inf, np.nan])},
        status="complete",
        ledger=(("gaussian(1.5)", 21),),
        guarantee=Guarantee(float("inf"), 1e-6, accountant="", outside=("start", "clip")),
        plan=Plan(
            method="walk",
            epsilon=float("inf"),
            search=(0.5, 1e-7),
            audit=Guarantee(0.3, 1e-6, outside=("start",)),
            widening=(1.0, float("inf")),
            details={"num_nodes": 7, "nested": {"a": [1, None]}},
        ),
    )


def assert_same(one: Fit, other: Fit) -> None:
    if one.draws is None or other.draws is None:
        assert one.draws is other.draws
    else:
        np.testing.assert_array_equal(one.draws, other.draws)
    for ours, theirs in ((one.info, other.info), (one.totals, other.totals)):
        assert sorted(ours) == sorted(theirs)
        for name in ours:
            np.testing.assert_array_equal(ours[name], theirs[name])
            assert ours[name].dtype == theirs[name].dtype
    assert one.status == other.status
    assert one.ledger == other.ledger
    assert one.guarantee == other.guarantee
    assert one.plan == other.plan


@pytest.mark.parametrize("draws", [True, False])
def test_fits_come_back_as_they_were(tmp_path: Path, draws: bool) -> None:
    path = tmp_path / "folder" / "0-1.parquet"
    fits = [(k, make_fit(k, draws)) for k in (4, 5)]
    store.write_fits(path, fits, METADATA)
    metadata, read = store.read_fits(path)
    assert metadata == METADATA
    assert [replicate for replicate, _ in read] == [4, 5]
    for (_, one), (_, other) in zip(fits, read, strict=True):
        assert_same(one, other)


@settings(max_examples=30, deadline=None)
@given(
    draws=hnp.arrays(
        np.float64,
        hnp.array_shapes(min_dims=3, max_dims=3, max_side=4),
        elements=st.floats(allow_nan=False),
    )
)
def test_draws_are_kept_to_the_last_bit(
    tmp_path_factory: pytest.TempPathFactory, draws: np.ndarray
) -> None:
    path = tmp_path_factory.mktemp("bits") / "a.parquet"
    fit = Fit(draws, {}, {}, "complete", (), Guarantee(1.0, 1e-6))
    store.write_fits(path, [(0, fit)], {})
    _, ((_, read),) = store.read_fits(path)
    assert read.draws is not None
    assert read.draws.tobytes() == draws.tobytes()


def test_a_missing_file_and_one_of_another_kind_are_named(tmp_path: Path) -> None:
    with pytest.raises(DpmcError, match=r"none\.parquet: no such file"):
        store.read_fits(tmp_path / "none.parquet")
    store.write_array(tmp_path / "array.parquet", np.ones((2, 2)))
    with pytest.raises(DpmcError, match=r"array\.parquet must be a file with"):
        store.read_fits(tmp_path / "array.parquet")


def test_a_run_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def fits() -> Iterator[tuple[int, Fit]]:
        yield 0, make_fit()
        raise RuntimeError("halfway")

    with pytest.raises(RuntimeError, match="halfway"):
        store.write_fits(tmp_path / "a.parquet", fits(), {})
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(DpmcError, match="must be one or more, got none"):
        store.write_fits(tmp_path / "a.parquet", [], {})
    assert list(tmp_path.iterdir()) == []


def test_a_file_keeps_its_old_content_until_the_new_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    files.write_text(path, "old")
    with files.replacing(path) as partial:
        partial.write_text("new", encoding="utf-8")
        assert path.read_text(encoding="utf-8") == "old"
    assert path.read_text(encoding="utf-8") == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_data_sets_come_back_as_they_were(tmp_path: Path) -> None:
    x = stream(3, "tests", "rows").standard_normal((50, 3))
    dataset = Dataset("rows", x, {"row_norm": 9.0}, "data", np.array([0.0, 1 / 3, 2.0]))
    store.write_dataset(tmp_path / "d.parquet", dataset)
    read = store.read_dataset(tmp_path / "d.parquet")
    np.testing.assert_array_equal(read.x, x)
    np.testing.assert_array_equal(read.truth, dataset.truth)
    assert (read.name, dict(read.bounds), read.bounds_source) == ("rows", {"row_norm": 9.0}, "data")
    store.write_dataset(tmp_path / "e.parquet", Dataset("rows", x))
    assert store.read_dataset(tmp_path / "e.parquet").truth is None


@pytest.mark.parametrize("shape", [(4,), (5, 2), (3, 6, 2)])
def test_arrays_come_back_as_they_were(tmp_path: Path, shape: tuple[int, ...]) -> None:
    array = stream(3, "tests", "array", *shape).standard_normal(shape)
    store.write_array(tmp_path / "a.parquet", array)
    np.testing.assert_array_equal(store.read_array(tmp_path / "a.parquet"), array)


def test_tables_come_back_one_below_the_other(tmp_path: Path) -> None:
    tables = [
        pd.DataFrame({"label": ["a", ""], "n": [1, 2], "x": [0.1, np.nan]}),
        pd.DataFrame({"label": ["b"], "n": [3], "x": [np.inf]}),
    ]
    paths = [tmp_path / f"{k}.parquet" for k in range(2)]
    for path, table in zip(paths, tables, strict=True):
        store.write_table(path, table)
    read = store.read_tables(paths)
    pd.testing.assert_frame_equal(read, pd.concat(tables, ignore_index=True), check_dtype=False)
    with pytest.raises(DpmcError, match="at least one table, got none"):
        store.read_tables([])


def test_a_flipped_bit_is_noticed_or_changes_nothing(tmp_path: Path) -> None:
    """Draws hardly shrink, so that only their checksums tell a wrong digit from a right one."""
    path = tmp_path / "a.parquet"
    fit = make_fit()
    store.write_fits(path, [(0, fit)], METADATA)
    content = path.read_bytes()
    end = len(content) - 8 - int.from_bytes(content[-8:-4], "little")  # where the footer begins
    noticed = 0
    for place in range(4, end, max(1, end // 300)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        try:
            _, ((_, found),) = store.read_fits(path)
        except DpmcError:
            noticed += 1
        else:
            np.testing.assert_array_equal(found.draws, fit.draws)
    assert noticed > 100


def test_a_changed_digit_of_the_metadata_is_noticed(tmp_path: Path) -> None:
    """Page checksums do not cover them, and the digit is as well formed as before."""
    path = tmp_path / "a.parquet"
    made = {"chain": {"epsilon": 4}, "reads": {}}
    store.write_fits(path, [(0, make_fit())], made)
    assert store.made_from(path) == made
    content = path.read_bytes()
    places = [place for place in range(len(content)) if content[place:].startswith(b'"epsilon": 4')]
    assert places  # the settings stand in the file as they are
    for place in places:
        end = place + len(b'"epsilon": ')
        path.write_bytes(content[:end] + b"9" + content[end + 1 :])
        with pytest.raises(DpmcError, match=r"a\.parquet: truncated or damaged \(its metadata"):
            store.read_fits(path)


def test_a_result_of_other_settings_is_refused_with_the_command(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    made = {"chain": {"epsilon": 4.0}, "reads": {"data/a.parquet": "0123abcd"}}
    store.write_array(path, np.ones((2, 2)), made)
    store.check(path, short_digest({**made, "chain": {"epsilon": 4}}))
    others = ({**made, "chain": {"epsilon": 5}}, {**made, "reads": {}})
    for other in others:
        with pytest.raises(DpmcError, match=rf"`snakemake --cores 1 --forcerun {path}`$"):
            store.check(path, short_digest(other))


def test_the_same_fits_give_the_same_bytes(tmp_path: Path) -> None:
    one, other = tmp_path / "one.parquet", tmp_path / "other.parquet"
    for path in (one, other):
        store.write_fits(path, ((k, make_fit(k)) for k in range(3)), METADATA)
    assert one.read_bytes() == other.read_bytes()


def test_every_cut_and_flipped_bit_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    store.write_fits(path, [(0, make_fit())], METADATA)
    content = path.read_bytes()
    for length in (*range(0, len(content), 97), len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(DpmcError, match=r"a\.parquet: truncated or damaged") as caught:
            store.read_fits(path)
        assert "\n" not in str(caught.value)
    # The first page holds the replicate numbers: its checksum guards it.
    path.write_bytes(content[:60] + bytes([content[60] ^ 1]) + content[61:])
    with pytest.raises(DpmcError, match=r"a\.parquet: truncated or damaged"):
        store.read_fits(path)


@pytest.mark.parametrize(
    "values",
    [
        np.array([], dtype=np.float64),
        np.array([1.5, np.nan, -0.0, np.inf]),
        np.arange(-3, 4, dtype=np.int16),
        np.array([2**62, -1]),
        np.arange(30) % 3 == 0,
    ],
)
@pytest.mark.parametrize("start", [0, 1, 11])
def test_columns_are_read_as_pyarrow_reads_them(values: np.ndarray, start: int) -> None:
    column = pa.array(values)[start:]
    found = store._values(column)
    np.testing.assert_array_equal(found, column.to_numpy(zero_copy_only=False))
    assert found.dtype == values.dtype


@pytest.mark.parametrize(
    "values",
    [
        np.arange(11) % 3 == 0,
        (np.arange(11) % 3 == 0)[::2],
        np.empty(0),
        np.array([np.nan, -0.0, np.inf]),
        np.arange(6, dtype=np.int16)[::-2],
    ],
)
def test_columns_are_those_of_pyarrow(values: npt.NDArray[Any]) -> None:
    found, expected = store._column(values), pa.array(values)
    assert (found.type, found.null_count) == (expected.type, 0)
    assert found.to_numpy(zero_copy_only=False).tobytes() == values.tobytes()


def test_arrays_are_written_without_pandas(tmp_path: Path) -> None:
    code = (
        "import sys, numpy as np; from dpmc_papers.pipeline import store; "
        "store.write_array(sys.argv[1], np.ones((2, 2))); print('pandas' in sys.modules)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "array.parquet")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_file_of_the_future_gets_the_present_date(tmp_path: Path) -> None:
    ahead, before = tmp_path / "ahead", tmp_path / "before"
    for path, date in ((ahead, 4e9), (before, 1e9)):
        path.touch()
        os.utime(path, (date, date))
    start = time.time()
    files.redate([ahead, before, tmp_path / "gone"])
    assert start - 1 < ahead.stat().st_mtime <= time.time()
    assert before.stat().st_mtime == 1e9
