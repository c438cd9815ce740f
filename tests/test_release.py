"""What a release needs: whole links on an index page, and one file of steps that are there."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
README = (ROOT / "README.md").read_text(encoding="utf-8")
REPOSITORY = "https://example.org/someone/dpmc"
WORKFLOW = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8"))
LINK = re.compile(r"\]\(([^)]+)\)")


@pytest.fixture
def hook(monkeypatch) -> dict[str, Any]:
    """The hook of the build, without hatchling, which no environment of tests has."""
    plugin = ModuleType("hatchling.metadata.plugin.interface")
    plugin.MetadataHookInterface = object
    for name in ("hatchling", "hatchling.metadata", "hatchling.metadata.plugin"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, plugin.__name__, plugin)
    return runpy.run_path(str(ROOT / "hatch_build.py"))


def faults(page: str) -> list[str]:
    """Links of a page that lead nowhere, read away from the repository."""
    found = [link for link in LINK.findall(page) if not link.startswith("#")]
    wrong = [link for link in found if not link.startswith("https://")]
    for link in found:
        path = re.match(rf"{REPOSITORY}/(?:blob|raw)/v[\d.]+/([^#]+)", link)
        if path and not (ROOT / path[1]).exists():
            wrong.append(link)
    return wrong


def test_links_and_pictures_of_the_readme_are_whole_on_an_index_page(hook):
    relative = [link for link in LINK.findall(README) if not link.startswith(("http", "#"))]
    assert len(relative) > 20
    page = hook["page"](README, REPOSITORY, "v1.0.0")
    assert faults(README) == relative
    assert faults(page) == []
    assert page.count(f"{REPOSITORY}/blob/v1.0.0/") + page.count("/raw/v1.0.0/") == len(relative)
    assert f"({REPOSITORY}/raw/v1.0.0/docs/images/posterior.png)" in page
    assert "pip install dpmc " in page
    assert faults(hook["page"](README, "", "v1.0.0")) == []
    with pytest.raises(ValueError, match="how to install"):
        hook["page"](page, REPOSITORY, "v1.0.0")


@pytest.mark.slow
def test_the_wheel_says_where_everything_is(tmp_path):
    """Of a copy that has an address, which is built as a release is."""
    uv = shutil.which("uv")
    assert uv is not None, "uv must be on the PATH"
    for name in ("README.md", "LICENSE", "hatch_build.py", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "src/dpmc").mkdir(parents=True)
    (tmp_path / "src/dpmc/__init__.py").touch()
    settings = tmp_path / "pyproject.toml"
    text, number = re.subn(
        r'(?m)^repository = ".*"$', f'repository = "{REPOSITORY}"', settings.read_text()
    )
    assert number == 1
    settings.write_text(text)
    subprocess.run([uv, "build", "--wheel", "-q", tmp_path], check=True, cwd=tmp_path)
    (wheel,) = tmp_path.glob("dist/*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [one for one in archive.namelist() if one.endswith("/METADATA")]
        metadata = message_from_bytes(archive.read(name))
    urls = dict(line.split(", ") for line in metadata.get_all("Project-URL"))
    assert urls["Repository"] == REPOSITORY
    assert set(urls) == {"Repository", "Documentation", "Changelog", "Issues"}
    page = metadata.get_payload(decode=True).decode("utf-8")
    assert f"({REPOSITORY}/raw/v{metadata['Version']}/docs/images/posterior.png)" in page
    assert faults(page) == []


def missing(workflow: dict[str, Any]) -> list[str]:
    """Commands of the steps of a workflow that a checkout lacks, and jobs that are waited for."""
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    found = []
    for job in workflow["jobs"].values():
        found += [name for name in job.get("needs", []) if name not in workflow["jobs"]]
        for step in job["steps"]:
            if "uses" in step:
                found += [] if re.fullmatch(r"[\w-]+/[\w-]+@[\w./]+", step["uses"]) else [step]
                continue
            for line in step["run"].splitlines():
                command, *words = line.split()
                if command == "make":
                    found += [word for word in words if word not in targets]
                elif not os.access(ROOT / command, os.X_OK):
                    found.append(command)
    return found


def test_every_step_of_a_release_is_a_command_of_the_checkout():
    assert sum("run" in step for job in WORKFLOW["jobs"].values() for step in job["steps"]) > 5
    assert missing(WORKFLOW) == []
    steps = [{"run": "make nothing\n.ci/nothing 3.11"}, {"uses": "unpinned/action"}]
    broken = {"jobs": {"one": {"needs": ["two"], "steps": steps}}}
    assert missing(broken) == ["two", "nothing", ".ci/nothing", {"uses": "unpinned/action"}]


def test_nothing_is_published_before_all_tests_have_passed():
    publish = WORKFLOW["jobs"]["publish"]
    assert set(publish["needs"]) >= {"library", "everything", "docs", "wheel"}
    assert publish["permissions"] == {"id-token": "write"}
    assert publish["if"] == "startsWith(github.ref, 'refs/tags/v')"


def test_the_versions_of_python_that_are_named_are_tested():
    matrix = WORKFLOW["jobs"]["library"]["strategy"]["matrix"]
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["project"]["classifiers"]))
    assert matrix["python"] == named
    assert PROJECT["project"]["requires-python"] == f">={named[0]}"
    assert {one["resolution"] for one in matrix["include"]} == {"lowest-direct"}


def test_a_tag_is_released_only_with_its_version_a_date_and_an_address():
    check = runpy.run_path(str(ROOT / ".ci/tagged"))["faults"]
    hooks = {"metadata": {"hooks": {"custom": {"repository": REPOSITORY}}}}
    settings = {"project": {"version": "1.0.0"}, "tool": {"hatch": hooks}}
    assert check("v1.0.0", settings, "# Changelog\n\n## 1.0.0 (2027-01-31)\n") == []
    assert len(check("v1.0.1", settings, "## 1.0.0 (not released)\n")) == 2
    hooks["metadata"]["hooks"]["custom"]["repository"] = ""
    assert len(check("v1.0.0", settings, "## 1.0.0 (2027-01-31)\n")) == 1
    version = re.search(r"^## (\S+) ", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    assert version is not None
    assert version[1] == PROJECT["project"]["version"]


def test_the_citation_has_no_version_of_its_own_and_all_that_its_format_asks_for():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert "version" not in citation
    assert {"cff-version", "message", "title", "authors", "license", "type"} <= set(citation)
    for one in citation["references"]:
        assert {"type", "title", "authors"} <= set(one)
