"""Edits, and the jobs that Snakemake does for them: those that depend on them and no others."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.workflow.conftest import JOB, LAST, TINY, Project, copy_tiny, run_once

pytestmark = pytest.mark.slow

PAPER, SCALE = "config/papers/raisa2021dphmc.yaml", "config/scales/tiny.yaml"
CLAIMS = "config/published/raisa2021dphmc.yaml"
METHOD = "src/dpmc/mcmc/methods/dp_hmc.py"
FUTURE = "from __future__ import annotations\n"
CHAINS = [
    f"{method} on plane, eps={epsilon}, seeds=0-1 (comparison)"
    for method in ("dp_hmc", "dp_penalty")
    for epsilon in (2, 4)
]
OUTPUTS = [
    "figure1 of raisa2021dphmc",
    "guarantees in raisa2021dphmc",
    "table budget of raisa2021dphmc",
    "verdicts on raisa2021dphmc",
]
# What follows any output.
PAGES = [
    "pages about raisa2021dphmc",
    "provenance of raisa2021dphmc",
    "site at scale tiny",
]
METRICS = "metrics of comparison on plane"
AFTER_CHAINS = sorted([METRICS, *OUTPUTS, *PAGES])


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return run_once("tiny", copy_tiny, TINY, tmp_path_factory)


def planned(project: Project, *edits: tuple[str, str, str]) -> list[str]:
    """Return the jobs that a run does once some texts in files are other ones."""
    with ExitStack() as stack:
        for edit in edits:
            stack.enter_context(project.edited(*edit))
        return project.planned(config=TINY)


@contextmanager
def added(project: Project, files: dict[str, str]) -> Iterator[None]:
    """Have further files in a project for a while."""
    paths = {project.folder / name: text for name, text in files.items()}
    for path, text in paths.items():
        path.write_text(text, encoding="utf-8")
    try:
        yield
    finally:
        for path in paths:
            path.unlink()


def test_a_finished_run_has_nothing_to_do(project: Project) -> None:
    said = project.made(config=TINY)
    assert "1 of 1 steps" in said
    assert "Open " in said


def test_what_changes_no_result_makes_nothing_anew(project: Project) -> None:
    """Sixteen edits at once: words, layout, annotations, and code that no job names."""
    new = {
        "src/dpmc/models/another.py": '"""Another model."""\n',
        "src/dpmc/mcmc/methods/_helper.py": '"""Not imported."""\n',
        "src/dpmc_papers/outputs/another.py": '"""Another document."""\n',
    }
    edits = (
        (METHOD, FUTURE, f"# A comment.\n\n{FUTURE}"),
        ("src/dpmc/models/gaussian_mean.py", FUTURE, f"{FUTURE}\n\n"),
        ("src/dpmc/mcmc/chains.py", FUTURE, f"{FUTURE}NEW = 1\n"),
        ("src/dpmc/privacy/ledger.py", FUTURE, f"{FUTURE}NEW = 1\n"),
        ("src/dpmc/privacy/accountants/zcdp.py", FUTURE, f"{FUTURE}NEW = 1\n"),
        ("src/dpmc_papers/pipeline/files.py", FUTURE, f"{FUTURE}NEW = 1\n"),
        ("src/dpmc_papers/pipeline/store.py", FUTURE, f"{FUTURE}NEW = 1\n"),
        ("src/dpmc_papers/config/reader.py", FUTURE, f"{FUTURE}NEW = 1\n"),
        (
            "src/dpmc_papers/pipeline/run_chains.py",
            "def run_chains(\n    setup: ChainSetup,",
            'def run_chains(\n    setup: "ChainSetup",',
        ),
        ("src/dpmc_papers/pipeline/chain_metrics.py", '"""One row of metrics', '"""Rows'),
        ("src/dpmc_papers/pipeline/chain_metrics.py", "as the reference, ", "like the reference, "),
        (PAPER, "step_size: 0.01", "step_size: 1.0e-2"),
        (PAPER, "num_chains: 2", "num_chains: 2.0"),
        (CLAIMS, "low: 0.5", "low: 0.50  # a half"),
    )
    with added(project, new):
        found = planned(project, *edits)
    # A file that Snakemake hands to a job counts as it is written.
    assert found == sorted(["verdicts on raisa2021dphmc", *PAGES])


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        pytest.param(
            [(METHOD, FUTURE, f"{FUTURE}NEW = 1\n")], [*CHAINS[:2], *AFTER_CHAINS], id="method"
        ),
        pytest.param(
            [("src/dpmc/privacy/accountants/gaussian.py", FUTURE, f"{FUTURE}NEW = 1\n")],
            [*CHAINS, *AFTER_CHAINS],
            id="accountant",
        ),
        pytest.param(
            [(PAPER, "replicates: 2", "replicates: 3")],
            [job.replace("seeds=0-1", "seeds=2-2") for job in CHAINS] + AFTER_CHAINS,
            id="replicate",
        ),
        pytest.param(
            [("src/dpmc_papers/outputs/_tables.py", FUTURE, f"{FUTURE}NEW = 1\n")],
            ["figure1 of raisa2021dphmc", "table budget of raisa2021dphmc", *PAGES],
            id="code of outputs",
        ),
        pytest.param(
            [(CLAIMS, "low: 0.5", "low: 0.6")], ["verdicts on raisa2021dphmc", *PAGES], id="limit"
        ),
        pytest.param(
            [("workflow/report/figure1.rst", "\n\nDP-SGLD and", "\n\nBoth DP-SGLD and")],
            [job for job in PAGES if not job.startswith("provenance")],
            id="caption",
        ),
        pytest.param(
            [("workflow/scripts/metrics.py", "import pandas as pd", "import pandas as pd  # new")],
            AFTER_CHAINS,
            id="script",
        ),
        pytest.param([(PAPER, "seed: 1\n", "seed: 2\n")], None, id="seed of the document"),
    ],
)
def test_an_edit_makes_what_depends_on_it_anew(project: Project, edits, expected) -> None:
    found = planned(project, *edits)
    if expected is None:
        rows = "rows and exact posterior draws of plane"
        expected = [rows, *CHAINS, *AFTER_CHAINS]
    assert found == sorted(expected)


def test_a_run_says_which_jobs_are_done_again_and_why(project: Project) -> None:
    with project.edited(PAPER, "step_size: 0.01", "step_size: 0.02"):
        said = project.made("-n", config=TINY)
    jobs = [job for job in JOB.findall(said) if job != LAST]
    assert sorted(jobs) == sorted([*CHAINS[:2], *AFTER_CHAINS])
    assert "Params have changed since last execution" in said
    assert "'step_size': 0.01" in said
    assert "'step_size': 0.02" in said


def test_a_deleted_figure_is_drawn_again(project: Project) -> None:
    path = project.folder / "results/tiny/raisa2021dphmc/figure1.svg"
    aside = path.rename(path.with_suffix(".aside"))
    try:
        assert project.planned(config=TINY) == sorted(["figure1 of raisa2021dphmc", *PAGES])
    finally:
        aside.rename(path)


@contextmanager
def records_lost(project: Project) -> Iterator[None]:
    """Have no records of Snakemake, as in a copy of results alone."""
    aside = project.folder / "aside"
    (project.folder / ".snakemake").rename(aside)
    try:
        yield
    finally:
        shutil.rmtree(project.folder / ".snakemake", ignore_errors=True)
        aside.rename(project.folder / ".snakemake")


def clean(project: Project) -> list[str]:
    command = [sys.executable, "-m", "dpmc_papers", "clean", "--scale", "tiny"]
    done = subprocess.run(
        command, cwd=project.folder, env=project.environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_stale_file_is_named_and_removed_where_records_are_lost(
    tmp_path: Path, project: Project
) -> None:
    """Snakemake then sees dates alone, and would keep chains of other settings."""
    shutil.copytree(project.folder, tmp_path / "copy", symlinks=True)
    copy = Project(tmp_path / "copy")
    assert clean(copy) == ["0 files removed"]
    with records_lost(copy), copy.edited(PAPER, "step_size: 0.01", "step_size: 0.02"):
        assert copy.planned(config=TINY) == []
        done = copy.snakemake(config=TINY)
        assert done.returncode != 0
        folder = "results/tiny/raisa2021dphmc"
        chain = f"{folder}/chains/comparison/plane/dp_hmc/eps=2/seeds=0-1.parquet"
        assert f"  {chain}: made with other settings\n" in done.stdout
        # A job that reads one of them stops.
        (copy.folder / folder / "metrics/comparison/plane.parquet").unlink()
        line = copy.refused(f"{folder}/metrics/comparison/plane.parquet", config=TINY)
        assert line.startswith(f"dpmc: {chain}: must be made with the settings of the config")
        assert line.endswith(f"`snakemake --cores 1 --forcerun {chain}`")
        removed = clean(copy)
        assert f"removed {chain}" in removed
        assert f"removed {folder}/figure1.png" in removed
        assert not any("dp_penalty" in one for one in removed)
        assert CHAINS[:2] == [job for job in copy.planned(config=TINY) if "seeds" in job]
        copy.made(f"{folder}/metrics/comparison/plane.parquet", config=TINY)


def test_what_nothing_asks_for_any_more_is_named(tmp_path: Path, project: Project) -> None:
    shutil.copytree(project.folder, tmp_path / "copy", symlinks=True)
    copy = Project(tmp_path / "copy")
    with copy.edited(PAPER, "epsilons: [2, 4]", "epsilons: [4]"):
        said = copy.made(config=TINY)
        left = "chains/comparison/plane/dp_penalty/eps=2/seeds=0-1.parquet: nothing asks for it"
        assert f"  results/tiny/raisa2021dphmc/{left}\n" in said
        assert len(clean(copy)) == 3
        assert "nothing asks for it" not in copy.made(config=TINY)


def test_a_clock_that_is_ahead_fails_no_job(tmp_path: Path, project: Project) -> None:
    shutil.copytree(project.folder, tmp_path / "copy", symlinks=True)
    copy = Project(tmp_path / "copy")
    for path in (copy.folder / "results").rglob("*"):
        if path.is_file():
            os.utime(path, (4e9, 4e9))
    (copy.folder / "results/tiny/raisa2021dphmc/metrics/comparison/plane.parquet").unlink()
    (copy.folder / "results/tiny/raisa2021dphmc/budget.csv").unlink()
    copy.made(config=TINY)
    assert copy.planned(config=TINY) == []
