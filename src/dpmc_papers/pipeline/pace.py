"""Pace of a run: how long its other jobs should take, corrected by those that are done.

The workflow announces what jobs are expected to take; whoever shows progress follows them.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dpmc_papers.pipeline import files
from dpmc_papers.pipeline.output_files import endings, is_numbered

if TYPE_CHECKING:
    from dpmc_papers.pipeline.costs import Costs, Entry, Rule
    from dpmc_papers.pipeline.workload import Workload

# Of a job that nobody has measured, such as one that writes settings, and of one without its rows.
SECONDS_OTHERWISE = 2.0
# As much expected work as the first jobs must amount to before their pace counts half.
PRIOR_SECONDS = 20.0
Expected = Mapping[str, Mapping[str, float]]
# Rule and first file of the jobs that read a file of rows, or rows of a raw file, by its record.
Readers = Mapping[str, Sequence[tuple[str, str]]]

_announced: dict[str, dict[str, float]] = {}
_readers: dict[str, list[tuple[str, str]]] = {}


def announce(works: Iterable[Workload], known: Costs) -> None:
    """Tell what the jobs of some documents are expected to take, in place of what was told."""
    _announced.clear()
    _readers.clear()
    for work in works:
        for name, rule, path, entry in _made(work):
            _announced.setdefault(name, {})[path] = known.expected_seconds(rule, entry)
            problem = work.problems.get(getattr(entry, "problem", ""))
            if problem is not None:
                for rows in filter(None, (problem.raw, problem.data)):
                    _readers.setdefault(rows, []).append((name, path))
    for rows in filter(files.is_absence, _readers):
        for name, path in _readers[rows]:
            _announced[name][path] = SECONDS_OTHERWISE


def announced() -> Expected:
    """Return seconds of processor time by rule of the workflow and first file of a job."""
    return _announced


def readers() -> Readers:
    """Return the announced jobs that read rows, by the file of these and by that of a raw file."""
    return _readers


def _made(work: Workload) -> Iterable[tuple[str, Rule, str, Entry]]:
    for problem in work.problems.values():
        yield "data", "data", problem.data, problem
        if problem.reference:
            yield "reference", "reference", problem.reference, problem
        if problem.baseline:
            yield "baseline", "baseline", problem.baseline, problem
    yield from (("chain", "chain", entry.path, entry) for entry in work.jobs)
    for study in work.studies:
        yield "run_time" if study.timed else "study", "study", study.path, study
    yield from (("metrics", "metrics", entry.path, entry) for entry in work.metrics)
    yield from (("accounting", "accounting", entry.path, entry) for entry in work.curves.values())
    for name, output in work.outputs.items():
        kind = output.reads.kind
        first = endings(name, kind)[0]
        rule = "numbered_table" if kind == "table" and is_numbered(name) else kind
        yield rule, "output", f"{work.folder}/{name}.{first}", output


class Pace:
    """Follows the jobs of a run.

    Parameters
    ----------
    expected : mapping of str to mapping of str to float
        See `announced`. It may be filled later.
    clock : callable
        Returns seconds.
    readers : mapping of str to sequence of (str, str)
        See `readers`. Where rows turn out not to be had, these jobs have nothing to do.
    """

    def __init__(
        self,
        expected: Expected,
        clock: Callable[[], float] = time.monotonic,
        readers: Readers | None = None,
    ) -> None:
        self._expected, self._clock, self._readers = expected, clock, readers or {}
        self._waiting: Counter[str] = Counter()
        self._missing: dict[str, dict[str, float]] = {}
        self._running: dict[int, tuple[str, str, float, float]] = {}
        self._passed = self._foreseen = PRIOR_SECONDS
        self.cores = 1

    @property
    def running(self) -> int:
        """How many jobs run."""
        return len(self._running)

    def plan(self, counts: Mapping[str, int]) -> None:
        """Tell how many jobs of each rule a run has."""
        self._waiting = Counter(counts)

    def start(self, job: int, rule: str, path: str) -> None:
        """Tell that a job starts, whose first file is `path`."""
        known = self._expected.get(rule, {}).get(path, self._usual(rule))
        if job not in self._running:
            self._waiting[rule] -= 1
        foreseen = self._to_make(rule).pop(path, known)
        self._running[job] = (rule, path, foreseen, self._clock())

    def finish(self, job: int) -> None:
        """Tell that a job is done; one that nobody knows of is left out."""
        if job in self._running:
            rule, path, foreseen, start = self._running.pop(job)
            self._passed += self._clock() - start
            self._foreseen += foreseen
            if rule in ("raw", "data") and files.is_absence(path):
                for name, reader in self._readers.get(path, ()):
                    left = self._to_make(name)
                    if reader in left:
                        left[reader] = SECONDS_OTHERWISE

    def fail(self, job: int) -> None:
        """Tell that a job has failed; it may start again."""
        if job in self._running:
            self._waiting[self._running.pop(job)[0]] += 1

    def seconds_left(self) -> float:
        """Return how long the run still takes, in seconds."""
        ratio = self._passed / self._foreseen
        now = self._clock()
        each = [max(0.0, s * ratio - (now - start)) for *_, s, start in self._running.values()]
        waiting = sum(n * self._usual(rule) for rule, n in self._waiting.items() if n > 0)
        return max([(ratio * waiting + sum(each)) / self.cores, *each])

    def _usual(self, rule: str) -> float:
        """Return the mean over the jobs of a rule whose files are not there, else over all."""
        left = self._to_make(rule) or self._expected.get(rule, {})
        return sum(left.values()) / len(left) if left else SECONDS_OTHERWISE

    def _to_make(self, rule: str) -> dict[str, float]:
        """Return what the jobs should take whose files were not there at first."""
        if rule not in self._missing and rule in self._expected:
            every = self._expected[rule].items()
            self._missing[rule] = {path: s for path, s in every if not Path(path).exists()}
        return self._missing.get(rule, {})


def in_words(seconds: float) -> str:
    """Return a time left in the unit that a reader thinks in."""
    if seconds < 55:
        return f"{5 * max(1, math.ceil(seconds / 5))} s"
    if seconds < 3570:
        return f"{round(seconds / 60):d} min"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes:02d} min"
