"""The published grids as a cluster would get them: which jobs are submitted together.

Dry runs alone; times are measured by ``benchmarks/bench_planning.py``.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict

import pytest

from dpmc_papers.config.reader import load_config
from dpmc_papers.pipeline import costs
from dpmc_papers.pipeline.workload import Workload
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
    return planned(project)


def planned(project: Project, *config: str) -> dict[str, list[str]]:
    arguments = ("-n", "--profile", "profiles/slurm")
    done = project.snakemake(*arguments, config=("scale=paper", *config))
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
            inside.append(member[1].removeprefix("run times of "))
    return found


def expected(paper: str) -> dict[str, float]:
    """Return the seconds that jobs of chains and studies should take, by their messages."""
    known = costs.load(ROOT / "config" / "costs.yaml")
    config = load_config({"papers": [paper], "scale": "paper", "results_dir": "results"}, ROOT)
    work = Workload(config, paper)
    chains = {
        f"{e.label} on {e.problem}, {e.point}, replicates {e.first} to {e.last} ({e.experiment})": (
            known.expected_seconds("chain", e)
        )
        for e in work.jobs
    }
    studies = {
        f"{e.experiment} on {e.problem}: {e.told}": known.expected_seconds("study", e)
        for e in work.studies
    }
    assert len(chains) + len(studies) == len(work.jobs) + len(work.studies)
    return chains | studies


@pytest.mark.parametrize("paper", PAPERS)
def test_no_submission_is_short_and_no_job_is_lost(
    submissions: dict[str, list[str]], paper: str
) -> None:
    seconds = expected(paper)
    of_paper = {
        name: jobs
        for name, jobs in submissions.items()
        if re.fullmatch(rf"(chains|studies|run_times)_paper_{paper}_\d+", name)
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
    assert len(of_paper) < len(seconds)


def test_only_small_jobs_of_the_login_node_are_alone(submissions: dict[str, list[str]]) -> None:
    families = {name.partition("_paper_")[0] for name in submissions}
    computed = {"problems", "chains", "studies", "run_times", "metrics", "accounting"}
    assert families == {*computed, "outputs", "pages"}
    assert len(submissions) < 400


def test_the_page_on_clusters_tells_of_these_submissions(
    submissions: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import cluster_tables

    page = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
    assert "\n".join(cluster_tables.submissions(submissions)) in page


def test_outputs_of_a_document_are_made_side_by_side(submissions: dict[str, list[str]]) -> None:
    for paper in PAPERS:
        sizes = [
            len(jobs)
            for name, jobs in submissions.items()
            if re.fullmatch(rf"outputs_paper_{paper}_\d+", name)
        ]
        assert len(sizes) >= 3
        assert max(sizes) <= 4


def test_no_submission_exceeds_the_longest_time_limit(
    submissions: dict[str, list[str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """More submissions of the same jobs, where a site allows less time than they ask for."""
    project = copy_project(tmp_path_factory.mktemp("limited"))
    longest, paper = 20, PAPERS[0]
    usual = {name: jobs for name, jobs in submissions.items() if f"_{paper}_" in name}
    site = "profiles/slurm/site.yaml"
    with project.edited(site, "longest_minutes: null", f"longest_minutes: {longest}"):
        found = planned(project, f"papers={paper}")
    assert len(found) > len(usual)
    # Of every job at least two minutes are asked for.
    assert max(map(len, usual.values())) > longest // 2
    assert max(map(len, found.values())) <= longest // 2
    assert Counter(job for jobs in found.values() for job in jobs) == Counter(
        job for jobs in usual.values() for job in jobs
    )
