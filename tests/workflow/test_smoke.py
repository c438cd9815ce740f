"""The workflow at scale smoke: what it makes, what it makes again, and how it stops."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from dpmc_papers.config.reader import load_config
from dpmc_papers.pipeline import output_files, store
from tests.workflow.conftest import PAPERS, ROOT, THESIS_ALONE, Project

pytestmark = pytest.mark.slow

SCALE = "config/scales/smoke.yaml"
PAPER = "config/papers/raisa2021dphmc.yaml"


# Tables of experiments that are not run at this scale.
LEFT_OUT = {"starts", "minibatch"}
CORRECTED = "dp_sgld-corrected: {epsilons: [2], replicates: 2}"
FUTURE = "from __future__ import annotations\n"


def chain_file(project: Project, where: str) -> Path:
    (path,) = project.results.glob(f"chains/{where}-????????/0-1.parquet")
    return path


def chains(jobs: list[str]) -> list[str]:
    return [job for job in jobs if "replicates" in job]


@pytest.mark.parametrize("paper", PAPERS)
def test_a_run_makes_everything(finished: Project, paper: str) -> None:
    folder = finished.of_paper(paper)
    made = {path.name for path in folder.iterdir() if path.is_file()}
    whole = load_config({"papers": [paper], "scale": "paper", "results_dir": "results"}, ROOT)
    wanted = {"verdict.csv", "power.csv", "runs.parquet", "guarantees.csv", "provenance.json"}
    for name, output in whole.papers[paper].outputs.items():
        if name in LEFT_OUT:
            continue
        wanted |= {f"{name}.{ending}" for ending in output_files.endings(name, output.kind)}
    assert made == wanted
    record = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))
    assert record["jobs"]["all"]["jobs"] > 20
    assert record["packages"]["numpy"]


def test_then_nothing_is_to_be_done(finished: Project) -> None:
    assert "Nothing to be done" in finished.alone("-n").stdout


def test_an_edited_epsilon_reruns_what_depends_on_it(finished: Project) -> None:
    with finished.edited(SCALE, CORRECTED, "dp_sgld-corrected: {epsilons: [3], replicates: 2}"):
        jobs = finished.planned()
    assert chains(jobs) == [
        "dp_sgld-corrected on paper_banana_2d, eps=3, replicates 0 to 1 (comparison)"
    ]
    (measured,) = [job for job in jobs if job.startswith("metrics")]
    assert "dp_sgld-corrected" in measured
    assert measured.endswith(" on paper_banana_2d (comparison)")
    ending = " of raisa2021dphmc"
    made = {job.removesuffix(ending) for job in jobs if job.endswith(ending)}
    drawn = {"figure1", "figure1_variants", "figure2", "table budget", "table comparison"}
    drawn |= {"figure_held", "figure_claimed", "figure_iac"}
    assert made == {*drawn, "provenance"}


def test_an_edited_hyperparameter_reruns_one_method(finished: Project) -> None:
    with finished.edited(PAPER, "proposal_sd: 0.06\n", "proposal_sd: 0.07\n"):
        jobs = finished.planned()
    assert chains(jobs) == ["dp_penalty on paper_banana_2d, eps=4, replicates 0 to 1 (comparison)"]


def test_other_words_and_a_number_written_otherwise_rerun_nothing(finished: Project) -> None:
    docstring = '    """Return the banana posterior.'
    comment = '    # A comment.\n    """Return other words.'
    iterations = "200, grid: {ratio_clip_bound: [10]", "200.0, grid: {ratio_clip_bound: [10.0]"
    with (
        finished.edited(PAPER, "proposal_sd: 0.3}", "proposal_sd: 0.30}"),
        finished.edited(SCALE, *iterations),
        finished.edited("src/dpmc/models/banana.py", docstring, comment),
    ):
        assert finished.planned() == []


