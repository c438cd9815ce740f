"""Batches cover every replicate once, keep what is finished, and do not move while they finish."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmc_papers.pipeline.batches import _divided, batches, filled

SETTINGS = st.integers(1, 40), st.integers(1, 12)
FILES = st.lists(
    st.tuples(st.integers(0, 45), st.integers(0, 15)).map(lambda pair: (pair[0], sum(pair))),
    max_size=8,
)


def touch(folder: Path, *names: str) -> None:
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).touch()


@pytest.mark.parametrize(
    ("replicates", "size", "expected"),
    [
        (10, 4, [(0, 3), (4, 7), (8, 9)]),
        (1, 4, [(0, 0)]),
        (8, 1, [(k, k) for k in range(8)]),
    ],
)
def test_where_nothing_is_finished_batches_have_the_size(tmp_path, replicates, size, expected):
    assert batches(tmp_path / "none", replicates, size) == expected
    assert batches(tmp_path, replicates, size) == expected


def test_one_more_replicate_is_one_batch_more(tmp_path):
    touch(tmp_path, "0-3.parquet", "4-7.parquet", "8-9.parquet")
    assert batches(tmp_path, 11, 4) == [(0, 3), (4, 7), (8, 9), (10, 10)]


def test_another_size_keeps_what_is_finished(tmp_path):
    touch(tmp_path, "0-3.parquet", "4-7.parquet", "8-9.parquet")
    for size in (1, 3, 100):
        assert batches(tmp_path, 10, size) == [(0, 3), (4, 7), (8, 9)]


def test_other_files_are_no_batches(tmp_path):
    touch(tmp_path, ".partial.0-3.parquet", "0-3.parquet.aside", "0-3.json", "a-b.parquet")
    assert batches(tmp_path, 4, 2) == [(0, 1), (2, 3)]


def test_a_finished_batch_beyond_what_is_asked_for_is_left(tmp_path):
    touch(tmp_path, "0-3.parquet", "4-7.parquet")
    assert batches(tmp_path, 6, 4) == [(0, 3), (4, 5)]


@given(*SETTINGS, FILES)
def test_every_replicate_is_covered_once(replicates, size, there):
    found = list(_divided(there, replicates, size))
    assert [k for first, last in found for k in range(first, last + 1)] == list(range(replicates))
    new = [pair for pair in found if pair not in there]
    assert all(last - first < size for first, last in new)


@given(*SETTINGS, FILES, st.data())
def test_the_division_stays_the_same_while_batches_finish(replicates, size, there, data):
    """Jobs look at the folder anew; each must see the batches that the plan had."""
    planned = list(_divided(there, replicates, size))
    done = data.draw(st.sets(st.sampled_from(planned)))
    assert list(_divided([*there, *done], replicates, size)) == planned


@given(st.lists(st.floats(0, 50), max_size=40), st.floats(1, 60))
def test_what_is_joined_fits_and_keeps_its_order(sizes, most):
    parts = list(enumerate(sizes))
    found = list(filled(parts, lambda entry: entry[1], most))
    assert [entry for inside in found for entry in inside] == parts
    for inside in found:
        assert inside
        assert len(inside) == 1 or sum(size for _, size in inside) <= most * (1 + 1e-12)
    for before, after in itertools.pairwise(found):
        assert sum(size for _, size in before) + after[0][1] > most * (1 - 1e-12)
