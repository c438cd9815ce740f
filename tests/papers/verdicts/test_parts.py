"""Runs in parts: what is picked from them is what is picked from the table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpmc_papers.verdicts import bootstrap
from dpmc_papers.verdicts.evidence import Evidence, Parts, select

FILTERS = (
    {},
    {"experiment": "a"},
    {"experiment": "a", "problem": "p"},
    {"problem": "q", "method": "hmc"},
    {"experiment": ["a", "b"], "problem": "p"},
    {"experiment": "b", "epsilon": {"at_least": 2, "below": 4}},
    {"experiment": "a", "epsilon": {"largest": 1}, "method": ["hmc", "rwmh"]},
    {"method": "hmc", "epsilon": 1.0},
    {"epsilon": [1.0, 4.0], "problem": "nowhere"},
)


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    words = {"experiment": ["a", "b"], "problem": ["p", "q", None], "method": ["hmc", "rwmh"]}
    columns = {name: rng.choice(np.array(kinds, object), 300) for name, kinds in words.items()}
    numbers = {"epsilon": rng.choice([1.0, 2.0, 4.0], 300), "mmd": rng.normal(size=300)}
    return pd.DataFrame({**columns, **numbers}).astype(dict.fromkeys(words, "str"))


@pytest.mark.parametrize("filters", FILTERS)
def test_parts_give_the_rows_of_the_table_in_its_order(table, filters):
    found = Evidence(table, {}, np.random.default_rng(0), 1, parts=Parts(table)).select(filters)
    expected = select(table, filters)
    assert found.index.tolist() == expected.index.tolist()
    pd.testing.assert_frame_equal(found, expected, check_dtype=False, check_column_type=False)


@pytest.mark.parametrize("size", [1, 2, 9, 10])
@pytest.mark.parametrize("missing", [0, 1])
def test_statistics_are_those_of_numpy(size, missing):
    values = np.random.default_rng(size).normal(size=(50, size + missing))
    values[::2, :missing] = np.nan
    for name, expected in (("median", np.nanmedian), ("mean", np.nanmean)):
        found = bootstrap.STATISTICS[name](values, values)
        assert np.array_equal(found, expected(values, axis=1))
