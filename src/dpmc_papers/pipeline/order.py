"""Order of jobs: what the cheapest figures and tables need comes first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from dpmc_papers.pipeline.costs import Costs, Entry, Rule, total
from dpmc_papers.pipeline.jobs import (
    ChainJob,
    CurvesJob,
    MetricsJob,
    OutputJob,
    ProblemJob,
    StudyJob,
)
from dpmc_papers.pipeline.workload import Workload

# Between the priorities of one output and the next; within it the longest job comes first.
STEP = 1000
LAST = ("verdict", "guarantees", "page")
RULES: dict[type[Entry], Rule] = {
    ChainJob: "chain",
    CurvesJob: "accounting",
    MetricsJob: "metrics",
    OutputJob: "output",
    StudyJob: "study",
}


def priorities(works: Iterable[Workload], known: Costs) -> dict[str, int]:
    """Return the priority of each file: higher is earlier.

    Figures and tables are sorted by the expected processor time of all that they are made from.
    A file that several of them need has the priority of the cheapest. Among the files of one
    output, chains and studies come by their time, the longest first, after its other files: data
    have to be there before them, and an output is made as soon as it can be.

    Parameters
    ----------
    works : iterable of Workload
        One a paper.
    known : Costs
        Measured costs.

    Returns
    -------
    dict of str to int
        By path; of outputs by the request that they answer. Verdicts, guarantees and pages come
        after all figures and tables, by the files that only they need.
    """
    works = list(works)
    entries = {path: entry for work in works for path, entry in work.files.items()}
    seconds = {
        path: known.expected_seconds(_rule(entry, path), entry) for path, entry in entries.items()
    }
    needs: list[tuple[bool, float, list[str]]] = []
    for work in works:
        for output in work.outputs.values():
            paths = list(_upstream(output, entries))
            needs.append((output.reads.kind in LAST, total(seconds[p] for p in paths), paths))
    needs.sort(key=lambda need: need[:2])
    found: dict[str, int] = {}
    for rank, (_, _, paths) in enumerate(needs):
        for path in paths:
            is_batch = isinstance(entries[path], ChainJob | StudyJob)
            within = min(int(seconds[path]), STEP - 2) if is_batch else STEP - 1
            found.setdefault(path, STEP * (len(needs) - rank) + within)
    return found


def _upstream(output: OutputJob, entries: Mapping[str, Entry]) -> Iterator[str]:
    """Yield all files that an output is made from, and its request."""
    yield output.request
    waiting = [*output.metrics, *output.baselines, *output.chains]
    waiting += [*output.references, *output.datasets, *output.curves]
    seen: set[str] = set()
    while waiting:
        path = waiting.pop()
        if path and path not in seen:
            seen.add(path)
            waiting += _inputs(entries[path], path)
            yield path


def _inputs(entry: Entry, path: str) -> tuple[str, ...]:
    """Return the files that the job of a file reads."""
    match entry:
        case ProblemJob():
            return () if path == entry.data else (entry.data,)
        case ChainJob():
            return entry.data, entry.reference
        case MetricsJob():
            return *entry.chains, entry.reference
        case StudyJob():
            return (entry.data,)
    return ()


def _rule(entry: Entry, path: str) -> Rule:
    if isinstance(entry, ProblemJob):
        made: dict[str, Rule] = {entry.data: "data", entry.reference: "reference"}
        return made.get(path, "baseline")
    return RULES[type(entry)]
