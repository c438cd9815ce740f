"""Regressions by a formula are those of its design, whatever the table, and say what they did."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import dpmc
from dpmc.families._formula import by_formula
from dpmc.formulas.design import Design
from tests.formulas.tables import patients

TEXT = "C(ill, levels=['no', 'yes']) ~ center(age) + C(sex, levels=['f', 'm'])"
RANGES = {"age": (18, 90)}
BUDGET = {"epsilon": 4, "delta": 1e-6, "seed": 1, "progress": False, "num_draws": 200}


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = patients(rng, 4000)
    chance = 1 / (1 + np.exp(-0.05 * (frame["age"] - 54) - 0.5 * (frame["sex"] == "m")))
    frame["ill"] = np.where(rng.random(4000) < chance, "yes", "no")
    frame.loc[::40, "age"] = np.nan
    frame.loc[7::50, "sex"] = "x"
    frame.loc[11::70, "ill"] = "?"
    return frame


@pytest.fixture(scope="module")
def fit(rows: pd.DataFrame) -> dpmc.Fit:
    return dpmc.regression(TEXT, rows, likelihood="logistic", ranges=RANGES, **BUDGET)


@pytest.mark.filterwarnings("ignore::dpmc.PosteriorWarning")
def test_a_fit_is_that_of_its_design(rows, fit):
    design = Design.of(TEXT, RANGES)
    arrays = dpmc.regression(
        design.x(rows), design.y(rows), likelihood="logistic", invalid_rows="zero", **BUDGET
    )
    np.testing.assert_array_equal(fit.draws, arrays.draws)
    assert fit.names == ("intercept", "center(age)", "sex[m]")
    assert "valid rows" in {stage["release"] for stage in fit.plan.stages}


def test_a_fit_is_that_of_a_file_and_of_a_table_with_other_labels(rows, fit, tmp_path):
    rows.to_csv(tmp_path / "rows.csv.gz", index=False)
    for table in (tmp_path / "rows.csv.gz", rows.set_index(rows.index[::-1])):
        again = dpmc.regression(TEXT, table, likelihood="logistic", ranges=RANGES, **BUDGET)
        np.testing.assert_array_equal(again.draws, fit.draws)


def test_the_summary_says_what_was_done_with_entries(rows, fit):
    told = str(fit.summary())
    assert f"Formula: {TEXT}." in told
    assert "Rows with a missing or impossible entry" in told
    assert "taken to their ends: age 18 to 90." in told
    filled = Design.of(TEXT, RANGES, {"age": 50})
    assert "read by public values: age as 50." in " ".join(filled.sentences())


def test_new_rows_are_read_as_the_rows_were(fit, tmp_path):
    new = pd.DataFrame({"sex": ["m", "f"], "age": [95.0, 30.0]})
    fit.save(tmp_path / "fit.parquet")
    for one in (fit, dpmc.Fit.load(tmp_path / "fit.parquet")):
        by_array = one.predict(np.array([[36.0, 1.0], [-24.0, 0.0]]), seed=3)
        np.testing.assert_array_equal(one.predict(new, seed=3), by_array)


@pytest.mark.parametrize(
    ("new", "told"),
    [
        (pd.DataFrame({"age": [30.0]}), "`x` must have a column 'sex', got age"),
        (pd.DataFrame({"age": [30.0], "sex": ["x"]}), "a declared level, in all columns"),
        (pd.DataFrame({"age": [None], "sex": ["f"]}), "`x` must have a number"),
        ({"age": [30.0], "sex": ["f"]}, "`x` must be a data frame with columns of the formula"),
        (np.zeros((1, 3)), "`x` must have 2 columns, got 3"),
    ],
)
def test_new_rows_that_do_not_fit_are_refused(fit, new, told):
    with pytest.raises(dpmc.DpmcError) as caught:
        fit.predict(new)
    assert told in str(caught.value)


def test_rows_that_are_all_impossible_end_in_no_error(rows):
    """Which would tell that one of them is not: the remark follows from what was released."""
    with pytest.warns(dpmc.PosteriorWarning, match="Hardly any row has a possible entry"):
        found = dpmc.regression("y ~ sex", rows, likelihood="logistic", **BUDGET)
    assert "C(column, levels=['first', 'second']) declares its levels" in found.remarks[0]


def test_texts_name_columns_of_the_table(rows):
    """Of what a response comes with, which a way in takes as arrays."""
    seen = {}

    @by_formula
    def way_in(x, y, **given):
        seen.update(given, x=x, y=y)
        return dpmc.Fit(None, {}, {}, "complete", (), dpmc.Guarantee(1.0, 1e-6))

    way_in("y ~ age", rows, exposure="visit")
    np.testing.assert_array_equal(seen["exposure"], rows["visit"])
    way_in("y ~ age + offset(log(dose))", rows, trials=3)
    np.testing.assert_allclose(seen["offset"][1:7], np.log(rows["dose"][1:7]))
    assert (seen["trials"], seen["intercept"], seen["invalid_rows"]) == (3, True, "zero")
    way_in("C(site, levels=['south', 'east', 'north']) ~ age - 1", rows)
    assert (seen["classes"], seen["intercept"]) == (3, False)


@pytest.mark.filterwarnings("ignore::dpmc.PosteriorWarning")
@pytest.mark.parametrize("names", [(), ("constant", "slope")])
def test_a_column_whose_name_is_a_number_is_one(rows, names):
    table = rows.assign(**{"2020": rows["age"], "y": rows["age"]})
    fit = dpmc.regression("y ~ `2020`", table, names=names, **BUDGET)
    assert fit.names[:2] == (names or ("intercept", "2020"))
    right = fit.predict(np.array([[30.0]]), kind="mean")
    assert (fit.predict(pd.DataFrame({"2020": [30.0]}), kind="mean") == right).all()


@pytest.mark.filterwarnings("ignore::dpmc.PosteriorWarning")
def test_what_a_formula_has_is_not_given_again(rows):
    fit = dpmc.regression("visit ~ age + offset(age)", rows, likelihood="poisson", **BUDGET)
    new = pd.DataFrame({"age": [30.0, 40.0]})
    with pytest.raises(dpmc.DpmcError, match="`offset` must be None: the formula has it"):
        fit.predict(new, kind="mean", offset=[0.0, 1.0])
    with pytest.raises(dpmc.DpmcError, match="`trials` must have the index of `x`"):
        fit.predict(new, kind="mean", trials=pd.Series([1.0, 2.0], index=[1, 0]))
