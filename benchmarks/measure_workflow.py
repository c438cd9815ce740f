"""Measure what a newcomer waits for: the first picture, a whole run, the tests, a plan.

``uv run python benchmarks/measure_workflow.py`` clones this repository to a new folder, as it is
committed, and runs the commands of the README there: nothing is compiled yet, and no result is
there. ``--parts`` chooses among quick, again, compiled (quick in another folder of results, with
the code that quick compiled), plan, expected, tests, compiled-tests (the tests again, with the code
that they compiled), all-tests and paper; the first five by default. Each line of the table has the
wall clock time, the processor time of all processes, and the goal on two quiet cores. The stages
of a run follow: jobs and their processor time. Results stay in the folder, for
``benchmarks/compare_results.py``.

``--against`` names an older commit, whose parts are measured first, in a clone of its own. Machines
differ in speed, and a ratio of two commits in one run does so least: it follows at the end.

``expected`` runs nothing: it is what the published grids of the four documents should take by the
costs in ``config/costs.yaml``, as far as their raw files are here, and what the jobs behind the
published results took.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[1]
COMMANDS = {
    "quick": ["uv", "run", "snakemake", "--cores", "all"],
    "again": ["uv", "run", "snakemake", "--cores", "all", "-n"],
    "compiled": ["uv", "run", "snakemake", "--cores", "all", "--config", "results_dir=anew"],
    "plan": ["uv", "run", "python", "-m", "dpmc", "plan", "--scale", "paper"],
    "expected": ["uv", "run", "python", "benchmarks/measure_workflow.py", "--expect"],
    "tests": ["uv", "run", "pytest"],
    "compiled-tests": ["uv", "run", "pytest"],
    "all-tests": ["uv", "run", "pytest", "--all"],
    "paper": ["uv", "run", "snakemake", "--cores", "all", "--config", "scale=paper"],
}
# Where the results of a part are.
FOLDERS = {"quick": "results/quick", "compiled": "anew/quick", "paper": "results/paper"}
# Wall clock time on two quiet cores, in seconds.
GOALS = {
    "first picture": 60,
    "quick": 360,
    "compiled": 360,
    "plan": 5,
    "tests": 360,
    "compiled-tests": 360,
    "all-tests": 960,
    "paper": 6000,
}
SECONDS_BETWEEN_LOOKS = 0.5


@dataclass(frozen=True)
class Took:
    """What a command took, and what it said last."""

    wall: float
    processor: float
    code: int
    last: str
    first_picture: Took | None = None


def run(command: list[str], folder: Path, log: Path, results: Path | None = None) -> Took:
    """Run a command and wait for it; look for the first picture in `results` meanwhile."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    pictures: list[Took] = []
    over = threading.Event()

    def look() -> None:
        while results is not None and not over.wait(SECONDS_BETWEEN_LOOKS):
            if next(results.glob("*/*.png"), None):
                pictures.append(Took(time.monotonic() - start, processor_time(), 0, ""))
                return

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    cache = {"XDG_CACHE_HOME": str(folder.parent / "cache")}
    # The environment is that of the clone, whoever started this.
    inherited = {key: value for key, value in os.environ.items() if key != "VIRTUAL_ENV"}
    with log.open("w", encoding="utf-8") as file:
        done = subprocess.run(
            command, cwd=folder, stdout=file, stderr=file, env=inherited | cache, check=False
        )
    over.set()
    watcher.join()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    first = pictures[0] if pictures else None
    return Took(time.monotonic() - start, used, done.returncode, lines[-1] if lines else "", first)


def processor_time() -> float:
    """Return the processor seconds of all living processes that this one has started.

    Those that have ended count in the ones that waited for them.
    """
    used = 0.0
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            times = process.cpu_times()
            used += times.user + times.system + times.children_user + times.children_system
    return used


