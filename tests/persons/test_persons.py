"""Persons with several rows: who they are, what is summed, and what their number tells."""

from __future__ import annotations

import ast
import math
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpmc
from dpmc import command
from dpmc.automatic.whitened import WhitenedRows
from dpmc.models import gaussian_mean, linear, logistic, poisson
from dpmc.rng import stream
from dpmc.rows.persons import Persons, numbered
from dpmc.shards.units import by_person
from dpmc.types import Dataset, DpmcError

BUDGET = {"epsilon": 1.0, "delta": 1e-6, "progress": False, "num_draws": 50}
MEAN = gaussian_mean.build(gaussian_mean.Params(2, [[1, 0], [0, 1]], prior_variance=100))


def fitted(model, rows, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpmc.PosteriorWarning)
        return dpmc.fit(model, rows, **{**BUDGET, "seed": 1, **options})


def responses(name: str, num_rows: int = 3000) -> np.ndarray:
    rng = stream(0, "persons", name)
    x = rng.standard_normal((num_rows, 2))
    y = {
        "logistic": rng.integers(0, 2, num_rows),
        "linear": rng.standard_normal(num_rows),
        "poisson": rng.poisson(1.0, num_rows),
    }[name]
    return np.column_stack([x, y])


@pytest.mark.parametrize("model", [logistic, linear, poisson], ids=lambda one: one.__name__[12:])
@pytest.mark.parametrize("noise", ["continuous", "discrete"])
def test_one_row_a_person_gives_the_bytes_of_rows(model, noise):
    rows, posterior = responses(model.__name__.split(".")[-1]), model.build(model.Params(2))
    rows[::40, 0] = np.nan
    options = {"noise": noise, "invalid_rows": "zero"}
    ids = stream(0, "persons", "ids").permutation(len(rows))
    alone, of_persons = (
        fitted(posterior, rows, **options),
        fitted(posterior, rows, unit=ids, **options),
    )
    assert alone.draws.tobytes() == of_persons.draws.tobytes()
    assert alone.ledger == of_persons.ledger
    assert of_persons.guarantee.relation == "substitution of one person"


@pytest.mark.parametrize("model", [logistic, linear, poisson], ids=lambda one: one.__name__[12:])
def test_sums_are_those_of_a_person(model):
    """Each sum is that of the clipped sums of rows, which are formed here one by one."""
    posterior, rows = model.build(model.Params(2)), responses(model.__name__.split(".")[-1], 200)
    ids = np.repeat(np.arange(60), [1, 2, 3, 2, 6, 6] * 10)
    places = stream(0, "persons", "order").permutation(len(ids))
    dataset = Dataset("rows", rows[places])
    found = WhitenedRows(posterior, Persons.of(dataset, ids[places], "person"))
    theta, basis, bound = np.full(posterior.dim, 0.1), 0.5 * np.eye(posterior.dim), 1.0
    gradients, curvatures = [], []
    for one in np.unique(ids):
        own = WhitenedRows(posterior, Dataset("one", rows[ids == one]))
        gradients.append(own.gradient_sum(theta, basis, 1e9).value)
        curvatures.append(own.curvature_sum(theta, basis, 1e9).value)

    def clipped(vectors):
        return sum(one * min(1, bound / np.linalg.norm(one)) for one in vectors)

    assert found.num_rows == 60
    np.testing.assert_allclose(
        found.gradient_sum(theta, basis, bound).value, clipped(gradients), rtol=1e-9
    )
    np.testing.assert_allclose(
        found.curvature_sum(theta, basis, bound).value, clipped(curvatures), rtol=1e-6
    )
    lengths = np.linalg.norm(gradients, axis=1), np.linalg.norm(curvatures, axis=1)
    counts = found.gradients_beyond(theta, basis, [0.5, 2.0])
    assert [counts[k].value for k in (0.5, 2.0)] == [np.sum(lengths[0] > k) for k in (0.5, 2.0)]
    counts = found.curvatures_beyond(theta, basis, [0.5, 2.0])
    assert [counts[k].value for k in (0.5, 2.0)] == [np.sum(lengths[1] > k) for k in (0.5, 2.0)]
    squares = found.squares_sum(theta, basis, bound).value
    assert squares == pytest.approx(np.sum(np.minimum(lengths[0], bound) ** 2))


