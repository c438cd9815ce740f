"""The jobs that a configuration becomes: their files, and what determines them."""

from __future__ import annotations

import hashlib
import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from dpmc_papers.config.reader import Config, papers
from dpmc_papers.config.settings import plain
from dpmc_papers.config.setups import BudgetSetup, canonical
from dpmc_papers.pipeline.jobs import MetricsJob, MetricsPart
from dpmc_papers.pipeline.run_chains import stream_key
from dpmc_papers.pipeline.workload import Workload
from tests.support.papers import KEY, ROOT, SCALES, THESIS, load, load_changed, with_paper

# Made from all of a paper.
WHOLE = {"verdict", "guarantees", "page"}


def test_planning_imports_nothing_heavy() -> None:
    heavy = "{'numba', 'scipy', 'pandas', 'pyarrow', 'arviz', 'dp_accounting', 'matplotlib'}"
    modules = "dpmc_papers.config.reader, dpmc_papers.pipeline.workload"
    code = f"import sys, {modules}; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_paths_say_what_a_job_is() -> None:
    work = Workload(load("paper"), KEY)
    job = next(j for j in work.jobs if (j.label, j.point) == ("dp_penalty", "eps=4"))
    folder = f"results/paper/{KEY}/chains/comparison/paper_banana_2d/dp_penalty"
    assert job.path == f"{folder}/eps=4-{job.digest}/0-9.parquet"
    assert len({j.path for j in work.jobs}) == len(work.jobs)
    assert job.setup.budget == BudgetSetup(epsilon=4, delta=1e-6, accountant="gaussian")
    clipped = next(j for j in work.jobs if j.experiment == "clipping" and j.label == "hmc")
    assert clipped.point == "clip_bound=0.01"
    assert clipped.setup.params["ratio_clip_bound"] == 0.01
    assert clipped.setup.budget is None


def test_jobs_do_not_depend_on_batches_order_or_notation() -> None:
    config = load("paper")
    before = {job.path.rpartition("/")[0] for job in Workload(config, KEY).jobs}
    for other in (
        load_changed(seeds_per_job=1),
        with_paper(config, lambda p: p["experiments"]["comparison"].update(replicates=30)),
        with_paper(config, lambda p: p["experiments"]["comparison"]["epsilons"].reverse()),
        with_paper(config, lambda p: p["problems"]["paper_banana_2d"].update(label="Other")),
        with_paper(config, lambda p: p["reference"].update(num_baselines=3)),
    ):
        assert {job.path.rpartition("/")[0] for job in Workload(other, KEY).jobs} == before


def test_batches_cover_every_replicate_once() -> None:
    for size in (1, 3, 10):
        work = Workload(load_changed(seeds_per_job=size), KEY)
        for measured, part in parts_measured(work):
            experiment = work.paper.experiments[measured.experiment]
            method = experiment.methods[measured.problem][part.label]
            replicates = method.replicates or experiment.replicates
            for point in {job.point for job in part.jobs}:
                batches = [range(j.first, j.last + 1) for j in part.jobs if j.point == point]
                assert [k for batch in batches for k in batch] == list(range(replicates))
                assert max(map(len, batches)) <= size


def parts_measured(work: Workload) -> list[tuple[MetricsJob, MetricsPart]]:
    return [(entry, part) for entry in work.metrics for part in entry.parts]


@pytest.mark.parametrize(
    "change",
    [
        lambda p: p.update(seed=1),
        lambda p: p["reference"].update(num_draws=500),
        lambda p: p["problems"]["paper_banana_2d"]["data"]["params"].update(num_rows=9),
        lambda p: p["problems"]["paper_banana_2d"]["start"].update(scale=0.1),
        lambda p: p["problems"]["paper_banana_2d"].update(delta=1e-7),
        lambda p: p["experiments"]["comparison"].update(num_chains=3),
    ],
)
def test_what_determines_a_result_changes_its_digest(change: Callable[[Any], None]) -> None:
    config = load("paper")

    def digests(config: Config) -> set[str]:
        jobs = Workload(config, KEY).jobs
        return {j.digest for j in jobs if (j.experiment, j.problem) == chosen}

    chosen = ("comparison", "paper_banana_2d")
    assert digests(config).isdisjoint(digests(with_paper(config, change)))


