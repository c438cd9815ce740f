"""Planted bugs can still be planted, and three of them, chosen by the commit, are found."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.mutation import run
from tests.mutation.catalogue import HERE, Bug, problems, read, sample

BUGS = read()
SAMPLED = 3
AREAS = {"privacy": 20, "clips": 10, "targets": 15, "metrics": 8, "verdicts": 8, "storage": 8}


def test_every_planted_bug_still_applies():
    """Each text occurs exactly once, what takes its place is Python, and its tests exist."""
    assert list(problems(BUGS)) == []


def test_there_are_enough_of_every_kind():
    for area, least in AREAS.items():
        assert sum(bug.area == area for bug in BUGS) >= least
    assert len(BUGS) >= 60


def a_bug(**changes) -> Bug:
    given = {
        "id": "x",
        "area": "a",
        "file": "dpmc/m.py",
        "find": "1",
        "replace": "2",
        "why": "w",
        "tests": ("t.py",),
    }
    return Bug(**(given | changes))


@pytest.mark.parametrize(
    ("source", "changes", "message"),
    [
        ("a = 3\n", {}, "occurs 0 times"),
        ("a = 1\nb = 1\n", {}, "occurs 2 times"),
        ("a = 1\n", {"replace": "("}, "no Python"),
        ("a = 1\n", {"replace": "1  # one"}, "nothing that runs"),
    ],
)
def test_a_bug_that_cannot_be_planted_is_refused(source, changes, message):
    with pytest.raises(ValueError, match=message):
        a_bug(**changes).planted(source)


def test_the_new_place_of_a_text_is_told(tmp_path):
    package = tmp_path / "src" / "dpmc"
    (package / "sub").mkdir(parents=True)
    (package / "sub" / "new.py").write_text("a = 1\n")
    (tmp_path / "t.py").write_text("")
    assert list(problems((a_bug(),), tmp_path)) == [
        "x: `find` occurs 0 times in dpmc/m.py, allowed once; it is in dpmc/sub/new.py"
    ]
    moved = a_bug(file="dpmc/sub/new.py", tests=("t.py::test_gone", "u.py"))
    assert list(problems((moved,), tmp_path)) == [
        "x: no test t.py::test_gone",
        "x: no test u.py",
    ]


@pytest.mark.parametrize("change", [{"why": None}, {"more": "1"}, {"tests": []}])
def test_entries_with_other_keys_are_refused(change, tmp_path):
    entry = {"id": "x", "file": "m", "find": "1", "replace": "2", "why": "w", "tests": ["t"]}
    entry |= change
    given = {key: value for key, value in entry.items() if value is not None}
    (tmp_path / "a.yaml").write_text(yaml.safe_dump([given]))
    with pytest.raises(ValueError, match=r"a\.yaml: x"):
        read(tmp_path)


def test_an_id_given_twice_is_refused(tmp_path):
    entry = {"id": "x", "file": "m", "find": "1", "replace": "2", "why": "w", "tests": ["t"]}
    (tmp_path / "a.yaml").write_text(yaml.safe_dump([entry, entry]))
    with pytest.raises(ValueError, match="given twice"):
        read(tmp_path)


def test_a_sample_depends_on_the_commit_alone():
    first, other = sample(BUGS, SAMPLED, "0123"), sample(BUGS, SAMPLED, "4567")
    assert first == sample(BUGS[::-1], SAMPLED, "0123")
    assert len(set(first)) == SAMPLED
    assert first != other
    # In 500 commits every bug has its turn but for one in fifty or so.
    seen = {bug for k in range(500) for bug in sample(BUGS, SAMPLED, str(k))}
    assert len(seen) > 0.95 * len(BUGS)


def test_no_commit_is_an_empty_name(monkeypatch):
    assert run.commit_hash("no-such-commit") == ""
    monkeypatch.setattr(run.subprocess, "run", lambda *_, **__: (_ for _ in ()).throw(OSError))
    assert run.commit_hash("HEAD") == ""


SMALL = {
    "killed": "from dpmc import m\ndef test_a():\n    assert m.A == 1\n",
    "survived": "from dpmc import m\ndef test_a():\n    assert m.A\n",
    "error": "from dpmc import m\nassert m.A == 1\ndef test_a():\n    pass\n",
}


@pytest.fixture
def small(tmp_path, monkeypatch) -> Path:
    """Return a project of one module, in place of this one."""
    root = tmp_path / "project"
    (root / "src" / "dpmc").mkdir(parents=True)
    (root / "src" / "dpmc" / "__init__.py").write_text("")
    (root / "src" / "dpmc" / "m.py").write_text("A = 1\n")
    (root / "tests").mkdir()
    (root / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    for name, text in SMALL.items():
        (root / "tests" / f"test_{name}.py").write_text(text)
    (root / "tests" / "test_broken.py").write_text("def test_a():\n    assert False\n")
    monkeypatch.setattr(run, "ROOT", root)
    monkeypatch.setattr(run.cache, "root", lambda: tmp_path / "nothing compiled")
    return root


@pytest.mark.slow
def test_what_becomes_of_a_bug_is_told(small, capsys):
    """A test that cannot be collected, or fails anyway, has found nothing."""
    bugs = [a_bug(id=name, tests=(f"tests/test_{name}.py",)) for name in SMALL]
    bugs.append(a_bug(id="broken", tests=("tests/test_broken.py",)))
    bugs.append(a_bug(id="none", tests=("tests/test_killed.py::test_b",)))
    outcomes = run.judge(bugs)
    told = {outcome.bug.id: outcome.verdict for outcome in outcomes}
    assert told == {name: name for name in SMALL} | {"broken": "error", "none": "error"}
    assert "fails without the bug too" in outcomes[3].detail
    assert "status 2" in outcomes[2].detail
    assert run.table(outcomes).endswith("1 killed, 1 survived, 3 error")
    assert (small / "src" / "dpmc" / "m.py").read_text() == "A = 1\n"
    assert "killed: killed" in capsys.readouterr().out


@pytest.mark.slow
def test_bugs_are_found_side_by_side(small):
    bugs = [a_bug(id=str(k), tests=("tests/test_killed.py",)) for k in range(2)]
    assert [outcome.verdict for outcome in run.judge(bugs, jobs=2)] == ["killed"] * 2


def test_unknown_names_are_refused():
    command = [sys.executable, str(HERE / "run.py"), "no-such-bug"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "no bug 'no-such-bug'" in done.stderr


@pytest.mark.slow
def test_bugs_chosen_by_the_commit_do_not_survive():
    """The whole list takes a quarter of an hour: `tests/mutation/run.py`."""
    outcomes = run.judge(sample(BUGS, SAMPLED, run.commit_hash("HEAD")))
    assert all(outcome.verdict == run.KILLED for outcome in outcomes), run.table(outcomes)
