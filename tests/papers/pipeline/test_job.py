"""What the scripts of the workflow share: files that appear whole, logs, progress, an end."""

from __future__ import annotations

import errno
import importlib.util
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from snakemake.iocontainers import InputFiles, Log, OutputFiles

import dpmc
from dpmc_papers.pipeline import folders
from tests.support.posteriors import gaussian_model, rows

SCRIPTS = Path(__file__).parents[3] / "workflow" / "scripts"


@pytest.fixture(autouse=True)
def no_scheduler(monkeypatch):
    monkeypatch.delenv("DPMC_SCHEDULER", raising=False)


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("_job", SCRIPTS / "_job.py")
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(SCRIPTS)
        spec.loader.exec_module(module)
    return module


def job_of(folder: Path, inputs: tuple[Path, ...] = (), log: str | None = None) -> SimpleNamespace:
    output = {name: str(folder / f"figure.{name}") for name in ("pdf", "png")}
    (folder / "logs").mkdir(exist_ok=True)
    return SimpleNamespace(
        input=InputFiles(toclone=list(map(str, inputs))),
        output=OutputFiles(fromdict=output),
        log=Log(toclone=[log or str(folder / "logs" / "figure.log")]),
        rule="figure",
    )


def log_of(folder: Path) -> str:
    return (folder / "logs" / "figure.log").read_text()


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.is_file()}


def test_outputs_are_found_by_number_and_by_name(script):
    outputs = script.Outputs(OutputFiles(fromdict={"first": "a/x", "second": "a/y"}), str.upper)
    assert list(outputs) == ["A/X", "A/Y"]
    assert (outputs.first, outputs.second) == ("A/X", "A/Y")


def test_files_get_their_names_when_all_is_done(script, tmp_path):
    task = job_of(tmp_path)
    with script.job(task):
        Path(task.output.pdf).write_text("pdf")
        Path(task.output[1]).write_text("png")
        assert Path(task.output.pdf).suffix == ".pdf"
        assert names(tmp_path) == {Path(path).name for path in task.output}
        assert all(name.startswith(".partial.") for name in names(tmp_path))
    assert names(tmp_path) == {"figure.pdf", "figure.png"}
    folders.check([tmp_path / "figure.pdf", tmp_path / "figure.png"])
    assert len(re.findall("(?m)^sha256 [0-9a-f]{64} figure", log_of(tmp_path))) == 2
    (tmp_path / "figure.png").write_text("pgn")
    with pytest.raises(SystemExit), script.job(job_of(tmp_path, (tmp_path / "figure.png",))):
        raise AssertionError("the work began")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (dpmc.DpmcError("`epsilon` must be positive, got -1"), "dpmc: `epsilon` must be positive"),
        (
            OSError(errno.ENOSPC, "full", "x/y"),
            "dpmc: x/y must be a place that",
        ),
        (OSError(errno.EROFS, "read"), "dpmc: {folder}/figure.pdf must be a place that"),
    ],
)
def test_a_job_that_fails_leaves_one_line_and_no_file(script, tmp_path, error, told):
    def fail():
        task = job_of(tmp_path)
        with script.job(task):
            Path(task.output.pdf).write_text("half")
            raise error

    with pytest.raises(SystemExit) as ended:
        fail()
    assert ended.value.code == 1
    assert names(tmp_path) == set()
    (line,) = log_of(tmp_path).splitlines()
    assert line.startswith(told.format(folder=tmp_path))


@pytest.mark.parametrize(
    ("number", "path", "line"),
    [
        (errno.EACCES, "raw/abalone.data", "dpmc: raw/abalone.data: Permission denied"),
        (errno.EIO, "raw/abalone.data", "dpmc: raw/abalone.data: Input/output error"),
        (errno.EIO, None, "dpmc: {folder}/figure.pdf: Input/output error"),
        (errno.EROFS, "cache", "dpmc: cache must be a place that can be written to: Read-only"),
        (errno.EACCES, "{own}", "dpmc: {own} must be a place that can be written to: Permission"),
        (errno.EIO, "{folder}", "dpmc: {folder} must be a place that can be written to: Input"),
    ],
)
def test_what_cannot_be_read_is_not_called_a_place_to_write_to(
    script, tmp_path, number, path, line
):
    places = {"folder": tmp_path, "own": folders.own_name(tmp_path / "figure.pdf")}
    where = path and path.format(**places)
    with pytest.raises(SystemExit), script.job(job_of(tmp_path)):
        raise OSError(number, "told otherwise", where)
    (told,) = log_of(tmp_path).splitlines()
    assert told.startswith(line.format(**places))


