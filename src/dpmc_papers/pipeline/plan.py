"""Plan of a run: what each budget affords, and its jobs, processor time and memory.

Times come from :mod:`dpmc_papers.pipeline.costs`; counts of iterations and noise from
:mod:`dpmc_papers.pipeline.affordable`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dpmc_papers.config import problems
from dpmc_papers.config.pricing import Bought
from dpmc_papers.pipeline import affordable, costs
from dpmc_papers.pipeline.costs import Costs, Rule
from dpmc_papers.pipeline.jobs import ChainJob, StudyJob, StudyPart
from dpmc_papers.pipeline.workload import Workload


@dataclass(frozen=True)
class PlanLine:
    """One method on one problem.

    Parameters
    ----------
    experiment, problem, label : str
        Where it stands in the configuration.
    bought : tuple of Bought
        For each epsilon.
    runs, jobs : int
        Replicates of all points, and the jobs that compute them; methods of a study share jobs.
    seconds : float
        Processor time of all these jobs, of studies without their start.
    memory_mb : float
        Of the largest of them.
    done : int
        Jobs whose results are there.
    here : bool
        Whether this machine has the raw data, where there are any.
    """

    experiment: str
    problem: str
    label: str
    bought: tuple[Bought, ...]
    runs: int
    jobs: int
    seconds: float
    memory_mb: float
    done: int
    here: bool


@dataclass(frozen=True)
class Stage:
    """All jobs of one rule.

    Parameters
    ----------
    rule : str
    jobs : int
    seconds : float
        Processor time.
    memory_mb : float
        Of the largest.
    """

    rule: str
    jobs: int
    seconds: float
    memory_mb: float


def lines(work: Workload, known: Costs, budgets: bool = True) -> Iterator[PlanLine]:
    """Yield a line for each method on each problem, in the order of the configuration.

    Parameters
    ----------
    work : Workload
    known : Costs
    budgets : bool
        Whether to say what the budgets buy, which takes an accountant up to seconds.
    """
    for metrics in work.metrics:
        here = _is_here(work, metrics.problem)
        for part in metrics.parts:
            yield _line(part.jobs, known, budgets, here)
    groups: dict[tuple[str, str, str], list[tuple[StudyJob, StudyPart]]] = {}
    for study in work.studies:
        for own in study.parts:
            groups.setdefault((study.experiment, study.problem, own.label), []).append((study, own))
    for (_, problem, _), entries in groups.items():
        yield _study_line(entries, known, budgets, _is_here(work, problem))


def stages(work: Workload, known: Costs) -> list[Stage]:
    """Return what each rule does."""
    modelled = [entry for entry in work.problems.values() if entry.reference]
    made: list[tuple[Rule, Sequence[costs.Entry]]] = [
        ("data", list(work.problems.values())),
        ("reference", modelled),
        ("baseline", modelled),
        ("chain", work.jobs),
        ("study", work.studies),
        ("metrics", work.metrics),
        ("accounting", list(work.curves.values())),
        ("output", list(work.outputs.values())),
    ]
    found = []
    for rule, entries in made:
        if entries:
            memory = [known.expected_memory_mb(rule, entry) for entry in entries]
            seconds = costs.total(known.expected_seconds(rule, entry) for entry in entries)
            found.append(Stage(rule, len(entries), seconds, max(memory)))
    return found


def text(works: Sequence[Workload], known: Costs, cores: int, budgets: bool = True) -> str:
    """Format the plan as text: one table per document, then totals.

    Parameters
    ----------
    works : sequence of Workload
    known : Costs
    cores : int
        Over which the work is spread.
    budgets : bool
        Whether to say what the budgets buy.
    """
    parts, seconds, jobs = [], 0.0, 0
    for work in works:
        found = stages(work, known)
        own = costs.total(stage.seconds for stage in found)
        parts.append(_document(work, list(lines(work, known, budgets)), found))
        seconds, jobs = seconds + own, jobs + sum(stage.jobs for stage in found)
    whole = f"all: {jobs:,} jobs, {duration(seconds)} of processor time, about "
    whole += f"{duration(seconds / cores)} on {cores} cores like those that were measured"
    return "\n".join([*parts, whole, f"measured on: {known.machine}"])


def duration(seconds: float) -> str:
    """Return a time in words: seconds, minutes or hours."""
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 99.5 * 60 else f"{seconds / 3600:.1f} h"


def _line(entries: Sequence[ChainJob], known: Costs, budgets: bool, here: bool) -> PlanLine:
    first = entries[0]
    return PlanLine(
        experiment=first.experiment,
        problem=first.problem,
        label=first.label,
        bought=tuple(dict.fromkeys(affordable.of_chain(job.setup) for job in entries))
        if budgets
        else (),
        runs=sum(job.last - job.first + 1 for job in entries),
        jobs=len(entries),
        seconds=costs.total(known.expected_seconds("chain", job) for job in entries),
        memory_mb=max(known.expected_memory_mb("chain", job) for job in entries),
        done=sum(Path(job.path).exists() for job in entries),
        here=here,
    )


def _study_line(
    entries: Sequence[tuple[StudyJob, StudyPart]], known: Costs, budgets: bool, here: bool
) -> PlanLine:
    """Return the line of a method of a study; methods share jobs, and so their starts."""
    jobs = {study.path: study for study, _ in entries}
    parts = [part for _, part in entries]
    first = parts[0].setup
    return PlanLine(
        experiment=first.experiment,
        problem=first.problem.name,
        label=first.label,
        bought=tuple(dict.fromkeys(_bought_by_study(parts))) if budgets else (),
        runs=sum(map(costs.runs_of, parts)),
        jobs=len(jobs),
        seconds=costs.total(map(known.seconds_of, parts)),
        memory_mb=max(known.expected_memory_mb("study", job) for job in jobs.values()),
        done=sum(Path(path).exists() for path in jobs),
        here=here,
    )


def _is_here(work: Workload, problem: str) -> bool:
    return problems.is_here(work.problems[problem].setup)


def _bought_by_study(parts: Sequence[StudyPart]) -> Iterator[Bought]:
    for part in parts:
        yield from affordable.of_study(part.setup)


def _document(work: Workload, found: list[PlanLine], made: list[Stage]) -> str:
    rows = [("experiment", "problem", "method", "budget buys", "runs", "jobs", "CPU", "memory")]
    for line in found:
        told = budgets_text(line.bought)
        rows.append(
            (
                line.experiment,
                line.problem if line.here else f"{line.problem} *",
                line.label,
                told,
                f"{line.runs:,}",
                f"{line.jobs:,}" if not line.done else f"{line.jobs:,} ({line.done:,} done)",
                duration(line.seconds),
                f"{line.memory_mb:,.0f} MB",
            )
        )
    jobs, seconds = sum(s.jobs for s in made), costs.total(s.seconds for s in made)
    memory = max(stage.memory_mb for stage in made)
    head = f"{work.paper.paper} at scale {work.config.scale}: {jobs:,} jobs, "
    head += f"{duration(seconds)} of processor time, {memory:,.0f} MB in the largest job"
    told = ", ".join(f"{s.rule} {s.jobs:,} ({duration(s.seconds)})" for s in made)
    away = costs.total(line.seconds for line in found if not line.here)
    note = (
        [f"* not on this machine, to be downloaded: {duration(away)} of the time"] if away else []
    )
    return "\n".join([head, f"by rule: {told}", *_table(rows), *note, ""])


def budgets_text(found: Sequence[Bought]) -> str:
    """Return what budgets buy in one line: those with the same noise share it."""
    parts: dict[str, list[Bought]] = {}
    for entry in found:
        parts.setdefault(entry.noise, []).append(entry)
    return "; ".join(_of_noise(noise, entries) for noise, entries in parts.items())


def _of_noise(noise: str, entries: Sequence[Bought]) -> str:
    counts = [f"{entry.iterations:,}" for entry in entries if entry.iterations is not None]
    count = f"{'/'.join(dict.fromkeys(counts))} it" if counts else ""
    if entries[0].epsilon is None:
        return count or "no budget"
    budgets = "/".join(f"{entry.epsilon:g}" for entry in entries)
    return f"ε {budgets}: {f'{count}, ' if count else ''}σ {noise}"


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    right = {4, 5, 6, 7}
    return [
        "  ".join(
            cell.rjust(width) if k in right else cell.ljust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
