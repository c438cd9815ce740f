"""Nothing of a private row comes out of any way in: no name, no message, no file, no log has it."""

from __future__ import annotations

import itertools
import logging
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
import yaml

import dpmc
from dpmc import statsel
from dpmc.__main__ import main
from dpmc.ep.mixture.model import MixtureModel
from dpmc.linreg.sufficient_statistics import node_statistics
from dpmc.models import gaussian_mean
from dpmc.planning import simulated
from tests.support.outlets import NUMBER, TEXT, outlets, traces, with_secret

N = 30
RNG = np.random.default_rng(3)
ROWS = np.column_stack([RNG.normal(size=(N, 2)), RNG.integers(0, 2, N)])
NAMES = ["age", "dose", "label"]
MODEL = gaussian_mean.build(gaussian_mean.Params(3, np.eye(3).tolist(), prior_variance=100))
BUDGET = {"epsilon": 2.0, "delta": 1e-3}
SHORT = {**BUDGET, "num_draws": 5, "num_chains": 2}
PENALTY = {"proposal_sd": 0.1, "ratio_noise_multiplier": 30.0, "ratio_clip_bound": 1.0}
MIXTURE = MixtureModel.isotropic(1.0, [[0.0] * 3, [3.0] * 3], precision=0.1)
NORMAL = statsel.population("normal_variance", bound=10.0)
ABSOLUTE, LAPLACE = statsel.statistic("abs_1"), statsel.mechanism("laplace")
RANGES = {"x_range": (-3, 3), "y_range": (0, 1), "hidden": 2, "num_passes": 1}
BOUNDS = {"x_bound": 3.0, "y_bound": 1.0, "method": "mcmc_fixed_s"}
CHOSEN = {"theta": 2.0, "prior": (0.0, 100.0), "epsilon": 2.0, "num_draws": 5}

# A text and a number; as the first row, which readers take for names or types, and as a later one;
# as a feature and as a label.
SECRETS = {"text": TEXT, "number": NUMBER, "bytes": TEXT.encode() + b"\xff"}
SECRETS |= {"digits": int(f"{NUMBER:.6f}".replace(".", "") * 40), "a row": [TEXT, NUMBER]}
PLACES = {"first": (0, 0), "later": (11, 1), "label": (5, 2)}


def objects(listed):
    x = np.empty((N, 3), dtype=object)
    for k, row in enumerate(listed):
        for j, entry in enumerate(row):
            x[k, j] = entry
    return x


def arrow(listed):
    """Return a table of Arrow, of texts where they are needed."""
    columns = {}
    for k, name in enumerate(NAMES):
        column = [row[k] for row in listed]
        numbers = all(isinstance(entry, float) for entry in column)
        columns[name] = column if numbers else [_as_text(entry) for entry in column]
    return pa.table(columns)


def _as_text(entry):
    return entry.decode("latin-1") if isinstance(entry, bytes) else str(entry)


FORMS = {
    "lists": list,
    "objects": objects,
    "pandas": lambda listed: pd.DataFrame(objects(listed), columns=NAMES),
    "categories": lambda listed: arrow(listed).to_pandas().astype("category"),
    "polars": lambda listed: pl.from_arrow(arrow(listed)),
    "arrow": arrow,
    "batch": lambda listed: arrow(listed).combine_chunks().to_batches()[0],
    "texts": lambda listed: np.array([[_as_text(entry) for entry in row] for row in listed]),
}


def parts(rows):
    """Return features and responses, as what they came as."""
    if isinstance(rows, list):
        return [row[:2] for row in rows], [row[2] for row in rows]
    if isinstance(rows, np.ndarray):
        return rows[:, :2], rows[:, 2]
    if isinstance(rows, pd.DataFrame):
        return rows[NAMES[:2]], rows["label"]
    if isinstance(rows, pl.DataFrame):
        return rows.select(NAMES[:2]), rows["label"]
    return rows.select(NAMES[:2]), rows.column("label")


def regressions(rows, **more):
    x, y = parts(rows)
    return dpmc.regression(x, y, **SHORT, **more)


def of_likelihood(name):
    return lambda rows, **more: regressions(rows, likelihood=name, **more)


def by_statistics(rows, **more):
    return dpmc.linear_regression(*parts(rows), **SHORT, **BOUNDS, **more)


def by_network(rows, **more):
    return dpmc.network(*parts(rows), **SHORT, **RANGES, **more)


def by_statistic(rows, **more):
    return dpmc.select_statistic(parts(rows)[1], NORMAL, [ABSOLUTE], LAPLACE, **CHOSEN, **more)