def made(folder: Path, output: str, log: str) -> SimpleNamespace:
    """Return a job of some rule that makes one file."""
    places = [os.path.normpath(folder / path) for path in (output, log)]
    for path in places:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    return SimpleNamespace(
        input=InputFiles(),
        output=OutputFiles(toclone=places[:1]),
        log=Log(toclone=places[1:]),
        rule="of_some_other_name",
    )


POINT = "comparison/plane/dp_hmc/eps=4-12345678/0-1"


@pytest.mark.parametrize(
    ("output", "log", "forgets", "unit"),
    [
        ("figure1.png", "logs/figure1.log", True, "steps"),
        (f"chains/{POINT}.parquet", f"logs/chains/{POINT}.log", True, "iterations"),
        ("studies/logs/chains-1.parquet", "logs/studies/logs/chains-1.log", True, "steps"),
        ("requests/figure1-1.json", "logs/requests/figure1-1.log", False, "steps"),
        (f"by_seed/{POINT}.parquet", f"logs/by_seed/{POINT}.log", False, "steps"),
        ("../site/thesis/index.html", "logs/page.log", False, "steps"),
        ("../site/index.html", "../logs/site.log", False, "steps"),
    ],
)
def test_a_job_that_makes_a_result_ends_the_record_of_its_paper_alone(
    script, tmp_path, output, log, forgets, unit
):
    """Results may lie in a folder of logs, and rules have other names where they are imported."""
    paper = tmp_path / "logs" / "dpmc" / "quick" / "thesis"
    others = [folder / "provenance.json" for folder in list(paper.parents)[:4]]
    task = made(paper, output, log)
    paper.mkdir(parents=True, exist_ok=True)
    for record in (paper / "provenance.json", *others):
        record.touch()
    with script.job(task) as progress:
        Path(task.output[0]).touch()
    assert (paper / "provenance.json").exists() == (not forgets)
    assert all(record.exists() for record in others)
    assert progress.unit == unit


def test_a_job_without_outputs_ends_no_record(script, tmp_path):
    task = made(tmp_path, "figure.png", "logs/publish.log")
    task.output = OutputFiles()
    (tmp_path / "provenance.json").touch()
    with script.job(task):
        pass
    assert (tmp_path / "provenance.json").exists()


def test_a_fault_of_the_code_is_shown_with_its_place(script, tmp_path):
    with pytest.raises(SystemExit), script.job(job_of(tmp_path)):
        raise OSError(errno.ENOENT, "missing", "file")
    assert "Traceback" in log_of(tmp_path)


def test_a_log_on_a_full_disk_goes_to_standard_error(script, tmp_path, capfd):
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    with pytest.raises(SystemExit), script.job(job_of(tmp_path, log="/dev/full")):
        raise dpmc.DpmcError("told all the same")
    assert "dpmc: told all the same" in capfd.readouterr().err


class Lines(list):
    write = list.append


def test_progress_tells_what_is_done_and_the_time_left(script):
    lines, now = Lines(), [0.0]
    progress = script.Progress(lines, "iterations", lambda: now[0])
    for seconds, done in ((60, 500), (62, 600), (70, 1000), (80, 1500), (90, 8000)):
        now[0] = seconds
        progress(done, 8000, "accepted 0.250")
    assert lines == [
        "500 of 8000 iterations (6%), accepted 0.250, 15 min 0 s left\n",
        # The minute before the first report, of compiling and reading, is no measure.
        "1000 of 8000 iterations (12%), accepted 0.250, 2 min 20 s left\n",
        "1500 of 8000 iterations (19%), accepted 0.250, 2 min 10 s left\n",
        "8000 of 8000 iterations (100%), accepted 0.250, 0 s left\n",
    ]


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0.4, "0 s"), (59.6, "1 min 0 s"), (3599, "59 min 59 s"), (7384, "2 h 3 min")],
)
def test_a_time_in_two_units(script, seconds, told):
    assert script.duration(seconds) == told


def test_a_silent_job_says_that_it_is_at_work(script, tmp_path, monkeypatch):
    monkeypatch.setattr(script, "SECONDS_OF_SILENCE", 0.1)
    task = job_of(tmp_path)
    with script.job(task):
        deadline = time.monotonic() + 60
        while "at work for" not in log_of(tmp_path):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        for path in task.output:
            Path(path).touch()
    assert re.search(r"(?m)^at work for \d+ s, (\d+ \w+ )+of processor time$", log_of(tmp_path))


WORK = """
import os, sys, time
sys.path.insert(0, {scripts!r})
import _job
class Log:
    def write(self, text):
        print(text, end="", flush=True)
_job._end_with_scheduler(Log())
print("at work", flush=True)
time.sleep(600)
"""


