"""Runs that are killed, run out of disk, read damaged files or meet each other."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import psutil
import pytest

from tests.workflow.conftest import TINY, Project, copy_tiny

pytestmark = pytest.mark.slow

PAPER = "raisa2021dphmc"
CHAIN = f"results/tiny/{PAPER}/chains/comparison/plane/dp_hmc/eps=2/seeds=0-1.parquet"
METRICS = f"results/tiny/{PAPER}/metrics/comparison/plane.parquet"
Found = TypeVar("Found")
# How long anything here may take, in seconds.
LONGEST = 300


def contents(results: Path) -> dict[str, bytes]:
    """Return the results below a folder, without what differs between two runs."""
    folder = results / PAPER
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
    found = {str(path.relative_to(folder)): path for path in paths}
    # Pages are copies of the rest, and tell the date of the run.
    aside = ("logs/", "benchmarks/", "page/", "provenance.json")
    return {name: path.read_bytes() for name, path in found.items() if not name.startswith(aside)}


def wait_until(condition: Callable[[], Found], what: str) -> Found:
    """Return the first value of a condition that is true."""
    deadline = time.monotonic() + LONGEST
    while not (found := condition()):
        assert time.monotonic() < deadline, what
        time.sleep(0.02)
    return found


@contextmanager
def running(project: Project) -> Iterator[subprocess.Popen[str]]:
    """Start a run in a session of its own, and end all of it."""
    run = subprocess.Popen(
        project.command("--config", *TINY),
        cwd=project.folder,
        env=project.environment(),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        yield run
    finally:
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
        run.communicate()


def chain_jobs(run: subprocess.Popen[str]) -> list[psutil.Process]:
    """Return the processes of a run that make chains."""
    found = []
    try:
        below = psutil.Process(run.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []
    for process in below:
        # A process that ends meanwhile has no command line, or is not there any more.
        with suppress(psutil.NoSuchProcess):
            if "".join(process.cmdline()[-1:]).endswith(".chain.py"):
                found.append(process)
    return found


def test_a_killed_run_and_a_killed_job_change_no_byte(tiny: Project, tmp_path: Path) -> None:
    project = copy_tiny(tmp_path / "project")
    with running(project) as run:
        wait_until(lambda: chain_jobs(run), "no chain began")
        os.killpg(run.pid, signal.SIGKILL)
    # Snakemake says how its lock is taken away.
    done = project.snakemake(config=TINY)
    assert done.returncode != 0
    assert "--unlock" in done.stdout
    project.made("--unlock", config=TINY)
    with running(project) as run:
        wait_until(lambda: chain_jobs(run), "no chain began")[0].kill()
        said, _ = run.communicate(timeout=LONGEST)
    assert run.returncode != 0
    assert "Error in rule chain" in said
    said = project.made(config=TINY)
    assert "not what the configuration asks for" not in said.replace(".partial.", "")
    left = list((project.folder / "results").rglob(".partial.*"))
    expected = contents(tiny.folder / "results" / "tiny")
    found = contents(project.folder / "results" / "tiny")
    assert {name: found[name] for name in expected} == expected
    assert len(found) - len(expected) == len(left)  # named at the end of a run, to be removed


def test_a_damaged_file_stops_with_one_line_and_is_made_anew_once_it_is_deleted(
    tiny: Project, tmp_path: Path
) -> None:
    shutil.copytree(tiny.folder, tmp_path / "copy", symlinks=True)
    project = Project(tmp_path / "copy")
    path, before = project.folder / CHAIN, (tiny.folder / CHAIN).read_bytes()
    stat = path.stat()
    for content in (before[: len(before) // 2], before.replace(b'"seed": 1', b'"seed": 7')):
        assert content != before
        path.write_bytes(content)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        (project.folder / METRICS).unlink(missing_ok=True)
        line = project.refused(METRICS, config=TINY)
        assert line.startswith(f"dpmc: {CHAIN}: truncated or damaged")
        assert line.endswith("delete it and run again")
    path.unlink()
    project.made(METRICS, config=TINY)
    assert path.read_bytes() == before


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
    except FileNotFoundError as error:
        return subprocess.CompletedProcess([], 1, "", str(error))


def test_a_full_disk_stops_a_run_until_that_is_mended(
    tiny: Project, tmp_path: Path, disk: Path
) -> None:
    project = copy_tiny(tmp_path / "project")
    config, folder = (*TINY, f"results_dir={disk}"), f"{disk}/tiny/{PAPER}"
    chain = CHAIN.replace("results", str(disk), 1)
    project.made(f"{folder}/data/plane.parquet", config=config)
    used = shutil.disk_usage(disk).used
    assert mount("-o", f"remount,size={used + 4096}", str(disk)).returncode == 0
    line = project.refused(chain, config=config)
    assert "No space left on device" in line
    assert not Path(chain).exists()
    assert mount("-o", "remount,size=64m", str(disk)).returncode == 0
    project.made(METRICS.replace("results", str(disk), 1), config=config)
    found, expected = contents(disk / "tiny"), contents(tiny.folder / "results" / "tiny")
    assert METRICS.partition(f"{PAPER}/")[2] in found
    assert found.items() <= expected.items()


def test_the_second_of_two_runs_stops(tmp_path: Path) -> None:
    project = copy_tiny(tmp_path / "project")
    with running(project) as first:
        wait_until(lambda: chain_jobs(first), "no chain began")
        done = project.snakemake(config=TINY)
        assert done.returncode != 0
        assert "LockException" in done.stdout or "cannot be locked" in done.stdout