def test_added_replicates_run_alone(finished: Project) -> None:
    more = "dp_sgld-corrected: {epsilons: [2], replicates: 4}"
    with finished.edited(SCALE, CORRECTED, more):
        jobs = finished.planned()
    assert chains(jobs) == [
        "dp_sgld-corrected on paper_banana_2d, eps=2, replicates 2 to 3 (comparison)"
    ]


def test_an_edited_model_reruns_what_uses_it(finished: Project) -> None:
    draws = "np.sqrt(variance) * rng"
    with finished.edited("src/dpmc/models/banana.py", draws, f"1.01 * {draws}"):
        jobs = finished.planned()
    assert [job for job in jobs if "paper_gauss" in job or "gauss_20d" in job] == []
    assert [job for job in jobs if job.startswith("rows")] == []
    assert len(chains(jobs)) == 7
    assert all("paper_banana_2d" in job for job in chains(jobs))
    assert "table dimension of raisa2021dphmc" not in jobs


def test_an_edited_method_reruns_what_uses_it(finished: Project) -> None:
    with finished.edited("src/dpmc/mcmc/methods/rwmh.py", FUTURE, f"{FUTURE}NEW = 1\n"):
        jobs = finished.planned()
    assert chains(jobs) == ["rwmh on paper_banana_2d, clip_bound=10, replicates 0 to 1 (clipping)"]


def test_an_edited_figure_is_drawn_again(finished: Project) -> None:
    path = "src/dpmc_papers/outputs/raisa2021dphmc.py"
    with finished.edited(path, "GUIDELINE = 0.2", "GUIDELINE = 0.25"):
        jobs = finished.planned()
    assert chains(jobs) == []
    assert "figure3 of raisa2021dphmc" in jobs


def test_edited_accounting_reruns_its_figure_and_no_chain(finished: Project) -> None:
    path = "config/papers/raisa2021thesis.yaml"
    tighter = ("    delta: 1.0e-6\n    num_rows", "    delta: 1.0e-7\n    num_rows")
    with finished.edited(path, *tighter):
        jobs = finished.planned(config=THESIS_ALONE)
    assert chains(jobs) == []
    made = [job for job in jobs if not job.startswith(("settings of", "all results"))]
    assert made == [
        "figure6_1 of raisa2021thesis",
        "front page at scale smoke",
        "guarantees in raisa2021thesis",
        "iterations by accountant for figure6_1 of raisa2021thesis",
        "page about raisa2021thesis",
        "provenance of raisa2021thesis",
        "verdicts on raisa2021thesis",
    ]


def test_an_edited_accountant_reruns_every_private_chain(finished: Project) -> None:
    """A run carries the guarantee of the tightest valid accountant, whichever counted it."""
    path = "src/dpmc/privacy/accountants/barker_pld.py"
    with finished.edited(path, FUTURE, f"{FUTURE}NEW = 1\n"):
        jobs = finished.planned(config=THESIS_ALONE)
    private = [job for job in chains(jobs) if "(clipping)" not in job]
    assert chains(jobs) == private
    assert len(private) == 7


def test_lost_records_change_nothing(finished: Project) -> None:
    records, aside = finished.folder / ".snakemake", finished.folder / "aside"
    records.rename(aside)
    try:
        assert finished.planned() == []
        with finished.edited(PAPER, "proposal_sd: 0.06\n", "proposal_sd: 0.07\n"):
            assert len(chains(finished.planned())) == 1
        path = "src/dpmc_papers/outputs/raisa2021dphmc.py"
        with finished.edited(path, "GUIDELINE = 0.2", "GUIDELINE = 0.25"):
            assert "figure3 of raisa2021dphmc" in finished.planned()
    finally:
        shutil.rmtree(records, ignore_errors=True)
        aside.rename(records)


def test_one_figure_by_its_path_at_any_scale(finished: Project) -> None:
    jobs = finished.planned("results/quick/raisa2021dphmc/figure3.pdf")
    assert "figure3 of raisa2021dphmc" in jobs
    assert all("(clipping)" in job for job in chains(jobs))
    assert len(chains(jobs)) > 10


