"""The command: a file of rows in, a posterior or one clear line out."""

from __future__ import annotations

import datetime
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

import dpmc
from dpmc.__main__ import KEYS, main
from dpmc.command import FitFile
from dpmc.rng import stream
from dpmc.types.registered import made_with
from tests.support.languages import has_r

SETTINGS = {
    "rows": "rows.csv",
    "response": "survived",
    "features": ["age", "dose"],
    "likelihood": "logistic",
    "epsilon": 1.0,
    "delta": 1.0e-6,
    "num_draws": 200,
}
MODEL = """
import numpy as np
import dpmc
from dpmc.models import gaussian_mean

model = gaussian_mean.build(gaussian_mean.Params(2, np.eye(2).tolist(), prior_variance=100))
not_a_model = 3
"""
MECHANISM = """
data, neighbour = 0.0, 1.0

def mechanism(data, size, rng):
    return data + rng.laplace(scale=1.0, size=size)
"""


@pytest.fixture
def folder(tmp_path):
    rng = stream(0, "command", "rows")
    x = rng.standard_normal((3000, 2))
    y = rng.random(3000) < 1 / (1 + np.exp(-x @ [1.0, -1.0]))
    frame = pd.DataFrame({"id": range(3000), "age": x[:, 0], "dose": x[:, 1], "survived": y * 1})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet")
    (tmp_path / "model.py").write_text(MODEL)
    return tmp_path


def written(folder, **changes):
    path = folder / "fit.yaml"
    settings = {k: v for k, v in {**SETTINGS, **changes}.items() if v is not None}
    path.write_text(yaml.safe_dump(settings))
    return str(path)


BY_FORMULA = {
    "response": None,
    "features": None,
    "formula": "survived ~ age + I(dose - 1)",
    "missing": {"age": 0.0},
}


def test_a_formula_stands_in_the_place_of_columns(folder, capsys):
    assert main(["fit", written(folder, **BY_FORMULA)]) == 0
    assert "I(dose - 1)" in capsys.readouterr().out
    fit = dpmc.Fit.load(folder / "fit.parquet")
    assert fit.names == ("intercept", "age", "I(dose - 1)")
    assert abs(fit.kept().mean(axis=(0, 1))[1] - 1.0) < 6 * fit.kept().std(axis=(0, 1))[1]
    assert main(["plan", written(folder, **BY_FORMULA)]) == 0


def test_counts_with_an_exposure_are_fitted_by_a_formula(folder):
    frame = pd.read_csv(folder / "rows.csv").assign(days=2.0)
    frame.to_csv(folder / "rows.csv", index=False)
    counts = {**BY_FORMULA, "formula": "survived ~ age", "exposure": "days"}
    assert main(["fit", written(folder, **counts, likelihood="poisson")]) == 0
    assert dpmc.Fit.load(folder / "fit.parquet").plan.likelihood["name"] == "poisson"