def by_release(rows, **more):
    return statsel.release(NORMAL, ABSOLUTE, LAPLACE, parts(rows)[1], 1.0, **more)


def by_nodes(rows, **more):
    return dpmc.fit(MODEL, dpmc.federation([rows, ROWS], **more), **SHORT)


def by_comparison(rows, **more):
    walk = {"num_iterations": 5, "proposal_sd": 0.1}
    return dpmc.compare(MODEL, rows, {"auto": {}, "rwmh": walk}, **BUDGET, **more)


WAYS = {
    "auto": lambda rows, **more: dpmc.fit(MODEL, rows, **SHORT, **more),
    "method": lambda rows, **more: dpmc.fit(
        MODEL, rows, method="dp_penalty", **BUDGET, **PENALTY, max_iterations=5, **more
    ),
    **{name: of_likelihood(name) for name in ("linear", "student_t", "logistic", "poisson")},
    "statistics": by_statistics,
    "mixture": lambda rows, **more: dpmc.mixture(rows, MIXTURE, **SHORT, num_passes=1, **more),
    "network": by_network,
    "statistic": by_statistic,
    "release": by_release,
    "nodes": by_nodes,
    "comparison": by_comparison,
    "data set": lambda rows, **more: dpmc.Dataset("rows", rows, **more),
    "sums": lambda rows, **more: (node_statistics([parts(rows)], 1, N, (3.0, 1.0), **more), None)[
        1
    ],
}


def check(call, folder, never_refused=False):
    """Check that no secret comes out of a call."""
    found, raised = outlets(call, folder)
    assert traces(found) == []
    assert raised is None or isinstance(raised, dpmc.DpmcError), repr(raised)
    assert raised is None or "\n" not in str(raised)
    if never_refused:
        assert raised is None, str(raised)
    return found, raised


@pytest.mark.parametrize("way", WAYS)
def test_no_way_in_lets_an_entry_out(way, tmp_path):
    for place, secret in zip(itertools.cycle(PLACES.values()), SECRETS.values()):
        rows = objects(with_secret(ROWS, place, secret))
        check(lambda rows=rows: WAYS[way](rows, invalid_rows="zero"), tmp_path, True)
        check(lambda rows=rows: WAYS[way](rows), tmp_path)


@pytest.mark.parametrize("form", FORMS)
def test_no_form_of_rows_lets_an_entry_out(form, tmp_path):
    for place in PLACES.values():
        for secret in SECRETS.values():
            if form in ("lists", "texts", "categories") and isinstance(secret, list):
                continue  # rows that differ in length: no table
            rows = FORMS[form](with_secret(ROWS, place, secret))
            for way in (WAYS["data set"], WAYS["release"], WAYS["sums"]):
                check(lambda rows=rows, way=way: way(rows, invalid_rows="zero"), tmp_path, True)
                check(lambda rows=rows, way=way: way(rows), tmp_path)


def headed(label):
    """Return tables whose labels are a private row, as of a file that was read without header."""
    first = [label, "0.25", "1"]
    yield pd.DataFrame(ROWS, columns=first)
    yield pl.DataFrame(ROWS, schema=first)
    yield pa.table({name: ROWS[:, k] for k, name in enumerate(first)})


def features(table):
    """Return the first two columns of a table."""
    if isinstance(table, pd.DataFrame):
        return table.iloc[:, :2]
    return table.select((table.column_names if isinstance(table, pa.Table) else table.columns)[:2])


@pytest.mark.parametrize("way", ["auto", "method", "mixture", "comparison", "data set"])
def test_no_message_shows_a_label_that_may_be_an_entry(way, tmp_path):
    for table in headed(f"{NUMBER}"):
        check(lambda table=table: WAYS[way](table), tmp_path)
        frame = table.to_pandas() if isinstance(table, pa.Table) else pd.DataFrame(table)
        _, raised = check(lambda frame=frame: WAYS[way](frame.astype(str)), tmp_path)
        assert raised is not None