def test_data_and_reference_depend_on_what_they_are_made_from() -> None:
    config = load("paper")

    def places(change: Callable[[Any], Any]) -> tuple[str, str]:
        problem = Workload(with_paper(config, change), KEY).problems["paper_banana_2d"]
        return problem.data, problem.reference

    data, reference = places(lambda p: None)
    for change in (
        lambda p: p.update(seed=1),
        lambda p: p["problems"]["paper_banana_2d"]["data"]["params"].update(num_rows=9),
    ):
        changed = places(change)
        assert changed[0] != data
        assert changed[1] != reference
    another = places(lambda p: p["reference"].update(num_draws=500))
    assert another[0] == data
    assert another[1] != reference


def test_an_output_depends_on_its_own_experiments_alone() -> None:
    config = load("paper")

    def requests(config: Config) -> dict[str, str]:
        return {name: entry.request for name, entry in Workload(config, KEY).outputs.items()}

    before = requests(config)
    after = requests(
        with_paper(config, lambda p: p["experiments"]["clipping"].update(replicates=11))
    )
    touched = {name for name in before if before[name] != after[name]}
    assert touched == {"figure3", "clipping", *WHOLE}


# Of the sorted keys of all streams. Should one of them change, its results are other draws.
KEYS: dict[str, str] = yaml.safe_load(
    (Path(__file__).parent / "stream_keys.yaml").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("which", KEYS)
def test_the_settings_that_key_the_streams_are_what_they_were(which: str) -> None:
    paper, scale = which.split()
    work = Workload(load(scale, paper), paper)
    keys = {stream_key(job.setup) for job in work.jobs}
    parts = [part for study in work.studies for part in study.parts]
    keys |= {canonical(point) for part in parts for point in part.setup.each()}
    text = "\n".join(sorted(keys))  # however replicates and points are cut into jobs
    assert hashlib.sha256(text.encode()).hexdigest() == KEYS[which]


def test_the_keys_of_every_paper_and_scale_are_known() -> None:
    assert set(KEYS) == {f"{paper} {scale}" for paper in papers(ROOT) for scale in SCALES}


def test_a_limit_of_iterations_is_a_setting_where_it_is_given_and_nowhere_else() -> None:
    jobs = Workload(load("paper", THESIS), THESIS).jobs
    limits = {(job.label, job.setup.max_iterations) for job in jobs}
    assert {limit for label, limit in limits if label == "dp_barker-pld"} == {100000}
    given = {label for label, limit in limits if limit is not None}
    assert given == {"dp_barker-pld"}
    assert not any(
        "max_iterations" in canonical(job.setup) for job in jobs if job.label not in given
    )


def test_every_chain_of_the_thesis_has_the_whole_budget() -> None:
    work = Workload(load("paper", THESIS), THESIS)
    assert {job.setup.num_chains for job in work.jobs} == {1}
    for entry, part in parts_measured(work):
        published = part.label.partition("-")[2] in ("", "as_published")
        count = 1 if entry.experiment == "trajectory" else 20
        repeated = (published and part.label != "dp_mala") or part.label == "dp_barker-pld"
        if entry.experiment == "text" and not repeated:
            count = 10  # what the thesis did not run
        for point in {job.point for job in part.jobs}:
            assert sum(j.last - j.first + 1 for j in part.jobs if j.point == point) == count


@pytest.mark.parametrize("scale", ["smoke", "quick", "paper"])
def test_outputs_get_the_rows_and_curves_that_they_name(scale: str) -> None:
    work = Workload(load(scale, THESIS), THESIS)
    assert set(work.outputs) - WHOLE == set(load("paper", THESIS).papers[THESIS].outputs)
    for name, output in work.outputs.items():
        read = work.paper.outputs[name].data if name in work.paper.outputs else ()
        data = [path.rpartition("/")[2].rpartition("-")[0] for path in output.datasets]
        assert set(data) == set(read)
        assert all(name in output.config["problems"] for name in data)
    curves = work.curves["figure6_1"]
    assert work.outputs["figure6_1"].curves == work.outputs["verdict"].curves == (curves.path,)
    assert work.outputs["figure6_1"].config["accounting"] == {"figure6_1": plain(curves.setup)}
    assert work.outputs["figure6_1"].metrics == work.outputs["figure6_1"].baselines == ()
    assert "accounting" not in work.outputs["figure6_3"].config
    assert work.files[curves.path] == curves


def test_curves_depend_on_their_settings_and_their_readers_on_them() -> None:
    config = load("paper", THESIS)

    def changed(change: Callable[[Any], None]) -> set[str]:
        first, second = Workload(config, THESIS), Workload(with_paper(config, change), THESIS)
        assert [job.path for job in first.jobs] == [job.path for job in second.jobs]
        assert first.outputs.keys() == second.outputs.keys()
        moved = {k for k, c in first.curves.items() if c.path != second.curves[k].path}
        requests = {k for k, o in first.outputs.items() if o.request != second.outputs[k].request}
        return moved | requests

    def delta(paper: Any) -> None:
        paper["accounting"]["figure6_1"].update(delta=1e-5)

    def caption(paper: Any) -> None:
        paper["outputs"]["figure6_2"].update(caption="other.rst")

    assert changed(delta) == {"figure6_1", *WHOLE}
    assert changed(caption) == {"figure6_2", *WHOLE}


STUDIES = "alparslan2023thesis"


def parts_of(config: Config) -> dict[str, set[tuple[str, str, str, int]]]:
    """Return the replicates of studies by experiment: label, point, digest and number."""
    found: dict[str, set[tuple[str, str, str, int]]] = {}
    for study in Workload(config, STUDIES).studies:
        for part in study.parts:
            each = {
                (f"{study.problem} {part.label}", part.point, part.digest, replicate)
                for replicate in range(part.first, part.last + 1)
            }
            place = found.setdefault(study.experiment, set())
            assert place.isdisjoint(each)
            place |= each
    return found


def test_jobs_of_studies_have_every_replicate_once_and_are_filled():
    config = load("paper", STUDIES)
    work = Workload(config, STUDIES)
    for name, study in work.paper.studies.items():
        jobs = [job for job in work.studies if job.experiment == name]
        for problem in study.problems:
            runs = [
                [(part.last - part.first + 1) * len(part.setup.points) for part in job.parts]
                for job in jobs
                if job.problem == problem
            ]
            wanted = sum(
                (method.replicates or study.replicates)
                * math.prod(map(len, {**study.grid, **method.grid}.values()))
                for method in study.methods.values()
                if problem in (method.problems or study.problems)
            )
            assert sum(map(sum, runs)) == wanted
            assert all(sum(own) <= study.most_runs(problem) or len(own) == 1 for own in runs)
    assert len(parts_of(config)) == len(work.paper.studies)


def test_how_studies_are_cut_changes_no_part():
    config = load("paper", STUDIES)
    before = parts_of(config)
    name = "real_data"
    cut = with_paper(config, lambda p: p["studies"][name].update(runs_per_job=6))
    jobs = [len(Workload(each, STUDIES).studies) for each in (config, cut)]
    assert jobs[1] > jobs[0]
    assert parts_of(cut) == before
    work, other = (Workload(each, STUDIES) for each in (config, replace(config, seeds_per_job=1)))
    assert [job.path for job in work.studies] == [job.path for job in other.studies]


def test_another_setting_of_a_method_changes_its_parts_alone():
    config = load("paper", STUDIES)

    def change(paper: Any) -> None:
        paper["studies"]["selection"]["methods"]["fixed_all"]["params"] = {"num_runs": 7}

    before, after = parts_of(config), parts_of(with_paper(config, change))
    gone = {name: before[name] - after[name] for name in before}
    assert {name for name, lost in gone.items() if lost} == {"selection"}
    assert {label.split()[1] for label, *_ in gone["selection"]} == {"fixed_all"}


def test_one_replicate_more_adds_one_to_every_part():
    config = load("paper", STUDIES)
    before = parts_of(config)
    more = with_paper(config, lambda p: p["studies"]["selection"].update(replicates=21))
    after = parts_of(more)
    assert before["selection"] < after["selection"]
    new = after["selection"] - before["selection"]
    assert {replicate for *_, replicate in new} == {20}
    assert {n: after[n] for n in after if n != "selection"} == {
        n: before[n] for n in before if n != "selection"
    }


@pytest.mark.parametrize("scale", SCALES)
def test_run_times_are_kept_apart_from_results(scale: str) -> None:
    """By the studies whose code takes the time."""
    work = Workload(load(scale, STUDIES), STUDIES)
    timed = {job.experiment for job in work.studies if job.timed}
    source = ROOT / "src/dpmc_papers/studies"
    reading = {
        name
        for name, study in work.paper.studies.items()
        if "process_time" in (source / f"{study.study}.py").read_text(encoding="utf-8")
    }
    assert timed == reading == {"run_times"}
    folders = {job.timed: job.path.split("/")[3] for job in work.studies}
    assert folders == {True: "run_times", False: "studies"}