def test_json_has_what_a_report_needs(folder, capsys):
    (folder / "mechanism.py").write_text(MECHANISM)
    assert main(["fit", written(folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    fit = dpmc.Fit.load(found.pop("output"))
    assert found == fit.record()
    assert found["guarantee"]["epsilon"] == 1.0
    assert found["guarantee"]["mu"] == pytest.approx(fit.plan.mu, rel=1e-8)
    assert found["guarantee"]["noise"] == "discrete"
    assert found["made_with"] == made_with()
    assert {name for name, _ in found["releases"]} == {name for name, _ in fit.ledger}
    assert found["posterior"]["age"]["mean"] == pytest.approx(fit.kept()[:, :, 1].mean())
    assert main(["plan", written(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["error"] > 0
    assert main(["audit", str(folder / "mechanism.py"), "--runs", "400", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["violates_claim"] is False


def test_a_guarantee_is_verified_by_its_releases_alone(folder, capsys):
    assert main(["fit", written(folder), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert main(["verify", str(folder / "fit.parquet")]) == 0
    told = "true: (1, 1e-06)-DP, substitution of one row: the releases come to epsilon 1 by"
    assert told in capsys.readouterr().out
    fit = dpmc.Fit.load(folder / "fit.parquet")
    (folder / "guarantee.json").write_text(fit.guarantee.to_json(fit.ledger))
    (folder / "ledger.json").write_text(json.dumps(fit.ledger))
    pair = [str(folder / "guarantee.json"), str(folder / "ledger.json")]
    assert main(["verify", *pair]) == 0
    assert told in capsys.readouterr().out
    record["guarantee"]["epsilon"] = 0.99
    (folder / "record.json").write_text(json.dumps(record))
    assert main(["verify", str(folder / "record.json")]) == 1
    assert "false: the releases come to epsilon 1 at" in capsys.readouterr().err


@pytest.mark.parametrize(("no_color", "red"), [("", True), ("1", False)])
def test_what_is_wrong_is_red_on_a_terminal(folder, capsys, monkeypatch, no_color, red):
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert main(["fit", written(folder, epsilon=0.01)]) == 0
    assert ("\033[31mNote: " in capsys.readouterr().out) == red


def test_the_example_in_r_runs(folder, monkeypatch):
    if not has_r():
        pytest.skip("needs R with jsonlite: apt-get install r-base-core r-cran-jsonlite")
    written(folder)
    page = (Path(dpmc.__file__).parents[2] / "docs/command.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"```r\n(.*?)```", page, re.DOTALL)
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["Rscript", "--vanilla", "-e", script],
        cwd=folder, env={**os.environ, "PATH": programs}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert re.search(r"^age +0|^age +1", done.stdout, re.MULTILINE)


@pytest.mark.parametrize("rows", ["rows.csv", "rows.parquet"])
def test_rows_of_a_file_are_fitted(folder, rows, capsys):
    assert main(["fit", written(folder, rows=rows, output="posterior.parquet")]) == 0
    told = capsys.readouterr().out
    assert f"Written to {folder / 'posterior.parquet'}." in told
    fit = dpmc.Fit.load(folder / "posterior.parquet")
    assert fit.names == ("intercept", "age", "dose")
    assert str(fit.summary()) in told
    assert fit.guarantee.epsilon == 1.0
    assert fit.guarantee.outside == ()


def test_a_model_of_ones_own_reads_the_columns_that_are_named(folder, capsys):
    own = {"likelihood": None, "response": None, "model": "model.py:model"}
    assert main(["fit", written(folder, **own)]) == 0
    assert dpmc.Fit.load(folder / "fit.parquet").draws.shape == (4, 200, 2)


def test_lines_of_another_length_are_no_rows(folder, capsys):
    """A delimiter at the end of each line moves no column, and a first line alone changes none."""
    header, *lines = (folder / "rows.csv").read_text().splitlines()
    (folder / "ends.csv").write_text("\n".join([header, *(f"{line}," for line in lines)]))
    assert main(["fit", written(folder, rows="ends.csv")]) == 1
    assert "column 'age' of ends.csv must have a finite number in every row of 4 fields" in (
        capsys.readouterr().err
    )
    means = []
    for k, first in enumerate((lines[0], f"{lines[0]},1", '"', "")):
        (folder / f"{k}.csv").write_text("\n".join([header, first, *lines[1:]]))
        settings = written(folder, rows=f"{k}.csv", invalid_rows="zero", epsilon=20.0)
        assert main(["fit", settings]) == 0
        means.append(dpmc.Fit.load(folder / "fit.parquet").draws.mean(axis=(0, 1)))
    assert np.ptp(means, axis=0).max() < 0.5
    assert abs(means[0][1] - 1.0) < 0.5


FORMS = ["feather", "csv.gz", "tsv", "CSV"]


@pytest.mark.parametrize("form", FORMS)
def test_files_of_other_forms_are_planned_and_fitted(folder, form):
    frame = pd.read_csv(folder / "rows.csv")
    path = folder / f"other.{form}"
    if form == "feather":
        frame.assign(dose=frame["dose"].astype("category")).to_feather(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if form == "tsv" else ",")
    assert main(["plan", written(folder, rows=path.name)]) == 0
    assert main(["fit", written(folder, rows=path.name)]) == 0
    assert dpmc.Fit.load(folder / "fit.parquet").names == ("intercept", "age", "dose")


def test_columns_of_a_file_without_a_header_are_named_in_the_settings(folder, capsys):
    header, *lines = (folder / "rows.csv").read_text().splitlines()
    (folder / "bare.csv").write_text("\n".join(lines))
    assert main(["fit", written(folder, rows="bare.csv")]) == 1
    told = capsys.readouterr().err
    assert "give a file without a header its `names`" in told
    assert lines[0].split(",")[1] not in told
    assert main(["fit", written(folder, rows="bare.csv", names=header.split(","))]) == 0
    assert dpmc.Fit.load(folder / "fit.parquet").names == ("intercept", "age", "dose")


def test_an_index_of_a_frame_is_read_where_it_is_named(folder, capsys):
    frame = pd.read_csv(folder / "rows.csv")
    frame.set_index("age").to_parquet(folder / "named.parquet")
    frame[frame["age"] > -1].to_parquet(folder / "kept.parquet")
    frame.to_csv(folder / "index.csv")
    told = {"named.parquet": "'age'", "kept.parquet": "'__index_level_0__'", "index.csv": "''"}
    for name, index in told.items():
        assert main(["fit", written(folder, rows=name, features=None)]) == 1
        error = capsys.readouterr().err
        assert "`features` must name the columns to fit, since" in error
        assert error.strip().endswith(index)
        assert main(["fit", written(folder, rows=name)]) == 0
        assert dpmc.Fit.load(folder / "fit.parquet").names == ("intercept", "age", "dose")
        capsys.readouterr()


def test_the_help_of_a_fit_has_the_keys_of_its_file(capsys):
    with pytest.raises(SystemExit):
        main(["fit", "--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert told.count(",") >= 14
    assert {*KEYS.replace(",", "").split()} == {*FitFile.__struct_fields__}
    assert " ".join(KEYS.split()) in told


def test_a_plan_touches_no_row(folder, capsys):
    assert main(["plan", written(folder)]) == 0
    assert "posterior standard deviations" in capsys.readouterr().out
    assert not (folder / "fit.parquet").exists()
    grouped = {**BY_FORMULA, "formula": "survived ~ age + (1 | C(dose, levels=[0, 1]))"}
    assert main(["plan", written(folder, **grouped)]) == 1
    assert "`formula` must have no groups for a plan" in capsys.readouterr().err


def test_a_mechanism_is_audited(folder, capsys):
    path = folder / "mechanism.py"
    path.write_text(MECHANISM)
    given = ["audit", str(path), "--runs", "2000", "--seed", "1"]
    assert main([*given, "--epsilon", "0.1"]) == 0
    assert "violated" in capsys.readouterr().out
    assert main([*given, "--epsilon", "1"]) == 0
    assert "not violated" in capsys.readouterr().out


UNSEEDED = """
from __future__ import annotations
from dataclasses import dataclass
import numpy as np

@dataclass
class Noise:
    scale: float = 1.0

noise = Noise()
data = np.random.default_rng().normal(size=50)
neighbour = data.copy()
with open(__file__ + ".runs", "a") as file:
    file.write("run ")

def mechanism(data, rng):
    return data.sum() + rng.laplace(scale=noise.scale)
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_a_file_with_a_mechanism_runs_once(folder, workers, capsys):
    """Data and neighbour of two runs would differ: epsilon is 0, and 4 would be found."""
    path = folder / "mechanism.py"
    path.write_text(UNSEEDED)
    given = ["audit", str(path), "--runs", "2400", "--seed", "1", "--epsilon", "0.5"]
    assert main([*given, "--workers", str(workers)]) == 0
    assert "claim 0.5 not violated" in capsys.readouterr().out
    assert (folder / "mechanism.py.runs").read_text() == "run "


@pytest.mark.filterwarnings("error::dpmc.PosteriorWarning")
def test_remarks_are_told_once(folder, capsys):
    assert main(["fit", written(folder, epsilon=0.01)]) == 0
    told = capsys.readouterr().out
    assert told.count("Note:") >= 1


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"epsilon": "one"}, "`epsilon` must be a number > 0, got 'one'"),
        ({"delta": 2.0}, "`delta` must be a number between 0 and 1"),
        ({"epsillon": 1.0}, "did you mean epsilon?"),
        (
            {"rows": "rows.txt"},
            "`rows` must be a .csv, .tsv, .parquet or .feather file, got rows.txt",
        ),
        ({"rows": "none.csv"}, "is not there"),
        ({"rows": None}, "`rows` must be given"),
        ({"features": ["height"]}, "'height' must be a column of"),
        ({"features": []}, "`features` must be different names of columns, got []"),
        ({"names": ["a", "a"]}, "`names` must be different names of columns, texts"),
        (
            {"names": ["a"], "rows": "rows.parquet"},
            "`names` must be left out beside rows.parquet, which has some",
        ),
        ({"features": ["age", "age"]}, "`features` must be different names of columns, got ['age'"),
        (
            {"features": ["age", "survived"]},
            "`features` must not have the response, got 'survived'",
        ),
        ({"response": None}, "`response` must be given with a `likelihood`"),
        ({"likelihood": None}, "one of `model` and `likelihood` must be given, got none"),
        ({"likelihood": None, "response": None, "model": "model.py"}, "`model` must be FILE.py:"),
        (
            {"likelihood": None, "response": None, "model": "model.py:not_a_model"},
            "`model` must name a dpmc.Model, got int",
        ),
        (
            {"likelihood": None, "response": None, "model": "model.py:none"},
            "`none` must be defined there",
        ),
        ({"output": "nowhere/fit.parquet"}, "`output` must lie in a folder that exists"),
        ({"output": "rows.csv"}, "`output` must be another file than rows and settings"),
        ({"output": "fit.yaml"}, "`output` must be another file than rows and settings"),
        ({"likelihood": "logit"}, "`likelihood` must be one of linear, student_t, logistic"),
        ({"likelihood": "gamma"}, "`formula` must be given with 'gamma'"),
        ({"formula": "survived ~ age"}, "must be left out beside a `formula`"),
        ({"exposure": "age"}, "`exposure` must be left out without a `formula`"),
        ({**BY_FORMULA, "invalid_rows": "zero"}, "`invalid_rows` must be left out beside a"),
        ({**BY_FORMULA, "intercept": False}, "`intercept` must be left out beside a `formula`"),
        (
            {**BY_FORMULA, "missing": None, "formula": "survived ~ height"},
            "'height' must be a column of",
        ),
        ({**BY_FORMULA, "formula": "survived ~"}, "formula"),
        (
            {**BY_FORMULA, "likelihood": None, "model": "model.py:model"},
            "`formula` must be left out with a `model`",
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_one_line(folder, capsys, changes, told):
    assert main(["fit", written(folder, **changes)]) == 1
    error = capsys.readouterr().err
    assert told in error
    assert error.startswith("dpmc: ")
    assert error.count("\n") == 1
    assert not list(folder.glob("*.part"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("def (", "SyntaxError: invalid syntax"),
        ("import no_such_package", "ModuleNotFoundError: No module named 'no_such_package'"),
    ],
)
def test_a_python_file_that_does_not_run_is_refused_in_one_line(tmp_path, text, reason, capsys):
    path = tmp_path / "mechanism.py"
    path.write_text(text)
    assert main(["audit", str(path)]) == 1
    told = capsys.readouterr().err
    assert told.startswith(f"dpmc: {path}: must be a Python file that runs, got {reason}")
    assert told.count("\n") == 1


@pytest.mark.parametrize("source", ["ints.parquet", "bare.csv"])
def test_integers_are_names_of_columns(folder, source):
    frame = pd.read_csv(folder / "rows.csv")[["age", "dose", "survived"]]
    frame.columns = pd.RangeIndex(3)
    frame.to_parquet(folder / "ints.parquet")
    frame.to_csv(folder / "bare.csv", index=False, header=False)
    names = ["0", "1", "2"] if source == "bare.csv" else None
    changes = {"rows": source, "names": names, "features": ["0", "1"], "response": "2"}
    assert main(["fit", written(folder, **changes)]) == 0
    assert dpmc.Fit.load(folder / "fit.parquet").names == ("intercept", "0", "1")


@pytest.mark.parametrize(
    ("header", "told"),
    [
        (
            "id;age;dose;survived",
            "by commas, and those of the first line seem to be separated by semi",
        ),
        (
            "id age dose survived",
            "by commas, and those of the first line seem to be separated by spac",
        ),
        ("id,age,age,survived", "'age' must be a column of"),
        ("id,years,dose,survived", "'age' must be a column of"),
    ],
)
def test_what_is_wrong_with_a_header_is_said_in_one_line(folder, header, told, capsys):
    lines = (folder / "rows.csv").read_text().splitlines()[1:]
    (folder / "other.csv").write_text("\n".join([header, *lines]))
    assert main(["fit", written(folder, rows="other.csv")]) == 1
    error = capsys.readouterr().err
    assert told in error
    assert error.count("\n") == 1
    assert lines[0].split(",")[1] not in error


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_columns_that_declare_no_numbers_are_refused_with_zero_too(folder, suffix, capsys):
    frame = pd.read_csv(folder / "rows.csv")
    for entry in ([1.0], {"a": 1.0}, datetime.time(1), datetime.date(2020, 1, 1)):
        odd = frame.assign(dose=[entry] * len(frame))
        (odd.to_parquet if suffix == "parquet" else odd.to_feather)(folder / f"odd.{suffix}")
        assert main(["fit", written(folder, rows=f"odd.{suffix}", invalid_rows="zero")]) == 1
        assert "column 'dose' must hold real numbers, got others" in capsys.readouterr().err


def test_a_file_is_fitted_under_addition_or_removal_and_its_rows_are_not_counted(folder, capsys):
    settings = written(folder, neighbours="add_remove")
    assert main(["fit", settings]) == 0
    out = capsys.readouterr().out
    assert "(1, 1e-06)-DP, addition or removal of one row" in out
    assert re.search(r"about [\d,]+ \(standard error 42, with noise\)", out)
    assert main(["plan", settings]) == 1
    assert "`neighbours` must be replace for a plan" in capsys.readouterr().err
