"""The profile for any scheduler: same bytes, lost jobs done again, jobs told apart by their ends.

The scheduler is a shell script of this folder. That for SLURM, which the profile comes with, is
tried on a real one by ``test_slurm``.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from dpmc_papers.pipeline import costs
from tests.workflow.conftest import TINY, Project, copy_tiny

PAPER = "raisa2021dphmc"
# What differs between two runs: times, hosts, and logs.
RECORDS = {"benchmarks", "logs", "provenance.json", "site"}
FOLDER = Path("profiles", "generic")
SITE = Path("profiles", "slurm", "site.yaml")
OFTEN = ("--seconds-between-status-checks", "1", "--max-status-checks-per-second", "20")


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the scheduler of tests."""
    folder = tmp_path / "fake"
    folder.mkdir()
    monkeypatch.setenv("FAKE_SCHEDULER", str(folder))
    monkeypatch.setenv("DPMC_SECONDS_TO_SHOW", "1")
    return folder


def use_fake(folder: Path) -> None:
    shutil.copy(Path(__file__).with_name("scheduler.sh"), folder / FOLDER / "scheduler.sh")


def contents(folder: Path) -> dict[str, bytes]:
    """Return all results below a folder, by their place."""
    return {
        str(inside): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and RECORDS.isdisjoint((inside := path.relative_to(folder)).parts)
        and not any(part.startswith(".") for part in inside.parts)
    }


@pytest.mark.slow
def test_a_run_with_a_lost_job_gives_the_same_bytes(
    fake: Path, tmp_path: Path, tiny: Project
) -> None:
    project = copy_tiny(tmp_path / "it's a copy")
    use_fake(project.folder)
    options = ("--profile", str(FOLDER), "--latency-wait", "5", *OFTEN)
    done = project.snakemake(*options, config=TINY)
    assert done.returncode == 0, done.stdout[-5000:]
    assert "ended without an exit code" in done.stdout
    assert done.stdout.count("Trying to restart") == 1
    here, there = (contents(p.folder / "results" / "tiny" / PAPER) for p in (project, tiny))
    assert sorted(here) == sorted(there)
    assert [name for name in here if here[name] != there[name]] == []
    assert len(here) > 15
    requests = [line.split() for line in (fake / "requests").read_text().splitlines()]
    chains = [request for request in requests if request[0].startswith("chains_tiny_")]
    assert [request[0] for request in chains] == [chains[0][0]] * 2
    (first, second) = ([int(value) for value in request[1:]] for request in chains)
    # Twice as much, each time rounded up to whole megabytes and minutes.
    assert second[0] == pytest.approx(2 * first[0], abs=4)
    assert second[1] == 2 * first[1]
    # Four chains are one submission, as are data, reference and baseline.
    assert len(requests) < 10
    assert list((project.folder / ".snakemake" / "cluster").glob("*/code")) == []


@pytest.mark.slow
def test_a_run_in_another_folder_is_submitted_with_the_limits_of_that_folder(
    fake: Path, tmp_path: Path
) -> None:
    project = copy_tiny(tmp_path / "it's a copy")
    use_fake(project.folder)
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / SITE).parent.mkdir(parents=True)
    (elsewhere / SITE).write_text("largest_memory_mb: 321\n", encoding="utf-8")
    target = f"results/tiny/{PAPER}/by_seed/plane/dp_hmc/eps=4/seed=1.parquet"
    options = ("--profile", str(FOLDER), "--latency-wait", "5", *OFTEN, "-d", str(elsewhere))
    done = project.snakemake(*options, target, config=TINY)
    assert done.returncode == 0, done.stdout[-5000:]
    assert (elsewhere / target).exists()
    requests = [line.split() for line in (fake / "requests").read_text().splitlines()]
    assert requests[0][0].startswith("problems_tiny_")
    assert {int(request[1]) for request in requests} == {321}
    assert not (project.folder / ".snakemake" / "cluster").exists()


@pytest.mark.slow
def test_points_with_commas_reach_a_node(fake: Path, tmp_path: Path) -> None:
    """A replicate of a study asks for what its study does; its first submission is lost."""
    project = copy_tiny(tmp_path / "project")
    use_fake(project.folder)
    (fake / "lost.2").touch()
    place = "regression/timed/mcmc_bs-correct/J=2,eps=1/seed=0.parquet"
    target = f"results/paper/vinaroz2022dpsep/draws/{place}"
    options = ("--profile", str(FOLDER), "--latency-wait", "5", *OFTEN)
    done = project.snakemake(*options, target, config=("scale=paper", "papers=vinaroz2022dpsep"))
    assert done.returncode == 0, done.stdout[-5000:]
    assert (project.folder / target).exists()
    requests = [line.split() for line in (fake / "requests").read_text().splitlines()]
    least, minutes = costs.LEAST_MEMORY_MB, costs.LEAST_MINUTES
    assert requests[1:] == [
        ["study_draws", str(least * attempt), str(minutes * attempt)] for attempt in (1, 2)
    ]


