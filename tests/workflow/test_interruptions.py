"""Runs that are killed, run out of disk, read damaged files or meet each other.

Each goes on to the same bytes or stops with one line, and nothing wrong is ever read.
"""

from __future__ import annotations

import base64
import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.workflow.conftest import TINY, Project, copy_finished, copy_tiny

pytestmark = pytest.mark.slow

PAPER = "raisa2021dphmc"
KILLS = 12
SEED = 5
# Written by every run anew, with dates and times; the site repeats them.
DATED = {"logs", "benchmarks", "site", "provenance.json"}
# Those of the site are named by the place of the results.
REQUESTS = "requests"
LONGEST = 1200.0


@pytest.fixture(scope="module")
def tiny(tiny: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a copy of its own: outputs that are made anew here are new nowhere else."""
    return copy_finished(tiny, tmp_path_factory)


def contents(results: Path) -> dict[str, bytes]:
    """Return all files of a folder of results that are a function of the settings, by name."""
    found = {}
    for path in sorted(results.rglob("*")):
        inside = path.relative_to(results)
        if inside.parts[0] == REQUESTS or not DATED.isdisjoint(inside.parts):
            continue
        if path.is_file() and not path.name.startswith("."):
            found[str(inside)] = path.read_bytes()
    return found


def hidden(results: Path) -> list[str]:
    return [path.name for path in results.rglob(".partial.*")]


def told(output: str) -> list[str]:
    return [line for line in output.splitlines() if line.startswith("dpmc: ")]


@dataclass
class Run:
    """A run in a session of its own.

    Parameters
    ----------
    process : Popen
        The scheduler.
    output : Path
        What the run says.
    """

    process: subprocess.Popen[bytes]
    output: Path

    def all(self) -> list[psutil.Process]:
        """Return the living processes of the session."""
        found = []
        for process in psutil.process_iter():
            try:
                alive = process.status() != psutil.STATUS_ZOMBIE
                if alive and os.getsid(process.pid) == self.process.pid:
                    found.append(process)
            except (psutil.NoSuchProcess, ProcessLookupError):
                continue
        return found

    def jobs(self) -> list[psutil.Process]:
        """Return those that do the work of a job."""
        return [process for process in self.all() if _is_job(process)]

    def said(self) -> str:
        return self.output.read_text(encoding="utf-8")


def _is_job(process: psutil.Process) -> bool:
    try:
        line = process.cmdline()
    except psutil.NoSuchProcess:
        return False
    return len(line) == 2 and ".snakemake/scripts" in line[1]


@contextmanager
def running(project: Project, *arguments: str, config: tuple[str, ...] = TINY) -> Iterator[Run]:
    """Start a run; whatever lives at the end is killed."""
    output = project.folder / "output.txt"
    with output.open("wb") as file:
        process = subprocess.Popen(
            project.command(*arguments, "--config", *config),
            cwd=project.folder,
            env=project.environment(),
            stdout=file,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    run = Run(process, output)
    try:
        yield run
    finally:
        for other in run.all():
            _kill(other)
        process.wait()


def _kill(process: psutil.Process) -> None:
    try:
        process.kill()
    except psutil.NoSuchProcess:
        return


def wait_until(condition: Callable[[], object], what: str, longest: float = LONGEST) -> None:
    deadline = time.monotonic() + longest
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {longest:.0f} s"
        time.sleep(0.1)


def kill_scheduler(run: Run) -> None:
    """Kill the scheduler alone: its jobs end by themselves."""
    os.kill(run.process.pid, signal.SIGKILL)
    run.process.wait()
    wait_until(lambda: not run.all(), "jobs outlive their scheduler")


def kill_everything(run: Run) -> None:
    """Kill all at once, as a power cut does."""
    for process in run.all():
        _kill(process)
    run.process.wait()


def kill_job(run: Run, rng: random.Random) -> bool:
    """Kill a job, wait for the run to end without it, and return whether one was there."""
    jobs = run.jobs()
    if not jobs:
        return False
    _kill(rng.choice(jobs))
    run.process.wait(LONGEST)
    said = run.said()
    # A job that was through but for its exit has done its work.
    if run.process.returncode:
        assert "Error in rule" in said
        assert "Traceback" not in said
    return bool(run.process.returncode)


def test_twenty_kills_change_no_byte(tiny: Project, tmp_path: Path) -> None:
    """Moments and victims are seeded; only how far a run is by then depends on the machine."""
    expected = contents(tiny.folder / "results" / "tiny")
    project = copy_tiny(tmp_path)
    results = project.folder / "results" / "tiny"
    rng = random.Random(SEED)
    kills: Counter[str] = Counter()
    rounds = 0
    while kills.total() < KILLS or not rounds:
        victim = rng.choice(["scheduler", "everything", "everything", "job"])
        share = rng.random()
        start = time.monotonic()
        with running(project) as run:
            # The first job marks the time that a start takes on this machine, now.
            wait_until(lambda: run.process.poll() is not None or run.jobs(), "no job began")
            moment = time.monotonic() + share * (time.monotonic() - start)
            while time.monotonic() < moment and run.process.poll() is None:
                time.sleep(0.02)
            if kills.total() >= KILLS:
                run.process.wait(LONGEST)
            if run.process.poll() is not None:
                assert run.process.returncode == 0, run.said()[-3000:]
            elif victim == "job":
                kills[victim] += kill_job(run, rng)
            else:
                (kill_scheduler if victim == "scheduler" else kill_everything)(run)
                kills[victim] += 1
            ended = run.process.returncode == 0
        found = contents(results)
        wrong = [name for name in found if found[name] != expected.get(name)]
        assert wrong == [], f"after {dict(kills)}"
        if ended:
            assert found.keys() == expected.keys()
            assert hidden(results) == []
            rounds += 1
            shutil.rmtree(project.folder / "results")
    assert all(kills[victim] for victim in ("scheduler", "everything", "job")), kills


def test_a_run_killed_at_the_end_of_a_job_goes_on_to_the_end(tiny: Project, tmp_path: Path) -> None:
    """The file has its name, so that it is whole, and Snakemake still marks it as incomplete."""
    expected = contents(tiny.folder / "results" / "tiny")
    project = copy_tiny(tmp_path)
    begun = project.snakemake("--until", "reference", config=TINY)
    assert begun.returncode == 0, begun.stdout[-3000:]
    (made,) = (project.folder / "results/tiny" / PAPER / "reference").glob("plane-*.parquet")
    name = base64.urlsafe_b64encode(bytes(made.relative_to(project.folder))).decode()
    marker = project.folder / ".snakemake" / "incomplete" / name
    marker.write_text(json.dumps({"external_jobid": None}), encoding="utf-8")
    done = project.snakemake(config=TINY)
    assert done.returncode == 0, done.stdout[-3000:]
    assert contents(project.folder / "results" / "tiny") == expected


def damaged(path: Path, rng: random.Random) -> None:
    """Change one byte of a file, or cut its end off; its time stays."""
    content, stat = path.read_bytes(), path.stat()
    place = rng.randrange(1, len(content))
    if rng.random() < 0.5:
        path.write_bytes(content[:place])
    else:
        path.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


# Files, and what is made from them: settings and metrics, then rows and chains, none of which is
# needed by the others.
DAMAGE = (
    (
        ("requests/budget-*.json", "metrics/comparison/plane-*.parquet"),
        ("budget.csv", "figure1.png"),
    ),
    (
        ("data/plane-*.parquet", "chains/comparison/plane/dp_hmc/eps=2-*/0-1.parquet"),
        ("baselines/plane-*.parquet", "metrics/comparison/plane-*.parquet"),
    ),
)


def test_damaged_files_are_told_of_and_made_anew_once_they_are_deleted(tiny: Project) -> None:
    folder = tiny.folder / "results" / "tiny" / PAPER
    expected = contents(folder)
    rng = random.Random(SEED)
    broken = []
    for files, readers in DAMAGE:
        paths = [next(folder.glob(name)) for name in files]
        targets = [str(next(folder.glob(name)).relative_to(tiny.folder)) for name in readers]
        for path in paths:
            damaged(path, rng)
        for target in targets:
            (tiny.folder / target).unlink()
        done = tiny.snakemake(*targets, config=TINY)
        assert done.returncode != 0
        lines = told(done.stdout)
        assert len(lines) == len(targets), done.stdout
        assert all("truncated or damaged" in line for line in lines)
        assert "Traceback" not in done.stdout
        assert not any((tiny.folder / target).exists() for target in targets)
        broken += paths
    for path in broken:
        path.unlink(missing_ok=True)
    done = tiny.snakemake(config=TINY)
    assert done.returncode == 0, done.stdout[-3000:]
    assert contents(folder) == expected


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Return the place of a small disk of its own."""
    place = tmp_path / "disk"
    place.mkdir()
    made = mount("-t", "tmpfs", "-o", "size=64m", "tmpfs", str(place))
    if made.returncode:
        pytest.skip(f"no file system can be mounted here: {made.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def mount(*arguments: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(["mount", *arguments], capture_output=True, text=True, timeout=60)
    except OSError as error:
        return subprocess.CompletedProcess(arguments, 1, "", str(error))


def test_a_full_disk_and_one_that_is_read_only_stop_a_run_until_that_is_mended(
    tiny: Project, tmp_path: Path, disk: Path
) -> None:
    """Once the settings are there, logs have room and the rows have not."""
    expected = contents(tiny.folder / "results" / "tiny")
    project = copy_tiny(tmp_path / "project")
    config = (*TINY, f"results_dir={disk}")
    begun = project.snakemake("--until", "request", config=config)
    assert begun.returncode == 0, begun.stdout[-3000:]
    (rows,) = (len(expected[name]) for name in expected if name.startswith(f"{PAPER}/data/"))
    used = shutil.disk_usage(disk).used
    assert mount("-o", f"remount,size={used + rows - 4096}", str(disk)).returncode == 0
    full = project.snakemake(config=config)
    assert full.returncode != 0
    lines = told(full.stdout)
    assert lines, full.stdout
    assert all("No space left on device" in line for line in lines), full.stdout
    assert "Traceback" not in full.stdout
    found = contents(disk / "tiny")
    assert all(found[name] == expected[name] for name in found)
    assert len(found) < len(expected)

    assert mount("-o", "remount,ro,size=64m", str(disk)).returncode == 0
    refused = project.snakemake(config=config)
    assert refused.returncode != 0
    (line,) = told(refused.stdout)
    assert "Read-only file system" in line
    assert "Traceback" not in refused.stdout
    assert "rule" not in refused.stdout.replace(line, "").lower().split()

    assert mount("-o", "remount,rw,size=64m", str(disk)).returncode == 0
    done = project.snakemake(config=config)
    assert done.returncode == 0, done.stdout[-3000:]
    assert contents(disk / "tiny") == expected
    assert hidden(disk) == []

    assert mount("-o", "remount,ro", str(disk)).returncode == 0
    idle = project.snakemake(config=config)
    assert idle.returncode == 0, idle.stdout
    assert "Nothing to be done" in idle.stdout


def test_the_second_of_two_runs_stops_and_the_first_goes_on(tiny: Project, tmp_path: Path) -> None:
    """Two copies of the project, each with records of its own, and one folder of results."""
    expected = contents(tiny.folder / "results" / "tiny")
    first, second = copy_tiny(tmp_path / "first"), copy_tiny(tmp_path / "second")
    config = (*TINY, f"results_dir={tmp_path / 'shared'}")
    with running(first, "--until", "metrics", config=config) as run:
        wait_until(lambda: run.process.poll() is not None or run.jobs(), "no job began")
        # It is stopped while the other looks: however slow the machine, both are there at once.
        os.kill(run.process.pid, signal.SIGSTOP)
        other = second.snakemake(config=config)
        looked = second.snakemake("-n", config=config)
        os.kill(run.process.pid, signal.SIGCONT)
        assert other.returncode != 0
        (line,) = told(other.stdout)
        assert f"process {run.process.pid} on " in line
        assert "one run at a time" in line
        assert "Traceback" not in other.stdout
        assert looked.returncode == 0  # a plan writes nothing
        assert told(looked.stdout) == []
        run.process.wait(LONGEST)
        assert run.process.returncode == 0, run.said()[-3000:]
    found = contents(tmp_path / "shared" / "tiny")
    assert all(found[name] == expected[name] for name in found)
    assert any("metrics/" in name for name in found)
