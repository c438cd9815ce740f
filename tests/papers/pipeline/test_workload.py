"""The jobs that a configuration becomes: their files, and what determines them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from dpmc_papers.config.reader import Config, papers
from dpmc_papers.config.setups import BudgetSetup, canonical
from dpmc_papers.pipeline import run_studies, workload
from dpmc_papers.pipeline.run_chains import stream_key
from dpmc_papers.pipeline.workload import Workload
from tests.support.papers import KEY, ROOT, SCALES, THESIS, load, with_paper

FOLDER = f"results/paper/{KEY}"
STUDIES = "vinaroz2022dpsep"


def digests(config: Config, paper: str = KEY) -> dict[str, str]:
    """Return what each file and output is made from, by its place in the folder of the paper."""
    work = Workload(config, paper)
    found = {path.removeprefix(f"{work.folder}/"): job.digest for path, job in work.files.items()}
    return found | {name: job.digest for name, job in work.outputs.items()}


def changed(config: Config, change: Callable[[Any], Any], paper: str = KEY) -> set[str]:
    """Return the files that are made anew or for the first time once a paper is changed."""
    before, after = digests(config, paper), digests(with_paper(config, change), paper)
    return {name for name, digest in after.items() if before.get(name) != digest}


def kinds(names: set[str]) -> set[str]:
    return {name.partition("/")[0] for name in names}


def test_paths_say_what_a_job_is() -> None:
    work = Workload(load("paper"), KEY)
    path = f"{FOLDER}/chains/comparison/paper_banana_2d/dp_penalty/eps=4/seeds=0-9.parquet"
    job = work.files[path]
    assert job.inputs == {
        "data": f"{FOLDER}/data/paper_banana_2d.parquet",
        "reference": f"{FOLDER}/reference/paper_banana_2d.parquet",
    }
    point = next(p for p in work.points if work.chains(p) == [path])
    assert point.setup.budget == BudgetSetup(epsilon=4, delta=1e-6, accountant="gaussian")
    clipped = next(p for p in work.points if p.experiment == "clipping" and p.label == "hmc")
    assert clipped.setup.params["ratio_clip_bound"] == 0.01
    assert work.chains(clipped)[0].endswith("/hmc/clip_bound=0.01/seeds=0-9.parquet")


@pytest.mark.parametrize("size", [1, 3, 10, None])
@pytest.mark.parametrize("replicates", [1, 9, 10, 11])
def test_batches_cover_every_replicate_once_at_fixed_borders(size, replicates) -> None:
    found = workload.batches(replicates, size)
    assert [k for first, last in found for k in range(first, last + 1)] == list(range(replicates))
    if size is not None:
        assert all(first % size == 0 for first, _ in found)
        more = workload.batches(replicates + 1, size)
        assert len(set(more) - set(found)) == 1


def test_one_replicate_more_adds_or_changes_one_file_of_each_point() -> None:
    config = load("paper")
    method = config.papers[KEY].experiments["comparison"].methods["paper_banana_2d"]
    more = with_paper(config, lambda p: p["experiments"]["comparison"].update(replicates=11))
    new = set(digests(more)) - set(digests(config))
    assert {name.rpartition("/")[2] for name in new} == {"seeds=0-10.parquet"}
    ten = replace(config, seeds_per_job=10)
    more = with_paper(ten, lambda p: p["experiments"]["comparison"].update(replicates=11))
    new = set(digests(more)) - set(digests(ten))
    assert {name.rpartition("/")[2] for name in new} == {"seeds=10-10.parquet"}
    ours = [name for name in new if "/comparison/paper_banana_2d/" in name]
    assert len(ours) == 7 * sum(entry.replicates is None for entry in method.values())


def _rows(paper: dict[str, Any]) -> None:
    paper["problems"]["paper_banana_2d"]["data"]["params"].update(num_rows=9)


EXACT = {"reference", "baselines", "chains", "metrics"}


@pytest.mark.parametrize(
    ("change", "expected", "only"),
    [
        (lambda p: p["problems"]["paper_banana_2d"].update(label="Other"), set(), ""),
        (lambda p: p["experiments"]["comparison"]["epsilons"].reverse(), {"metrics"}, "comparison"),
        (lambda p: p["reference"].update(num_baselines=3), {"baselines"}, ""),
        # The exact sample scales the starts of chains.
        (lambda p: p["reference"].update(num_draws=500), EXACT, ""),
        (
            lambda p: p["problems"]["paper_banana_2d"].update(delta=1e-7),
            {"chains", "metrics"},
            "paper_banana_2d",
        ),
        (_rows, {"data", *EXACT}, "paper_banana_2d"),
        (lambda p: p.update(seed=1), {"data", *EXACT}, ""),
    ],
)
def test_a_change_reaches_what_depends_on_it(change, expected, only) -> None:
    found = {name for name in changed(load("paper"), change) if "/" in name}
    assert kinds(found) == expected
    assert [name for name in found if only not in name] == []


def test_an_output_depends_on_its_own_experiments_alone() -> None:
    found = changed(load("paper"), lambda p: p["experiments"]["clipping"].update(replicates=11))
    assert {name for name in found if "/" not in name} == {
        "figure3", "clipping", "verdict", "guarantees",
    }  # fmt: skip


def test_equal_chains_are_run_once() -> None:
    work = Workload(load("paper"), KEY)
    shared = [p for p in work.points if f"/chains/{p.experiment}/" not in p.folder]
    assert shared
    for point in shared:
        first = next(p for p in work.points if p.folder == point.folder)
        assert canonical(first.setup) == canonical(point.setup)
        assert first.experiment != point.experiment
        assert set(work.chains(point)) <= set(work.chains(first))


def test_a_chain_names_its_method_model_and_accountant() -> None:
    work = Workload(load("paper"), KEY)
    path = f"{FOLDER}/chains/comparison/paper_banana_2d/dp_penalty/eps=4/seeds=0-9.parquet"
    assert work.files[path].modules == (
        "dpmc_papers.pipeline.run_chains",
        "dpmc.mcmc.methods.dp_penalty",
        "dpmc.models.banana",
        "dpmc.privacy.accountants.gaussian",
    )


# Of the sorted keys of all streams. Should one of them change, its results are other draws.
KEYS: dict[str, str] = yaml.safe_load(
    (Path(__file__).parent / "stream_keys.yaml").read_text(encoding="utf-8")
)


def parts_of(work: Workload) -> list[run_studies.Part]:
    paths = [path for name in work.paper.studies for path in work.studies(name)]
    return [part for path in paths for part in run_studies.parts(work.files[path].settings)]


@pytest.mark.parametrize("which", KEYS)
def test_the_settings_that_key_the_streams_are_what_they_were(which: str) -> None:
    paper, scale = which.split()
    work = Workload(load(scale, paper), paper)
    keys = {stream_key(point.setup) for point in work.points}
    keys |= {canonical(point) for part in parts_of(work) for point in part.setup.each()}
    text = "\n".join(sorted(keys))  # however replicates and points are cut into jobs
    assert hashlib.sha256(text.encode()).hexdigest() == KEYS[which]


def test_the_keys_of_every_paper_and_scale_are_known() -> None:
    assert set(KEYS) == {f"{paper} {scale}" for paper in papers(ROOT) for scale in SCALES}


def test_every_replicate_of_a_study_is_measured_once() -> None:
    config = load("paper", STUDIES)
    work = Workload(config, STUDIES)
    for name, study in config.papers[STUDIES].studies.items():
        found: dict[tuple[str, str, int], int] = {}
        for path in work.studies(name):
            for part in run_studies.parts(work.files[path].settings):
                for replicate in part.replicates:
                    for point in part.setup.each():
                        key = (canonical(point), point.label, replicate)
                        found[key] = found.get(key, 0) + 1
        assert set(found.values()) == {1}
        for label, method in study.methods.items():
            numbers = {number for _, own, number in found if own == label}
            assert numbers == set(range(method.replicates or study.replicates))


def test_sizes_of_jobs_determine_no_result() -> None:
    config = load("paper", STUDIES)
    before = Workload(config, STUDIES)
    after = Workload(
        with_paper(config, lambda p: p["studies"]["networks"].pop("seeds_per_job")), STUDIES
    )
    assert before.paper.determining() == after.paper.determining()
    chains = Workload(replace(load("paper", THESIS), seeds_per_job=1), THESIS)
    assert len(chains.files) > len(Workload(load("paper", THESIS), THESIS).files)
