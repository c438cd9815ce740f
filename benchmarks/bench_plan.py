"""Compare what is expected of the published grids with what they took.

``uv run python benchmarks/bench_plan.py``: for every document in ``results/published``, jobs,
processor time and memory of its ``provenance.json`` and of ``python -m dpmc_papers plan``.
Problems whose data could not be had in that run are left out on both sides. Exits with 1 if a
time or a memory is more than 30 % off.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pandas as pd

from dpmc import yaml_files
from dpmc.types import UNAVAILABLE
from dpmc_papers.config import reader
from dpmc_papers.pipeline import costs, plan
from dpmc_papers.pipeline.workload import Workload

ALLOWED = 0.3
PUBLISHED = Path("results/published")
# Names of stages in provenance.json.
STAGES = {
    "data": ("data",),
    "reference": ("reference",),
    "chains": ("chain",),
    "studies": ("study",),
    "run_times": (),
    "baselines": ("baseline",),
    "metrics": ("metrics",),
    "accounting": ("accounting",),
    "outputs": ("output",),
}


def absent(folder: Path) -> set[str]:
    """Return the problems whose data could not be had."""
    found: set[str] = set()
    for path in folder.glob("table*.csv"):
        table = pd.read_csv(path)
        if {"problem", "status"} <= set(table):
            found |= set(table.loc[table["status"] == UNAVAILABLE, "problem"])
    return found


def expected(work: Workload, known: costs.Costs, missing: set[str]) -> dict[str, plan.Stage]:
    """Return what each rule should take, jobs without data at the price of their start."""
    left = [study for study in work.studies if study.problem.removesuffix("_public") in missing]
    work.studies = tuple(study for study in work.studies if study not in left)
    made = {stage.rule: stage for stage in plan.stages(work, known)}
    here = [e for e in work.problems.values() if e.name.removesuffix("_public") not in missing]
    memory = max(known.expected_memory_mb("data", entry) for entry in here)
    made["data"] = plan.Stage("data", made["data"].jobs, made["data"].seconds, memory)
    if left:
        own = made["study"]
        seconds = own.seconds + len(left) * known.start_up
        made["study"] = plan.Stage("study", own.jobs + len(left), seconds, own.memory_mb)
    return made


def main() -> int:
    known = costs.load(Path("config/costs.yaml"))
    papers = sorted(path.parent.name for path in PUBLISHED.glob("*/provenance.json"))
    source = yaml_files.read_yaml(Path("config/config.yaml")) | {"scale": "paper", "papers": papers}
    config = reader.load_config(source)
    row = "{:17} {:11} {:>6} {:>6} {:>9} {:>9} {:>6} {:>8} {:>8} {:>6}"
    print(
        row.format("document", "stage", "jobs", "plan", "CPU s", "plan", "off", "MB", "plan", "off")
    )
    worst = 0.0
    for paper in papers:
        truth = json.loads((PUBLISHED / paper / "provenance.json").read_text(encoding="utf-8"))
        made = expected(Workload(config, paper), known, absent(PUBLISHED / paper))
        sums = {"jobs": 0, "seconds": 0.0, "memory": 0.0}
        for stage, rules in STAGES.items():
            took = truth["jobs"].get(stage)
            if took is None:
                continue
            parts = [made[rule] for rule in rules if rule in made]
            jobs, seconds = sum(p.jobs for p in parts), sum(p.seconds for p in parts)
            memory = max(p.memory_mb for p in parts)
            sums["jobs"] += jobs
            sums["seconds"] += seconds
            sums["memory"] = max(sums["memory"], memory)
            print(row.format(paper, stage, *told(took, jobs, seconds, memory)))
        took = truth["jobs"]["all"]
        print(row.format(paper, "all", *told(took, *sums.values())))
        worst = max(
            worst,
            abs(sums["seconds"] / took["cpu_seconds"] - 1),
            abs(sums["memory"] / took["max_rss_mb"] - 1),
        )
    print(f"largest error of a document: {worst:.0%}, allowed {ALLOWED:.0%}")
    return int(worst > ALLOWED)


def told(took: dict[str, float], jobs: int, seconds: float, memory: float) -> list[str]:
    """Return the cells of one line: what was measured, what was expected, and the difference."""
    times, sizes = took["cpu_seconds"], took["max_rss_mb"]
    return [
        f"{took['jobs']:.0f}",
        str(jobs),
        f"{times:.0f}",
        f"{seconds:.0f}",
        f"{seconds / times - 1:+.0%}",
        f"{sizes:.0f}",
        f"{memory:.0f}",
        f"{memory / sizes - 1:+.0%}",
    ]


if __name__ == "__main__":
    sys.exit(main())
