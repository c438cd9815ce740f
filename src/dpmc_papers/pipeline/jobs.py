"""Parts of a workload, from problems to outputs, each with its files."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from dpmc.registry import listed
from dpmc.types import DpmcError
from dpmc_papers.config import grids, settings
from dpmc_papers.config.settings import ChainsRead
from dpmc_papers.config.setups import ChainSetup, ProblemSetup, StudySetup


@dataclass(frozen=True)
class ProblemJob:
    """A data set and a model.

    Parameters
    ----------
    name : str
        Its key in the configuration.
    setup : ProblemSetup
        Everything that determines the data, the model and the start points.
    data, reference, baseline : str
        Files of the rows, of the exact posterior sample and of the metrics of further ones;
        the last two empty for a problem without a model.
    raw : str
        The file that says where the raw file of the rows is; empty for rows of no raw file.
    """

    name: str
    setup: ProblemSetup
    data: str
    reference: str = ""
    baseline: str = ""
    raw: str = ""

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that there are."""
        return tuple(filter(None, (self.data, self.reference, self.baseline)))


@dataclass(frozen=True)
class ChainJob:
    """A batch of replicates of one point of a grid.

    Parameters
    ----------
    experiment, problem, label : str
        Where the point stands in the configuration.
    point : str
        The point in words, such as ``eps=4``.
    digest : str
        Eight hexadecimal digits of everything that determines a replicate.
    first, last : int
        The first and the last replicate.
    setup : ChainSetup
        What :func:`dpmc_papers.pipeline.run_chains.run_chains` receives.
    data, reference, path : str
        The files that it reads, and that of the result.
    seconds : float
        A guess at the time it takes; it orders the work and changes no result.
    """

    experiment: str
    problem: str
    label: str
    point: str
    digest: str
    first: int
    last: int
    setup: ChainSetup
    data: str
    reference: str
    path: str
    seconds: float


@dataclass(frozen=True)
class MetricsPart:
    """What is measured of all points of one method.

    Parameters
    ----------
    label : str
        The method, in the configuration.
    digest : str
        Eight hexadecimal digits of everything that determines its rows.
    jobs : tuple of ChainJob
        What is measured.
    """

    label: str
    digest: str
    jobs: tuple[ChainJob, ...]


@dataclass(frozen=True)
class MetricsJob:
    """The metrics of some methods on one problem.

    Parameters
    ----------
    experiment, problem : str
        Where the methods stand in the configuration.
    parts : tuple of MetricsPart
        The methods.
    reference, path : str
        The file of the exact sample, and that of the result.
    """

    experiment: str
    problem: str
    parts: tuple[MetricsPart, ...]
    reference: str
    path: str

    @property
    def jobs(self) -> tuple[ChainJob, ...]:
        """What it measures."""
        return tuple(job for part in self.parts for job in part.jobs)

    @property
    def chains(self) -> tuple[str, ...]:
        """The files of the chains."""
        return tuple(job.path for job in self.jobs)

    @property
    def methods(self) -> list[dict[str, Any]]:
        """For each method its label and digest, and the points of its files of chains."""
        return [
            {"label": part.label, "digest": part.digest, "points": [j.point for j in part.jobs]}
            for part in self.parts
        ]

    @property
    def told(self) -> str:
        """What it does, in words."""
        return ", ".join(part.label for part in self.parts)


@dataclass(frozen=True)
class CurvesJob:
    """The iterations that budgets buy, by several accountants.

    Parameters
    ----------
    name : str
        Its key in the configuration.
    setup : CurvesJob
        What :func:`dpmc_papers.pipeline.accounting_curves.curve` receives.
    path : str
        The file of the result.
    """

    name: str
    setup: settings.Curves
    path: str


@dataclass(frozen=True)
class StudyPart:
    """Replicates of one point of a study, or of a few.

    Parameters
    ----------
    label : str
        The method, in the configuration.
    point : str
        What its points share, in words, such as ``J=5``.
    digest : str
        Eight hexadecimal digits of everything that determines a replicate.
    first, last : int
        The first and the last replicate.
    setup : StudySetup
        What ``run`` of the module in :mod:`dpmc_papers.studies` receives.
    """

    label: str
    point: str
    digest: str
    first: int
    last: int
    setup: StudySetup

    @property
    def told(self) -> str:
        """What it is, in words."""
        return f"{self.label}, {self.point}, replicates {self.first} to {self.last}"


@dataclass(frozen=True)
class StudyJob:
    """Parts of a study on one problem: what is measured of them goes to one table.

    Parameters
    ----------
    experiment, problem : str
        Where the study stands in the configuration.
    parts : tuple of StudyPart
        What it consists of.
    data : str
        The file of the rows.
    path : str
        That of the result.
    timed : bool
        Whether run times are measured, so that no other job may run beside it.
    """

    experiment: str
    problem: str
    parts: tuple[StudyPart, ...]
    data: str
    path: str
    timed: bool = False

    @property
    def told(self) -> str:
        """What it does, in words."""
        first, last = self.parts[0], self.parts[-1]
        if len(self.parts) == 1:
            return first.told
        ends = [f"{part.label}, {part.point}" for part in (first, last)]
        return f"{len(self.parts)} points, {' to '.join(dict.fromkeys(ends))}"


