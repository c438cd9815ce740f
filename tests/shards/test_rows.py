"""Sums over shards: the same bytes as in memory, and no row counts for more than it may."""

from __future__ import annotations

import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import dpmc
from dpmc.automatic.whitened import WhitenedRows
from dpmc.models import logistic, poisson
from dpmc.rng import stream
from dpmc.rows import passes, sources
from dpmc.shards.rows import ShardedRows
from dpmc.types import Dataset
from tests.shards.folders import write
from tests.support.clipped import values
from tests.support.posteriors import gaussian_model

THETA, BASIS = np.array([0.1, -0.2]), np.array([[0.5, 0.1], [0.0, 0.3]])
# Two and a half times what a worker holds at once.
MANY = 2 * sources.SPAN + sources.SPAN // 2


def normal_rows(num_rows: int, dim: int = 2) -> np.ndarray:
    return stream(0, "shards", num_rows, dim).standard_normal((num_rows, dim))


def everything(rows: WhitenedRows) -> list[bytes]:
    """Return the bytes of each kind of sum."""
    lengths = [0.01, 0.3, 1.0]
    beyond, far, total = values(rows.large_sum(THETA, BASIS, 0.3, 0.6))
    return [
        values(rows.gradient_sum(THETA, BASIS, 0.4)).tobytes(),
        values(rows.curvature_sum(THETA, BASIS, 0.2)).tobytes(),
        total.tobytes(),
        str((beyond, far, values(rows.slope_sum(THETA, BASIS[0], 0.1)))).encode(),
        str(values(rows.gradients_beyond(THETA, BASIS, lengths))).encode(),
        str(values(rows.curvatures_beyond(THETA, BASIS, lengths))).encode(),
    ]


@pytest.fixture(scope="module")
def many():
    return normal_rows(MANY)


@pytest.fixture(scope="module")
def in_memory(many):
    return everything(WhitenedRows(gaussian_model(2), Dataset.of("rows", many)))


CUTS = {
    "one": [],
    "odd": [1, 2, 70_001, 70_002, 200_000],
    "even": [*range(sources.SPAN, MANY, sources.SPAN)],
}


@pytest.mark.parametrize("kind", ["npy", "parquet"])
@pytest.mark.parametrize("cuts", CUTS)
def test_sums_have_the_same_bytes_however_rows_are_cut(many, in_memory, tmp_path, cuts, kind):
    folder = write(tmp_path / "rows", many, CUTS[cuts], kind)
    for workers in (1, 3):
        found = everything(WhitenedRows(gaussian_model(2), dpmc.open_rows(folder, workers=workers)))
        assert found == in_memory


def test_sums_have_the_same_bytes_by_an_executor(many, in_memory, tmp_path):
    folder = write(tmp_path / "rows", many, CUTS["odd"], "npy")
    with ThreadPoolExecutor(2) as executor:  # tasks are sent as to another process
        rows = dpmc.open_rows(folder, workers=executor)
        assert everything(WhitenedRows(gaussian_model(2), rows)) == in_memory


def test_blocks_that_begin_where_shards_do_are_noticed(many, in_memory, tmp_path, monkeypatch):
    """The comparison above has power: sums by file differ in their last digits."""
    folder = write(tmp_path / "rows", many, CUTS["odd"], "npy")
    monkeypatch.setattr(passes, "spans", lambda source, first, last: source.pieces(first, last))
    assert everything(WhitenedRows(gaussian_model(2), dpmc.open_rows(folder))) != in_memory


@pytest.mark.parametrize("as_path", [str, lambda path: path])
def test_a_fit_of_a_folder_is_the_fit_of_its_rows(tmp_path, as_path):
    x = normal_rows(3000)
    folder = write(tmp_path / "rows", x, [1000, 1100], "parquet")
    model = gaussian_model(2)
    options = {"epsilon": 2, "delta": 1e-6, "seed": 3, "num_draws": 50}
    there, here = dpmc.fit(model, as_path(folder), **options), dpmc.fit(model, x, **options)
    np.testing.assert_array_equal(there.draws, here.draws)
    assert there.ledger == here.ledger
    assert there.guarantee == here.guarantee


def test_features_of_shards_are_those_of_rows_in_memory(tmp_path):
    rng = stream(0, "shards", "logistic")
    x = np.column_stack([rng.normal(size=(5000, 3)), rng.integers(0, 2, 5000)])
    folder = write(tmp_path / "rows", x, [1, 2500], "parquet")
    model = logistic.build(logistic.Params(3))
    theta, basis = np.array([0.1, 0.2, -0.3, 0.0]), np.eye(4)
    there = values(WhitenedRows(model, dpmc.open_rows(folder)).gradient_sum(theta, basis, 1.0))
    here = values(WhitenedRows(model, Dataset.of("rows", x)).gradient_sum(theta, basis, 1.0))
    assert there.tobytes() == here.tobytes()


