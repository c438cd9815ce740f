"""Time and memory of planning: all documents at scale paper, and a grid of 20,000 chain jobs.

``uv run python benchmarks/bench_planning.py``. Each plan is a dry run of the real workflow in a
copy of the repository, in a process of its own. Targets on a quiet core: all documents under 10 s
and 500 MB; 20,000 chain jobs under 60 s.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
PARTS = ("Snakefile", "config", "docs", "envs", "profiles", "src", "workflow")
PAPER = "raisa2021dphmc"
MEASURE = "import resource, subprocess, sys; done = subprocess.run(sys.argv[1:]); \
usage = resource.getrusage(resource.RUSAGE_CHILDREN); \
print('usage', usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024); sys.exit(done.returncode)"


def copy(folder: Path) -> None:
    """Copy what the workflow reads."""
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, folder / part)


def enlarge(folder: Path, num_jobs: int) -> None:
    """Give one method of a paper so many epsilons that its chains are `num_jobs` jobs."""
    path = folder / "config" / "scales" / "paper.yaml"
    scale = yaml.safe_load(path.read_text(encoding="utf-8"))
    points, each = max(1, num_jobs // 100), 100
    epsilons = [round(1 + k / points * 10, 6) for k in range(points)]
    methods = {"paper_banana_2d": {"dp_penalty": {"epsilons": epsilons, "replicates": each}}}
    scale["papers"] = {PAPER: {"experiments": {"comparison": {"methods": methods}}}}
    scale["seeds_per_job"] = 1
    path.write_text(yaml.safe_dump(scale), encoding="utf-8")


def plan(folder: Path, *config: str) -> tuple[int, float, float, float]:
    """Return the jobs of a dry run, its seconds, its processor seconds and its megabytes."""
    command = [sys.executable, "-m", "snakemake", "-n", "--quiet", "rules", "--config", *config]
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, *command],
        cwd=folder,
        text=True,
        capture_output=True,
        check=True,
    )
    seconds = time.perf_counter() - start
    *_, jobs = re.findall(r"^total\s+(\d+)$", done.stdout, re.MULTILINE)
    (usage,) = re.findall(r"^usage (\S+) (\S+)$", done.stdout, re.MULTILINE)
    return int(jobs), seconds, float(usage[0]), float(usage[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=20_000, help="chain jobs of the large grid")
    asked = parser.parse_args()
    print(f"{'grid':28} {'jobs':>7} {'seconds':>8} {'CPU s':>7} {'MB':>6} {'ms CPU per job':>15}")
    for name, large in (("all documents, scale paper", False), ("one large grid", True)):
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            copy(folder)
            config = ["scale=paper"]
            if large:
                enlarge(folder, asked.jobs)
                config.append(f"papers={PAPER}")
            jobs, seconds, used, memory = plan(folder, *config)
        each = 1000 * used / jobs
        print(f"{name:28} {jobs:7,} {seconds:8.1f} {used:7.1f} {memory:6.0f} {each:15.2f}")


if __name__ == "__main__":
    main()
