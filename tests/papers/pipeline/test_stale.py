"""Which published outputs would be made anew, and at which commits the rest was made."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from dpmc.types import DpmcError
from dpmc_papers import __main__ as commands
from dpmc_papers import rejudge
from dpmc_papers.__main__ import main
from dpmc_papers.pipeline import provenance, stale

ROOT = Path(__file__).parents[3]


def work(**digests):
    """Return outputs whose requests have these digests."""
    requests = {name: f"r/requests/{name}-{digest}.json" for name, digest in digests.items()}
    return SimpleNamespace(
        outputs={name: SimpleNamespace(request=path) for name, path in requests.items()}
    )


def recorded(folder: Path, record: dict) -> Path:
    path = folder / "provenance.json"
    path.write_text(json.dumps(record), encoding="utf-8")
    return path


def test_an_output_is_stale_once_its_digest_is_another(tmp_path):
    path = recorded(tmp_path, {"outputs": {"figure1": "aa", "old-table": "bb", "verdict": "cc"}})
    assert stale.outputs(work(figure1="aa", verdict="cd", figure2="dd"), path) == {
        "figure2": "not there",
        "verdict": "made otherwise",
        "old-table": "no longer made",
    }
    same = work(**{"figure1": "aa", "old-table": "bb", "verdict": "cc"})
    assert stale.outputs(same, path) == {}


def test_results_without_digests_are_told_of(tmp_path):
    with pytest.raises(DpmcError, match="made before digests were recorded"):
        stale.outputs(work(figure1="aa"), recorded(tmp_path, {}))
    with pytest.raises(DpmcError, match=r"provenance\.json: "):
        stale.outputs(work(figure1="aa"), tmp_path / "nowhere" / "provenance.json")


def test_the_command_names_what_is_stale(tmp_path, capsys):
    folder = tmp_path / "raisa2021dphmc"
    folder.mkdir()
    recorded(folder, {"outputs": {"figure1": "0" * 8}})
    assert main(["stale", "--folder", str(tmp_path), "--root", str(ROOT)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert "  figure1: made otherwise" in said
    assert "  figure2: not there" in said
    assert any(line.startswith("raisa2021thesis: no results in") for line in said)


def test_verdicts_made_again_count_if_the_code_of_today_would_make_the_same_runs(tmp_path):
    before = {"figure1": "aa", "verdict": "cc", "guarantees": "dd"}
    path = recorded(tmp_path, {"outputs": before, "commit": "of the runs"})
    others = work(figure1="aa", verdict="ce", guarantees="de")
    assert stale.record_verdicts(others, path, "abc").startswith("still stale")
    assert json.loads(path.read_text())["outputs"] == before
    same = work(figure1="ab", verdict="ce", guarantees="dd")
    assert stale.record_verdicts(same, path, "abc") == "no longer stale"
    record = json.loads(path.read_text())
    assert record["commit"] == "of the runs"
    assert record["judged"]["commit"] == "abc"
    assert stale.outputs(same, path) == {"figure1": "made otherwise"}


@pytest.mark.parametrize(("claims", "digest"), [("published", "ce"), ("papers", "cc")])
def test_verdicts_on_other_claims_stay_stale(claims, digest, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "raisa2021dphmc"
    folder.mkdir()
    path = recorded(folder, {"outputs": {"verdict": "cc", "guarantees": "dd"}})
    monkeypatch.setattr(rejudge, "verdicts", lambda *given, **others: "judged")
    monkeypatch.setattr(
        commands, "Workload", lambda config, paper: work(verdict="ce", guarantees="dd")
    )
    command = ["verdicts", str(folder), "--claims", str(ROOT / "config" / claims)]
    assert main([*command, "--root", str(ROOT)]) == 0
    assert json.loads(path.read_text())["outputs"]["verdict"] == "cc"
    assert main([*command, "--root", str(ROOT), "--write"]) == 0
    assert json.loads(path.read_text())["outputs"]["verdict"] == digest
    assert ("still stale" in capsys.readouterr().out) == (digest == "cc")


def test_jobs_are_counted_by_the_commit_that_their_logs_tell(tmp_path):
    files = []
    for name, text in (
        ("chains/a", "done, 1.00 s of processor time, commit abc\n"),
        ("chains/b", "at work\ndone, 1.00 s of processor time, commit abc\n"),
        ("figure1", "done, 2.00 s of processor time, commit def with changes\n"),
        ("figure2", "done, 2.00 s of processor time\n"),
        ("figure3", None),
    ):
        benchmark = tmp_path / "benchmarks" / f"{name}.jsonl"
        benchmark.parent.mkdir(parents=True, exist_ok=True)
        benchmark.touch()
        if text is not None:
            log = tmp_path / "logs" / f"{name}.log"
            log.parent.mkdir(parents=True, exist_ok=True)
            log.write_text(text, encoding="utf-8")
        files.append(benchmark)
    files.append(tmp_path / "benchmarks" / "missing.jsonl")
    found = provenance.commits(tmp_path, files)
    assert found == {"abc": 2, "def with changes": 1, "unknown": 2}
    assert next(iter(found)) == "abc"
