"""Every rule of the workflow, run once on the smallest configuration that has a use for each."""

from __future__ import annotations

import fcntl
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpmc_papers.pipeline import store
from tests.workflow.conftest import Project, copy_tiny

PAPERS = ("raisa2021dphmc", "raisa2021thesis", "vinaroz2022dpsep")
# Only results of scale paper are published; that of the tiny configuration is as small as the rest.
CONFIG = ("scale=paper", f"papers=[{','.join(PAPERS)}]")
RULE = re.compile(r"^Finished jobid: \d+ \(Rule: (\w+)\)$", re.MULTILINE)
ONE_SEED = "results/paper/raisa2021dphmc/by_seed/plane/dp_hmc/eps=4/seed=1.parquet"
OF_STUDY = "regression/timed/mcmc_bs-correct/J=2,eps=1/seed=0.parquet"
DRAWS = f"results/paper/vinaroz2022dpsep/draws/{OF_STUDY}"
MEASURED = f"results/paper/vinaroz2022dpsep/by_seed/{OF_STUDY}"
FIGURES = {
    "raisa2021dphmc": "figure1",
    "raisa2021thesis": "figure6_1",
    "vinaroz2022dpsep": "figure_bound",
}


@dataclass(frozen=True)
class Run:
    """A project in which two commands have run, and what they said.

    Parameters
    ----------
    project : Project
        The copy of the repository.
    said : str
        Standard output and error of all commands.
    """

    project: Project
    said: str