def test_a_person_of_many_rows_takes_bounded_memory():
    """The features of 1e6 rows are 16 MB, and no more than a few MB come to them."""
    rows = stream(0, "persons", "long").standard_normal((1_000_000, 2))
    ids = np.zeros(len(rows), dtype=int)
    ids[:1000] = np.arange(1000)
    persons = Persons.of(Dataset("rows", np.asfortranarray(rows)), ids, "person")
    found = WhitenedRows(MEAN, persons)
    found.gradient_sum(np.zeros(2), np.eye(2), 1.0)
    tracemalloc.start()
    found.gradient_sum(np.zeros(2), np.eye(2), 1.0)
    found.curvature_sum(np.zeros(2), np.eye(2), 1.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4e6


@pytest.mark.parametrize(
    ("given", "wanted", "count"),
    [
        ([3, 1, 3, 2], [0, 1, 0, 2], 3),
        ([1.0, np.nan, 1.0, np.inf], [0, -1, 0, -1], 1),
        (["b", "a", " b", ""], [0, 1, 0, -1], 2),
        ([7, "7", 7.0, "seven"], [0, 0, 0, 1], 2),
        (np.array([7, "7", None, 7.5], dtype=object), [0, 0, -1, 1], 2),
        (["1", "01", "1.0", "1e0"], [0, 0, 0, 0], 1),
        ([2**60, 2**60 + 1, str(2**60), True], [0, 1, 0, 2], 3),
        ([b"x", "x", (1, 2), 10**5000], [0, 0, -1, 1], 2),
        (pd.Series(["x", None, "y", "x"], dtype="category"), [0, -1, 1, 0], 2),
        (pd.Series([1, None, 2, 1], dtype="Int64"), [0, -1, 1, 0], 2),
    ],
)
def test_identifiers_of_any_kind_say_who_is_who(given, wanted, count):
    if isinstance(given, list) and any(isinstance(one, tuple | bytes) for one in given):
        given = np.array([*given, None], dtype=object)[:-1]
    places, found = numbered(given, "person", "zero")
    assert places.tolist() == wanted
    assert found == count


HOSTILE = [None, 0.5, "a", b"\xff", -1, math.nan, (1, 2), [], {}, 1 << 70]


@pytest.mark.parametrize(
    ("kind", "last"),
    [("list", one) for one in HOSTILE]
    + [(kind, one) for kind in ("pandas", "polars", "arrow") for one in (None, -1)],
)
def test_no_entry_decides_who_others_are(kind, last):
    """Of long integers, which floats cannot tell apart, beside one entry of any type."""
    others = [2**60, 2**60 + 1, 2**60]
    given = [*others, last]
    if kind != "list":
        given = {
            "pandas": lambda: pd.Series(given, dtype="Int64"),
            "polars": lambda: pl.Series(given, dtype=pl.Int64),
            "arrow": lambda: pa.chunked_array([given], pa.int64()),
        }[kind]()
    places, _ = numbered(given, "person", "zero")
    assert places[:3].tolist() == numbered(np.array(others), "person", "zero")[0].tolist()
    assert places[3] in (-1, 2)


def test_a_row_without_identifier_counts_for_nobody():
    rows, ids = responses("linear", 600)[:, :2], np.repeat(np.arange(300.0), 2)
    more = np.concatenate([rows, np.full((50, 2), 1e6)])
    unknown = np.concatenate([ids, np.full(50, np.nan)])
    alone = fitted(MEAN, rows, unit=ids, invalid_rows="zero")
    assert fitted(MEAN, more, unit=unknown, invalid_rows="zero").draws.tobytes() == (
        alone.draws.tobytes()
    )
    # Nor does an invalid row take those of its person with it.
    more = np.concatenate([rows, np.full((50, 2), np.nan)])
    known = np.concatenate([ids, np.arange(50.0)])
    assert fitted(MEAN, more, unit=known, invalid_rows="zero").draws.tobytes() == (
        alone.draws.tobytes()
    )


FRAME = pd.DataFrame({"patient": ["a", "a", "b"], "u": [1.0, 2.0, 3.0], "v": [0.0, 1.0, 0.0]})


@pytest.mark.parametrize(
    ("data", "options", "line"),
    [
        (FRAME, {"unit": "doctor"}, "`unit` must name one column of a data frame, got 'doctor'"),
        (FRAME[["u", "v"]].to_numpy(), {"unit": "patient"}, "of a data frame, got 'patient' for n"),
        (FRAME[["u", "v"]], {"unit": [1, 2]}, "one identifier of a person for each row, got ano"),
        (
            FRAME[["u", "v"]],
            {"unit": FRAME.patient[::-1]},
            "`unit` must have the index of `data`, label for label, got another: align them, or",
        ),
        (FRAME[["u", "v"]], {"unit": [[1, 2]]}, "an integer or a text for the person of every"),
        (FRAME[["u", "v"]], {"unit": [[1], [2, 3]]}, "an integer or a text for the person of"),
        (FRAME[["u", "v"]], {"unit": b"ab"}, "of integers or texts, got bytes"),
        (FRAME[["u", "v"]], {"unit": 3}, "must be a column of integers or texts, got int"),
        (FRAME[["u", "v"]], {"unit": [None] * 3}, "an integer or a text for the person of every"),
        (FRAME, {"unit": "patient", "method": "dp_penalty"}, "`unit` must be None beside a `met"),
        ("folder", {"unit": [1, 2]}, "`unit` must be the name of a column of rows in files"),
        (
            FRAME[["u", "v"]],
            {"unit": [None] * 3, "invalid_rows": "zero"},
            "must have the identifier of a person, got none",
        ),
        (
            FRAME[["u", "v"]],
            {"unit": np.ma.array([1, 2, 3], mask=[0, 1, 0])},
            "must be a column of integers or texts, got MaskedArray",
        ),
        (FRAME[["u", "v"]], {"unit": np.array(["2020-01-01"] * 3, "M8[D]")}, "datetime64"),
    ],
)
def test_wrong_units_are_refused_in_a_line(data, options, line):
    with pytest.raises(DpmcError, match=r"^[^\n]+$") as caught:
        fitted(MEAN, data, **options)
    assert line in str(caught.value)


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_a_column_of_any_frame_names_persons(kind):
    rows, ids = responses("linear", 900)[:, :2], np.repeat(np.arange(300), 3)
    frame = pd.DataFrame({"u": rows[:, 0], "patient": [f"p{k}" for k in ids], "v": rows[:, 1]})
    if kind != "pandas":
        name = {"polars": "polars", "arrow": "pyarrow"}[kind]
        module = pytest.importorskip(name)
        frame = module.from_pandas(frame) if kind == "polars" else module.Table.from_pandas(frame)
    fit = fitted(MEAN, frame, unit="patient")
    assert fit.draws.tobytes() == fitted(MEAN, rows, unit=ids).draws.tobytes()
    assert fit.guarantee.relation == "substitution of one patient"


def test_a_row_without_identifier_does_not_round_those_of_its_shard(tmp_path):
    for k, last in enumerate((None, 2**60 + 1)):
        frame = pd.DataFrame({"u": [0.0, 1.0, 2.0]})
        frame["patient"] = pd.Series([2**60, 2**60 + 1, last], dtype="Int64")
        frame.to_parquet(tmp_path / f"{k}.parquet")
    persons = by_person(tmp_path, "patient", "zero")
    assert np.diff(persons.starts).tolist() == [2, 3]


@pytest.mark.parametrize("suffix", ["npy", "parquet"])
def test_a_person_in_two_shards_is_one(tmp_path, suffix):
    rows, ids = responses("linear", 900)[:, :2], np.tile(np.arange(300), 3)
    for k in range(3):
        part = slice(300 * k, 300 * (k + 1))
        if suffix == "npy":
            np.save(tmp_path / f"{k}.npy", np.column_stack([ids[part], rows[part]]))
        else:
            frame = pd.DataFrame(rows[part], columns=["u", "v"])
            frame["who"] = [f"p{one}" for one in ids[part]]
            frame.to_parquet(tmp_path / f"{k}.parquet")
    unit = "0" if suffix == "npy" else "who"
    wanted = fitted(MEAN, rows, unit=ids).draws.tobytes()
    assert fitted(MEAN, tmp_path, unit=unit).draws.tobytes() == wanted
    columns = ["1", "2"] if suffix == "npy" else ["u", "v"]
    opened = dpmc.open_rows(tmp_path, columns=columns)
    assert fitted(MEAN, opened, unit=unit).draws.tobytes() == wanted
    with pytest.raises(DpmcError, match="`unit` must be a column of the files"):
        fitted(MEAN, opened, unit="doctor")


def test_persons_of_nodes_are_those_of_each():
    rows, ids = responses("linear", 1200)[:, :2], np.repeat(np.arange(400), 3)
    halves = rows[:600], rows[600:]
    with pytest.raises(DpmcError, match="must be given to dpmc"):
        fitted(MEAN, dpmc.federation(halves), unit=ids)
    nodes = dpmc.federation(halves, unit=[ids[:600], ids[600:]])
    assert nodes.num_rows == 400
    fit = fitted(MEAN, nodes)
    assert fit.guarantee.unit == "person"
    assert "a person with rows at several nodes" in fit.guarantee.outside
    with pytest.raises(DpmcError, match="nodes of a linear regression"):
        dpmc.linear_regression(nodes, None, epsilon=1, delta=1e-6, x_bound=2, y_bound=2)


SRC = Path(dpmc.__file__).parent


def test_nobody_asks_persons_for_the_number_of_their_rows():
    """What reads the rows of persons, or where they begin, is what sums them up."""
    found = set()
    for path in SRC.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr == "starts":
                found.add(str(path.relative_to(SRC)))
    assert found == {
        "rows/persons.py",
        "rows/person_gradients.py",
        "automatic/glm/person_rows.py",
        "automatic/rank_one.py",
    }


def test_nothing_but_draws_tells_one_row_from_a_thousand():
    """With a budget that drowns the rows, a person of many of them changes no shape or message."""
    x = responses("linear", 800)[:, :2]
    found = []
    for count in (1, 1000):
        rows = np.concatenate([x, np.full((count, 2), 0.1)])
        ids = np.concatenate([np.repeat(np.arange(400), 2), np.full(count, 400)])
        told = []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fit = dpmc.fit(MEAN, rows, **{**BUDGET, "epsilon": 1e-3}, unit=ids, seed=1)
        told = [str(one.message) for one in caught]
        found.append((fit.draws.tobytes(), fit.plan, fit.remarks, told, str(fit.summary())))
    assert found[0] == found[1]
    assert "number of persons, 401" in found[0][2][0]


def test_a_session_protects_one_unit(tmp_path):
    rows, ids = responses("linear", 600)[:, :2], np.repeat(np.arange(300), 2)
    frame = pd.DataFrame(rows, columns=["u", "v"])
    frame["patient"] = ids
    options = {"epsilon": 0.1, "progress": False, "num_draws": 50}
    with dpmc.Session(epsilon=1, delta=1e-6, path=tmp_path / "budget") as session:
        assert session.guarantee.unit == "row"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dpmc.PosteriorWarning)
            session.regression("u ~ v", frame, unit="patient", **options)
            session.fit(MEAN, frame, unit="patient", **options)
        left = session.remaining
        for call in (
            lambda: session.fit(MEAN, rows, **options),
            lambda: session.regression("u ~ v", frame, **options),
            lambda: session.regression(frame[["u"]], frame["v"], unit=ids, **options),
        ):
            with pytest.raises(DpmcError, match="that of all fits of the session, patient, got"):
                call()
        assert session.remaining == left
        assert session.guarantee.relation == "substitution of one patient"
        part = session.split("v", [0, 1])[0]
        with pytest.raises(DpmcError, match="`unit` must be None in a split"):
            part.fit(MEAN, frame, unit="patient", **options)