def test_columns_are_read_by_name_and_types_are_those_of_numbers(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    count = np.arange(100)
    table = pa.table(
        {"name": ["a"] * 100, "b": count % 2 == 0, "i": count, "f": count.astype(np.float32)}
    )
    (tmp_path / "rows").mkdir()
    pq.write_table(table.drop(["name"]), tmp_path / "rows" / "a.parquet")
    rows = dpmc.open_rows(tmp_path / "rows", columns=["f", "b"])
    assert (rows.names, rows.num_rows) == (("f", "b"), 100)
    expected = np.column_stack([count, count % 2 == 0])
    np.testing.assert_array_equal(np.concatenate([*rows.pieces(0, 100)]), expected)
    np.testing.assert_array_equal(np.concatenate([*rows.pieces(17, 31)]), expected[17:31])


def test_single_precision_stays_so_until_it_is_read(tmp_path):
    x = normal_rows(500).astype(np.float32)
    for kind in ("npy", "parquet"):
        folder = write(tmp_path / kind, x, [100], kind)
        assert next(dpmc.open_rows(folder).pieces(0, 500)).dtype == np.float32
        there = WhitenedRows(gaussian_model(2), dpmc.open_rows(folder))
        here = WhitenedRows(gaussian_model(2), Dataset.of("rows", x))
        assert everything(there) == everything(here)


HOSTILE = [(1e300, -1e300), (1.7e308, 1.7e308), (np.nan, np.inf), (-np.inf, 0.0), (30.0, -30.0)]


def change_of_a_row(tmp_path, row, bound) -> float:
    """Return how far the last row of the second shard moves a sum, over the bound."""
    x = normal_rows(3000)
    y = x.copy()
    y[1999] = row
    sums = []
    for name, rows in (("x", x), ("y", y)):
        for kind in ("npy", "parquet"):
            folder = write(tmp_path / name / kind, rows, [1000, 2000], kind)
            source = dpmc.open_rows(folder, invalid_rows="zero")
            whitened = WhitenedRows(gaussian_model(2), source)
            sums.append(
                [
                    values(whitened.gradient_sum(THETA, BASIS, bound)),
                    values(whitened.curvature_sum(THETA, BASIS, bound)),
                ]
            )
    return max(
        float(np.linalg.norm(a - b)) / bound
        for k in (0, 1)
        for a, b in zip(*sums[k::2], strict=True)
    )


@pytest.mark.parametrize("row", HOSTILE)
def test_no_row_of_a_shard_moves_a_sum_by_more_than_twice_the_bound(tmp_path, row):
    assert change_of_a_row(tmp_path, row, 1e-3) <= 2 * (1 + 1e-9)


def test_a_shard_that_is_counted_twice_is_noticed(tmp_path, monkeypatch):
    """By the number of rows; without this, by how far a row moves a sum."""
    original = ShardedRows.pieces

    def twice(self, first, last):
        yield from original(self, first, last)
        yield from original(self, 1000, 2000)

    monkeypatch.setattr(ShardedRows, "pieces", twice)
    with pytest.raises(dpmc.DpmcError, match="must be there, got 4000"):
        change_of_a_row(tmp_path / "seen", (30.0, 30.0), 1e-3)
    monkeypatch.setattr(passes, "DpmcError", lambda text: None)
    monkeypatch.setattr(passes, "work", _uncounted)
    assert change_of_a_row(tmp_path / "unseen", (30.0, 30.0), 1e-3) > 2.05


def _uncounted(task):
    gradients = passes._compiled(task.model, task.source.num_columns)
    parts = [
        block
        for x in sources.spans(task.source, task.first, task.last)
        for block in passes._blocks(gradients, gradients.features(x, True), 0, len(x), task)
    ]
    return np.stack(parts)


def held(rows: np.ndarray | ShardedRows) -> int:
    """Return the most that passes over rows hold beside them, in bytes."""
    whitened = WhitenedRows(
        gaussian_model(2), Dataset.of("r", rows) if isinstance(rows, np.ndarray) else rows
    )
    everything(whitened)
    tracemalloc.start()
    try:
        everything(whitened)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("where", ["memory", "npy", "parquet"])
def test_passes_hold_no_more_for_more_rows(tmp_path, monkeypatch, many, where):
    monkeypatch.setattr(passes, "KEPT", 0)  # few rows are kept in another order
    twice = np.concatenate([many, many])
    sizes = []
    for k, x in enumerate((many, twice)):
        if where != "memory":
            x = dpmc.open_rows(write(tmp_path / str(k), x, [1000], where), workers=1)
        sizes.append(held(x))
    assert sizes[1] < 1.05 * sizes[0]


def test_models_are_the_same_ones_in_another_process():
    """By bytes and back they give the same numbers, to the last digit."""
    rng = stream(0, "shards", "shipped")
    features = rng.uniform(-1, 1, (2000, 2))
    x = np.column_stack([features, rng.poisson(1.5, 2000)])
    scale = 1.3

    def log_likelihood(theta, z):
        return scale * (theta[0] * z[0] - 0.5 * (z[1] - theta[1]) ** 2 * z[2])

    def gradient(theta, z):
        return scale * z[0], scale * (z[1] - theta[1]) * z[2]

    closed = dpmc.Model("closed", 2, log_likelihood, gradient, lambda t: 0.0, lambda t: 0.0 * t)
    models = [poisson.build(poisson.Params(1, intercept=True)), closed]
    for model in models:
        rows = Dataset.of("rows", x if model is closed else x[:, 1:])
        again = passes.unpacked(passes.packed(model))
        sums = [
            values(WhitenedRows(one, rows).gradient_sum(THETA, BASIS, 0.7))
            for one in (model, again)
        ]
        assert sums[0].tobytes() == sums[1].tobytes()
        assert sums[0].any()
