"""What `dpmc` shows of itself, and how little its import brings along."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata

import pytest

import dpmc
from dpmc import checks, statsel
from dpmc.types import DpmcError

HEAVY = {"numpy", "numba", "scipy", "pandas", "matplotlib", "arviz", "tqdm", "dp_accounting"}


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize("package", [dpmc, statsel])
def test_every_public_name_is_listed_and_there(package) -> None:
    listed = dir(package)
    assert set(package.__all__) <= set(listed)
    assert listed == sorted(listed)
    for name in listed:
        assert getattr(package, name) is not None
        assert name in vars(package)  # the second look-up imports nothing


@pytest.mark.parametrize("package", [dpmc, statsel])
def test_a_name_that_is_not_public_is_refused(package) -> None:
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'law'"):
        _ = package.law


def test_names_are_listed_before_anything_is_imported() -> None:
    code = "import sys, dpmc; print(dir(dpmc)); print([m for m in sys.modules if 'dpmc.' in m])"
    listed, imported = run(code).splitlines()
    assert listed == repr(sorted([*dpmc.__all__, "__version__"]))
    assert imported == "[]"


def test_the_version_is_that_of_the_installed_package() -> None:
    assert dpmc.__version__ == metadata.version("dpmc")


@pytest.mark.parametrize(("use", "light"), [("dir(dpmc)", True), ("dpmc.fit", False)])
def test_import_is_light_until_a_name_is_asked_for(use, light) -> None:
    code = f"import sys, dpmc; {use}; print(sorted({HEAVY} & set(sys.modules)))"
    assert (run(code) == "[]") == light


def test_what_needs_an_extra_names_it(monkeypatch) -> None:
    checks.require_extra("json", "a reader", "plot")
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # as if it were not installed
    with pytest.raises(DpmcError, match=r"^a plot needs matplotlib: pip install 'dpmc\[plot\]'$"):
        checks.require_extra("matplotlib", "a plot", "plot")


def test_a_package_that_lacks_one_of_its_own_is_not_called_missing(tmp_path, monkeypatch) -> None:
    (tmp_path / "half_there.py").write_text("import not_there_at_all\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="not_there_at_all"):
        checks.require_extra("half_there", "a plot", "plot")
