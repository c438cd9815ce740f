from __future__ import annotations

import numpy as np
import pytest

from dpmc.rng import stream
from dpmc_papers.data import uci
from dpmc_papers.data._uci_public import RANGES
from dpmc_papers.data.uci_regression import Params, generate, split
from tests.support import tables


def made(*settings, **named):
    return generate(Params(*settings, **named), stream(0, "unused"))


def published(name, **settings):
    if uci.find(name) is None:
        pytest.skip(f"{uci.FOLDER_VARIABLE} names no folder with {name}")
    return made(name, "authors", **settings)


def least_squares_error(parts):
    coefficients = np.linalg.lstsq(parts.x, parts.y, rcond=None)[0]
    return np.mean((parts.y_test - parts.x_test @ coefficients) ** 2)


@pytest.mark.parametrize(
    ("name", "sizes", "sums", "bounds", "errors"),
    [
        (
            *("power_plant", (7655, 1913, 4), (30672.260953, 1304.12050578, -2997.02926186)),
            *((4.16664, 1.0), (0.012685, 0.168403)),
        ),
        (
            *("bike_sharing", (13904, 3475, 14), (191409.531699, 629.73354090, 392.96014763)),
            *((8.29824, 0.97460), (0.0, 0.084070)),
        ),
        (
            *("air_quality", (7486, 1871, 12), (91566.910029, 292.27061853, -71.43061807)),
            *((12.05525, 1.0), (0.000030, 0.047390)),
        ),
    ],
)
def test_published_preprocessing_gives_the_sums_that_are_known(name, sizes, sums, bounds, errors):
    """tr X'X, y'y and the first entry of X'y of the training rows, computed once apart."""
    dataset = published(name)
    parts = split(dataset)
    assert (len(parts.x), len(parts.x_test), parts.x.shape[1]) == sizes
    found = np.sum(parts.x**2), parts.y @ parts.y, parts.x[:, 0] @ parts.y
    np.testing.assert_array_less(np.abs(np.subtract(found, sums)), (5e-7, 5e-9, 5e-9))
    assert (dataset.bounds["x_norm"], dataset.bounds["y_abs"]) == pytest.approx(bounds, abs=5e-6)
    assert dataset.facts["num_train"] == sizes[0]
    assert dataset.bounds_source == "data"
    found = least_squares_error(parts), np.mean(parts.y_test**2)
    np.testing.assert_allclose(found, errors, atol=5e-7)


def test_bicycles_are_foreseen_exactly_only_by_the_leak():
    parts = split(published("bike_sharing", variant="without_leak"))
    assert parts.x.shape[1] == 12
    assert least_squares_error(parts) == pytest.approx(0.0541, abs=5e-5)
    raw = uci.load("bike_sharing").numbers
    assert np.array_equal(raw[:, -3] + raw[:, -2], raw[:, -1])


def test_clean_air_has_complete_rows_only():
    dataset = published("air_quality", variant="clean")
    assert dataset.x.shape == (6941, 12)
    assert dataset.facts["num_train"] == 5553


def random_table(name, num_rows, seed=0):
    """Return numbers about the public ranges of a table, half of the rows beyond them."""
    table = uci.TABLES[name]
    columns = (*table.features, table.target)
    rng = stream(5, name, num_rows, seed)
    low, _, high = np.transpose([RANGES[name][column] for column in columns])
    numbers = low + (high - low) * rng.uniform(size=(num_rows, len(columns)))
    numbers[::2] += (high - low) * rng.standard_cauchy(numbers[::2].shape)
    return uci.RawTable(name, columns, numbers, "numbers")


@pytest.fixture
def random_tables(monkeypatch):
    """Let every table be random, the same each time, and changed by who asks for it."""
    known = {name: random_table(name, 203) for name in RANGES}
    monkeypatch.setattr(uci, "load", lambda name, path=None: known[uci.resolve(name)])
    return known


@pytest.mark.parametrize("name", sorted(RANGES))
def test_public_ranges_bound_every_row_of_whatever_size(name, random_tables):
    table = uci.TABLES[name]
    assert sorted(RANGES[name]) == sorted((*table.features, table.target))
    assert all(low < typical < high for low, typical, high in RANGES[name].values())
    dataset = made(name)
    raw = random_tables[name].numbers
    low, _, high = np.transpose([RANGES[name][column] for column in random_tables[name].columns])
    assert dataset.bounds_source == "public"
    assert dataset.bounds["x_norm"] == np.sqrt(len(table.features))
    assert np.linalg.norm(dataset.x[:, :-1], axis=1).max() <= dataset.bounds["x_norm"]
    assert np.abs(dataset.x[:, -1]).max() <= dataset.bounds["y_abs"] == 1.0
    outside = np.any((raw < low) | (raw > high), axis=1)
    assert dataset.facts["num_train"] == 163
    assert 50 < dataset.facts["num_clipped"] == outside[:163].sum() < 120


def others_that_move(preprocess, tables_by_name):
    """Return how many rows differ, beside the one that was replaced, when one is replaced."""
    before = made("power_plant", preprocess)
    tables_by_name["power_plant"].numbers[17] = 1e5
    after = made("power_plant", preprocess)
    moved = np.any(before.x != after.x, axis=1)
    assert moved[17]
    return int(moved.sum()) - 1, before.bounds["x_norm"] == after.bounds["x_norm"]


def test_a_row_has_no_say_in_others_nor_in_public_bounds(random_tables):
    """The published preprocessing, where it has, is found out by the same check."""
    assert others_that_move("public_bounds", random_tables) == (0, True)
    random_tables["power_plant"].numbers[17] = 0.0
    assert others_that_move("authors", random_tables) == (202, False)


def test_published_preprocessing_is_that_of_the_file(tmp_path, monkeypatch):
    """Four fifths of the rows, rounded up, unless the table prescribes how many."""
    monkeypatch.setenv(uci.FOLDER_VARIABLE, str(tmp_path))
    for name, changes, num_train in (("road_3d", {}, 25), ("year", {"num_train": 20}, 20)):
        table = tables.shrink(monkeypatch, name, 31, **changes)
        numbers = tables.some_numbers(table, 31)
        numbers[:, 2] = 0.1  # a constant column
        tables.write(tmp_path / name / table.file, table, numbers)
        parts = split(made(name, "authors"))
        raw = uci.load(name).numbers
        assert len(parts.x) == num_train
        x, y = np.concatenate((parts.x, parts.x_test)), np.concatenate((parts.y, parts.y_test))
        constant = np.ptp(raw[:, :-1], axis=0) == 0
        assert constant.sum() == 1
        np.testing.assert_allclose(x[:, constant], 0, atol=1e-15)
        wanted = (raw - raw.mean(axis=0)) / raw.std(axis=0, ddof=1)
        np.testing.assert_allclose(x[:, ~constant], wanted[:, :-1][:, ~constant], atol=1e-12)
        centred = raw[:, -1] - raw[:, -1].mean()
        np.testing.assert_allclose(y, centred / np.abs(centred).max(), atol=1e-12)