@dataclass(frozen=True)
class Reads:
    """What an output reads, by the names of the configuration.

    Parameters
    ----------
    kind : str
        ``figure``, ``table``, ``verdict``, ``guarantees`` or ``page``.
    metrics : sequence of str
        Experiments and studies.
    chains : ChainsRead or None
    reference, data : sequence of str
        Problems, for their exact sample and their rows.
    accounting : sequence of str
        Curves.
    """

    kind: str
    metrics: Sequence[str]
    chains: ChainsRead | None = None
    reference: Sequence[str] = ()
    data: Sequence[str] = ()
    accounting: Sequence[str] = ()


@dataclass(frozen=True)
class OutputJob:
    """A figure, a table, the verdicts, the guarantees or the page of a paper.

    Parameters
    ----------
    name : str
        The name of its file.
    reads : Reads
        What kind of output it is, and what it reads.
    config : mapping
        The part of the paper's settings that it may read, as JSON has it.
    experiments : mapping of str to Experiment
        The experiments among them.
    metrics, baselines, chains, references, datasets, curves : tuple of str
        The files that it reads; the tables of studies are among the metrics.
    request : str
        A file named by the digest of all that determines the output. An output has a fixed
        name; a request that does not exist yet is what tells that it is out of date, even
        when the records of earlier runs are lost.
    """

    name: str
    reads: Reads
    config: Mapping[str, Any]
    experiments: Mapping[str, settings.Experiment]
    metrics: tuple[str, ...]
    baselines: tuple[str, ...]
    chains: tuple[str, ...]
    references: tuple[str, ...]
    datasets: tuple[str, ...]
    curves: tuple[str, ...]
    request: str


def part_of(
    studies: Sequence[StudyJob], study: str, problem: str, label: str, point: str, replicate: int
) -> tuple[str, StudyPart]:
    """Return the file of the rows and the part of a study that is one replicate at one point.

    Parameters
    ----------
    studies : sequence of StudyJob
        Of a paper.
    study, problem, label : str
        As they stand in the configuration.
    point : str
        All values of the grid, such as ``num_nodes=5,epsilon=1`` in its order and short names.
    replicate : int

    Raises
    ------
    DpmcError
        If there is no such replicate.
    """
    parts = [(job, part) for job in studies for part in job.parts]
    wanted = {"experiment": study, "problem": problem}
    for key, value in wanted.items():
        known = {str(getattr(job, key)) for job, _ in parts}
        if value not in known:
            raise DpmcError(f"`{key}` must be one of {listed(known)}, got {value!r}")
        parts = [(job, part) for job, part in parts if getattr(job, key) == value]
    known = {part.label for _, part in parts}
    if label not in known:
        raise DpmcError(f"`label` must be one of {listed(known)}, got {label!r}")
    points = {
        grids.name(values): (job.data, part, values)
        for job, part in parts
        if part.label == label and part.first <= replicate
        for values in part.setup.points
    }
    if point not in points:
        raise DpmcError(f"`point` of {label} must be one of {listed(points)}, got {point!r}")
    most = max(part.last for _, part in parts if part.label == label)
    data, part, values = points[point]
    if replicate > most:
        raise DpmcError(f"`seed` of {label} must be 0 to {most}, got {replicate}")
    setup = replace(part.setup, points=[values])
    return data, dataclasses.replace(part, first=replicate, last=replicate, setup=setup)


def batch_of(
    jobs: Sequence[ChainJob], problem: str, label: str, point: str, replicate: int
) -> ChainJob:
    """Return the job that holds one replicate, of the first experiment that has it.

    Parameters
    ----------
    jobs : sequence of ChainJob
        Of a paper.
    problem, label, point : str
        As they stand in the names of files, such as ``banana``, ``dp_hmc`` and ``eps=4``.
    replicate : int

    Raises
    ------
    DpmcError
        If there are no such chains.
    """
    wanted = {"problem": problem, "label": label, "point": point}
    of = {"problem": "", "label": "", "point": f" of {label}"}
    for key, value in wanted.items():
        known = {str(getattr(job, key)) for job in jobs}
        if value not in known:
            raise DpmcError(f"`{key}`{of[key]} must be one of {listed(known)}, got {value!r}")
        jobs = [job for job in jobs if getattr(job, key) == value]
    for job in jobs:
        if job.first <= replicate <= job.last:
            return job
    most = max(job.last for job in jobs)
    raise DpmcError(f"`seed` of {label} must be 0 to {most}, got {replicate}")