def test_guarantees_of_different_units_are_not_composed():
    persons = dpmc.Guarantee(1.0, 1e-6, accountant="gaussian", unit="patient")
    rows = dpmc.Guarantee(1.0, 1e-6, accountant="gaussian")
    assert dpmc.privacy.compose([persons, persons], delta=1e-6).unit == "patient"
    with pytest.raises(DpmcError, match="part 1 must protect a patient, as parts before it do"):
        dpmc.privacy.compose([persons, rows], delta=1e-6)


@pytest.mark.parametrize("kind", ["formula", "columns"])
def test_the_command_fits_and_plans_persons(tmp_path, monkeypatch, kind):
    rows, ids = responses("linear", 900), np.repeat(np.arange(300), 3)
    frame = pd.DataFrame(rows, columns=["u", "v", "y"])
    frame["patient"] = [f"p{k}" for k in ids]
    frame.to_csv(tmp_path / "rows.csv", index=False)
    told = {"formula": "formula: y ~ u + v", "columns": "response: y"}[kind]
    text = f"rows: rows.csv\nepsilon: 1\ndelta: 1.0e-6\nlikelihood: linear\nunit: patient\n{told}\n"
    (tmp_path / "fit.yaml").write_text(text)
    assert "substitution of one patient" in command.fit_file(tmp_path / "fit.yaml")
    assert dpmc.Fit.load(tmp_path / "fit.parquet").guarantee.unit == "patient"
    planned = []
    monkeypatch.setattr(command, "plan", lambda model, shape, **options: planned.append(shape))
    command.plan_file(tmp_path / "fit.yaml")
    assert planned == [(300, 3)]
    (tmp_path / "fit.yaml").write_text(text.replace("unit: patient", "unit: doctor"))
    with pytest.raises(DpmcError, match="'doctor'"):
        command.fit_file(tmp_path / "fit.yaml")
