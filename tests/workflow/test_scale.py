"""The published grids as a cluster would get them: which jobs are submitted together.

Dry runs alone; times are measured by ``benchmarks/bench_planning.py``.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict

import pytest

from dpmc.experiments.config.reader import load_config
from dpmc.experiments.pipeline import costs
from dpmc.experiments.pipeline.workload import Workload
from tests.workflow.conftest import PAPERS, ROOT, Project, copy_project

pytestmark = pytest.mark.slow

HEAD = re.compile(r"Group job (\w+) \(jobs in lexicogr")
MEMBER = re.compile(r"    Job \d+: (.*)$")
# What a submission of chains or studies should take at least, in seconds, and its most jobs.
LEAST, MOST = 60.0, 60


@pytest.fixture(scope="module")
def submissions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Return the messages of the jobs of each submission of all papers at scale paper."""
    project: Project = copy_project(tmp_path_factory.mktemp("scale"))
    done = project.snakemake("-n", "--profile", "profiles/slurm", config=("scale=paper",))
    assert done.returncode == 0, done.stdout[-5000:]
    return members(done.stdout)


def members(told: str) -> dict[str, list[str]]:
    """Return what a dry run says of each submission: its jobs are indented below its name."""
    found: dict[str, list[str]] = {}
    inside: list[str] | None = None
    for line in told.splitlines():
        head, member = HEAD.search(line), MEMBER.match(line)
        if head:
            inside = found.setdefault(head[1], [])
        elif line and not line.startswith(" "):
            inside = None
        elif member and inside is not None:
            inside.append(member[1])
    return found


def expected(paper: str) -> dict[str, float]:
    """Return the seconds that jobs of chains and studies should take, by their messages."""
    known = costs.load(ROOT / "config" / "costs.yaml")
    config = load_config({"papers": [paper], "scale": "paper", "results_dir": "results"}, ROOT)
    work = Workload(config, paper)
    made = [("chain", job) for job in work.jobs] + [("study", study) for study in work.studies]
    return {
        f"{e.label} on {e.problem}, {e.point}, replicates {e.first} to {e.last} ({e.experiment})": (
            known.expected_seconds(rule, e)
        )
        for rule, e in made
    }


@pytest.mark.parametrize("paper", PAPERS)
def test_no_submission_is_short_and_no_job_is_lost(
    submissions: dict[str, list[str]], paper: str
) -> None:
    seconds = expected(paper)
    of_paper = {
        name: jobs
        for name, jobs in submissions.items()
        if re.fullmatch(rf"(chains|studies)_paper_{paper}_\d+", name)
    }
    assert Counter(job for jobs in of_paper.values() for job in jobs) == Counter(list(seconds))
    families = defaultdict(list)
    for name in of_paper:
        family, _, number = name.rpartition("_")
        families[family].append(int(number))
    for family, numbers in families.items():
        assert sorted(numbers) == list(range(len(numbers)))
        for number in sorted(numbers)[:-1]:
            jobs = of_paper[f"{family}_{number}"]
            assert sum(seconds[job] for job in jobs) >= LEAST or len(jobs) == MOST
    assert all(len(jobs) <= MOST for jobs in of_paper.values())
    assert len(of_paper) * 3 < len(seconds) or len(of_paper) < 100


def test_only_small_jobs_of_the_login_node_are_alone(submissions: dict[str, list[str]]) -> None:
    families = {name.partition("_")[0] for name in submissions}
    computed = {"problems", "chains", "studies", "metrics", "accounting"}
    assert families == {*computed, "outputs", "pages"}
    assert len(submissions) < 400
