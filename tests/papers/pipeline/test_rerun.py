"""Published runs made again: what counts as the same, what is drawn, and what a change shows."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpmc import yaml_files
from dpmc_papers.__main__ import main
from dpmc_papers.config import reader
from dpmc_papers.pipeline import published_runs, rerun, results, stale, store
from dpmc_papers.pipeline.workload import Workload

ROOT = Path(__file__).parents[3]
PUBLISHED = ROOT / "results" / "published"
# Runs of milliseconds, which read no rows.
CHEAP = "alparslan2023thesis", "information_normal_mean"
# Experiments whose runs take seconds, by document.
SHORT = {
    "alparslan2023thesis": ("information_normal_mean", "information_uniform", "posterior_other"),
    "league": ("price",),
    "raisa2021dphmc": ("clipping", "dimension"),
    "raisa2021thesis": ("clipping", "trajectory"),
    "vinaroz2022dpsep": ("mixture_draws", "perturbation"),
}


def workload(paper):
    values = yaml_files.read_yaml(ROOT / "config" / "config.yaml") | {"scale": "paper"}
    return Workload(reader.load_config(values | {"papers": [paper]}, ROOT), paper)


def published(paper):
    return published_runs.Published(results.read_runs(PUBLISHED / paper / results.RUNS).metrics)


@pytest.fixture(scope="module")
def cheap():
    """A document, its published rows, and cheap runs of it."""
    paper, experiment = CHEAP
    work, there = workload(paper), published(paper)
    found = [
        run for run in published_runs.runs(work) if run.key[0] == experiment and run.key in there
    ]
    return work, there, published_runs.sample(found, 8, 1)


def test_the_same_numbers_are_the_same_and_no_others():
    old = pd.DataFrame(
        {"mmd": [1.0, math.nan], "status": ["complete", "3 of 4"], "of_others": [None] * 2}
    )
    here = old.drop(columns="of_others")
    assert rerun.difference(old, here) == (0.0, ())
    near = here.assign(mmd=[1.0 + 1e-8, math.nan])
    assert rerun.difference(old, near) == (pytest.approx(1e-8), ())
    assert rerun.difference(old, here.assign(mmd=[1.00001, math.nan]))[1] == ("mmd",)
    small = old.assign(mmd=[1e-5, 1e-300])
    assert rerun.difference(small, here.assign(mmd=[1e-5 + 5e-11, -1e-300])) == (0.0, ())
    assert rerun.difference(small, here.assign(mmd=[1e-5 + 2e-10, 0.0]))[1] == ("mmd",)
    assert rerun.difference(old, here.assign(mmd=[1.0, 2.0])) == (math.inf, ("mmd",))
    assert rerun.difference(old, here.assign(status=["complete", "3 of 5"]))[1] == ("status",)
    assert rerun.difference(old, here.assign(status=["complete", "none"])) == (
        math.inf,
        ("status",),
    )
    assert rerun.difference(old, here.drop(columns="mmd"))[1] == ("mmd",)
    assert rerun.difference(old, here.head(1)) == (math.inf, ("rows",))


def test_rounding_decides_only_what_it_moves_by_a_like_amount():
    assert rerun.outcome_of(0.4, [0.3]) == "rounding"
    assert rerun.outcome_of(math.inf, [0.0, 0.3]) == "rounding"
    assert rerun.outcome_of(0.4, [0.0, 0.0]) == "different"
    assert rerun.outcome_of(0.4, [1e-4, 0.03]) == "different"
    assert rerun.outcome_of(1.4e-6, [9e-7]) == "rounding"
    assert rerun.outcome_of(1.4e-6, [1e-7]) == "different"
    assert rerun.outcome_of(math.inf, [0.09]) == "different"
    tries = iter([0.0, 0.3, 0.2])
    assert rerun.outcome_of(0.4, tries) == "rounding"
    assert list(tries) == [0.2]


def test_a_sample_has_no_run_twice_and_every_run_as_often(cheap):
    """The largest of 40 counts is beyond 5 standard deviations with a probability below 1e-4."""
    _, _, found = cheap
    few = [found[k % len(found)] for k in range(40)]
    labelled = [
        published_runs.Run((*run.key[:4], k), run.setup, run.made_by) for k, run in enumerate(few)
    ]
    counts = np.zeros(40)
    for seed in range(400):
        drawn = [run.key[-1] for run in published_runs.sample(labelled, 10, seed)]
        assert len(set(drawn)) == 10
        counts[drawn] += 1
    assert abs(counts - 100).max() < 5 * math.sqrt(400 * 0.25 * 0.75)
    assert published_runs.sample(labelled, 10, 3) == published_runs.sample(labelled, 10, 3)
    assert len(published_runs.sample(labelled, 1000, 3)) == 40


def test_the_bound_holds_as_often_as_it_says():
    """Of 2,000 samples from runs of which 5 % differ, at most 5 % of the bounds are below.

    By 4 standard deviations of that share, which chance exceeds with a probability of 3e-5.
    """
    found = np.random.default_rng(0).binomial(60, 0.05, 2000)
    below = np.mean([rerun.most_that_differ(60, int(k), 0.95) < 0.05 for k in found])
    assert 0.01 < below < 0.05 + 4 * math.sqrt(0.05 * 0.95 / 2000)
    assert rerun.most_that_differ(60, 0, 0.95) == pytest.approx(1 - 0.05 ** (1 / 60))
    assert rerun.most_that_differ(3, 3, 0.95) == 1.0


def test_every_published_run_is_configured_or_told_of(monkeypatch):
    work, there = workload("raisa2021dphmc"), published("raisa2021dphmc")
    here, others = published_runs.population(work, there)
    assert len(here) == len(there)
    assert others == []
    fewer = dict.fromkeys(list(there)[5:]) | {("of", "another", "day", "eps=1", 0): None}
    here, others = published_runs.population(work, fewer)
    assert len(here) == len(there) - 5
    assert others == [
        "5 runs are configured and not published, or had no data then",
        "1 runs are published and no longer configured, or measure run times",
    ]
    monkeypatch.setattr(
        published_runs.problems, "is_here", lambda setup: setup.name != "paper_banana_2d"
    )
    here, others = published_runs.population(work, there)
    assert 0 < len(here) < len(there)
    assert "need raw files that are not here (paper_banana_2d)" in " ".join(others)


def test_runs_come_out_as_published(cheap):
    found = list(rerun.compared(cheap[0], cheap[2], cheap[1]))
    assert [one.outcome for one in found] == ["same"] * 8
    lines = rerun.report(found)
    assert "8 the same" in lines[0]
    assert lines[-1].endswith("at most 31.2 % differ, at 95 % confidence")
    assert rerun.report(found, None) == lines[:-1]


def test_a_published_number_that_the_code_does_not_produce_is_found(cheap):
    work, there, chosen = cheap
    wrong = {run.key: there[run.key].copy() for run in chosen}
    key = chosen[3].key
    wrong[key]["information"] *= 1 + 1e-5
    found = list(rerun.compared(work, chosen, wrong))
    assert [one.outcome for one in found].count("different") == 1
    assert found[3].columns == ("information",)
    assert rerun.report(found)[2:4] == [
        "1 different",
        f"  {chosen[3].told}: information, by 1.0e-05 at most",
    ]


@pytest.mark.slow
def test_the_command_fails_if_a_run_differs(tmp_path, capsys, monkeypatch, cheap):
    paper, experiment = CHEAP
    folder = tmp_path / paper
    folder.mkdir()
    (folder / stale.PROVENANCE).write_text('{"outputs": {}, "commit": "abc", "target": "old"}')
    context = results.read_runs(PUBLISHED / paper / results.RUNS)
    only = context.metrics[context.metrics["experiment"] == experiment]
    arguments = ["rerun", paper, "--runs", "4", "--seed", "2", "--folder", str(tmp_path)]
    arguments += ["--root", str(ROOT)]
    for factor, code in ((1.0, 0), (1.001, 1)):
        rows = only.assign(information=only["information"] * factor)
        store.write_table(
            folder / results.RUNS, rows, head={"config": context.config, "curves": {}}
        )
        assert main(arguments) == code
    said = capsys.readouterr()
    assert "4 the same" in said.out
    assert "4 different" in said.out
    assert "made on old, at abc" in said.out
    assert said.err.splitlines()[-1] == "dpmc: 4 of 4 runs do not come out as published"


@pytest.mark.slow
def test_chaos_is_told_from_a_change():
    """Hamiltonian trajectories under hard clipping are chaotic; private chains are not."""
    work = workload("raisa2021dphmc")
    keys = {
        ("clipping", "paper_banana_2d", "hmc", "clip_bound=0.1", 7): True,
        ("comparison", "paper_banana_2d", "dp_penalty", "eps=2", 8): False,
    }
    chosen = [run for run in published_runs.runs(work) if run.key in keys]
    right = {}
    for run in chosen:
        rows = published("raisa2021dphmc")[run.key].copy()
        rows["mmd"] *= 2  # as if the code had been another
        right[run.key] = rows
    found = {one.run.key: one.outcome for one in rerun.compared(work, chosen, right)}
    assert found == {key: "rounding" if chaos else "different" for key, chaos in keys.items()}


@pytest.mark.slow
@pytest.mark.parametrize(
    "paper", sorted(path.parent.name for path in PUBLISHED.glob("*/runs.parquet"))
)
def test_published_numbers_are_those_of_this_code(paper):
    """Four short runs of each document, drawn once; ``dpmc rerun`` draws more."""
    work, there = workload(paper), published(paper)
    runs = published_runs.population(work, there)[0]
    here = [run for run in runs if run.key[0] in SHORT[paper]]
    found = list(rerun.compared(work, published_runs.sample(here, 4, 5), there))
    assert len(found) == 4
    assert [
        line for one in found if one.outcome == "different" for line in rerun.report([one])
    ] == []
