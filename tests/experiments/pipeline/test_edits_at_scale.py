"""Edits of published and quick grids, whose batches are uneven: what is left to compute after them.

``tests/workflow/test_reruns.py`` asks Snakemake the same of a few jobs.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpmc.experiments.config.reader import Config
from dpmc.experiments.pipeline.jobs import ChainJob
from dpmc.experiments.pipeline.workload import Workload
from tests.support.papers import KEY, ROOT, THESIS, load, with_paper

CASES = [(KEY, "quick"), (THESIS, "paper")]
STUDIES = ["alparslan2023thesis", "vinaroz2022dpsep"]


@pytest.fixture(params=CASES, ids=lambda case: "-".join(case))
def finished(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Config]:
    """Return a document and its configuration; files of all its chains are there."""
    paper, scale = request.param
    config = replace(load(scale, paper), results_dir=str(tmp_path))
    for job in Workload(config, paper).jobs:
        path = Path(job.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return paper, config


def left(config: Config, paper: str) -> list[ChainJob]:
    """Return the jobs of chains whose files are not there."""
    return [job for job in Workload(config, paper).jobs if not Path(job.path).exists()]


def methods(paper: Any) -> Iterator[tuple[Any, Any]]:
    for experiment in paper["experiments"].values():
        for labels in experiment["methods"].values():
            for method in labels.values():
                yield experiment, method


def one_more(paper: Any) -> None:
    """Raise all numbers of replicates by one."""
    for experiment, method in methods(paper):
        method["replicates"] = method.get("replicates", experiment["replicates"]) + 1


def test_one_replicate_more_of_everything_is_one_job_of_one_replicate_each(finished) -> None:
    paper, config = finished
    assert left(config, paper) == []
    before = Workload(config, paper)
    counts: dict[tuple[str, ...], int] = {}
    for job in before.jobs:
        point = (job.experiment, job.problem, job.label, job.point)
        counts[point] = max(counts.get(point, 0), job.last + 1)
    added = left(with_paper(config, one_more), paper)
    assert [(job.first, job.last) for job in added] == [
        (count, count)
        for job in added
        for count in [counts[job.experiment, job.problem, job.label, job.point]]
    ]
    assert len(added) == len(counts)


def test_how_work_is_cut_and_guesses_of_time_leave_nothing_to_do(finished) -> None:
    paper, config = finished

    def slower(settings: Any) -> None:
        settings["timed_at_epsilon"] *= 0.8
        for _, method in methods(settings):
            method["seconds"] = 1.3 * method.get("seconds", 1)

    requests = {output.request for output in Workload(config, paper).outputs.values()}
    for other in (replace(config, seeds_per_job=1), with_paper(config, slower)):
        assert left(other, paper) == []
        work = Workload(other, paper)
        assert {output.request for output in work.outputs.values()} == requests


@pytest.mark.parametrize("paper", STUDIES)
def test_one_replicate_more_of_all_studies_adds_one_to_every_part(paper: str) -> None:
    config = load("quick", paper)

    def more(settings: Any) -> None:
        for study in settings["studies"].values():
            study["replicates"] += 1
            for method in study["methods"].values():
                if "replicates" in method:
                    method["replicates"] += 1

    def runs(config: Config) -> dict[tuple[str, str], set[int]]:
        found: dict[tuple[str, str], set[int]] = {}
        for job in Workload(config, paper).studies:
            for part in job.parts:
                numbers = range(part.first, part.last + 1)
                found.setdefault((job.path.split("/")[-2], part.digest), set()).update(numbers)
        return found

    before, after = runs(config), runs(with_paper(config, more))
    assert before.keys() == after.keys()
    assert all(after[part] - known == {len(known)} for part, known in before.items())


# Copies of files, which nothing uses: of each kind that is looked up by its name.
NEW = {
    "models/another.py": "gaussian_mean.py",
    "mcmc/methods/another.py": "dp_penalty.py",
    "linreg/methods/another.py": "adassp.py",
    "experiments/data/another.py": "gaussian_rows.py",
    "experiments/studies/another.py": "mixture.py",
    "experiments/outputs/another2025.py": "vinaroz2022dpsep.py",
}
PATHS = """
import json, sys
from pathlib import Path
from dpmc.experiments.config.reader import load_config
from dpmc.experiments.pipeline.workload import Workload
root, *papers = sys.argv[1:]
config = load_config({"papers": papers, "scale": "smoke", "results_dir": "results"}, Path(root))
print(json.dumps([sorted(Workload(config, paper).files) for paper in papers]))
"""


def paths(source: Path) -> list[list[str]]:
    """Return the files with digests of all documents, by the code of a folder."""
    done = subprocess.run(
        [sys.executable, "-c", PATHS, str(ROOT), KEY, THESIS, *STUDIES],
        env={**os.environ, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[list[str]] = json.loads(done.stdout)
    return found


@pytest.mark.slow
def test_new_files_that_nothing_uses_change_no_job_of_any_document(tmp_path: Path) -> None:
    """An accountant, which may be tighter than the others, changes chains under a budget."""
    source = tmp_path / "src"
    shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
    before = paths(source)
    for name, like in NEW.items():
        path = source / "dpmc" / name
        shutil.copy2(path.with_name(like), path)
    assert paths(source) == before
    accountants = source / "dpmc/privacy/accountants"
    shutil.copy2(accountants / "rdp.py", accountants / "another.py")
    after = paths(source)
    assert [old != new for old, new in zip(before, after, strict=True)] == [
        True,
        True,
        False,
        False,
    ]
