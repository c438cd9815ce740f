"""What a result depends on besides its settings, and what it does not."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest

from dpmc import yaml_files
from dpmc.numerics import source_digest
from dpmc_papers.config import reader
from dpmc_papers.pipeline import dependencies
from dpmc_papers.pipeline.workload import Workload

ROOT = Path(__file__).parents[3]
TASKS = "dpmc_league.catalogue"


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    """Return a folder that holds a copy of the scripts of the workflow."""
    shutil.copytree(ROOT / dependencies.SCRIPTS, tmp_path / dependencies.SCRIPTS)
    return tmp_path


def code(root: Path, script: str = "metrics", **named: frozenset[str]) -> str:
    for function in (
        dependencies.code,
        dependencies.script_digest,
        dependencies.imports_of,
        dependencies._of_package,
        dependencies._modules_digest,
        source_digest.file_digest,
        source_digest.versions,
    ):
        function.cache_clear()
    return dependencies.code(root, script, "dpmc_papers.pipeline.store", **named)


def edited(root: Path, script: str, name: str, text: str) -> bool:
    """Return whether the digest of a script changes with a text at the end of a file."""
    before = code(root, script)
    with (root / dependencies.SCRIPTS / name).open("a") as file:
        file.write(text)
    return code(root, script) != before


def test_an_edit_of_the_script_or_of_its_helper_counts(scripts: Path) -> None:
    assert edited(scripts, "figure", "figure.py", "X = 1\n")
    assert edited(scripts, "figure", "_context.py", "X = 1\n")
    assert not edited(scripts, "chain", "_context.py", "Y = 1\n")  # which does not import it


def test_comments_and_the_writing_of_logs_do_not_count(scripts: Path) -> None:
    assert not edited(scripts, "chain", "chain.py", "# words\n")
    assert not edited(scripts, "chain", "_job.py", "X = 1\n")


# Scripts whose results have a digest of code in their names or in those of their settings.
WITH_DIGESTS = {
    "accounting", "baseline", "chain", "data", "figure", "guarantees", "metrics", "page", "raw",
    "reference", "study", "table", "verdict",
}  # fmt: skip


@pytest.fixture
def other_module(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list; modules put into it count as edited."""
    edited_modules: list[str] = []
    known = source_digest.module_digest
    monkeypatch.setattr(
        dependencies,
        "module_digest",
        lambda name: "edited" if name in edited_modules else known(name),
    )
    return edited_modules


def test_what_a_script_imports_counts(other_module: list[str]) -> None:
    """But for what carries settings, and for what reads that which counts by its values."""
    left_out = set()
    for script in WITH_DIGESTS:
        before = code(ROOT, script)
        for name in _of_package(ROOT / dependencies.SCRIPTS / f"{script}.py"):
            other_module[:] = [name]
            if code(ROOT, script) == before:
                left_out.add((script, name.rpartition(".")[2]))
        other_module.clear()
    assert left_out == {
        *((script, "claim_file") for script in ("figure", "table")),
        *((script, "raw_files") for script in ("data", "raw")),
        ("study", "jobs"),
    }


def test_a_reader_counts_where_it_is_named(other_module: list[str]) -> None:
    reader_of_raw_files = "dpmc_papers.pipeline.raw_files"
    before = dependencies.code(ROOT, "raw", reader_of_raw_files)
    other_module.append(reader_of_raw_files)
    code(ROOT)  # forgets
    assert dependencies.code(ROOT, "raw", reader_of_raw_files) != before


def test_scripts_with_digests_are_those_that_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = set()

    def digest(root: Path, script: str, *modules: str, named: frozenset[str]) -> str:
        asked.add(script)
        return script

    monkeypatch.setattr(dependencies, "code", digest)
    source = yaml_files.read_yaml(ROOT / "config" / "config.yaml")
    config = reader.load_config(source | {"papers": list(reader.papers(ROOT))}, ROOT)
    for paper in config.papers:
        Workload(config, paper)
    assert asked == WITH_DIGESTS


def test_carriers_do_not_count_through_others(other_module: list[str]) -> None:
    before = code(ROOT, "study")
    for name in dependencies.CARRIERS:
        assert name in source_digest.closure("dpmc_papers.pipeline.run_parts")
        other_module.append(name)
    assert code(ROOT, "study") == before
    other_module.append("dpmc_papers.config.grids")  # which they go over
    assert code(ROOT, "study") != before


def _of_package(script: Path) -> set[str]:
    """Return the modules of the package that a script and its helpers import."""
    found = set()
    for path in (script, *dependencies._helpers(script)):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dpmc"):
                found |= {f"{node.module}.{alias.name}" for alias in node.names}
                found.add(str(node.module))
    return {name for name in found if (ROOT / "src" / f"{name.replace('.', '/')}.py").is_file()}


def test_another_version_of_a_package_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    before = code(ROOT)
    known = source_digest._version
    monkeypatch.setattr(
        source_digest, "_version", lambda name: "0.1" if name == "numpy" else known(name)
    )
    assert code(ROOT) != before
    monkeypatch.setattr(
        source_digest, "_version", lambda name: "0.1" if name == "tqdm" else known(name)
    )
    assert code(ROOT) == before


def test_a_module_that_nothing_mentions_does_not_count() -> None:
    reached = source_digest.closure("dpmc_league.task")
    assert f"{TASKS}.circle_v1" not in set(dependencies._looked_up(reached, frozenset()))
    for name in ("circle_v1", "circle_v1_0.5"):
        more = set(dependencies._looked_up(reached, frozenset({name})))
        assert f"{TASKS}.circle_v1" in more


def test_strings_are_those_of_keys_and_values_at_any_depth() -> None:
    value = {"a": ["b", ("c", 1)], "d": {"e": None, "f": "g"}}
    assert dependencies.strings(value) == set("abcdefg") - {"1"}


def test_contents_of_texts_count_and_a_missing_one_is_empty(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_text("x")
    before = dependencies.content_digest(one, other)
    other.touch()
    assert dependencies.content_digest(one, other) == before
    other.write_text("x")
    assert dependencies.content_digest(one, other) != before
    one.write_text("")
    assert dependencies.content_digest(one, other) != dependencies.content_digest(other, one)


def test_of_yaml_files_the_values_count(tmp_path: Path) -> None:
    path = tmp_path / "claims.yaml"

    def digest(text: str) -> str:
        path.write_text(text, encoding="utf-8")
        return dependencies.content_digest(path)

    before = digest("a: 1\nb: [.inf, x]\n")
    assert digest("# A comment.\na:   1\n\nb:\n  - .inf\n  - x\n") == before
    changed = ("a: 2\nb: [.inf, x]\n", "b: [.inf, x]\na: 1\n", "a: 1\nb: [x, .inf]\n", "")
    assert before not in {digest(text) for text in changed}