FAMILIES = {
    "linear": (dpmc.regression, {}, ["intercept", "a", "b"]),
    "logistic": (dpmc.regression, {"likelihood": "logistic"}, ["intercept", "a", "b"]),
    "statistics": (dpmc.linear_regression, BOUNDS, ["a", "b"]),
    "network": (dpmc.network, RANGES, None),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_no_family_takes_a_private_row_for_names(name, tmp_path):
    family, settings, names = FAMILIES[name]
    for table in headed(f"{NUMBER}"):

        def run(table=table, **more):
            return family(features(table), ROWS[:, 2], **SHORT, **settings, **more)

        _, raised = check(run, tmp_path)
        assert raised is not None
        if names is not None:
            check(lambda run=run: run(names=names), tmp_path, True)


@pytest.mark.filterwarnings("ignore::dpmc.PosteriorWarning")
def test_new_rows_and_their_labels_stay_in_as_well(tmp_path):
    fit = dpmc.regression(pd.DataFrame(ROWS[:, :2], columns=NAMES[:2]), ROWS[:, 2], **SHORT)
    for table in headed(f"{NUMBER}"):
        _, raised = check(lambda table=table: fit.predict(table), tmp_path)
        assert raised is not None
    check(lambda: fit.predict(with_secret(ROWS[:, :2], (0, 0), TEXT)), tmp_path)


def test_arguments_in_another_order_are_not_shown(tmp_path):
    rows = objects(with_secret(ROWS, (0, 0), NUMBER))
    for call in (
        lambda: dpmc.fit(rows, MODEL, **SHORT),
        lambda: dpmc.Dataset(rows, "rows"),
        lambda: dpmc.plan(rows, (N, 3), **BUDGET),
        lambda: dpmc.plan(MODEL, rows, **BUDGET),
        lambda: dpmc.mixture(MIXTURE, rows, **SHORT),
        lambda: dpmc.open_rows(rows),
        lambda: dpmc.federation(rows),
        lambda: dpmc.compare(rows, MODEL, ["auto"], **BUDGET),
        lambda: dpmc.select_statistic(NORMAL, rows, [ABSOLUTE], LAPLACE, **CHOSEN),
    ):
        _, raised = check(call, tmp_path)
        assert raised is not None


def shards(folder, listed):
    """Return folders with rows in two files each, whose types one entry decides."""
    folder.mkdir()
    for name, table in (("arrow", arrow(listed)), ("pandas", FORMS["categories"](listed))):
        place = folder / name
        place.mkdir()
        table = table if isinstance(table, pa.Table) else pa.Table.from_pandas(table)
        pq.write_table(table.slice(0, 10), place / "part-0.parquet")
        pq.write_table(
            pa.Table.from_pydict(dict(zip(NAMES, ROWS.T, strict=True))), place / "part-1.parquet"
        )
        yield place
    place = folder / "texts"
    place.mkdir()
    np.save(place / "part-0.npy", FORMS["texts"](listed))
    np.save(place / "part-1.npy", ROWS)
    yield place


def test_no_folder_of_shards_lets_an_entry_out(tmp_path):
    for k, place in enumerate(PLACES.values()):
        for j, secret in enumerate((TEXT, NUMBER)):
            for folder in shards(tmp_path / f"{k}{j}", with_secret(ROWS, place, secret)):
                out = tmp_path / f"out{k}{j}{folder.name}"
                out.mkdir()
                check(
                    lambda folder=folder: dpmc.fit(MODEL, folder, invalid_rows="zero", **SHORT),
                    out,
                    True,
                )
                check(lambda folder=folder: dpmc.open_rows(folder), out)
                check(lambda folder=folder: dpmc.fit(MODEL, folder, **SHORT), out)


def test_no_folder_of_shards_takes_a_private_row_for_names(tmp_path):
    for k, table in enumerate(headed(f"{NUMBER}")):
        folder, out = tmp_path / f"rows{k}", tmp_path / f"out{k}"
        folder.mkdir()
        out.mkdir()
        if isinstance(table, pd.DataFrame):
            table.to_parquet(folder / "part-0.parquet")
        else:
            pq.write_table(
                table if isinstance(table, pa.Table) else table.to_arrow(),
                folder / "part-0.parquet",
            )
        for options in ({}, {"columns": ["age"]}):
            _, raised = check(
                lambda folder=folder, options=options: dpmc.open_rows(folder, **options), out
            )
            assert raised is not None


def commanded(folder, name, command="fit", **changes):
    settings = {"rows": name, "response": "label", "likelihood": "logistic", **SHORT, **changes}
    path = folder / "fit.yaml"
    path.write_text(yaml.safe_dump({k: v for k, v in settings.items() if v is not None}))

    def run():
        status = main([command, str(path)])
        print(f"status {status}")
        if status == 0 and command == "fit":
            return dpmc.Fit.load(folder / "fit.parquet")
        return None

    return run


LINES = [",".join(f"{entry:.5f}" for entry in row) for row in ROWS]
ENTRIES = [TEXT, f"{NUMBER}", f'"{TEXT}', f"{TEXT};{NUMBER}", f"{TEXT},{NUMBER},{NUMBER}"]
# Of a file that begins with names: its first line, one in the middle, the last.
WHERE = [0, 11, N - 1]


@pytest.mark.parametrize("first", range(len(WHERE)))
def test_the_command_lets_no_line_out(first, tmp_path, monkeypatch):
    """Each entry in each of three lines, and in each of three shapes of a line."""
    monkeypatch.setattr(simulated, "DATA_SETS", 1)  # a plan reads no line: one fit is enough
    for number, entry in enumerate(ENTRIES):
        k = WHERE[(first + number) % len(WHERE)]
        line = [f"{entry},0.5,1", f"0.5,0.5,{entry}", entry][first]
        lines = [",".join(NAMES), *LINES[:k], line, *LINES[k + 1 :]]
        (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
        found, _ = check(commanded(tmp_path, "rows.csv", invalid_rows="zero"), tmp_path)
        assert "status 0" in found
        check(commanded(tmp_path, "rows.csv"), tmp_path)
        planned, _ = check(commanded(tmp_path, "rows.csv", "plan"), tmp_path)
        assert "status 0" in planned
        check(commanded(tmp_path, "rows.csv", response="none"), tmp_path)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", " ", "|"])
@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_the_command_takes_no_line_for_names(delimiter, suffix, tmp_path):
    for first in (f"{NUMBER},0.5,1", f"{TEXT},{NUMBER},1", f"{TEXT} X,12,1", f"{TEXT}\xff,a,b"):
        lines = [first, *LINES]
        text = "\n".join(line.replace(",", delimiter) for line in lines)
        (tmp_path / f"rows{suffix}").write_text(text + "\n", encoding="latin-1")
        for command in ("fit", "plan"):
            for changes in ({}, {"features": ["age"]}):
                found, _ = check(commanded(tmp_path, f"rows{suffix}", command, **changes), tmp_path)
                assert "status 1" in found


def test_the_command_lets_nothing_out_of_files_of_columns(tmp_path):
    for place in PLACES.values():
        for secret in (TEXT, NUMBER):
            listed = with_secret(ROWS, place, secret)
            pq.write_table(arrow(listed), tmp_path / "rows.parquet")
            feather.write_feather(FORMS["categories"](listed), tmp_path / "rows.feather")
            for name in ("rows.parquet", "rows.feather"):
                found, _ = check(commanded(tmp_path, name, invalid_rows="zero"), tmp_path)
                assert "status 0" in found
                check(commanded(tmp_path, name), tmp_path)
    for table in headed(f"{NUMBER}"):
        table = table if isinstance(table, pa.Table) else pa.table(table)
        pq.write_table(table, tmp_path / "rows.parquet")
        for command in ("fit", "plan"):
            found, _ = check(commanded(tmp_path, "rows.parquet", command), tmp_path)
            assert "status 1" in found


def leaked():
    try:
        float(TEXT)
    except ValueError as error:
        raise dpmc.DpmcError("an entry must be a number") from error


def behind():
    try:
        float(TEXT)
    except ValueError:
        raise dpmc.DpmcError("an entry must be a number")  # noqa: B904


def named(name):
    return dpmc.fit(MODEL, ROWS, **SHORT, progress=False, names=["a", "b", name])


LEAKS = {
    "a message": lambda: (_ for _ in ()).throw(dpmc.DpmcError(f"got {NUMBER}")),
    "a cause": leaked,
    "an error behind": behind,
    "a warning": lambda: warnings.warn(TEXT, UserWarning, stacklevel=1),
    "a log": lambda: logging.getLogger("dpmc.any").debug("%s", NUMBER),
    "what is printed": lambda: print(TEXT),
    "a result": lambda: np.array([NUMBER]),
    "a name": lambda: named(f"{NUMBER}"),
}


@pytest.mark.parametrize("leak", LEAKS)
def test_a_leak_is_seen(leak, tmp_path):
    found, _ = outlets(LEAKS[leak], tmp_path)
    assert traces(found)


def test_a_leak_into_a_file_is_seen(tmp_path):
    found, _ = outlets(
        lambda: (tmp_path / "x.bin").write_bytes(np.array([NUMBER]).tobytes()), tmp_path
    )
    assert traces(found)
    found, _ = outlets(
        lambda: pq.write_table(pa.table({"a": [TEXT]}), tmp_path / "a.parquet"), tmp_path
    )
    assert traces(found)
