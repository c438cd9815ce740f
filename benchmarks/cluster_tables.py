"""Tables of docs/cluster.md: jobs and submissions of the published grids, and what chains took.

``uv run python benchmarks/cluster_tables.py``. Jobs are counted in the configuration, submissions
in a dry run of the whole, and what chains took is in ``provenance.json`` of the published results.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from dpmc_papers.config.reader import load_config
from dpmc_papers.pipeline import costs
from dpmc_papers.pipeline.workload import Workload

ROOT = Path(__file__).parents[1]
PAPERS = ("raisa2021dphmc", "raisa2021thesis", "alparslan2023thesis", "vinaroz2022dpsep")
OF_CHAINS = PAPERS[:2]
GROUP = re.compile(r"Group job (\w+) \(jobs in lexicogr")
MANY = 1_000_000


@dataclass(frozen=True)
class Chains:
    """What the published chains of a document took.

    Parameters
    ----------
    paper : str
    chains, jobs : int
    seconds : float
        Processor time of all jobs.
    """

    paper: str
    chains: int
    jobs: int
    seconds: float


def workload(paper: str) -> Workload:
    """Return the published grids of a document."""
    chosen = {"papers": [paper], "scale": "paper", "results_dir": "results"}
    return Workload(load_config(chosen, ROOT), paper)


def planned() -> list[str]:
    """Return the names of all submissions of a dry run."""
    command = [sys.executable, "-m", "snakemake", "-n", "--profile", "profiles/slurm"]
    command += ["--forceall", "--config", "scale=paper"]
    done = subprocess.run(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, check=True)
    return GROUP.findall(done.stdout)


def num_jobs(work: Workload) -> int:
    """Return how many jobs go to a cluster: all but short ones of the login node."""
    problems = sum(len(entry.paths) for entry in work.problems.values())
    computed = (work.jobs, work.studies, work.metrics, work.curves, work.outputs)
    return problems + sum(map(len, computed))


def submissions(names: Iterable[str]) -> list[str]:
    """Return the rows of the table of jobs and submissions."""
    rows, jobs, every = [], 0, list(dict.fromkeys(names))
    for paper in PAPERS:
        work = workload(paper)
        family = "chains" if work.jobs else "studies"
        own = [name for name in every if f"_paper_{paper}_" in name]
        long = sum(name.startswith(f"{family}_") for name in own)
        jobs += num_jobs(work)
        rows.append(f"| `{paper}` | {num_jobs(work):,} | {len(own)}, {long} of them {family} |")
    return [*rows, f"| all | {jobs:,} | {len(every)} |"]


def chains() -> list[Chains]:
    """Return what the published chains took."""
    found = []
    for paper in OF_CHAINS:
        path = ROOT / "results" / "published" / paper / "provenance.json"
        told = json.loads(path.read_text(encoding="utf-8"))["jobs"]["chains"]
        jobs = workload(paper).jobs
        number = sum((job.last - job.first + 1) * job.setup.num_chains for job in jobs)
        found.append(Chains(paper, number, told["jobs"], told["cpu_seconds"]))
    return found


def start() -> float:
    """Return the processor seconds of the start of a job of chains."""
    known = costs.load(ROOT / "config" / "costs.yaml")
    return known.start_up + known.seconds["chain"]


def measured() -> list[str]:
    """Return the rows of the table of what chains took."""
    return [
        f"| `{it.paper}` | {it.chains:,} | {it.jobs} | {it.seconds:,.0f} s "
        f"| {it.seconds / it.chains:.2f} s | {it.seconds / it.jobs:.1f} s | {start():.1f} s |"
        for it in chains()
    ]


def busy() -> str:
    """Return how busy the run of the thesis kept its cores."""
    path = ROOT / "results" / "published" / OF_CHAINS[1] / "provenance.json"
    told = json.loads(path.read_text(encoding="utf-8"))
    every, run = told["jobs"]["all"], told["last_run_wall_seconds"]
    idle = 1 - every["wall_seconds"] / (told["cores"] * run)
    return (
        f"{every['jobs']} jobs took {every['wall_seconds']:,.0f} s between them, and the run "
        f"{run:,.0f} s, so that {100 * idle:.1f} % of the two cores' time"
    )


def hours() -> list[float]:
    """Return the hours of processor time of a million chains, by each document."""
    return sorted(MANY * it.seconds / it.chains / 3600 for it in chains())


def cuts() -> list[str]:
    """Return rows on a million chains: in a job, jobs, hours of their starts, and their share."""
    low, high = hours()
    rows = []
    for size in (1, 20, 50, 100):
        starts = MANY / size * start() / 3600
        share = f"{100 * starts / high:.0f} to {100 * starts / low:.0f} %"
        rows.append(f"| {size} | {MANY // size:,} | {starts:.0f} h, {share} |")
    return rows


def in_submissions(minutes: int) -> str:
    """Return how many submissions of so many minutes a million chains are."""
    few, many = (f"{60 * value / minutes:,.0f}" for value in hours())
    return f"{few} to {many}"


def main() -> None:
    print("\n".join(measured()))
    print(busy())
    print(f"a million chains: {' to '.join(f'{value:.0f}' for value in hours())} hours")
    print("\n".join(cuts()))
    for minutes in (2, 10):
        print(f"submissions of {minutes} minutes: {in_submissions(minutes)}")
    print("\n".join(submissions(planned())))


if __name__ == "__main__":
    main()