@pytest.mark.slow
def test_chains_of_a_budget_and_a_grid_reach_a_node(fake: Path, tmp_path: Path) -> None:
    project = copy_tiny(tmp_path / "project")
    use_fake(project.folder)
    (fake / "lost").touch()  # no further submission is
    target = f"results/tiny/{PAPER}/by_seed/plane/dp_penalty/eps=4,clip_bound=1/seed=1.parquet"
    options = ("--profile", str(FOLDER), "--latency-wait", "5", *OFTEN)
    params = "params: {proposal_sd: 0.05, ratio_clip_bound: 2, noise"
    grid = "grid: {ratio_clip_bound: [1, 2]}\n          params: {proposal_sd: 0.05, noise"
    with project.edited(f"config/papers/{PAPER}.yaml", params, grid):
        done = project.snakemake(*options, target, config=TINY)
    assert done.returncode == 0, done.stdout[-5000:]
    assert (project.folder / target).exists()


@pytest.fixture
def place(fake: Path, tmp_path: Path) -> Path:
    """Return a folder with the scripts of the profile and the scheduler of tests."""
    folder = tmp_path / "place"
    shutil.copytree(Path(__file__).parents[2] / FOLDER, folder / FOLDER)
    use_fake(folder)
    return folder


def call(place: Path, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", str(FOLDER / f"{script}.sh"), *arguments],
        cwd=place,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def submitted(place: Path, text: str) -> str:
    """Submit a script, and return the name of the job."""
    (place / "script").write_text(text, encoding="utf-8")
    done = call(place, "submit", "a_job", "500", "2", "script")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def state_at_the_end(place: Path, job: str) -> str:
    deadline = time.monotonic() + 60
    while (state := call(place, "status", job).stdout) == "running\n":
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return state


@pytest.mark.parametrize(
    ("script", "state"), [("exit 0", "success\n"), ("echo said; exit 7", "failed\n")]
)
def test_a_state_is_that_of_the_script(place: Path, script: str, state: str) -> None:
    job = submitted(place, script)
    assert job.startswith("1.fake.job.")
    assert state_at_the_end(place, job) == state
    if state == "failed\n":
        (output,) = (place / ".snakemake" / "cluster").glob("*/output")
        assert output.read_text() == "said\n"
        assert str(output.relative_to(place)) in call(place, "status", job).stderr


def test_a_cancelled_job_has_failed_and_others_run_on(place: Path, fake: Path) -> None:
    jobs = [submitted(place, "sleep 60") for _ in range(3)]
    assert [call(place, "status", job).stdout for job in jobs] == ["running\n"] * 3
    assert call(place, "cancel", *jobs[:2]).returncode == 0
    assert (fake / "cancelled").read_text().split() == ["1.fake", "2.fake"]
    assert [state_at_the_end(place, job) for job in jobs[:2]] == ["failed\n"] * 2
    assert call(place, "status", jobs[2]).stdout == "running\n"
    call(place, "cancel", jobs[2])


def test_a_scheduler_that_does_not_answer_ends_no_job(place: Path, fake: Path) -> None:
    job = submitted(place, "sleep 60")
    call(place, "cancel", job)
    (fake / "silent").touch()
    assert call(place, "status", job).stdout == "running\n"
    (fake / "silent").unlink()
    assert state_at_the_end(place, job) == "failed\n"


@pytest.mark.parametrize("start", ["sh", "env --unset=DPMC_SCHEDULER sh"])
def test_a_job_without_the_environment_says_so(
    place: Path, monkeypatch: pytest.MonkeyPatch, start: str
) -> None:
    """As with `qsub` without `-V`; the variable is there from the start of a run."""
    monkeypatch.setenv("DPMC_SCHEDULER", "a process")
    file = place / FOLDER / "scheduler.sh"
    file.write_text(file.read_text().replace("setsid sh", f"setsid {start}"))
    job = submitted(place, "echo ran")
    state, told = ("success\n", "") if start == "sh" else ("failed\n", "must hand its environment")
    assert state_at_the_end(place, job) == state
    outputs = [path.read_text() for path in (place / ".snakemake" / "cluster").glob("*/output")]
    assert "ran" not in "".join(outputs)
    assert all(told in output for output in outputs)
    assert bool(outputs) == bool(told)


@pytest.mark.parametrize("printed", ["", "Submitted batch job 5"])
def test_a_scheduler_that_prints_no_number_is_refused(place: Path, printed: str) -> None:
    (place / FOLDER / "scheduler.sh").write_text(f"submit_job() {{ echo '{printed}'; }}\n")
    (place / "script").touch()
    done = call(place, "submit", "a_job", "500", "2", "script")
    assert done.returncode == 1
    assert done.stderr.strip() == (
        f"dpmc: submit_job of scheduler.sh must print the number of the job, got: {printed}".strip()
    )
