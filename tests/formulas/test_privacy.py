"""Nothing of a design comes from private rows, and no row has a say in another."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from dpmc.formulas.design import Design
from tests.formulas.tables import ENTRIES, RANGES, RIGHT, SITE, VISIT, design, hostile, patients


def made(found: Design, frame: pd.DataFrame) -> np.ndarray:
    """All that a design makes of rows: features, response, offset."""
    added = found.added(frame)
    parts = [found.x(frame), found.y(frame)] + ([] if added is None else [added])
    return np.column_stack(parts)


@pytest.mark.parametrize("name", RIGHT)
def test_a_row_of_a_design_is_that_of_the_row_alone(name):
    """To the last bit, and without a warning, whatever the other rows hold."""
    found, frame = design(name), hostile(np.random.default_rng(0), 15)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        together = made(found, frame)
        alone = np.concatenate([made(found, frame.iloc[[k]]) for k in range(len(frame))])
    assert np.isfinite(together).all(axis=1).any()
    assert np.isnan(together).any()
    np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize("name", RIGHT)
def test_columns_of_a_design_stay_when_rows_are_permuted_doubled_or_replaced(name):
    frame = hostile(np.random.default_rng(1), 60)
    found = design(name)
    known = found.names, made(found, frame)
    order = np.random.default_rng(2).permutation(60)
    for rows in (order, np.tile(order, 2), np.zeros(60, dtype=int), order[:1]):
        np.testing.assert_array_equal(made(found, frame.iloc[rows]), known[1][rows])
    other = patients(np.random.default_rng(3), 50).assign(site="elsewhere", age=1e9, visit="?")
    assert made(found, other).shape[1] == known[1].shape[1]
    assert found.names == known[0]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda one: repr(one)[:12])
def test_one_entry_changes_its_row_alone(entry):
    """Also where it makes another type of a column, as a text in one of numbers does."""
    found, frame = (
        Design.of(f"y ~ log(age) * {SITE} + {VISIT}"),
        patients(np.random.default_rng(4), 6),
    )
    before = made(found, frame)
    for column in found.columns:
        values = frame[column].astype(object).tolist()
        values[2] = entry
        try:
            changed = pd.Series(values)
        except ValueError:  # that pandas makes no column of
            changed = pd.Series(values, dtype=object)
        after = made(found, frame.assign(**{column: changed}))
        rest = [0, 1, 3, 4, 5]
        np.testing.assert_array_equal(after[rest], before[rest])


def test_levels_are_the_same_whether_a_column_is_read_as_numbers_or_texts():
    found = Design.of(f"y ~ {VISIT} + C(flag, levels=['True', 'False'])")
    numbers = pd.DataFrame({"y": 1.0, "visit": [1, 2, 3], "flag": [True, False, True]})
    floats = numbers.astype({"visit": float, "flag": object})
    texts = numbers.astype({"visit": str, "flag": str})
    for frame in (floats, texts):
        np.testing.assert_array_equal(found.x(frame), found.x(numbers))
    assert found.x(numbers).tolist() == [[0, 0, 0], [1, 0, 1], [0, 1, 0]]


def test_entries_beyond_a_range_or_levels_are_taken_as_public_values_say():
    text = f"y ~ age + {SITE}"
    frame = pd.DataFrame({"y": [1.0] * 4, "age": [5, 200, None, 40], "site": ["east"] * 3 + ["x"]})
    dropped = Design.of(text, {"age": RANGES["age"]}).x(frame)
    np.testing.assert_array_equal(dropped[:2], [[18, 1, 0], [90, 1, 0]])
    assert np.isnan(dropped[2:]).all()
    filled = Design.of(text, missing={"age": 50, "site": "south"}).x(frame)
    np.testing.assert_array_equal(filled, [[5, 1, 0], [200, 1, 0], [50, 1, 0], [40, 0, 1]])
