"""Environments that lack what is taken for granted: a home, locks of files, letters, packages."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

import dpmc
from dpmc.__main__ import main

ROOT = Path(__file__).parents[1]
# A user that no list of accounts knows.
NOBODY = """
import pwd, os, sys
def unknown(uid):
    raise KeyError(f"getpwuid(): uid not found: {uid}")
pwd.getpwuid = unknown
"""
# Windows has none of these.
ELSEWHERE = """
import os, sys
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None
for name in ("O_CLOEXEC", "fork", "register_at_fork", "sched_getaffinity"):
    delattr(os, name)
"""
EVERYTHING = """
import importlib, pkgutil, dpmc
names = [one.name for one in pkgutil.walk_packages(dpmc.__path__, "dpmc.")]
for name in names:
    if not name.endswith("__main__"):
        importlib.import_module(name)
print(len(names))
"""
# What it prints: a number that compiled code returns, what the cache holds, and where it lies.
COMPILED = """
from dpmc.numerics import compiled, powers
print(powers.cube(1.5))
root = compiled.root()
print(len(list(root.rglob("*.nbc"))), root.parent)
"""
FIT = {
    "rows": "rows.csv",
    "response": "größe",
    "likelihood": "linear",
    "epsilon": 4.0,
    "delta": 1.0e-6,
    "num_draws": 100,
}


def run(code: str, folder: Path, **variables: str) -> list[str]:
    """Run Python with no environment but `variables`, and return the lines that it prints."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_user_without_a_home_has_a_cache_of_one_process_that_is_its_own(tmp_path):
    value, cache = run(NOBODY + COMPILED, tmp_path)
    files, _, folder = cache.partition(" ")
    assert float(value) == 1.5**3
    assert int(files) > 0
    assert not Path(folder).exists()
    assert list(tmp_path.iterdir()) == []  # no folder that is called ~
    mode = "import os; from dpmc.numerics import user_cache; print(os.stat(user_cache.folder()))"
    assert "st_mode=16832" in run(NOBODY + mode, tmp_path)[0]  # drwx------


def test_a_home_is_where_the_cache_is(tmp_path):
    where = "from dpmc.numerics import user_cache; print(user_cache.folder())"
    assert run(where, tmp_path, HOME=str(tmp_path)) == [str(tmp_path / ".cache" / "dpmc")]
    assert run(where, tmp_path, XDG_CACHE_HOME=str(tmp_path)) == [str(tmp_path / "dpmc")]


def test_another_operating_system_imports_and_compiles_everything(tmp_path):
    (number,) = run(ELSEWHERE + EVERYTHING, tmp_path, HOME=str(tmp_path))
    assert int(number) > 250
    value, _ = run(ELSEWHERE + COMPILED, tmp_path, HOME=str(tmp_path))
    assert float(value) == 1.5**3


# A fit of a file, a file of the fit, and a session that is opened again.
FILES = """
import warnings; warnings.simplefilter("ignore")
import numpy as np, dpmc
import pandas as pd
rows = pd.read_csv("rows.csv", encoding="utf-8")
fit = dpmc.regression("z ~ β", rows, epsilon=1, delta=1e-6, progress=False)
fit.save("fit und maß.parquet")
print(dpmc.Fit.load("fit und maß.parquet").names[1])
for _ in range(2):
    with dpmc.Session(epsilon=2, delta=1e-6, path="jahr 1 ä.budget") as session:
        session.regression("z ~ β", rows, epsilon=1, progress=False)
print(len(session.parts))
"""


def test_paths_with_spaces_and_umlauts_are_like_others(folder):
    place = folder / "Größe und Maß"
    place.mkdir()
    (folder / "rows.csv").rename(place / "rows.csv")
    assert run(FILES, place, HOME=os.environ.get("HOME", "")) == ["β", "2"]
    value, cache = run(COMPILED, place, XDG_CACHE_HOME=str(place))
    files, _, where = cache.partition(" ")
    assert (float(value), Path(where)) == (1.5**3, place / "dpmc")
    assert int(files) > 0


def test_a_cache_that_cannot_be_made_keeps_nobody_from_computing(tmp_path):
    (tmp_path / "file").touch()
    value, _ = run(COMPILED, tmp_path, XDG_CACHE_HOME=str(tmp_path / "file" / "cache"))
    assert float(value) == 1.5**3
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


@pytest.fixture
def folder(tmp_path):
    x = np.random.default_rng(0).normal(size=(600, 2))
    lines = (f"{a:.4f},{b:.4f},{a + b:.4f}" for a, b in x)
    text = "\n".join(["größe,β,z", *lines])
    (tmp_path / "rows.csv").write_text(text, encoding="utf-8")
    (tmp_path / "fit.yaml").write_text(yaml.safe_dump(FIT, allow_unicode=True), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("encoding", "beta"),
    [("ascii", rb"\u03b2"), ("cp1252", rb"\u03b2"), ("utf-8", "β".encode())],
)
def test_a_fit_that_is_done_is_told_on_any_terminal(folder, monkeypatch, encoding, beta):
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding=encoding) for _ in range(2))
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    assert main(["fit", str(folder / "fit.yaml")]) == 0
    (folder / "größe.yaml").write_text("größe: 1\n", encoding="utf-8")
    assert main(["fit", str(folder / "größe.yaml")]) == 1
    out.flush()
    err.flush()
    assert beta in out.buffer.getvalue()
    assert b"dpmc: " in err.buffer.getvalue()


def test_the_version_is_told(capsys):
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"dpmc {dpmc.__version__}\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "resolution"), [("3.11", "lowest-direct"), ("3.12", "highest")]
)
def test_a_plain_installation_fits_saves_and_loads(folder, version, resolution):
    """From the project alone, with the oldest versions that it allows, and with the newest."""
    uv = shutil.which("uv")
    assert uv is not None, "uv must be on the PATH"
    python = folder / "new" / "bin" / "python"

    def call(*command: str | Path) -> str:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    try:
        call(uv, "venv", "--no-python-downloads", "--python", version, folder / "new")
    except AssertionError:
        pytest.skip(f"no Python {version} on this machine")
    call(uv, "pip", "install", "--resolution", resolution, "--python", python, ROOT)
    command = python.with_name("dpmc")
    assert "fit a posterior to the rows of a file" in call(command, "--help")
    assert call(command, "--version") == f"dpmc {dpmc.__version__}\n"
    assert "Written to" in call(command, "fit", "fit.yaml")
    again = "import dpmc; f = dpmc.Fit.load('fit.parquet'); f.save('again.parquet'); print(f.names)"
    assert call(python, "-c", again) == "('intercept', 'β', 'z', 'log_sigma')\n"
    code = (
        "import numpy as np, dpmc; x = np.random.default_rng(0).normal(size=(900, 1));"
        "print(dpmc.regression(x, x[:, 0] > 0, likelihood='logistic', method='dp_hmc', epsilon=4,"
        "delta=1e-6, seed=1, progress=False).draws.shape[::2])"
    )
    assert call(python, "-W", "ignore", "-c", code) == "(4, 2)\n"
