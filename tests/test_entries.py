"""An entry of a row is a number by itself or none, and makes no other entry something else."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpmc
from dpmc import statsel
from dpmc.ep.mixture.model import MixtureModel
from dpmc.linreg.sufficient_statistics import node_statistics
from dpmc.types import Dataset, DpmcError, is_name, number

N, K = 40, 7
ROWS = np.random.default_rng(1).normal(size=(N, 2))


class Hostile(float):
    def __float__(self):
        raise RuntimeError("1.5 is what I am")


ODD = {
    "a number beyond floats": 10**400,
    "minus that": -(10**400),
    "a text": "seventeen",
    "a long text": "x" * 5000,
    "bytes": b"\xff",
    "nothing": None,
    "missing": pd.NA,
    "no time": pd.NaT,
    "a complex number": 1j,
    "a list": [1.0],
    "a row within a row": (1.0, 2.0),
    "an array": np.arange(3.0),
    "a mapping": {},
    "a date": datetime.date(2020, 1, 1),
    "a date of NumPy": np.datetime64("2020-01-01"),
    "a duration": np.timedelta64(1, "s"),
    "a signalling NaN": Decimal("sNaN"),
    "a number that fails": Hostile(1.5),
    "infinity": math.inf,
    "NaN": math.nan,
}
PLAIN = {
    "a large integer": (2**64, 2.0**64),
    "a flag": (True, 1.0),
    "a flag of NumPy": (np.False_, 0.0),
    "a decimal": (Decimal("1.5"), 1.5),
    "a fraction": (Fraction(3, 2), 1.5),
    "a number as text": ("-1.5e0", -1.5),
    "a single": (np.float32(0.1), float(np.float32(0.1))),
}


def replaced(entry):
    """Return rows as lists, of which one entry is another."""
    rows = ROWS.tolist()
    rows[K][1] = entry
    return rows


def objects(rows):
    """Return rows as an array of objects, whatever they are."""
    x = np.empty((len(rows), len(rows[0])), dtype=object)
    for i, row in enumerate(rows):
        for j, entry in enumerate(row):
            x[i, j] = entry
    return x


CONTAINERS = {
    "lists": lambda rows: rows,
    "tuples": lambda rows: tuple(map(tuple, rows)),
    "objects": objects,
    "pandas": lambda rows: pd.DataFrame(objects(rows), columns=["a", "b"]),
    "polars": lambda rows: pl.DataFrame(
        {name: pl.Series([row[k] for row in rows], dtype=pl.Object) for k, name in enumerate("ab")}
    ),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("what", ODD)
def test_what_is_no_number_makes_its_row_invalid_and_no_other(what, container):
    x = Dataset.of("rows", CONTAINERS[container](replaced(ODD[what])), "zero").x
    assert x.dtype == np.float64
    assert np.isnan(x[K]).all()
    assert np.delete(x, K, axis=0).tobytes() == np.delete(ROWS, K, axis=0).tobytes()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("what", PLAIN)
def test_what_is_a_number_is_read_as_one(what, container):
    entry, value = PLAIN[what]
    x = Dataset.of("rows", CONTAINERS[container](replaced(entry)), "zero").x
    assert x[K, 1] == value
    assert np.delete(x, K, axis=0).tobytes() == np.delete(ROWS, K, axis=0).tobytes()


@pytest.mark.parametrize("dtype", [str, bytes, complex])
def test_types_of_arrays_that_one_entry_decides_change_no_number(dtype):
    x = Dataset.of("rows", np.array(ROWS, dtype=dtype), "zero").x
    assert x.tobytes() == ROWS.tobytes()


def test_columns_of_arrow_are_read_by_what_they_say():
    columns = {
        "a": pa.array([1, None, 3]),
        "b": pa.array(["x", None, "1"]).dictionary_encode(),
        "c": pa.array([Decimal("1.5"), None, Decimal("-2.25")]),
        "d": pa.array(["1.5", "\u00fc", None]),
        "e": pa.array([True, None, False]),
        "f": pa.nulls(3),
    }
    right = [[1, np.nan, 3], [np.nan, np.nan, 1], [1.5, np.nan, -2.25]]
    right += [[1.5, np.nan, np.nan], [1, np.nan, 0], [np.nan] * 3]
    for name, column in zip(columns, right, strict=True):
        table = pa.table({name: columns[name]})
        for given in (table, table.to_batches()[0]):
            x = Dataset.of("rows", given, "zero").x[:, 0]
            assert np.array_equal(x, column, equal_nan=True)
    no_utf8 = pa.array([b"\xff", b"2"]).view(pa.string())
    assert np.isnan(Dataset.of("rows", pa.table({"a": no_utf8}), "zero").x[:, 0]).tolist() == [
        True,
        False,
    ]


@pytest.mark.parametrize("what", ODD)
def test_to_refuse_says_nothing_of_an_entry(what):
    told = set()
    for container in CONTAINERS.values():
        with pytest.raises(DpmcError) as caught:
            Dataset.of("rows", container(replaced(ODD[what])))
        told.add(str(caught.value))
    assert all("real numbers" in one or "finite numbers" in one or "length" in one for one in told)
    assert not any("dtype" in one or "seven" in one or "5000" in one for one in told)


def test_types_that_are_no_numbers_are_refused_without_their_categories():
    secret = pl.Series(["secret", "value"], dtype=pl.Enum(["secret", "value"]))
    with pytest.raises(DpmcError) as caught:
        Dataset.of("rows", pl.DataFrame({"a": secret}))
    assert str(caught.value).startswith("data 'rows': column 'a' must hold real numbers, got other")
    for dates in (
        pd.Series(pd.date_range("2020", periods=3)),
        pl.Series([datetime.date(2020, 1, 1)]),
    ):
        frame = dates.to_frame("a")
        with pytest.raises(DpmcError, match="column 'a' must hold real numbers, got others"):
            Dataset.of("rows", frame, "zero")


X, Y = ROWS, (ROWS[:, 0] > 0).astype(float)
BUDGET = {"epsilon": 2.0, "delta": 1e-3, "seed": 1}
SHORT = {**BUDGET, "num_draws": 4, "progress": False}
MIXTURE = MixtureModel.isotropic(1.0, [[0.0, 0.0], [3.0, 3.0]], precision=0.1)
NORMAL = statsel.population("normal_variance", bound=10.0)
ABSOLUTE, LAPLACE = statsel.statistic("abs_1"), statsel.mechanism("laplace")


def regressed(likelihood):
    def run(x, y, **more):
        return dpmc.regression(x, y, likelihood=likelihood, **SHORT, **more)

    return run


def by_statistics(x, y, **more):
    bounds = {"x_bound": 3.0, "y_bound": 3.0, "method": "mcmc_fixed_s"}
    return dpmc.linear_regression(x, y, **SHORT, **bounds, **more)


def by_network(x, y, **more):
    ranges = {"x_range": (-3, 3), "y_range": (-3, 3), "hidden": 2, "num_passes": 1}
    return dpmc.network(x, y, **SHORT, **ranges, **more)


def by_mixture(x, y, **more):
    return dpmc.mixture(x, MIXTURE, **SHORT, num_passes=1, **more)


def by_statistic(x, y, **more):
    settings = {"theta": 2.0, "prior": (0.0, 100.0), "epsilon": 2.0, "seed": 1, "progress": False}
    return dpmc.select_statistic(y, NORMAL, [ABSOLUTE], LAPLACE, num_draws=4, **settings, **more)


WAYS = {
    **{name: regressed(name) for name in ("linear", "student_t", "logistic", "poisson")},
    "statistics": by_statistics,
    "network": by_network,
    "mixture": by_mixture,
    "one statistic": by_statistic,
}


@pytest.mark.filterwarnings("ignore::dpmc.PosteriorWarning")
@pytest.mark.filterwarnings("ignore::dpmc.diagnostics.autocorrelation.ShortChainWarning")
@pytest.mark.parametrize("way", WAYS)
def test_a_fit_takes_what_is_no_number_for_what_is_not_there(way):
    y = [*Y[:K].tolist(), math.nan, *Y[K + 1 :].tolist()]
    right = WAYS[way](replaced(math.nan), y, invalid_rows="zero").draws
    for entry in (10**400, "seventeen", None, [1.0], 1j):
        others = [*Y[:K].tolist(), entry, *Y[K + 1 :].tolist()]
        found = WAYS[way](replaced(entry), others, invalid_rows="zero").draws
        assert found.tobytes() == right.tobytes()


@pytest.mark.filterwarnings("ignore::dpmc.PosteriorWarning")
@pytest.mark.parametrize("label", [-1.0, 7.0, "yes", None])
def test_a_label_that_is_none_is_an_invalid_row(label):
    given = [*Y[:K].tolist(), label, *Y[K + 1 :].tolist()]
    missing = np.where(np.arange(N) == K, np.nan, Y)
    found, right = (
        dpmc.regression(X, y, likelihood="logistic", invalid_rows="zero", **SHORT).draws
        for y in (given, missing)
    )
    assert found.tobytes() == right.tobytes()


def test_sums_of_chunks_take_it_so_too():
    right = node_statistics((ROWS, Y), 1, N, (3.0, 3.0)).s
    found = node_statistics((objects(replaced("x")), Y), 1, N, (3.0, 3.0), invalid_rows="zero").s
    outer = np.outer(ROWS[K], ROWS[K])
    assert np.allclose(found + outer, right)


INDEXED = pd.DataFrame(ROWS, columns=["age", "dose"])


@pytest.mark.parametrize("invalid_rows", ["refuse", "zero"])
def test_a_response_with_another_index_is_refused(invalid_rows):
    y = pd.Series(Y)
    for likelihood, other in (("linear", y.sample(frac=1, random_state=1)), ("logistic", y[::-1])):
        other = other.where(other.index != 3, -1.0)  # no label of the second likelihood
        with pytest.raises(DpmcError, match="`y` must have the index of `x`"):
            dpmc.regression(
                INDEXED, other, likelihood=likelihood, invalid_rows=invalid_rows, **SHORT
            )


@pytest.mark.filterwarnings("ignore::dpmc.PosteriorWarning")
def test_a_response_with_the_same_index_or_none_is_taken_by_its_place():
    x = INDEXED.set_index(np.arange(N)[::-1])
    right = dpmc.regression(INDEXED, Y, **SHORT).draws
    for y in (pd.Series(Y, index=x.index), Y, Y.tolist(), pl.Series(Y), pa.array(Y)):
        assert dpmc.regression(x, y, **SHORT).draws.tobytes() == right.tobytes()


@pytest.mark.filterwarnings("ignore::dpmc.PosteriorWarning")
def test_names_are_those_of_the_columns_of_any_frame():
    columns = {"age": X[:, 0], "dose": X[:, 1]}
    for frame in (pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)):
        fit = dpmc.regression(frame, Y, **SHORT)
        assert fit.names == ("intercept", "age", "dose", "log_sigma")
        assert fit.plan.likelihood["columns"] == ["age", "dose"]
        turned = pa.table({"dose": X[:, 1], "age": X[:, 0]})
        assert (fit.predict(turned, seed=1) == fit.predict(X, seed=1)).all()
    assert dpmc.regression(pd.DataFrame(X), Y, **SHORT).names[1:3] == ("0", "1")


NAMES = [
    "age",
    "2nd visit",
    "1stFlrSF",
    "Na",
    "x.1",
    "#",
    "größe",
    "x1d2",
    "12kg",
    "j",
    "P(a|b)",
    "2019-Q1",
    0,
    2019,
]
NONE = ["0.12573", "-0.132105", "0.1.1", "1e-05", "1e-05.1", "nan", "NaN.1", "inf", "-Infinity"]
NONE += [
    "1.5D+03",
    "(1.2e+00+4.5j)",
    "3j",
    "0x1.8p-3",
    "True",
    "0x10",
    "1,234",
    "0,5",
    "12%",
    "2020-01-01",
    "34",
    0.5,
    None,
    ("a", "b"),
    b"a",
]


def test_names_are_texts_that_are_no_numbers_or_integers():
    assert [label for label in NAMES if not is_name(label)] == []
    assert [label for label in NONE if is_name(label)] == []


@pytest.mark.filterwarnings("ignore::dpmc.PosteriorWarning")
def test_labels_that_are_no_names_need_names():
    for label in NONE:
        frame = pd.DataFrame(ROWS, columns=pd.Index(["age", label], dtype=object))
        with pytest.raises(DpmcError, match=r"column 1|a MultiIndex"):
            dpmc.regression(frame, Y, **SHORT)
        if label is None:
            continue
        fit = dpmc.regression(frame, Y, names=["one", "a", "b"], **SHORT)
        assert fit.names == ("one", "a", "b", "log_sigma")
        assert "columns" not in fit.plan.likelihood


@pytest.mark.parametrize("label", ["Unnamed: 0", "", "__index_level_0__"])
def test_an_index_that_was_written_as_a_column_is_refused(label):
    frame = pd.DataFrame(ROWS, columns=[label, "dose"])
    for given in (frame, pl.DataFrame({label: X[:, 0], "dose": X[:, 1]})):
        with pytest.raises(DpmcError, match=r"column .* must be no index that was written"):
            Dataset.of("rows", given, "zero")


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        (["age", "age"], "`x` must have columns of different names, got 'age' twice"),
        (["age", "intercept"], "`x` must have no column 'intercept', which is another component"),
        (["age", "log_sigma"], "`x` must have no column 'log_sigma', which is another component"),
    ],
)
def test_columns_that_cannot_be_told_apart_are_refused(columns, told):
    with pytest.raises(DpmcError, match=told):
        dpmc.regression(pd.DataFrame(ROWS, columns=columns), Y, **SHORT)


def test_numbers_of_entries():
    assert [number(entry) for entry, _ in PLAIN.values()] == [value for _, value in PLAIN.values()]
    assert all(math.isnan(number(entry)) for entry in ODD.values())


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("invalid_rows", ["refuse", "zero"])
def test_columns_whose_entries_are_rows_themselves_are_refused(invalid_rows):
    pairs = pl.Series([{"a": 1.0}] * 3), pl.Series([[1.0, 2.0]] * 3, dtype=pl.Array(float, 2))
    for column in pairs:
        with pytest.raises(DpmcError, match="column 'p' must hold real numbers, got others"):
            Dataset.of("rows", pl.DataFrame({"p": column}), invalid_rows)


def test_a_query_is_the_table_that_it_makes():
    query = pl.DataFrame({"p": [1.0, 2.0]}).lazy().with_columns(pl.col("p") * 2)
    assert Dataset.of("rows", query).x.tolist() == [[2.0], [4.0]]


def test_a_matrix_is_an_array():
    rows = np.asmatrix(ROWS)
    assert type(Dataset.of("rows", rows).x) is np.ndarray
    assert (
        dpmc.linear_regression(
            rows, Y, epsilon=1.0, delta=1e-6, x_bound=1.0, y_bound=1.0, num_draws=5, progress=False
        ).draws.shape[2]
        == rows.shape[1] + 1
    )


@pytest.mark.parametrize("way", ["epsilon", "num_draws", "prior_sd"])
def test_integers_beyond_all_floats_are_refused(way):
    with pytest.raises(DpmcError, match=f"`{way}` must be "):
        dpmc.regression(ROWS, Y, **{**SHORT, way: -(10**400) if way == "num_draws" else 10**400})
