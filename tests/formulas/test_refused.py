"""Formulas, ranges and tables that are refused, each in one line and before a row is read."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpmc
from dpmc.formulas.design import Design
from tests.formulas.tables import SEX, patients
from tests.support.bad_input import OK, judge, labelled

ROWS = patients(np.random.default_rng(0), 20)
ALONE = "no row may have a say in another, got "
WANTED = "`formula` must be a response and terms"
FUNCTIONS = "`formula` must hold only functions of one number of a row"


def of(text, ranges=None, missing="drop"):
    return lambda: Design.of(text, ranges, missing)


def fit(text="y ~ age", table=ROWS, **more):
    given = {"epsilon": 1, "delta": 1e-6, "progress": False, **more}
    return lambda: dpmc.regression(text, table, **given)


def written(text, name="rows.csv", encoding="utf-8"):
    def call(folder):
        path = Path(folder) / name
        path.write_bytes(text.encode(encoding))
        return fit(table=path)()

    return call


SYNTAX = {
    "empty": (of(""), WANTED),
    "no response": (of("age + dose"), WANTED),
    "no text": (of(3), WANTED),
    "no terms": (of("y ~"), "must have a term beside the intercept"),
    "constant alone": (of("y ~ 1"), "must have a term beside the intercept"),
    "nothing": (of("y ~ 0"), "must have a term beside the intercept"),
    "dot": (of("y ~ ."), "name the columns"),
    "parts": (of("y ~ age | site"), WANTED),
    "groups without levels": (
        of("y ~ age + (1 | site)"),
        "must declare the levels of groups, which would be private values otherwise: (1 | C(site, ",
    ),
    "groups, C without levels": (of("y ~ age + (1 | C(site))"), "declare the levels of 'site'"),
    "groups with slopes": (
        of("y ~ age + (age | C(site))"),
        "write age:C(site, levels=['first', 'second']) beside it for one of each level, got (age |",
    ),
    "intercepts and slopes": (
        of("y ~ age + (1 + age + dose | C(site, levels=['a', 'b']))"),
        "write (age + dose):C(site, levels=['a', 'b']) beside it",
    ),
    "slopes without C": (of("y ~ (0 + age | site)"), "write age:C(site, levels=['first', "),
    "slopes of nothing": (of("y ~ ( | )"), "write x:C(clinic, levels=['first', "),
    "two groups": (
        of("y ~ age + (1 | C(a, levels=[1, 2])) + (1 | C(b, levels=[1, 2]))"),
        "one at most, got several",
    ),
    "groups that are not closed": (of("y ~ age + (1 | C(a, levels=[1, 2])"), "is not closed"),
    "groups within groups": (of("y ~ age + (1 | C(a, levels=[1, 2]) / C(b))"), "`formula` must"),
    "groups of nothing": (of("y ~ age + (1 | )"), "must declare the levels of groups"),
    "one level": (of("y ~ age + (1 | C(a, levels=[1]))"), "give 'a' at least two different"),
    "nothing but groups": (of("y ~ (1 | C(a, levels=[1, 2]))"), "must have a term beside the int"),
    "bracket": (of("y ~ age)"), WANTED),
    "operator": (of("y ~ age @ dose"), "Unknown operator"),
    "two tildes": (of("y ~ age ~ dose"), WANTED),
    "text": (of("y ~ 'age'"), "String literals are not valid"),
    "two responses": (of("y + age ~ dose"), "got 2 responses"),
    "response that is a constant": (of("1 ~ age"), "one number, or one category"),
    "response of several columns": (
        of("poly(y, 2) ~ age", {"y": (0, 1)}),
        "one number, or one category",
    ),
    "response of two categories": (
        of("C(site, levels=['a', 'b']):C(sex, levels=['f', 'm']) ~ age"),
        "one number, or one category",
    ),
    "response of three levels": (
        fit("C(site, levels=['a', 'b', 'c']) ~ age", likelihood="logistic"),
        "`classes` must be",
    ),
    "no Python": (of("y ~ {age dose}"), WANTED),
}

ROW_BY_ROW = {
    "mean": (of("y ~ mean(age)"), FUNCTIONS),
    "NumPy's mean": (of("y ~ np.mean(age)"), FUNCTIONS),
    "method": (of("y ~ age.mean()"), FUNCTIONS),
    "mean within": (of("y ~ I(age - age.mean())"), FUNCTIONS),
    "lag": (of("y ~ lag(age)"), FUNCTIONS),
    "hashed": (of("y ~ hashed(age)"), FUNCTIONS),
    "NumPy's poly": (of("y ~ np.poly(age)"), FUNCTIONS),
    "where a result goes": (of("y ~ log(age, dose)"), FUNCTIONS),
    "by its name": (of("y ~ log(age, out=dose)"), FUNCTIONS),
    "open": (of("y ~ open('/etc/passwd')"), FUNCTIONS),
    "product of columns": (of("y ~ {age @ dose}"), "only arithmetic and comparisons"),
    "search": (of("y ~ {age in dose}"), "only arithmetic and comparisons"),
    "negation": (of("y ~ {not age}"), "only arithmetic and comparisons"),
    "slice": (of("y ~ {age[0]}"), ALONE + "'age[0]'"),
    "condition": (of("y ~ {age if dose else 1}"), ALONE),
    "function of one's own": (of("y ~ {(lambda x: x)(age)}"), FUNCTIONS),
    "list": (of("y ~ {[age]}"), ALONE),
    "quoted": (of("y ~ {`of birth`.max()}"), FUNCTIONS),
    "attribute": (of("y ~ {age.T}"), ALONE + "'age.T'"),
    "spline of an expression": (
        of("y ~ bs(log(age), df=4)", {"age": (1, 2)}),
        "bs() of a column by its name",
    ),
    "knots of a column": (
        of("y ~ bs(age, knots=dose)", {"age": (1, 2)}),
        "only numbers and texts that are written",
    ),
    "levels of a column": (of("y ~ C(sex, levels=sex)"), "only numbers and texts that are written"),
    "levels that are learned": (of("y ~ C(sex)"), "must declare the levels of 'sex'"),
    "no levels beside contrasts": (of("y ~ C(sex, contr.sum)"), "C(sex, levels=['first', 'second'"),
    "category of an expression": (
        of("y ~ C(age > 3, levels=[0, 1])"),
        "C() of a column by its name",
    ),
    "category within": (of(f"y ~ I(1 * {SEX})"), "C() as a factor of its own"),
    "category as a number too": (of(f"y ~ {SEX} + sex"), "read 'sex' as numbers or by C()"),
    "one level": (of("y ~ C(sex, levels=['f'])"), "at least two different texts or numbers"),
    "level twice": (of("y ~ C(visit, levels=[1, '1.0'])"), "of which two are the same"),
    "levels of two kinds": (
        of(f"y ~ {SEX} + age:C(sex, levels=['m', 'f'])"),
        "the same levels wherever it stands",
    ),
    "level that is a list": (of("y ~ C(sex, levels=[['f'], ['m']])"), "different texts or numbers"),
    "offset within": (of("y ~ offset(age):dose"), "offset() as a term of its own"),
    "offset of a constant": (of("y ~ age + offset(1)"), "`formula` must"),
    "offset of a category": (of(f"y ~ age + offset({SEX})"), "numbers of rows in offset()"),
    "spline without freedom": (of("y ~ bs(age, df=1)", {"age": (0, 1)}), "`df` must be greater"),
    "clash of names": (
        fit(f"y ~ {SEX} + `sex[m]`", ROWS.assign(**{"sex[m]": 1})),
        "must have columns of different",
    ),
}

PUBLIC = {
    "centre of rows": (of("y ~ center(age)"), "`ranges` must have 'age', since "),
    "knots of rows": (of("y ~ bs(age, df=4)"), "ranges={'age': (low, high)}"),
    "range of another column": (
        of("y ~ age", {"dose": (0, 1)}),
        "must name columns of the formula",
    ),
    "range upside down": (of("y ~ age", {"age": (90, 18)}), "two finite numbers (low, high)"),
    "range without an end": (of("y ~ age", {"age": (0, np.inf)}), "two finite numbers (low, high)"),
    "range that is a number": (of("y ~ age", {"age": 90}), "got 90"),
    "range that is text": (of("y ~ age", {"age": "90"}), "two finite numbers (low, high)"),
    "ranges that are a pair": (of("y ~ age", (18, 90)), "`ranges` must be a mapping"),
    "missing of another column": (of("y ~ age", missing={"dose": 1}), "must name columns of the"),
    "missing text": (of("y ~ age", missing={"age": "mean"}), "a finite number for 'age'"),
    "missing NaN": (of("y ~ age", missing={"age": np.nan}), "a finite number for 'age'"),
    "missing level": (of(f"y ~ {SEX}", missing={"sex": "x"}), "must be a declared level for 'sex'"),
    "missing rule": (of("y ~ age", missing="mean"), "`missing` must be a mapping by columns"),
    "ranges of arrays": (
        lambda: dpmc.regression(ROWS[["age"]], ROWS["y"], epsilon=1, delta=1e-6, ranges={}),
        "`ranges` and `missing` must be left out without a formula",
    ),
    "intercept": (fit(intercept=False), "`intercept` must be left out beside a formula"),
    "no table": (
        lambda: dpmc.regression("y ~ age", epsilon=1, delta=1e-6),
        "a formula must come first and its table second",
    ),
    "formula=": (
        lambda: dpmc.regression(formula="y ~ age", data=ROWS, epsilon=1, delta=1e-6),
        "a formula must come first and its table second",
    ),
    "data=": (
        lambda: dpmc.regression("y ~ age", data=ROWS, epsilon=1, delta=1e-6),
        "a formula must come first and its table second",
    ),
}

TABLES = {
    "None": (fit(table=None), "must be a data frame, a query or a file, got None"),
    "array": (fit(table=ROWS[["y", "age"]].to_numpy()), "a query or a file, got ndarray"),
    "dict": (fit(table={"y": [1], "age": [2]}), "a query or a file, got dict"),
    "another column": (
        fit("y ~ weight"),
        "must have a column 'weight', got y, age,",
    ),
    "names that are rows": (
        fit(table=pd.DataFrame([[1, 2]], columns=["0.25", "1.5"])),
        "a column 'y'",
    ),
    "no rows": (fit(table=ROWS[:0]), "the table of a formula must have rows, got none"),
    "column twice": (
        fit(table=pd.DataFrame([[1, 2, 3]], columns=["y", "age", "age"])),
        "'age', got several",
    ),
    "categories": (
        fit(table=ROWS.astype({"age": "category"})),
        "C(age, levels=['first', 'second'])",
    ),
    "categories of polars": (
        fit("y ~ sex", pl.from_pandas(ROWS).with_columns(pl.col("sex").cast(pl.Categorical))),
        "C(sex, levels=['first', 'second'])",
    ),
    "categories of Arrow": (
        fit("y ~ sex", pa.table({"y": [1.0], "sex": pa.array(["f"]).dictionary_encode()})),
        "C(sex, levels=['first', 'second'])",
    ),
    "dates": (fit(table=ROWS.assign(age=pd.Timestamp("2000"))), "days since a public date"),
    "dates of a time zone": (
        fit(table=ROWS.assign(age=pd.Timestamp("2000", tz="UTC"))),
        "days since a public date",
    ),
    "dates as levels": (
        fit("y ~ C(day, levels=['2000-01-01', '2000-01-02'])", ROWS.assign(day=pd.Timestamp(0))),
        "column 'day' must hold texts or numbers, as its levels are, got dates",
    ),
    "durations": (fit(table=ROWS.assign(age=pd.Timedelta("1D"))), "days since a public date"),
    "query of another table": (
        fit(table=duckdb.connect().sql("select 1 as y, error('1.25') as age")),
        "a query that can be run",
    ),
    "query as an array": (
        lambda: dpmc.regression(
            pl.from_pandas(ROWS[["age"]]).lazy(), ROWS["y"], epsilon=1, delta=1e-6
        ),
        "give a formula and the query",
    ),
    "no file": (fit(table="nowhere.csv"), "must be a table, and is not there"),
    "another file": (fit(table="rows.xlsx"), "must be a .csv, .tsv, .parquet or .feather file"),
    "column of the constant": (
        fit("y ~ age + Intercept", ROWS.assign(Intercept=1.0)),
        "must read no column 'Intercept', the constant: rename it",
    ),
    "offset and exposure": (
        fit("y ~ offset(age) + age", likelihood="poisson", exposure="age"),
        "`exposure` must be left out beside a formula with offset()",
    ),
    "classes of numbers": (fit(likelihood="ordinal"), "C(y, levels=[0, 1, 2]) as its response"),
    "likelihood that is none": (fit(likelihood="gamma "), "`likelihood` must be one of"),
    "family": (fit(family="poisson"), "did you mean likelihood?"),
}

CALLS = labelled({"syntax": SYNTAX, "rows": ROW_BY_ROW, "public": PUBLIC, "tables": TABLES})

FILES = {
    "no header": (written("1,2\n3,4\n"), "has a number where a name should be"),
    "semicolons": (written("y;age\n1;2\n"), "separated by commas"),
    "tabs": (written("y\tage\n1\t2\n"), "seem to be separated by tabs"),
    "tabs that are commas": (written("y,age\n1,2\n", "rows.tsv"), "must be separated by tabs"),
    "UTF-16": (written("y,age\n1,2\n", encoding="utf-16"), "in UTF-8"),
    "empty": (written(""), "is empty or none"),
    "no such column": (written("y,dose\n1,2\n"), "'age' must be a column of"),
    "no Parquet": (written("y,age\n1,2\n", "rows.parquet"), "is not readable"),
    "no gzip": (written("y,age\n1,2\n", "rows.csv.gz"), "is not readable"),
}


@pytest.mark.parametrize("label", CALLS)
def test_each_call_is_refused_in_one_line(label):
    judge(*CALLS[label])


@pytest.mark.parametrize("label", FILES)
def test_each_file_is_refused_in_one_line(label, tmp_path):
    call, message = FILES[label]
    judge(lambda: call(tmp_path), message)


def test_messages_have_no_entry_of_a_row(tmp_path):
    """0.125 stands for a private number, wherever a message could quote one."""
    secret = pd.DataFrame({"y": [0.125], "age": ["0.125"], "0.125": [0.125]})
    calls = [
        fit("y ~ weight", secret),
        fit("y ~ sex", secret.assign(sex=pd.Categorical(["0.125"]))),
        fit(table=duckdb.connect().sql("select 1 as y, error('0.125') as age")),
        lambda: written("0.125,0.125\n1,2\n")(tmp_path),
        lambda: written("y;0.125\n1,2\n")(tmp_path),
    ]
    for call in calls:
        with pytest.raises(dpmc.DpmcError) as caught:
            call()
        assert "0.125" not in str(caught.value)
        assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_formulas_that_look_odd_and_are_right():
    for text in ("y ~ age - 1", "y~age+age", "y ~ age**2", "y ~ 2:age", "y ~ -1 + age", "y ~ +age"):
        assert judge(of(text), OK).names
