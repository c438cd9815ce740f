"""Every rule of the workflow, run once on the smallest configuration that has a use for each."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pandas as pd
import pytest

from tests.workflow.conftest import Project, copy_tiny

PAPERS = ("raisa2021dphmc", "raisa2021thesis", "vinaroz2022dpsep")
# Only results of scale paper are published; that of the tiny configuration is as small as the rest.
CONFIG = ("scale=paper", f"papers=[{','.join(PAPERS)}]")
RULE = re.compile(r"^Finished jobid: \d+ \(Rule: (\w+)\)$", re.MULTILINE)
FIGURES = {
    "raisa2021dphmc": "figure1",
    "raisa2021thesis": "figure6_1",
    "vinaroz2022dpsep": "figure_bound",
}


@dataclass(frozen=True)
class Run:
    """A project in which three commands have run, and what they said.

    Parameters
    ----------
    project : Project
        The copy of the repository.
    said : str
        Standard output and error of all commands.
    """

    project: Project
    said: str


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Run everything, publish it, and build the site of what was published."""
    project = copy_tiny(tmp_path_factory.mktemp("rules"))
    said = []
    for targets in ((), ("publish",), ("results/published/site/index.html",)):
        done = project.snakemake(*targets, config=CONFIG)
        assert done.returncode == 0, done.stdout[-5000:]
        said.append(done.stdout)
    return Run(project, "\n".join(said))


def test_every_rule_ran(run: Run) -> None:
    listed = run.project.snakemake("--list-rules", "--quiet", config=CONFIG)
    assert listed.returncode == 0, listed.stdout
    rules = set(re.findall(r"^(\w+)$", listed.stdout, re.MULTILINE))
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


def test_then_nothing_is_to_be_done(run: Run) -> None:
    assert run.project.planned(config=CONFIG) == []
