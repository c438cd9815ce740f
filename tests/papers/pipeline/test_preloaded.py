"""Jobs that are forks of one process: as scripts by themselves, however something ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from dpmc_papers.pipeline import folders, preloaded

SCRIPTS = Path(__file__).parents[3] / "workflow" / "scripts"
LONGEST = 120.0
# A script of the workflow: what Snakemake puts before it, and what `_job` does first.
HEAD = f"""
import os, sys, time
from types import SimpleNamespace
sys.path.append({str(SCRIPTS)!r})
snakemake = SimpleNamespace(log=[os.environ.get("LOG", "logs/chains/0-1.log")])
import _handover
_handover.hand_over(snakemake)
FORKED = "matplotlib.pyplot" in sys.modules
"""

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="jobs import for themselves")


def wait_until(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + LONGEST
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {LONGEST:.0f} s"
        time.sleep(0.02)


def started() -> psutil.Process:
    """Start the process for jobs of this one, and wait for it."""
    preloaded.start()
    place = Path(os.environ[preloaded.PLACE].rpartition(os.pathsep)[2])
    wait_until(place.exists, "the process has not imported")
    return psutil.Process(preloaded._started[-1][0].pid)


@pytest.fixture(scope="module")
def process() -> Iterator[psutil.Process]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DPMC_SCHEDULER", folders.this_process())
        yield started()
        preloaded.end()


class Script:
    """A script in a folder, run as the workflow runs it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def start(self, text: str, **environment: str) -> subprocess.Popen[str]:
        file = self.folder / f"script{len(list(self.folder.iterdir()))}.py"
        file.write_text(HEAD + textwrap.dedent(text))
        return subprocess.Popen(
            [sys.executable, file.name],
            cwd=self.folder,
            env={**os.environ, **environment},
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(self, text: str, **environment: str) -> tuple[int, str, str]:
        process = self.start(text, **environment)
        out, err = process.communicate(timeout=LONGEST)
        return process.returncode, out, err


@pytest.fixture
def another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a test start processes of its own beside the one that others share."""
    monkeypatch.setenv("DPMC_SCHEDULER", folders.this_process())
    monkeypatch.setenv(preloaded.PLACE, "")
    monkeypatch.setattr(preloaded, "_started", [])


@pytest.fixture
def script(process: psutil.Process, tmp_path: Path) -> Script:
    return Script(tmp_path)


def test_a_script_is_a_fork_with_its_own_surroundings(script: Script, process: psutil.Process):
    text = """
    import json
    print(json.dumps([FORKED, os.getppid(), os.getcwd(), os.environ["OWN"], sys.argv, __name__]))
    print("told", file=sys.stderr)
    """
    code, out, err = script.run(text, OWN="a word")
    told = [True, process.pid, str(script.folder), "a word", ["script0.py"], "__main__"]
    assert (code, json.loads(out), err) == (0, told, "told\n")


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("sys.exit(3)", 3, ""),
        ("sys.exit('a word')", 1, ""),
        ("1 / 0", 1, "ZeroDivisionError"),
        ("os.kill(os.getpid(), 9)", -9, ""),
        ("sys.exit()", 0, ""),
    ],
)
def test_it_ends_as_the_script_does(script: Script, text: str, code: int, said: str):
    found, _, err = script.run(f"assert FORKED\n{text}")
    assert found == code
    assert said in err


def test_nothing_is_left_of_a_job_for_the_next(script: Script):
    left = """
    import numpy
    numpy.left = 1
    os.environ["LEFT"] = "1"
    sys.path.append("left")
    os.chdir("/")
    """
    assert script.run(left)[0] == 0
    look = """
    import numpy
    print(FORKED, hasattr(numpy, "left"), "LEFT" in os.environ, "left" in sys.path)
    """
    assert script.run(look)[:2] == (0, "True False False False\n")


def test_many_at_once_are_told_their_own_ends(script: Script):
    text = "time.sleep(0.2)\nsys.exit(int(os.environ['CODE']))"
    runs = [script.start(text, CODE=str(code)) for code in range(12)]
    assert [run.wait(LONGEST) for run in runs] == list(range(12))


@pytest.mark.parametrize(
    "environment",
    [
        {"LOG": "logs/run_times/times.log"},
        {"DPMC_SCHEDULER": "4194305@elsewhere"},
        {"DPMC_SCHEDULER": f"{os.getpid()}@elsewhere"},
        {"DPMC_SCHEDULER": ""},
        {preloaded.PLACE: ""},
        {preloaded.PLACE: f"another python{os.pathsep}/tmp/none"},
        {preloaded.PLACE: f"{sys.executable}{os.pathsep}/tmp/none"},
    ],
    ids=[
        "measures times",
        "of another run",
        "elsewhere",
        "of none",
        "no process",
        "other Python",
        "no socket",
    ],
)
def test_others_import_for_themselves(script: Script, environment: dict[str, str]):
    assert script.run("print(FORKED)", **environment)[:2] == (0, "False\n")


def test_a_job_ends_with_its_script(script: Script):
    run = script.start("print(os.getpid(), flush=True)\ntime.sleep(600)")
    assert run.stdout is not None
    job = psutil.Process(int(run.stdout.readline()))
    run.kill()
    run.communicate()
    wait_until(lambda: not job.is_running(), "the job outlives its script")


@pytest.mark.usefixtures("another")
def test_a_script_whose_process_is_killed_does_its_job_itself(tmp_path: Path):
    """Once: what it did before has ended with the process."""
    process = started()
    run = Script(tmp_path).start(
        "print(FORKED, os.getpid(), flush=True)\nif FORKED: time.sleep(600)"
    )
    assert run.stdout is not None
    forked, number = run.stdout.readline().split()
    job = psutil.Process(int(number))
    process.send_signal(signal.SIGKILL)
    out, _ = run.communicate(timeout=LONGEST)
    assert (forked, run.returncode, out) == ("True", 0, f"False {run.pid}\n")
    wait_until(lambda: not job.is_running(), "the job outlives the process that it is a fork of")
    preloaded.end()


@pytest.mark.slow
def test_the_process_ends_with_the_one_that_started_it():
    text = """
    import time
    from dpmc_papers.pipeline import preloaded
    preloaded.start()
    ((process, folder),) = preloaded._started
    print(process.pid, folder, flush=True)
    time.sleep(600)
    """
    command = [sys.executable, "-c", textwrap.dedent(text)]
    run = subprocess.Popen(command, text=True, stdout=subprocess.PIPE)
    assert run.stdout is not None
    number, folder = run.stdout.readline().split()
    process = psutil.Process(int(number))
    wait_until((Path(folder) / "jobs").exists, "the process has not imported")
    run.kill()
    run.communicate()
    wait_until(lambda: not process.is_running(), "the process outlives the run")
    assert not Path(folder).exists()


@pytest.mark.slow
@pytest.mark.usefixtures("another")
def test_a_folder_of_temporary_files_without_room_for_a_socket_stops_nothing(
    monkeypatch, tmp_path: Path, capfd
):
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    preloaded.start()
    assert preloaded._started[-1][0].wait(LONGEST) == 0
    preloaded.end()
    assert list(folder.iterdir()) == []
    assert capfd.readouterr().err == ""


@pytest.mark.usefixtures("another")
def test_a_run_with_little_to_make_starts_none(monkeypatch, tmp_path: Path):
    begun: list[object] = []
    monkeypatch.setattr(preloaded, "start", begun.append)
    files = [str(tmp_path / f"{k}") for k in range(preloaded.LEAST_FILES)]
    Path(files[0]).touch()
    preloaded.start_for(files)
    assert begun == []
    preloaded.start_for([*files, "another"])
    assert len(begun) == 1


def test_what_it_imports_exists(script: Script):
    """One that is misspelt would be left out without a word."""
    text = """
    from dpmc_papers.pipeline import preloaded
    print([name for name in preloaded.MODULES if name not in sys.modules])
    """
    assert script.run(f"assert FORKED\n{textwrap.dedent(text)}")[:2] == (0, "[]\n")
