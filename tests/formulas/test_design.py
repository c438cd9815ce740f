"""Designs hold what their formula says, as formulaic makes them of ordinary rows."""

from __future__ import annotations

import gzip

import dask.dataframe as dd
import duckdb
import formulaic
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dpmc.families._formula import table_of
from dpmc.formulas.design import Design
from tests.formulas.tables import RANGES, RIGHT, SEX, SITE, design, patients

LEARNING = {"centred", "polynomial", "spline", "cyclic", "standardized"}
ROWS = patients(np.random.default_rng(0), 30)


@pytest.mark.parametrize("name", sorted(RIGHT.keys() - LEARNING - {"offset"}))
def test_a_design_is_that_of_formulaic(name):
    expected = formulaic.model_matrix(RIGHT[name], ROWS, context={"sqrt": np.sqrt})
    if "Intercept" in expected:
        expected = expected.drop(columns="Intercept")
    found = design(name)
    np.testing.assert_allclose(found.x(ROWS), expected.to_numpy(float), rtol=1e-14)
    assert len(found.names) == expected.shape[1]
    assert found.intercept == (not RIGHT[name].startswith("0"))


@pytest.mark.parametrize("name", sorted(LEARNING))
def test_what_is_learned_is_that_of_rows_spread_evenly_over_public_ranges(name):
    even = {key: np.linspace(*ends, 101) for key, ends in RANGES.items()}
    frame = pd.DataFrame(even).assign(sex="f", y=1)
    expected = formulaic.model_matrix(RIGHT[name].replace(f":{SEX}", ""), frame)
    values = expected.drop(columns="Intercept").to_numpy(float)
    assert design(name).x(frame)[:, : values.shape[1]] == pytest.approx(
        values, rel=1e-12, abs=1e-12
    )


def test_names_are_those_of_columns_and_levels():
    assert design("interaction").names == (
        "age", "site[east]", "site[south]", "age:site[east]", "age:site[south]",
    )  # fmt: skip
    assert design("without a constant").names[:3] == ("site[north]", "site[east]", "site[south]")
    assert design("spline").names[:2] == ("bs(age, df=5)[1]", "bs(age, df=5)[2]")


def test_a_response_may_be_computed_or_one_of_two_levels():
    answer = Design.of("C(sex, levels=['f', 'm']) ~ age").y(ROWS)
    np.testing.assert_array_equal(answer, ROWS["sex"] == "m")
    classes = Design.of("C(site, levels=['south', 'east', 'north']) ~ age").y(ROWS)
    np.testing.assert_array_equal(classes, ROWS["site"].map({"south": 0, "east": 1, "north": 2}))
    np.testing.assert_array_equal(Design.of("log(dose) ~ age").y(ROWS), np.log(ROWS["dose"]))


def test_offsets_are_added_up():
    found = Design.of("y ~ age + offset(log(dose)) + offset(visit)")
    np.testing.assert_array_equal(found.added(ROWS), np.log(ROWS["dose"]) + ROWS["visit"])
    assert found.names == ("age",)
    assert design("numbers").added(ROWS) is None


def tables(folder):
    """The same rows in all kinds of tables."""
    arrow = pa.Table.from_pandas(ROWS, preserve_index=False)
    yield ROWS
    yield ROWS.astype({"sex": "category", "site": "string", "visit": "Int64"})
    yield ROWS.astype(object)
    yield pl.from_pandas(ROWS)
    yield pl.from_pandas(ROWS).lazy()
    yield pl.from_pandas(ROWS).with_columns(pl.col("site").cast(pl.Categorical))
    yield arrow
    yield arrow.set_column(3, "sex", arrow["sex"].dictionary_encode())
    yield duckdb.connect().from_arrow(arrow)
    yield dd.from_pandas(ROWS, npartitions=2)
    for name, options in (("a.csv", {}), ("a.tsv", {"sep": "\t"}), ("b.csv.gz", {})):
        ROWS.to_csv(folder / name, index=False, **options)
        yield folder / name
    ROWS.to_csv(folder / "c.csv")  # with an index, which no formula names
    yield str(folder / "c.csv")
    ROWS.to_parquet(folder / "a.parquet")
    yield folder / "a.parquet"
    ROWS.to_feather(folder / "a.feather")
    yield folder / "a.feather"


def test_all_kinds_of_tables_give_the_same_design(tmp_path):
    found = Design.of(f"y ~ log(age) + {SEX} + {SITE}*visit + `of birth`")
    for table in tables(tmp_path):
        frame = table_of(table, found.columns)
        np.testing.assert_array_equal(found.x(frame), found.x(ROWS), err_msg=str(type(table)))
        np.testing.assert_array_equal(found.y(frame), ROWS["y"])


def test_lines_of_a_file_are_rows_whatever_bytes_they_have(tmp_path):
    lines = [b"y,age,sex", b"1,30,f", b"0,\xff,m", b"1,41", b'0,"5,m', b"1,50,\xe9", b"0,60,m"]
    (tmp_path / "rows.csv").write_bytes(b"\n".join(lines))
    with gzip.open(tmp_path / "rows.csv.gz", "wb") as file:
        file.write(b"\n".join(lines))
    found = Design.of(f"y ~ age + {SEX}")
    for name in ("rows.csv", "rows.csv.gz"):
        x = found.x(table_of(tmp_path / name, found.columns))
        np.testing.assert_array_equal(np.isfinite(x).all(axis=1), [1, 0, 0, 0, 0, 1])
        np.testing.assert_array_equal(x[[0, 5]], [[30, 0], [60, 1]])


def test_levels_of_files_may_have_any_letters(tmp_path):
    (tmp_path / "rows.csv").write_text("y,place\n1,Åbo\n0,Zürich\n", encoding="utf-8")
    found = Design.of("y ~ C(place, levels=['Zürich', 'Åbo'])")
    assert found.x(table_of(tmp_path / "rows.csv", found.columns)).tolist() == [[1], [0]]
