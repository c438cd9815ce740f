"""Priorities of jobs: cheap outputs first, whatever an output needs before the output."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from dpmc_papers.config.reader import load_config, papers
from dpmc_papers.pipeline import costs, order
from dpmc_papers.pipeline.jobs import OutputJob
from dpmc_papers.pipeline.workload import Workload

ROOT = Path(__file__).parents[3]
KNOWN = costs.load(ROOT / "config" / "costs.yaml")


@pytest.fixture(scope="module")
def works() -> list[Workload]:
    values = {"papers": list(papers(ROOT)), "scale": "quick", "results_dir": "results"}
    config = load_config(values, ROOT)
    return [Workload(config, paper) for paper in config.papers]


@pytest.fixture(scope="module")
def found(works: list[Workload]) -> dict[str, int]:
    return order.priorities(works, KNOWN)


def _shown(works: Iterable[Workload]) -> Iterator[OutputJob]:
    """Yield the figures and tables."""
    for work in works:
        yield from (job for job in work.outputs.values() if job.reads.kind in ("figure", "table"))


def _batches(work: Workload, output: OutputJob) -> set[str]:
    """Return the chains and studies of an output, found by the tables that it reads."""
    metrics = {entry.path: entry for entry in work.metrics}
    studies = {entry.path for entry in work.studies}
    chains = {path for key in output.metrics if key in metrics for path in metrics[key].chains}
    return chains | set(output.chains) | (studies & set(output.metrics))


def test_every_file_that_an_output_needs_has_a_priority(works, found):
    needed = {work.outputs[name].request for work in works for name in work.outputs}
    needed |= {path for work in works for job in _shown([work]) for path in _batches(work, job)}
    needed |= {job.data for work in works for job in work.studies}
    assert needed <= set(found)
    assert set(found) == {path for work in works for path in work.files}
    assert all(value > 0 for value in found.values())


def test_an_output_never_waits_for_batches_of_a_dearer_one(works, found):
    """A batch has the priority of the cheapest output that needs it, and nothing less."""
    for work in works:
        for output in _shown([work]):
            own = found[output.request]
            for path in _batches(work, output):
                assert found[path] > own - order.STEP, (output.name, path)


def test_an_output_and_its_data_come_before_its_batches(works, found):
    checked = 0
    for work in works:
        for output in _shown([work]):
            for path in _batches(work, output):
                entry = work.files[path]
                assert found[entry.data] >= found[path] - found[path] % order.STEP
                checked += 1
            same = [
                p
                for p in _batches(work, output)
                if found[p] // order.STEP == found[output.request] // order.STEP
            ]
            assert all(found[path] < found[output.request] for path in same)
    assert checked > 500


def _batch_seconds(work: Workload, output: OutputJob) -> float:
    rules = {"chains": "chain", "studies": "study", "run_times": "study"}
    return sum(
        KNOWN.expected_seconds(
            rules[path.removeprefix(work.folder).split("/")[1]], work.files[path]
        )
        for path in _batches(work, output)
    )


def test_cheap_outputs_lead(works, found):
    """Ten that need seconds of chains and studies are the first, ten that need minutes the last."""
    times = {job.request: _batch_seconds(work, job) for work in works for job in _shown([work])}
    ordered = sorted(times, key=lambda request: -found[request])
    assert max(times[request] for request in ordered[:10]) < 15
    assert min(times[request] for request in ordered[-10:]) > 60


def test_the_longest_batch_of_an_output_comes_first(works, found):
    work = next(work for work in works if work.jobs)
    output = next(job for job in _shown([work]) if len(_batches(work, job)) > 5)
    same = [
        path
        for path in _batches(work, output)
        if found[path] // order.STEP == found[output.request] // order.STEP
    ]
    times = [KNOWN.expected_seconds("chain", work.files[path]) for path in same]
    by_time = sorted(zip(times, same, strict=True), reverse=True)
    assert len(same) > 1
    assert [found[path] for _, path in by_time] == sorted(map(found.get, same), reverse=True)


def test_an_output_never_waits_for_its_references_and_metrics(works, found):
    """As batches: they have the priority of the cheapest output that needs them."""
    for work in works:
        for output in _shown([work]):
            for path in (*output.metrics, *output.baselines, *output.references, *output.curves):
                assert found[path] > found[output.request] - order.STEP, (output.name, path)


def test_verdicts_come_last(works, found):
    """Their requests come after those of all figures and tables."""
    last = [work.outputs[name].request for work in works for name in order.LAST]
    shown = [job.request for job in _shown(works)]
    assert max(found[path] for path in last) < min(found[path] for path in shown)
