from __future__ import annotations

import numpy as np
import pytest

from dpmc.rng import stream
from dpmc.types import Dataset, DpmcError
from dpmc_papers.data import uci
from dpmc_papers.data._uci_network_public import NETWORK_RANGES
from dpmc_papers.data.uci_network import Params, generate, row_split, split
from tests.support import tables


def made(*settings, **named):
    return generate(Params(*settings, **named), stream(0, "unused"))


# Sizes printed or used in [vinaroz2022dpsep, Table 4].
SIZES = {
    "naval": (10740, 1194, 16),
    "kin8nm": (7372, 820, 8),
    "power": (8611, 957, 4),
    "wine": (1439, 160, 11),
    "protein": (41157, 4573, 9),
    "year": (463715, 51630, 90),
}


@pytest.mark.parametrize("name", SIZES)
def test_splits_have_the_sizes_of_the_paper(name):
    table = uci.TABLES[uci.resolve(name)]
    train, test = row_split(table.num_rows, 1, table.num_train)
    assert (len(train), len(test), len(table.features)) == SIZES[name]
    assert len(np.union1d(train, test)) == table.num_rows


def test_a_split_is_that_of_scikit_learn():
    """Its manual splits five rows by seed 42: rows 1 and 4 for testing, then 2, 0 and 3."""
    assert np.random.RandomState(42).permutation(5).tolist() == [1, 4, 2, 0, 3]
    train, test = row_split(25, 42)
    order = np.random.RandomState(42).permutation(25)
    assert test.tolist() == order[:3].tolist()
    assert train.tolist() == order[3:].tolist()


@pytest.mark.parametrize("name", ["wine", "kin8nm", "power", "naval"])
def test_published_preprocessing_standardises_the_training_rows(name):
    if uci.find(name) is None:
        pytest.skip(f"{uci.FOLDER_VARIABLE} names no folder with {name}")
    dataset = made(name, 3, "authors")
    parts = split(dataset)
    assert (len(parts.y), len(parts.y_test), parts.x.shape[1]) == SIZES[name]
    assert dataset.bounds_source == "data"
    rows = np.column_stack((parts.x, parts.y))
    np.testing.assert_allclose(rows.mean(axis=0), 0, atol=1e-9)
    deviations = rows.std(axis=0)
    constant = deviations < 1e-9
    assert constant.sum() == (2 if name == "naval" else 0)
    np.testing.assert_allclose(deviations[~constant], 1, atol=1e-9)
    raw = uci.load(name).numbers[row_split(len(dataset.x), 3)[1]]
    np.testing.assert_allclose(parts.y_shift + parts.y_scale * parts.y_test, raw[:, -1], rtol=1e-12)


def random_table(name, num_rows):
    """Return numbers about the public ranges of a table, half of the rows beyond them."""
    table = uci.TABLES[name]
    columns = (*table.features, table.target)
    rng = stream(6, name, num_rows)
    low, _, high = np.transpose([NETWORK_RANGES[name][column] for column in columns])
    numbers = low + (high - low) * rng.uniform(size=(num_rows, len(columns)))
    numbers[::2, ::3] += (high - low)[::3] * rng.standard_cauchy(numbers[::2, ::3].shape)
    return uci.RawTable(name, columns, numbers, "numbers")


@pytest.fixture
def random_tables(monkeypatch):
    """Let every table be random, the same each time, and changed by who asks for it."""
    known = {name: random_table(name, 203) for name in NETWORK_RANGES}
    for name in NETWORK_RANGES:
        tables.shrink(monkeypatch, name, 203, num_train=180 if name == "year" else None)
    monkeypatch.setattr(uci, "load", lambda name, path=None: known[uci.resolve(name)])
    return known


@pytest.mark.parametrize("name", sorted(NETWORK_RANGES))
def test_public_ranges_name_every_column_and_bound_every_row(name, random_tables):
    table = uci.TABLES[name]
    assert sorted(NETWORK_RANGES[name]) == sorted((*table.features, table.target))
    ranges = [NETWORK_RANGES[name][column] for column in random_tables[name].columns]
    assert all(low < typical < high for low, typical, high in ranges)
    dataset = made(name, 2)
    assert dataset.bounds_source == "public"
    low, typical, high = np.transpose(ranges)
    parts = split(dataset)
    train, test = row_split(203, 2, table.num_train)
    raw = random_tables[name].numbers
    outside = np.any((raw < low) | (raw > high), axis=1)
    assert dataset.facts["num_clipped"] == outside[train].sum() > 20
    inside = np.clip(raw, low, high)
    wanted = (inside - typical) / ((high - low) / 4)
    np.testing.assert_allclose(np.column_stack((parts.x, parts.y)), wanted[train], rtol=1e-12)
    np.testing.assert_allclose(parts.x_test, wanted[test, :-1], rtol=1e-12)
    units = parts.y_shift + parts.y_scale * parts.y_test
    np.testing.assert_allclose(units, raw[test, -1], rtol=1e-9, atol=1e-9)


def others_that_move(preprocess, random_tables):
    """Return how many rows differ, beside the one that was replaced, when one is replaced."""
    before = made("power", 5, preprocess)
    row = row_split(203, 5)[0][17]
    random_tables["power_plant"].numbers[row] = 1e5
    after = made("power", 5, preprocess)
    moved = np.any(before.x != after.x, axis=1)
    assert moved[17]
    return int(moved.sum()) - 1, before.facts["y_scale"] == after.facts["y_scale"]


def test_a_row_has_no_say_in_others_by_public_ranges(random_tables):
    """The published preprocessing, where it has, is found out by the same check."""
    assert others_that_move("public_bounds", random_tables) == (0, True)
    random_tables["power_plant"].numbers[row_split(203, 5)[0][17]] = 0.0
    others, same = others_that_move("authors", random_tables)
    assert others > 190
    assert not same


def test_the_split_of_songs_is_that_of_the_table(random_tables):
    first, second = made("year", 1), made("year", 2)
    assert first.facts["num_train"] == 180
    assert np.array_equal(first.x, second.x)
    assert not np.array_equal(made("wine", 1).x, made("wine", 2).x)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"dataset": "road_3d"},
            r"^`dataset` must be one of kin8nm, naval, power, .*, got 'road_3d'$",
        ),
        ({"dataset": "wine", "seed": -1}, r"^`seed` must be an integer of at least 0, got -1$"),
        ({"dataset": "wine", "seed": 2**32}, r"^`seed` must be below 2\*\*32, got 4294967296$"),
        (
            {"dataset": "wine", "preprocess": "own"},
            r"^`preprocess` must be 'public_bo.*'own'$",
        ),
    ],
)
def test_settings_that_no_table_has_are_refused(settings, message):
    with pytest.raises(DpmcError, match=message):
        Params(**settings)


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({}, r"^`num_train` of data 'rows' must be 1 to 3, got 0$"),
        (
            {"num_train": 3.0, "y_shift": 0.0},
            r"^`y_scale` is missing in the facts of data 'rows'$",
        ),
    ],
)
def test_rows_of_another_kind_are_not_split(facts, message):
    with pytest.raises(DpmcError, match=message):
        split(Dataset("rows", np.ones((4, 2)), facts=facts))