def test_batches_change_no_value(finished: Project) -> None:
    where = "comparison/paper_gauss_10d/dp_hmc/eps=4"
    whole = chain_file(finished, where)
    inside = whole.parent.relative_to(finished.folder / "results")
    single = [f"single/{inside}/{k}-{k}.parquet" for k in (0, 1)]
    options = ("scale=smoke", "results_dir=single", "seeds_per_job=1")
    done = finished.snakemake(*single, config=options)
    assert done.returncode == 0, done.stdout
    _, together = store.read_fits(whole)
    for k, path in enumerate(single):
        _, ((replicate, alone),) = store.read_fits(finished.folder / path)
        assert replicate == k
        assert alone.draws is not None
        np.testing.assert_array_equal(alone.draws, together[k][1].draws)
        assert alone.ledger == together[k][1].ledger


def test_a_killed_run_resumes_to_the_same_bytes(finished: Project) -> None:
    whole = chain_file(finished, "comparison/paper_banana_2d/dp_sgnht-as_published/eps=4")
    target = Path("killed") / whole.relative_to(finished.folder / "results")
    log = str(target).replace("/chains/", "/logs/chains/").replace(".parquet", ".log")
    options = ("--config", "scale=smoke", "results_dir=killed")
    running = subprocess.Popen(
        finished.command(str(target), *options),
        cwd=finished.folder,
        env=finished.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    deadline = time.monotonic() + 120
    while not (finished.folder / log).exists():
        assert time.monotonic() < deadline, "the chain never started"
        time.sleep(0.05)
    time.sleep(1.0)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    assert not (finished.folder / target).exists(), "the chain ended before it was killed"
    done = finished.snakemake(str(target), config=options[1:])
    assert done.returncode == 0, done.stdout
    assert (finished.folder / target).read_bytes() == whole.read_bytes()


def test_a_truncated_file_stops_with_one_line(finished: Project) -> None:
    path = chain_file(finished, "clipping/paper_banana_2d/hmc/clip_bound=10")
    content, stat = path.read_bytes(), path.stat()
    (metrics,) = finished.results.glob("metrics/clipping/paper_banana_2d-????????.parquet")
    aside = metrics.rename(metrics.with_suffix(".aside"))
    path.write_bytes(content[: len(content) // 2])
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    try:
        done = finished.snakemake(str(metrics.relative_to(finished.folder)))
        lines = [line for line in done.stdout.splitlines() if line.startswith("dpmc: ")]
        assert done.returncode != 0
        assert len(lines) == 1
        assert path.name in lines[0]
        assert "truncated or damaged" in lines[0]
        assert "Traceback" not in done.stdout
        assert not metrics.exists()
    finally:
        path.write_bytes(content)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        aside.rename(metrics)


@pytest.mark.parametrize(
    ("config", "old", "new", "told"),
    [
        ("scale=tiny", "", "", "`scale` must be one of paper, quick, smoke, got 'tiny'"),
        (
            "papers=nobody2020",
            "",
            "",
            "`papers` must be one of alparslan2023thesis, league, raisa2021dphmc, raisa2021th",
        ),
        ("scale=smoke", "method: rwmh\n", "method: rwhm\n", "got 'rwhm' (did you mean rwmh?)"),
        ("scale=smoke", "proposal_sd: 0.06", "propsal_sd: 0.06", "(did you mean proposal_sd?)"),
        (
            "scale=paper",
            "epsilons: [2, 4, 6,",
            "epsilons: [-2, 4, 6,",
            "a number > 0, got -2",
        ),
    ],
)
def test_bad_input_stops_before_any_work(
    fresh: Project, config: str, old: str, new: str, told: str
) -> None:
    path = fresh.folder / PAPER
    path.write_text(path.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
    done = fresh.snakemake(config=(config,))
    lines = [line for line in done.stdout.splitlines() if line.startswith("dpmc: ")]
    assert done.returncode != 0
    assert len(lines) == 1
    assert told in lines[0]
    assert "Traceback" not in done.stdout
    assert not (fresh.folder / "results").exists()
