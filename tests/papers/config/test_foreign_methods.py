"""Files of commands: what they add to the league, and what is refused before any work starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dpmc.types import DpmcError
from dpmc_papers.config import foreign_methods
from dpmc_papers.config.reader import Config
from dpmc_papers.pipeline.workload import Workload
from tests.support.papers import ROOT

ONE = "methods: {mine: {command: [awk, -f, mine.awk]}}\n"


def load(path: Path | None, text: str | None = None, **changes: Any) -> Config:
    """Return the configuration of a run with a file of commands, written first."""
    if text is not None and path is not None:
        path.write_text(text, encoding="utf-8")
    values = {"papers": "league", "scale": "smoke", "results_dir": "results", **changes}
    given = {} if path is None else {"methods": str(path)}
    return foreign_methods.load_config({**values, **given}, ROOT)


def names(config: Config) -> set[str]:
    """Return the tables of studies, each with the digest of what it is made from."""
    files = Workload(config, "league").files
    return {f"{path} {job.digest}" for path, job in files.items() if "/studies/" in path}


def test_commands_are_a_study_of_their_own_that_outputs_read_and_ours_are_as_they_were(tmp_path):
    alone, joined = load(None), load(tmp_path / "mine.yaml", ONE)
    paper = joined.papers["league"]
    assert names(alone) < names(joined)
    (added,) = names(joined) - names(alone)
    assert "/studies/yours/gaussian_2/seeds=" in added
    assert set(paper.studies["yours"].methods) == {"mine"}
    assert paper.studies["yours"].grid == paper.studies["table"].grid
    for name, output in paper.outputs.items():
        theirs = name in ("winners", "standings", "attacks")
        assert ("yours" in output.metrics) == theirs, name


def test_a_file_counts_by_what_it_says_and_by_the_files_that_its_commands_name(tmp_path):
    path = tmp_path / "mine.yaml"
    first = names(load(path, ONE))
    assert names(load(path, ONE + "# A remark.\n")) == first
    limited = names(load(path, ONE.replace("mine.awk]", "mine.awk], time_limit: 5")))
    assert len(first - limited) == 1
    several = names(load(path, ONE.replace("mine.awk]", "mine.awk], many: true")))
    assert len(first - several) == 1
    (tmp_path / "mine.awk").write_text("BEGIN { exit 3 }\n")
    written = names(load(path, ONE))
    assert len(first - written) == 1
    (tmp_path / "mine.awk").write_text("BEGIN { exit 4 }\n")
    assert len(written - names(load(path, ONE))) == 1


def test_a_program_that_is_installed_later_makes_its_rows_anew(tmp_path, monkeypatch):
    path = tmp_path / "mine.yaml"
    text = ONE.replace("awk, -f, mine.awk", "a-program-of-mine")
    before = names(load(path, text))
    program = tmp_path / "bin" / "a-program-of-mine"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    assert len(before - names(load(path, text))) == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "No such file or directory"),
        ("methods: [\n", "line 2"),
        ("- mine\n", "must be a mapping, got a list"),
        ("methods: {}\n", "`methods` must be a mapping that is not empty, got {}"),
        ("method: {}\n", "`methods` must be given"),
        ("methods: {mine: {}}\n", "`methods.mine.command` must be given"),
        ("methods: {mine: {command: awk}}\n", "command` must be a list of texts, got 'awk'"),
        ("methods: {mine: {command: []}}\n", "command` must be a list of texts, got []"),
        ("methods: {mine: {command: [1]}}\n", "must be a text, got 1"),
        ("methods: {mine: {command: [x], time_limit: 0}}\n", "must be a number > 0, got 0"),
        ("methods: {mine: {command: [x], many: 3}}\n", "`methods.mine.many` must be"),
        ("methods: {mine: {command: [x], time_limt: 5}}\n", "(did you mean time_limit?)"),
        ("methods: {hmc: {command: [x]}}\n", "a name that no method of the league has"),
        ("methods: {awk_mean: {command: [x]}}\n", "a name that no method of the league has"),
        ("methods: {My-Own: {command: [x]}}\n", "My-Own"),
        ("methods: {mine: {command: [x], tasks: [gauss_2]}}\n", "(did you mean gaussian_2?)"),
    ],
)
def test_a_file_that_says_something_else_is_refused_in_one_line(tmp_path, text, told):
    path = tmp_path / "mine.yaml"
    with pytest.raises(DpmcError) as caught:
        load(path, text)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert told in message
    assert "\n" not in message


def test_methods_are_for_the_league_alone_and_one_file(tmp_path):
    with pytest.raises(DpmcError, match="`methods` must be given beside papers that hold league"):
        load(tmp_path / "mine.yaml", ONE, papers=["raisa2021dphmc"])
    with pytest.raises(DpmcError, match="`methods` must be the path of a YAML file, got 3"):
        load(None, methods=3)
