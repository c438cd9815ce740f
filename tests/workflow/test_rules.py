"""Every rule of the workflow, run once on the smallest configuration that has a use for each."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

import pandas as pd
import pytest

from dpmc_papers.pipeline import store
from tests.workflow.conftest import Project, copy_tiny

PAPERS = ("raisa2021dphmc", "raisa2021thesis", "vinaroz2022dpsep")
# Only results of scale paper are published; that of the tiny configuration is as small as the rest.
CONFIG = ("scale=paper", f"papers=[{','.join(PAPERS)}]")
RULE = re.compile(r"^Finished jobid: \d+ \(Rule: (\w+)\)$", re.MULTILINE)
CHAIN = "results/paper/raisa2021dphmc/chains/comparison/plane/dp_hmc/eps=4/seeds=0-1.parquet"
FIGURES = {
    "raisa2021dphmc": "figure1",
    "raisa2021thesis": "figure6_1",
    "vinaroz2022dpsep": "figure_bound",
}
# Has a rule of its own, and further files.
NUMBERED_TABLE = (
    "  table1: {kind: table, function: budget_table, metrics: [comparison], caption: budget.rst}\n"
)


@dataclass(frozen=True)
class Run:
    """A project in which two commands have run, and what they said.

    Parameters
    ----------
    project : Project
        The copy of the repository.
    said : list of str
        Standard output and error of each command.
    """

    project: Project
    said: list[str]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Run everything, and publish it."""
    project = copy_tiny(tmp_path_factory.mktemp("rules"))
    with (project.folder / "config" / "papers" / "raisa2021dphmc.yaml").open("a") as config:
        config.write(NUMBERED_TABLE)
    targets = ((), ("publish",))
    return Run(project, [project.made(*names, config=CONFIG) for names in targets])


def test_every_rule_ran(run: Run) -> None:
    listed = run.project.made("--list-rules", "--quiet", config=CONFIG)
    # A name, and in brackets what the rule says of itself.
    described = dict(re.findall(r"^(\w+) \((.+)\)$", listed, re.MULTILINE))
    assert {"all", "chain", "study", "accounting", "publish"} <= set(described)
    # The Snakefile of the checkout has the first under another name.
    assert {*RULE.findall("\n".join(run.said)), "all"} == set(described)


def test_the_end_of_a_run_says_where_to_look_and_what_is_missing(run: Run) -> None:
    site = run.project.folder / "results" / "paper" / "site" / "index.html"
    assert f"Open {site} in a browser." in run.said[0]
    missing = "Without data that could not be had here: wine_red. Put their files into a folder "
    assert missing + "that DPMC_UCI_DIR names" in run.said[0]
    record = "results/paper/vinaroz2022dpsep/raw/wine_red.json"
    assert f"`uv run snakemake --cores all --forcerun {record}`" in run.said[0]
    assert "not what the configuration asks for" not in run.said[0]


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
    record = json.loads((made / "provenance.json").read_text(encoding="utf-8"))
    assert {"commit", "processor", "packages", "outputs"} <= set(record)
    site = run.project.folder / "results" / "paper" / "site" / "results" / paper
    assert FIGURES[paper] in (site / "index.html").read_text(encoding="utf-8")


def test_a_result_says_what_it_was_made_from(run: Run) -> None:
    given = store.made_from(run.project.folder / CHAIN)
    assert given["seeds"] == [0, 1]
    assert given["chain"]["params"]["step_size"] == 0.01
    assert set(given["reads"]) == {"data/plane.parquet", "reference/plane.parquet"}


@pytest.mark.parametrize(
    ("target", "line"),
    [
        (
            "raisa2021dphmc/chains/comparison/plane/dp_hmc/eps=5/seeds=0-1.parquet",
            "results/paper/raisa2021dphmc/chains/comparison/plane/dp_hmc/eps=5/seeds=0-1.parquet: "
            "the configuration names no such file",
        ),
        ("raisa2021dphmc/figure9.png", "figure9: must be an output of raisa2021dphmc (figure1, "),
    ],
)
def test_a_file_that_no_document_has_is_refused_in_one_line(run: Run, target, line) -> None:
    said = run.project.refused("-n", f"results/paper/{target}", config=CONFIG)
    assert said.startswith(f"dpmc: {line}")


def test_then_nothing_is_to_be_done(run: Run) -> None:
    assert run.project.planned(config=CONFIG) == []
