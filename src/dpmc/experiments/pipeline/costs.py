"""Expected time and memory of jobs, from measurements of finished runs, and batches of jobs.

Expectations order work, size requests to a cluster and fill submissions. No result depends on
them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from dpmc import registry
from dpmc.experiments.config import grids
from dpmc.experiments.config.pricing import Work
from dpmc.experiments.config.reader import read_typed
from dpmc.experiments.config.settings import Positive, Settings
from dpmc.experiments.data._sizes import megabytes
from dpmc.experiments.pipeline.jobs import (
    ChainJob,
    CurvesJob,
    MetricsJob,
    OutputJob,
    ProblemJob,
    StudyJob,
)
from dpmc.types import DpmcError

Rule = Literal["data", "reference", "baseline", "chain", "metrics", "accounting", "study", "output"]
Entry: TypeAlias = ProblemJob | ChainJob | MetricsJob | CurvesJob | StudyJob | OutputJob

# Of what a job is expected to hold: what it asks of a cluster at the first attempt.
MEMORY_MARGIN = 1.6
# Of what it is expected to take, in wall clock time on a node that is shared and slower.
TIME_MARGIN = 4.0
LEAST_MEMORY_MB = 500
# The start of a submission has to fit into the time limit of its only job.
LEAST_MINUTES = 2
Prices = Annotated[dict[str, Positive], Meta(description="a mapping to numbers > 0")]


class Costs(Settings, frozen=True):
    """Measured costs, in seconds of processor time of one core and in megabytes.

    Parameters
    ----------
    machine : str
        Where they were measured.
    start_up : float
        Of every job: the interpreter, imports, reading and writing.
    seconds : mapping of str to float
        Of one job of a rule beside its start, or of one unit of its work: ``metrics`` per
        chain, ``accounting`` per point of a curve.
    memory_mb : mapping of str to float
        Of one job of a rule; ``chain_more`` for every further chain that runs in step,
        ``rows_made`` and ``rows_read`` for every megabyte of rows, ``output_more`` for every
        thousand runs read.
    chains : float
        Processor seconds per second that a paper's configuration guesses for a chain.
    measured : mapping of str to float
        Seconds of one run of a study and a thousand units of its work, by
        ``paper/experiment/problem/label``. What was not measured is priced by the study alone.
    """

    machine: str
    start_up: Positive
    seconds: Prices
    memory_mb: Prices
    chains: Positive
    measured: Prices

    def expected_seconds(self, rule: Rule, entry: Entry) -> float:
        """Return the processor time that a job should take, its start included.

        Parameters
        ----------
        rule : str
            The rule that makes it.
        entry : ProblemJob, ChainJob, MetricsJob, CurvesJob, StudyJob or OutputJob

        Returns
        -------
        float
            Seconds, > 0.
        """
        return self.start_up + self._work(rule, entry)

    def expected_memory_mb(self, rule: Rule, entry: Entry) -> float:
        """Return the memory that a job should hold at most.

        Parameters
        ----------
        rule : str
        entry : ProblemJob, ChainJob, MetricsJob, CurvesJob, StudyJob or OutputJob
        """
        own = self.memory_mb
        if isinstance(entry, ChainJob):
            further = entry.setup.num_chains - 1
            rows = own["rows_read"] * megabytes(entry.setup.problem)
            return own["chain"] + own["chain_more"] * further + rows
        if isinstance(entry, StudyJob):
            return own["study"] + work_of(entry).megabytes + megabytes(entry.setup.problem)
        if isinstance(entry, ProblemJob):
            factor = own["rows_made" if rule == "data" else "rows_read"]
            return own[rule] + factor * megabytes(entry.setup)
        if isinstance(entry, OutputJob):
            return own["output"] + own["output_more"] * runs_read(entry) / 1000
        return own[rule]

    def _work(self, rule: Rule, entry: Entry) -> float:
        if isinstance(entry, ChainJob):
            return self.seconds["chain"] + self.chains * entry.seconds
        if isinstance(entry, StudyJob):
            return self._study_seconds(entry)
        if isinstance(entry, MetricsJob):
            runs = ((job.last - job.first + 1) * job.setup.num_chains for job in entry.jobs)
            return self.seconds["metrics"] * sum(runs)
        if isinstance(entry, CurvesJob):
            counted = sum(len(curve.accountants) for curve in entry.setup.settings.values())
            points = len(entry.setup.epsilons) * counted
            return self.seconds["accounting"] * points
        return self.seconds[rule]

    def _study_seconds(self, study: StudyJob) -> float:
        setup, work = study.setup, work_of(study)
        runs = len(setup.points) * (study.last - study.first + 1)
        here = f"{setup.paper}/{study.experiment}/{study.problem}/{study.label}"
        each = self.measured.get(here, work.seconds_per_unit)
        return self.seconds["study"] + each * work.units * runs


def work_of(study: StudyJob) -> Work:
    """Return the work of one run of a study, as its module says it."""
    work: Work = registry.load("study", study.setup.study).work(study.setup)
    return work


def load(path: Path) -> Costs:
    """Read the measured costs.

    Raises
    ------
    DpmcError
        One line, if the file is missing or says something else.
    """
    return read_typed(path, Costs)


def requested_memory_mb(expected: float, attempt: int, most: int | None = None) -> int:
    """Return what to ask a cluster for: twice as much at every attempt, `most` at most.

    Parameters
    ----------
    expected : float
        Megabytes.
    attempt : int
        From 1.
    most : int, optional
        What the largest node has.
    """
    doubled: int = 2 ** (attempt - 1)
    asked = math.ceil(max(LEAST_MEMORY_MB, MEMORY_MARGIN * expected) * doubled)
    return asked if most is None else min(asked, most)


def requested_minutes(expected: float, attempt: int) -> int:
    """Return the time limit of a job, whole minutes: more at every attempt.

    Parameters
    ----------
    expected : float
        Seconds.
    attempt : int
        From 1.
    """
    doubled: int = 2 ** (attempt - 1)
    return max(LEAST_MINUTES, math.ceil(TIME_MARGIN * expected / 60)) * doubled


def batches(seconds: Sequence[float], least: float, most_jobs: int) -> list[int]:
    """Return the number of the submission that each job belongs to, neighbours together.

    Every submission but the last is expected to take at least `least` seconds, or has
    `most_jobs` jobs. A last one that would be too short joins the one before it where it fits.

    Parameters
    ----------
    seconds : sequence of float
        What each job should take.
    least : float
        > 0.
    most_jobs : int
        At least 1.

    Raises
    ------
    DpmcError
        If `least` or `most_jobs` is out of range.
    """
    if not least > 0:
        raise DpmcError(f"`least` must be a number > 0, got {least}")
    if most_jobs < 1:
        raise DpmcError(f"`most_jobs` must be an integer >= 1, got {most_jobs}")
    numbers: list[int] = []
    number, filled, count = 0, 0.0, 0
    for value in seconds:
        if count and (filled >= least or count == most_jobs):
            number, filled, count = number + 1, 0.0, 0
        numbers.append(number)
        filled, count = filled + value, count + 1
    fits = number and numbers.count(number - 1) + count <= most_jobs
    if fits and filled < least:
        numbers[-count:] = [number - 1] * count
    return numbers


def runs_read(output: OutputJob) -> int:
    """Return about how many runs the tables that an output reads are made of."""
    return sum(
        method.replicates or experiment.replicates
        for experiment in output.experiments.values()
        for methods in experiment.methods.values()
        for method in methods.values()
        for _ in grids.points(method, experiment.budgets(method))
    )


def total(values: Iterable[float]) -> float:
    """Return a sum that does not depend on the order."""
    return math.fsum(values)