# Starts the work, as a scheduler does, and waits for it.
START = """
import os, subprocess, sys
sys.path.insert(0, {scripts!r})
from dpmc_papers.pipeline import folders
os.environ["DPMC_SCHEDULER"] = folders.this_process()
sys.exit(subprocess.run([sys.executable, "-c", {work!r}]).returncode)
"""


@pytest.mark.parametrize("pidfd", [True, False])
def test_a_job_ends_with_the_run_that_started_it(pidfd):
    code = WORK.format(scripts=str(SCRIPTS)).replace('"at work"', "os.getpid()")
    if not pidfd:
        code = f"import os\nif hasattr(os, 'pidfd_open'): del os.pidfd_open\n{code}"
    start = START.format(scripts=str(SCRIPTS), work=code)
    run = subprocess.Popen([sys.executable, "-c", start], stdout=subprocess.PIPE, text=True)
    try:
        work = psutil.Process(int(run.stdout.readline()))
        assert work.is_running()
        run.kill()
        run.wait()
        # The output is open for as long as the work lives.
        assert "the scheduler has ended" in run.communicate(timeout=60)[0]
        psutil.wait_procs([work], timeout=60)
        assert not work.is_running()
    finally:
        run.kill()
        run.communicate()


def scheduler_of(case: str) -> str:
    """Return what a job is told of its scheduler."""
    pid, place = folders.this_process().split("@")
    gone = f"{2**22}@{place}"  # more than any process has
    return {
        "of another machine": f"{pid}@elsewhere:pid:[1]",
        "of another name space": f"{pid}@{place}0",
        "that started it": f"{pid}@{place}",
        "that has ended": gone,
    }[case]


@pytest.mark.parametrize(
    ("case", "ends"),
    [
        ("of another machine", False),
        ("of another name space", False),
        ("that started it", True),
        ("that has ended", True),
    ],
)
def test_a_job_knows_whether_to_end_with_a_scheduler(case, ends, monkeypatch):
    monkeypatch.setattr(os, "getppid", os.getpid)
    assert folders.ends_with(scheduler_of(case)) == ends


def test_a_job_that_a_cluster_started_on_the_same_machine_goes_on():
    """Its scheduler lives there, and is none of those that started it."""
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        _, place = folders.this_process().split("@")
        assert not folders.ends_with(f"{other.pid}@{place}")
    finally:
        other.kill()
        other.wait()


def test_a_job_in_a_container_outlives_a_scheduler_that_it_cannot_see():
    """The number of the scheduler belongs to no process there, or to another one."""
    code = WORK.format(scripts=str(SCRIPTS)).replace("time.sleep(600)", "time.sleep(3)")
    environment = {**os.environ, "DPMC_SCHEDULER": scheduler_of("of another name space")}
    work = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=120
    )
    assert work.returncode == 0
    assert work.stdout.startswith("not started by its scheduler")
    here = {**environment, "DPMC_SCHEDULER": scheduler_of("that has ended")}
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=here, timeout=120
    )
    assert ended.returncode < 0


@pytest.mark.skipif(os.cpu_count() == 1, reason="one core: there are no threads to hold back")
def test_a_job_that_reserves_all_cores_starts_no_threads():
    """Its run times are those of one core; without the first import, linear algebra has more."""
    code = "import sys\nfrom snakemake import script\n{first}\nimport numpy, psutil\n"
    code += "numpy.ones((500, 500)) @ numpy.ones((500, 500))\nprint(psutil.Process().num_threads())"
    environment = {**os.environ, "OMP_NUM_THREADS": "2", "PYTHONPATH": str(SCRIPTS)}
    environment.pop("OPENBLAS_NUM_THREADS", None)
    threads = [
        int(
            subprocess.run(
                [sys.executable, "-c", code.format(first=first)],
                capture_output=True,
                text=True,
                env=environment,
                check=True,
            ).stdout
        )
        for first in ("import _job", "")
    ]
    assert threads[0] == 1 < threads[1]


def test_the_library_shows_a_bar(capsys):
    settings = {"proposal_sd": 0.1, "ratio_clip_bound": 2.0, "ratio_noise_multiplier": 50.0}
    given = {"epsilon": 4.0, "delta": 1e-5, "seed": 3, "num_chains": 2, **settings}
    fit = dpmc.fit(gaussian_model(), rows("bar", 500, 2), method="dp_penalty", **given)
    shown = capsys.readouterr().err
    total = 2 * fit.plan.num_iterations
    assert f"{total}/{total}" in shown
    assert "100%" in shown
    assert "accepted 0." in shown
    dpmc.fit(gaussian_model(), rows("bar", 500, 2), method="dp_penalty", progress=False, **given)
    assert capsys.readouterr().err == ""
