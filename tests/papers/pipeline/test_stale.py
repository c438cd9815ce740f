"""Results that are not what the configuration asks for: found, and removed with what they made."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dpmc_papers.config.reader import Config, load_config
from dpmc_papers.pipeline import stale, store
from dpmc_papers.pipeline.workload import Workload, made
from tests.support.papers import KEY, small_paper, small_project, with_paper

METRICS, FIGURE = "metrics/main/line.parquet", "figure1.png"


@pytest.fixture
def config(tmp_path: Path) -> Config:
    root = small_project(tmp_path / "project", small_paper())
    values = {"papers": [KEY], "scale": "full", "results_dir": str(tmp_path / "results")}
    return load_config(values, root)


@pytest.fixture
def work(config: Config) -> Workload:
    """Return the jobs of a paper all of whose files are there, each as its job would make it."""
    work = Workload(config, KEY)
    for path, job in work.files.items():
        store.write_array(path, np.ones((1, 1)), made(job.settings, job.reads))
    for job in work.outputs.values():
        for path in job.paths:
            Path(path).touch()
    record = {"outputs": {name: job.digest for name, job in work.outputs.items()}}
    Path(work.folder, stale.PROVENANCE).write_text(json.dumps(record), encoding="utf-8")
    for name in ("logs/figure1.log", "page/index.md"):
        path = Path(work.folder, name)
        path.parent.mkdir()
        path.touch()
    return work


def inside(work: Workload, paths) -> set[str]:
    return {path.removeprefix(f"{work.folder}/") for path in paths}


def test_what_is_as_configured_is_not_named(work: Workload) -> None:
    assert stale.found([work]) == {}
    assert stale.to_remove([work], {}) == []


def test_files_of_other_settings_are_named_and_go_with_all_that_they_made(config, work) -> None:
    def change(paper) -> None:
        paper["experiments"]["main"]["methods"]["line"]["rwmh"]["num_iterations"] = 11

    changed = Workload(with_paper(config, change), KEY)
    found = stale.found([changed])
    assert set(found.values()) == {stale.OTHERWISE}
    named = inside(work, found)
    assert {METRICS, FIGURE, "verdict.csv"} <= named
    chains = {name for name in named if name.startswith("chains/")}
    assert chains
    assert all("/rwmh/" in name for name in chains)
    gone = inside(work, stale.to_remove([changed], found))
    assert named <= gone
    assert not any("/dp_penalty/" in name for name in gone)


def test_files_that_nothing_asks_for_are_named_and_go_alone(work: Workload) -> None:
    left = [Path(work.folder, name) for name in ("figure9.png", ".partial.1.figure1.png")]
    for path in left:
        path.touch()
    found = stale.found([work])
    assert found == {str(path): stale.UNASKED for path in left}
    assert stale.to_remove([work], found) == sorted(found)
