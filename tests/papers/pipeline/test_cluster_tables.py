"""The page on clusters has the numbers of the configuration and of the published results."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import cluster_tables

    yield cluster_tables
    sys.modules.pop("cluster_tables", None)


@pytest.fixture
def page() -> str:
    return " ".join((ROOT / "docs" / "cluster.md").read_text(encoding="utf-8").split())


def test_jobs_are_those_of_the_published_grids(tables, page: str) -> None:  # type: ignore[no-untyped-def]
    """Of submissions `tests/workflow/test_scale.py` makes sure: that takes a dry run."""
    every = 0
    for paper in tables.PAPERS:
        jobs = tables.num_jobs(tables.workload(paper))
        assert f"| `{paper}` | {jobs:,} |" in page
        every += jobs
    assert f"| all | {every:,} |" in page


def test_times_of_chains_are_those_of_the_published_results(tables, page: str) -> None:  # type: ignore[no-untyped-def]
    for row in tables.measured():
        assert row in page
    assert tables.busy() in page
    low, high = tables.hours()
    assert f"are {low:.0f} to {high:.0f} hours of processor time" in page
    for row in tables.cuts():
        assert row.replace("| 1 |", "| 1 (`--config seeds_per_job=1`) |") in page
    assert f"that is {tables.in_submissions(2)} submissions" in page
    assert f"`SECONDS_PER_SUBMISSION = 600`) {tables.in_submissions(10)}," in page
    assert high / 200 < 1
    assert "200 cores are done within the hour" in page
