"""Packages: the library imports what it declares, and nothing that only the extra brings."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT, EXTRAS = SETTINGS["project"], SETTINGS["project"]["optional-dependencies"]
# What the reproduction and the league need: a group, and the extras of the library that it names.
PAPERS = [
    text for text in SETTINGS["dependency-groups"]["papers"] if not text.startswith("dpmc[")
] + [*EXTRAS["arviz"], *EXTRAS["plot"]]
SOURCE = ROOT / "src"
EXPERIMENTS = [*(SOURCE / "dpmc_papers").rglob("*.py"), *(SOURCE / "dpmc_league").rglob("*.py")]
LIBRARY = [*(SOURCE / "dpmc").rglob("*.py")]
# Brought by the extra, imported by the library where it is first needed.
DEFERRED = {"arviz", "matplotlib", "seaborn"}
# Brought by an extra, for the module of this name alone, which nothing imports.
WHOLE = {"sklearn"}
# Distributions whose modules have another name.
MODULES = {"pyyaml": "yaml"}


def declared(requirements: list[str]) -> set[str]:
    """Return the modules of distributions, as they are imported."""
    names = {re.match(r"[\w.-]+", text)[0].lower() for text in requirements}
    homes = metadata.packages_distributions()
    modules = {module for module, owners in homes.items() if names & {o.lower() for o in owners}}
    assert len(modules) >= len(names)
    return modules


def imported(tree: ast.AST, at_import: bool) -> set[str]:
    """Return packages imported: when the module is, or by its functions too."""
    found: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        elif not (at_import and isinstance(node, ast.FunctionDef | ast.Lambda)):
            found |= imported(node, at_import)
    return found


def packages(files: list[Path], at_import: bool) -> set[str]:
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in files]
    found = set().union(*(imported(tree, at_import) for tree in trees))
    return found - set(sys.stdlib_module_names) - {"dpmc", "dpmc_league", "dpmc_papers"}


@pytest.fixture(scope="module")
def base() -> set[str]:
    return declared(PROJECT["dependencies"])


@pytest.fixture(scope="module")
def extra() -> set[str]:
    return declared(PAPERS)


def test_the_library_imports_what_it_declares_and_all_of_it(base, extra) -> None:
    assert len(LIBRARY) > 50
    without = [path for path in LIBRARY if path.stem not in WHOLE]
    assert packages(without, at_import=True) <= base
    everywhere = packages(LIBRARY, at_import=False)
    assert everywhere - base == DEFERRED | WHOLE
    assert extra >= DEFERRED
    assert declared(EXTRAS["sklearn"]) >= WHOLE
    names = {re.match(r"[\w.-]+", text)[0] for text in PROJECT["dependencies"]}
    assert {MODULES.get(name, name.replace("-", "_")) for name in names} <= everywhere


def test_the_reproduction_imports_what_it_declares(base, extra) -> None:
    assert len(EXPERIMENTS) > 50
    assert packages(EXPERIMENTS, at_import=False) <= base | extra


@pytest.mark.parametrize(
    ("source", "at_import", "found"),
    [
        ("import pandas as pd", True, {"pandas"}),
        ("class A:\n    from yaml import load", True, {"yaml"}),
        ("try:\n    import pooch.utils\nexcept ImportError:\n    pass", True, {"pooch"}),
        ("def f():\n    import pandas", True, set()),
        ("def f():\n    import pandas", False, {"pandas"}),
        ("if TYPE_CHECKING:\n    import pandas", False, set()),
    ],
)
def test_imports_are_found_where_they_stand(source, at_import, found) -> None:
    assert imported(ast.parse(source), at_import) == found


def _project_requirements() -> list[str]:
    texts = [*PROJECT["dependencies"], *PAPERS]
    return [re.match(r"[\w.-]+", text)[0].lower() for text in texts]


def _pins() -> dict[str, str]:
    """Return the versions of envs/requirements.txt, by distribution."""
    text = (ROOT / "envs" / "requirements.txt").read_text(encoding="utf-8")
    return dict(re.findall(r"^([\w.-]+)==([\w.]+)", text, re.MULTILINE))


def _conda() -> dict[str, str]:
    """Return the versions of envs/dpmc.yaml, by distribution, those that pip installs included."""
    entries = yaml.safe_load((ROOT / "envs" / "dpmc.yaml").read_text(encoding="utf-8"))
    plain = [entry for entry in entries["dependencies"] if isinstance(entry, str)]
    (by_pip,) = [entry["pip"] for entry in entries["dependencies"] if isinstance(entry, dict)]
    pairs = [re.fullmatch(r"([\w.-]+?)(?:-base)? ?=+([\w.]+)", text) for text in plain + by_pip]
    return {pair[1]: pair[2] for pair in pairs if pair}


@pytest.mark.parametrize("name", _project_requirements())
def test_the_container_and_the_conda_environment_have_every_dependency(name: str) -> None:
    pinned, conda = _pins()[name], _conda()[name]
    assert f"{pinned}.".startswith(f"{conda}.")
    assert pinned == metadata.version(name)