# Has a rule of its own, and further files.
NUMBERED_TABLE = (
    "  table1: {kind: table, function: budget_table, metrics: [comparison], caption: budget.rst}\n"
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Run everything, publish it, and build the site of what was published."""
    project = copy_tiny(tmp_path_factory.mktemp("rules"))
    with (project.folder / "config" / "papers" / "raisa2021dphmc.yaml").open("a") as config:
        config.write(NUMBERED_TABLE)
    said = []
    for targets in (("all", ONE_SEED, DRAWS, MEASURED), ("publish",)):
        done = project.snakemake(*targets, config=CONFIG)
        assert done.returncode == 0, done.stdout[-5000:]
        said.append(done.stdout)
    return Run(project, "\n".join(said))


def test_every_rule_ran(run: Run) -> None:
    listed = run.project.snakemake("--list-rules", "--quiet", config=CONFIG)
    assert listed.returncode == 0, listed.stdout
    # A name, and in brackets what the rule says of itself.
    described = dict(re.findall(r"^(\w+) \((.+)\)$", listed.stdout, re.MULTILINE))
    rules = set(described)
    assert {"all", "chain", "study", "accounting", "publish"} <= rules
    assert set(RULE.findall(run.said)) == rules


@pytest.mark.parametrize("paper", PAPERS)
def test_results_are_made_and_published(run: Run, paper: str) -> None:
    made = run.project.folder / "results" / "paper" / paper
    published = run.project.folder / "results" / "published" / paper
    for ending in ("png", "svg", "pdf", "data.csv"):
        name = f"{FIGURES[paper]}.{ending}"
        assert (made / name).stat().st_size > 0
        assert (published / name).read_bytes() == (made / name).read_bytes()
    assert list(pd.read_csv(made / "verdict.csv").columns)[:2] == ["id", "where"]
    assert len(pd.read_csv(made / "guarantees.csv").columns) > 3
    for site in (run.project.folder / "results" / "paper" / "site", published.parent / "site"):
        page = (site / paper / "index.html").read_text(encoding="utf-8")
        assert FIGURES[paper] in page


def test_pages_say_that_the_settings_are_those_of_the_results(run: Run) -> None:
    """Guesses of time and sizes of jobs, which the settings have and no result, aside."""
    config = run.project.folder / "config" / "papers" / "raisa2021dphmc.yaml"
    assert "timed_at_epsilon" in config.read_text(encoding="utf-8")
    for folder in ("paper", "published"):
        site = run.project.folder / "results" / folder / "site"
        front = (site / "index.html").read_text(encoding="utf-8")
        assert front.count(">as now <") == len(PAPERS)
        assert ">changed since <" not in front
        for paper in PAPERS:
            page = (site / paper / "index.html").read_text(encoding="utf-8")
            assert "settings have changed" not in page


def test_one_replicate_can_be_asked_for_by_its_name(run: Run) -> None:
    _, ((replicate, alone),) = store.read_fits(run.project.folder / ONE_SEED)
    folder = run.project.folder / "results" / "paper" / "raisa2021dphmc" / "chains"
    (batch,) = folder.glob("comparison/plane/dp_hmc/eps=4-*/0-1.parquet")
    _, fits = store.read_fits(batch)
    assert replicate == fits[1][0] == 1
    np.testing.assert_array_equal(alone.draws, fits[1][1].draws)
    assert alone.guarantee == fits[1][1].guarantee


def test_one_replicate_of_a_study_can_be_asked_for_by_its_name(run: Run) -> None:
    """Times aside, it is the row of the table of the study."""
    alone = store.read_tables([run.project.folder / MEASURED])
    tables = (run.project.folder / "results/paper/vinaroz2022dpsep").rglob("regression/timed-*")
    whole = store.read_tables([path for path in tables if path.suffix == ".parquet"])
    same = (whole["label"] == "mcmc_bs-correct") & (whole["replicate"] == 0)
    row = whole[same & (whole["point"] == "J=2,eps=1")]
    results = [name for name in row if "seconds" not in name]
    assert len(row) == 1 < len(results)
    pd.testing.assert_frame_equal(
        alone[results].reset_index(drop=True), row[results].reset_index(drop=True), check_exact=True
    )


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("plain/dp_hmc/eps=4/seed=1", "`problem` must be one of plane, got 'plain'"),
        ("plane/hmc/eps=4/seed=1", "`label` must be one of dp_hmc, dp_penalty, got 'hmc'"),
        ("plane/dp_hmc/eps=5/seed=1", "`point` of dp_hmc must be one of eps=2, eps=4, got 'eps=5'"),
        ("plane/dp_hmc/eps=4/seed=2", "`seed` of dp_hmc must be 0 to 1, got 2"),
    ],
)
def test_a_replicate_that_is_not_configured_is_refused_in_one_line(run, name, line) -> None:
    target = f"results/paper/raisa2021dphmc/by_seed/{name}.parquet"
    done = run.project.snakemake("-n", target, config=CONFIG)
    assert done.returncode != 0
    assert f"dpmc: {line}" in done.stdout
    assert "Traceback" not in done.stdout


def test_run_times_of_one_replicate_alone_are_refused_in_one_line(run: Run) -> None:
    """They are measured while no other job runs, which a rule for any study does not see to."""
    place = "run_times/timed/mcmc_bs-authors/J=2,eps=1,dim=1/seed=0.parquet"
    target = f"results/paper/vinaroz2022dpsep/by_seed/{place}"
    done = run.project.snakemake("-n", target, config=CONFIG)
    assert done.returncode != 0
    lines = [line for line in done.stdout.splitlines() if "dpmc: " in line]
    assert len(lines) == 1
    assert lines[0].startswith("dpmc: run_times: a replicate alone must be of a study that is not")


@pytest.mark.parametrize(
    ("target", "line"),
    [
        (
            f"vinaroz2022dpsep/by_seed/{OF_STUDY.partition('/')[2]}",
            "vinaroz2022dpsep has studies and no chains: its replicates are "
            "by_seed/<study>/<problem>/<label>/<point>/seed=<replicate>.parquet",
        ),
        (
            "raisa2021dphmc/by_seed/comparison/plane/dp_hmc/eps=4/seed=1.parquet",
            "raisa2021dphmc has chains and no studies: its replicates are "
            "by_seed/<problem>/<label>/<point>/seed=<replicate>.parquet",
        ),
        (
            "raisa2021draft/figure1.png",
            "paper/raisa2021draft: must be a document of raisa2021dphmc, raisa2021thesis, "
            "vinaroz2022dpsep, got 'raisa2021draft'",
        ),
    ],
)
def test_a_file_that_no_document_has_is_refused_in_one_line(run: Run, target, line) -> None:
    done = run.project.snakemake("-n", f"results/paper/{target}", config=CONFIG)
    assert done.returncode != 0
    assert f"dpmc: {line}\n" in done.stdout
    assert "Traceback" not in done.stdout


def test_a_file_of_a_document_that_the_run_does_not_name_is_refused_in_one_line(run: Run) -> None:
    target = "results/paper/raisa2021thesis/figure6_1.png"
    done = run.project.snakemake("-n", target, config=("scale=paper", "papers=raisa2021dphmc"))
    assert done.returncode != 0
    assert (
        "dpmc: `papers` must name raisa2021thesis, whose file is asked for, got raisa2021dphmc: "
        "add `--config papers=raisa2021thesis`\n" in done.stdout
    )
    assert "Traceback" not in done.stdout


def test_then_nothing_is_to_be_done(run: Run) -> None:
    assert run.project.planned(config=CONFIG) == []


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep others out of a folder for a while, as a run does."""
    folder.mkdir(exist_ok=True)
    with (folder / ".lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def test_results_are_published_by_one_at_a_time(run: Run) -> None:
    with locked(run.project.folder / "results" / "published"):
        done = run.project.snakemake("publish", config=CONFIG)
    assert done.returncode != 0
    assert re.search(r"dpmc: \S+/results/published: .* one run at a time may", done.stdout)


def test_a_short_name_is_made_anew_when_its_settings_change_back(run: Run) -> None:
    """The chain of the first settings is still there, and older than what was copied since."""
    chain, copy = "dp_hmc on plane, eps=4, replicates 0 to 1 (comparison)", "replicate 1 alone"
    with run.project.edited(
        "config/papers/raisa2021dphmc.yaml", "step_size: 0.01", "step_size: 0.02"
    ):
        done = run.project.snakemake(ONE_SEED, config=CONFIG)
        assert done.returncode == 0, done.stdout[-5000:]
        assert chain in done.stdout
    assert run.project.planned(ONE_SEED, config=CONFIG) == [f"dp_hmc on plane, eps=4, {copy}"]