def stages(results: Path) -> Iterator[tuple[str, int, float]]:
    """Yield the stages of a run: their jobs and processor seconds, by the provenance of papers."""
    jobs: dict[str, int] = defaultdict(int)
    seconds: dict[str, float] = defaultdict(float)
    for path in results.glob("*/provenance.json"):
        for name, stage in json.loads(path.read_text(encoding="utf-8"))["jobs"].items():
            jobs[name] += int(stage["jobs"])
            seconds[name] += float(stage["cpu_seconds"])
    for name in sorted(jobs, key=lambda name: -seconds[name]):
        yield name, jobs[name], seconds[name]


def print_expected() -> int:
    """Print what the published grids should take, and what published results took."""
    from dpmc import yaml_files
    from dpmc_papers.config import foreign_methods
    from dpmc_papers.pipeline import costs, plan
    from dpmc_papers.pipeline.workload import Workload

    values = yaml_files.read_yaml(ROOT / "config" / "config.yaml") | {"scale": "paper"}
    config = foreign_methods.load_config(values, ROOT)
    known = costs.load(ROOT / "config" / "costs.yaml")
    expected = away = published = 0.0
    for key in config.papers:
        work = Workload(config, key)
        expected += costs.total(stage.seconds for stage in plan.stages(work, known))
        away += costs.total(x.seconds for x in plan.lines(work, known, budgets=False) if not x.here)
        record = json.loads((ROOT / "results" / "published" / key / "provenance.json").read_text())
        published += record["jobs"]["all"]["cpu_seconds"]
    print(
        f"{expected - away:.0f} s of processor time expected, {away:.0f} s more with raw files that"
        f" are not here; jobs behind the published results took {published:.0f} s"
    )
    return 0


def line(what: str, took: Took) -> str:
    """Return what a part took as a line of the table."""
    goal = f"{GOALS[what]:7.0f}" if what in GOALS else f"{'':7}"
    return f"{what:14} {took.wall:9.1f} {took.processor:10.0f} {goal}  {took.last}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--parts",
        nargs="+",
        choices=COMMANDS,
        default=["quick", "again", "compiled", "plan", "expected"],
    )
    parser.add_argument("--expect", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help="an empty one; a temporary one by default")
    parser.add_argument("--against", metavar="COMMIT", help="measured first, for ratios")
    asked = parser.parse_args()
    if asked.expect:
        return print_expected()
    folder = asked.folder or Path(tempfile.mkdtemp(prefix="dpmc-measured-"))
    if asked.against is None:
        return int(any(took.code for took in measure(folder, "HEAD", asked.parts).values()))
    before = measure(folder / "before", asked.against, asked.parts)
    now = measure(folder / "now", "HEAD", asked.parts)
    print(f"{'ratio':14} {'wall':>9} {'CPU':>10}")
    for part in (part for part in now if part in before):
        wall = now[part].wall / before[part].wall
        print(f"{part:14} {wall:9.2f} {now[part].processor / before[part].processor:10.2f}")
    return int(any(took.code for took in (*before.values(), *now.values())))


def measure(folder: Path, commit: str, parts: list[str]) -> dict[str, Took]:
    """Run parts in a clone of this repository, print what they took, and return it."""
    clone, took = folder / "dpmc", {}
    subprocess.run(["git", "clone", "--quiet", "--no-checkout", str(ROOT), str(clone)], check=True)
    subprocess.run(["git", "checkout", "--quiet", "--detach", commit], cwd=clone, check=True)
    name = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=clone,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    print(f"commit {name} in {clone}; load of the machine at the start {os.getloadavg()[0]:.1f}")
    print(f"{'':14} {'wall, s':>9} {'CPU, s':>10} {'goal, s':>7}", flush=True)
    took["environment"] = run(["uv", "sync"], clone, folder / "sync.log")
    print(line("environment", took["environment"]), flush=True)
    for part in parts:
        results = clone / FOLDERS[part] if part in FOLDERS else None
        took[part] = run(COMMANDS[part], clone, folder / f"{part}.log", results)
        first = took[part].first_picture
        if first is not None and part == "quick":
            took["first picture"] = first
            print(line("first picture", first))
        print(line(part, took[part]), flush=True)
        for stage, jobs, seconds in stages(results) if results else ():
            print(f"    {stage:12} {jobs:6} jobs {seconds:9.0f} s of processor time")
    return took


if __name__ == "__main__":
    sys.exit(main())
