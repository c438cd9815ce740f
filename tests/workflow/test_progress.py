"""What a run shows of its progress: one line in a terminal, text elsewhere.

One run in a terminal is a process of its own; the others are forks, as are most runs of tests.
"""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from tests.workflow.conftest import PRELOADED, TINY, Project, copy_finished

pytestmark = pytest.mark.slow

FIGURE = "results/tiny/raisa2021dphmc/figure1.pdf"
AGAIN = ("--forcerun", "figure", "--", FIGURE)
CONFIG = ("--config", *TINY)
LINE = "/1 jobs, 1 running"


@pytest.fixture(scope="module")
def tiny(tiny: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a copy of its own: outputs that are made anew here are new nowhere else."""
    return copy_finished(tiny, tmp_path_factory)


@contextmanager
def terminal() -> Iterator[tuple[int, Future[str]]]:
    """Return the end of a terminal of 100 columns that others write to, and all that they write."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    with ThreadPoolExecutor(1) as pool:
        said = pool.submit(read_to_end, ours)
        try:
            yield theirs, said
        finally:
            os.close(theirs)
    os.close(ours)


def read_to_end(terminal: int) -> str:
    said = b""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # nobody has the other end any more
            break
        if not part:
            break
        said += part
    return said.decode()


def in_terminal(project: Project, *arguments: str, term: str = "xterm") -> tuple[int, str]:
    """Run Snakemake in a terminal; return its status and all that it wrote there."""
    whole = ("--cores", "all", *CONFIG, *arguments)
    environment = {**project.environment(), "TERM": term}
    with terminal() as (end, said):
        done = PRELOADED.run(whole, project.folder, environment, os.ttyname(end))
    return done.returncode, said.result()


def alone_in_terminal(project: Project, *arguments: str) -> tuple[int, str]:
    """Do the same in a process of its own, as a user does."""
    with terminal() as (end, said):
        done = subprocess.run(
            project.command(*CONFIG, *arguments),
            cwd=project.folder,
            env={**project.environment(), "TERM": "xterm"},
            stdin=subprocess.DEVNULL,
            stdout=end,
            stderr=end,
            timeout=300,
            check=False,
        )
    return done.returncode, said.result()


@pytest.fixture(scope="module")
def shown(tiny: Project) -> tuple[int, str, str]:
    """Return the status of a run in a terminal, what it showed, and what its file has."""
    folder = tiny.folder / ".snakemake" / "log"
    before = set(folder.iterdir())
    status, said = alone_in_terminal(tiny, *AGAIN)
    (log,) = set(folder.iterdir()) - before
    return status, said, log.read_text(encoding="utf-8")


def test_a_terminal_shows_one_line(shown: tuple[int, str, str]) -> None:
    status, said, _ = shown
    assert status == 0, said
    lines = [line for line in said.split("\r") if LINE in line]
    assert lines
    assert all("left" in line and "\n" not in line for line in lines)
    assert all(len(line) <= 100 for line in lines)
    assert "Finished jobid" not in said
    assert "Job 0: figure1" not in said
    assert "1 of 1 steps (100%) done" in said


def test_the_file_of_the_run_has_every_line(shown: tuple[int, str, str]) -> None:
    assert "(Rule: figure)" in shown[2]


def test_the_line_names_the_last_figure(tiny: Project) -> None:
    (tiny.folder / FIGURE).unlink()
    status, said = in_terminal(tiny)
    assert status == 0, said
    assert " left, figure1 of raisa2021dphmc" in said


def test_a_terminal_shows_the_rule_and_the_log_of_a_job_that_failed(tiny: Project) -> None:
    broken = ("with job(snakemake):\n", 'with job(snakemake):\n    raise RuntimeError("planted")\n')
    with tiny.edited("workflow/scripts/figure.py", *broken):
        status, said = in_terminal(tiny, *AGAIN)
    assert status == 1
    assert "Error in rule figure" in said
    assert "results/tiny/raisa2021dphmc/logs/figure1.log" in said
    assert "RuntimeError: planted" in said
    (kept,) = [line for line in said.splitlines() if "What is complete is kept" in line]
    assert LINE not in kept.rpartition("\r")[2]
    assert in_terminal(tiny, *AGAIN)[0] == 0


def test_a_pipe_gets_the_lines_of_snakemake_and_the_time_left(tiny: Project) -> None:
    (tiny.folder / FIGURE).unlink()
    done = tiny.snakemake(config=TINY)
    assert done.returncode == 0, done.stdout
    assert "figure1 of raisa2021dphmc" in done.stdout
    assert "(Rule: figure)" in done.stdout
    assert " left\n" in done.stdout
    assert "\r" not in done.stdout


def test_a_dry_run_tells_the_reasons(tiny: Project) -> None:
    status, said = in_terminal(tiny, "-n", *AGAIN)
    assert status == 0
    assert "Reason: Forced execution" in said
    assert LINE not in said
    piped = tiny.snakemake("-n", FIGURE, "--forcerun", "figure", config=TINY)
    assert "Reason: Forced execution" in piped.stdout


@pytest.mark.parametrize(
    "options", [("--quiet",), ("--quiet", "progress"), ("--workflow-profile", "none")]
)
def test_who_asks_for_less_gets_no_line(tiny: Project, options: tuple[str, ...]) -> None:
    status, said = in_terminal(tiny, *options, *AGAIN)
    assert status == 0, said
    assert LINE not in said
    assert ("(Rule: figure)" in said) == ("none" in options)


def test_a_terminal_that_cannot_redraw_gets_lines(tiny: Project) -> None:
    status, said = in_terminal(tiny, *AGAIN, term="dumb")
    assert status == 0
    assert LINE not in said
    assert "(Rule: figure)" in said
