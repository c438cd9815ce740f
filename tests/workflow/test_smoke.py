"""The workflow at scale smoke, and configurations that stop it before any work."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

import pytest

from dpmc.types import DpmcError
from dpmc_papers.config.foreign_methods import load_config
from dpmc_papers.pipeline import files
from dpmc_papers.verdicts import claim_names
from tests.workflow.conftest import PAPERS, ROOT, Project, copy_project

pytestmark = pytest.mark.slow

PAPER = "config/papers/raisa2021dphmc.yaml"
CLAIMS = "config/published/raisa2021dphmc.yaml"
# Tables of experiments that are not run at this scale.
LEFT_OUT = {"starts", "minibatch", "more_rows"}


@pytest.mark.parametrize("paper", PAPERS)
def test_a_run_makes_everything(finished: Project, paper: str) -> None:
    folder = finished.of_paper(paper)
    made = {path.name for path in folder.iterdir() if path.is_file()}
    whole = load_config({"papers": [paper], "scale": "paper", "results_dir": "results"}, ROOT)
    wanted = {file for names in files.OF_DOCUMENT.values() for file in names} | {"provenance.json"}
    for name, output in whole.papers[paper].outputs.items():
        if name not in LEFT_OUT:
            wanted |= {f"{name}.{ending}" for ending in files.endings(name, output.kind)}
    assert made == wanted
    record = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))
    assert record["packages"]["numpy"]


def test_then_nothing_is_to_be_done(finished: Project) -> None:
    assert finished.planned(config=("scale=smoke",)) == []


@pytest.fixture(scope="module")
def fresh_of_module(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return copy_project(tmp_path_factory.mktemp("fresh"))


LONG = "          variant: as_published\n          num_iterations: 12000"
MISTAKES = {
    "scale": ("scale=tiny", "", "", "", "`scale` must be one of paper, quick, smoke, got 'tiny'"),
    "document": ("papers=nobody2020", "", "", "", "`papers` must be one of alparslan2023thesis"),
    "folder": ("results_dir=Snakefile", "", "", "", "`results_dir` must be a folder, or"),
    "method": (
        "scale=smoke", PAPER, f"method: rwmh\n{LONG}", f"method: rwhm\n{LONG}",
        "(did you mean rwmh?)",
    ),
    "parameter": (
        "scale=smoke", PAPER, "proposal_sd: 0.06\n", "propsal_sd: 0.06\n", "mean proposal_sd?)",
    ),
    "budget": ("scale=paper", PAPER, "epsilons: [2, 4, 6,", "epsilons: [-2, 4, 6,", "> 0, got -2"),
    "function": (
        "scale=smoke", PAPER, "function: figure3,", "function: figure33,",
        "`outputs.figure3.function` must be a function of dpmc_papers.outputs.raisa2021dphmc",
    ),
    "name of an output": (
        "scale=smoke", PAPER, "  figure3: {", "  verdict: {", "`outputs.verdict` must be ",
    ),
    "replicates": (
        "scale=smoke", PAPER, "  comparison:\n    num_chains: 4\n    replicates: 10\n",
        "  comparison:\n    num_chains: 4\n    replicates: 1000000000\n", "from 1 to 100000",
    ),
    "document of a scale": (
        "scale=smoke", "config/scales/smoke.yaml", "\n  raisa2021thesis:\n",
        "\n  raisa2021thesiss:\n", "`papers.raisa2021thesiss` must be the key of a document",
    ),
    "error rate": ("scale=smoke", CLAIMS, "error_rate: 0.05", "error_rate: 2", "`error_rate` must"),
    "limits": (
        "scale=smoke", CLAIMS, "  low: 0.67\n  high: 1.5\n- id: P-fig1-banana-equal-mean",
        "  low: 2\n  high: 1.5\n- id: P-fig1-banana-equal-mean", "`low` must be at most `high`",
    ),
    "name in a rule": (
        "scale=smoke", CLAIMS, "label: dp_hmc, epsilon: 15", "label: dp_hcm, epsilon: 15",
        "(did you mean dp_hmc?)",
    ),
    "needs": (
        "scale=smoke", CLAIMS, "  minibatch:\n    problems.paper_gauss_10d.data.params.num_rows",
        "  minibatch:\n    problems.paper_gauss_10d.data.params.rows", "a path must lead to a numb",
    ),
}  # fmt: skip


def read(project: Project, given: dict[str, str]) -> None:
    """Look at a configuration as rules/common.smk does."""
    load_config(given, project.folder)
    claim_names.check(load_config({**given, "scale": "paper"}, project.folder))


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_refused_in_one_line(fresh_of_module: Project, mistake: str) -> None:
    config, path, old, new, told = MISTAKES[mistake]
    key, _, value = config.partition("=")
    given = {"scale": "smoke", "papers": "raisa2021dphmc", "results_dir": "results", key: value}

    with ExitStack() as stack:
        if path:
            stack.enter_context(fresh_of_module.edited(path, old, new))
        with pytest.raises(DpmcError) as caught:
            read(fresh_of_module, given)
    assert told in str(caught.value)
    assert Path(path).name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_mistake_stops_a_run_before_any_work(fresh_of_module: Project) -> None:
    with fresh_of_module.edited(PAPER, f"method: rwmh\n{LONG}", f"method: rwhm\n{LONG}"):
        assert "(did you mean rwmh?)" in fresh_of_module.refused("-n")
    with fresh_of_module.edited(CLAIMS, "error_rate: 0.05", "error_rate: 2"):
        assert "`error_rate` must" in fresh_of_module.refused("-n")
    assert not (fresh_of_module.folder / "results").exists()


def test_a_configuration_that_is_no_utf8_stops_with_one_line(fresh_of_module: Project) -> None:
    path = fresh_of_module.folder / PAPER
    before = path.read_bytes()
    path.write_bytes(before.replace("ä".encode(), b"\xe4", 1))
    try:
        assert "must be text in UTF-8" in fresh_of_module.refused("-n")
    finally:
        path.write_bytes(before)
