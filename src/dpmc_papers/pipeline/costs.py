"""Expected time and memory of jobs, from measurements of finished runs, and batches of jobs.

Expectations order work, size requests to a cluster and fill submissions. No result depends on
them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from dpmc import registry
from dpmc.types import DpmcError
from dpmc.yaml_files import Settings, read_typed
from dpmc_papers.config import grids
from dpmc_papers.config.pricing import Work
from dpmc_papers.config.settings import Positive
from dpmc_papers.config.setups import StudySetup
from dpmc_papers.data._sizes import megabytes
from dpmc_papers.pipeline.jobs import (
    ChainJob,
    CurvesJob,
    MetricsJob,
    OutputJob,
    ProblemJob,
    StudyJob,
    StudyPart,
)

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
            held = (work_of(p.setup).megabytes + megabytes(p.setup.problem) for p in entry.parts)
            return own["study"] + max(held)
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
            return self.seconds["study"] + total(map(self.seconds_of, entry.parts))
        if isinstance(entry, MetricsJob):
            runs = ((job.last - job.first + 1) * job.setup.num_chains for job in entry.jobs)
            return self.seconds["metrics"] * sum(runs)
        if isinstance(entry, CurvesJob):
            counted = sum(len(curve.accountants) for curve in entry.setup.settings.values())
            points = len(entry.setup.epsilons) * counted
            return self.seconds["accounting"] * points
        return self.seconds[rule]

    def seconds_of(self, part: StudyPart) -> float:
        """Return the processor time of a part of a study, without the start of its job."""
        setup, work = part.setup, work_of(part.setup)
        each = self.measured.get(place_of(setup), work.seconds_per_unit)
        return each * work.units * runs_of(part)


def work_of(setup: StudySetup) -> Work:
    """Return the work of one run of a study, as its module says it."""
    work: Work = registry.load("study", setup.study).work(setup)
    return work


def runs_of(part: StudyPart) -> int:
    """Return the runs of a part of a study: replicates of all its points."""
    return len(part.setup.points) * (part.last - part.first + 1)


def place_of(setup: StudySetup) -> str:
    """Return the name under which the measured seconds of a method in a study are kept."""
    return f"{setup.paper}/{setup.experiment}/{setup.problem.name}/{setup.label}"


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


@dataclass(frozen=True)
class Submission:
    """Jobs that follow one another on a cluster, and whose time limits add up.

    Parameters
    ----------
    jobs : int
        How many, at least 1.
    minutes : int
        The sum of their time limits at the first attempt.
    """

    jobs: int
    minutes: int


def requested_minutes(
    expected: float, attempt: int, together: Submission | None = None, longest: int | None = None
) -> int:
    """Return the time limit of a job, whole minutes: more at every attempt.

    Parameters
    ----------
    expected : float
        Seconds.
    attempt : int
        From 1.
    together : Submission, optional
        The submission that the job is part of; by default it is alone.
    longest : int, optional
        The longest limit that the cluster allows. The limits of a submission that would exceed
        it are shortened by one factor, to add up to it at most.
    """
    own = max(LEAST_MINUTES, math.ceil(TIME_MARGIN * expected / 60))
    doubled: int = 2 ** (attempt - 1)
    together = together or Submission(1, own)
    if longest is None or together.minutes * doubled <= longest:
        return own * doubled
    # A minute for each job; what is left by their expected times.
    return 1 + max(0, longest - together.jobs) * own // together.minutes


def too_long(seconds: Mapping[str, float], longest: int) -> str | None:
    """Return a line about jobs that the longest time limit is too short for, None if none is.

    Parameters
    ----------
    seconds : mapping of str to float
        What each job should take.
    longest : int
        Minutes.
    """
    over = {key: value for key, value in seconds.items() if value > 60 * longest}
    if not over:
        return None
    worst = max(over, key=over.__getitem__)
    return (
        f"`longest_minutes` is {longest}, and {len(over)} of {len(seconds)} jobs should take "
        f"longer: they ask for {longest} and may be ended ({worst}: {over[worst] / 60:.0f})"
    )


def batches(
    seconds: Sequence[float],
    least: float,
    most_jobs: int,
    minutes: Sequence[int] | None = None,
    longest: int | None = None,
) -> list[int]:
    """Return the number of the submission that each job belongs to, neighbours together.

    Every submission but the last is expected to take at least `least` seconds, or can take no
    further job. A last one that would be too short joins the one before it where it fits.

    Parameters
    ----------
    seconds : sequence of float
        What each job should take.
    least : float
        > 0.
    most_jobs : int
        Of a submission, at least 1.
    minutes : sequence of int, optional
        Time limit of each job.
    longest : int, optional
        What the time limits of a submission may add up to. A job of more goes alone.

    Raises
    ------
    DpmcError
        If `least` or `most_jobs` is out of range.
    """
    if not least > 0:
        raise DpmcError(f"`least` must be a number > 0, got {least}")
    if most_jobs < 1:
        raise DpmcError(f"`most_jobs` must be an integer >= 1, got {most_jobs}")
    limits = [0] * len(seconds) if minutes is None or longest is None else minutes
    most = 0 if longest is None else longest
    parts: list[list[int]] = []
    for k in range(len(seconds)):
        last = parts[-1] if parts else []
        is_long = total(seconds[j] for j in last) >= least
        if last and not is_long and _fits([*last, k], limits, most_jobs, most):
            last.append(k)
        else:
            parts.append([k])
    if len(parts) > 1 and total(seconds[j] for j in parts[-1]) < least:
        both = parts[-2] + parts[-1]
        if _fits(both, limits, most_jobs, most):
            parts[-2:] = [both]
    return [number for number, part in enumerate(parts) for _ in part]


def _fits(part: Sequence[int], limits: Sequence[int], most_jobs: int, longest: int) -> bool:
    return len(part) <= most_jobs and sum(limits[j] for j in part) <= longest


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
