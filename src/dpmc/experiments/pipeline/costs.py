"""Expected time and memory of jobs, from measurements of finished runs, and batches of jobs.

Expectations order work, size requests to a cluster and fill submissions. No result depends on
them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import jsonschema

from dpmc.experiments.config.reader import read_yaml
from dpmc.experiments.data import _uci_tables
from dpmc.experiments.pipeline.jobs import Curves, Job, Metrics, Output, Problem, Study
from dpmc.types import DpmcError

Rule = Literal["data", "reference", "baseline", "chain", "metrics", "accounting", "study", "output"]
Entry: TypeAlias = Problem | Job | Metrics | Curves | Study | Output

BYTES_PER_MB = 1e6
BYTES_PER_NUMBER = 8
# Of what a job is expected to hold: what it asks of a cluster at the first attempt.
MEMORY_MARGIN = 1.6
# Of what it is expected to take, in wall clock time on a node that is shared and slower.
TIME_MARGIN = 4.0
LEAST_MEMORY_MB = 500
# The start of a submission has to fit into the time limit of its only job.
LEAST_MINUTES = 2
# Means and natural parameters of every weight, one number each.
NUMBERS_PER_SITE_WEIGHT = 2
POSITIVE = {"type": "number", "exclusiveMinimum": 0}
SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["machine", "start_up", "seconds", "memory_mb", "chains", "studies", "measured"],
    "properties": {
        "machine": {"type": "string"},
        "start_up": POSITIVE,
        "seconds": {"type": "object", "additionalProperties": POSITIVE},
        "memory_mb": {"type": "object", "additionalProperties": POSITIVE},
        "chains": POSITIVE,
        "studies": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "additionalProperties": False,
                "required": ["unit", "grows_with", "other", "methods"],
                "properties": {
                    "unit": {"type": "string"},
                    "grows_with": {"enum": ["weights", "nodes", "nothing"]},
                    "other": POSITIVE,
                    "methods": {"type": "object", "additionalProperties": POSITIVE},
                },
            },
        },
        "measured": {"type": "object", "additionalProperties": POSITIVE},
    },
}


@dataclass(frozen=True)
class Costs:
    """Measured costs, in seconds of processor time of one core and in megabytes.

    Parameters
    ----------
    machine : str
        Where they were measured.
    start_up : float
        Of every job: the interpreter, imports, reading and writing.
    seconds : mapping of str to float
        Of one job of a rule beside its start, or of one unit of its work: ``metrics`` per
        chain, ``accounting`` per point of a curve and ``run`` per run of an unknown study.
    memory_mb : mapping of str to float
        Of one job of a rule; ``chain_more`` for every further chain that runs in step,
        ``rows_made`` and ``rows_read`` for every megabyte of rows, ``output_more`` for every
        thousand runs read.
    chains : float
        Processor seconds per second that a paper's configuration guesses for a chain.
    studies : mapping of str to mapping
        Which parameter counts the work of a study (``unit``), what a unit grows with
        (:func:`work_per_unit`), and, for problems that were not measured, the seconds of
        thousand units of each of its ``methods`` and of any ``other``.
    measured : mapping of str to float
        Seconds of one run and thousand units, by ``paper/experiment/problem/label``.
    """

    machine: str
    start_up: float
    seconds: Mapping[str, float]
    memory_mb: Mapping[str, float]
    chains: float
    studies: Mapping[str, Mapping[str, Any]]
    measured: Mapping[str, float]

    def expected_seconds(self, rule: Rule, entry: Entry) -> float:
        """Return the processor time that a job should take, its start included.

        Parameters
        ----------
        rule : str
            The rule that makes it.
        entry : Problem, Job, Metrics, Curves, Study or Output

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
        entry : Problem, Job, Metrics, Curves, Study or Output
        """
        own = self.memory_mb
        if isinstance(entry, Job):
            further = int(entry.chain["num_chains"]) - 1
            rows = own["rows_read"] * megabytes(entry.chain["problem"])
            return own["chain"] + own["chain_more"] * further + rows
        if isinstance(entry, Study):
            return own["study"] + sites_megabytes(entry) + megabytes(entry.settings["problem"])
        if isinstance(entry, Problem):
            factor = own["rows_made" if rule == "data" else "rows_read"]
            return own[rule] + factor * megabytes(entry.spec)
        if isinstance(entry, Output):
            return own["output"] + own["output_more"] * runs_read(entry) / 1000
        return own[rule]

    def _work(self, rule: Rule, entry: Entry) -> float:
        if isinstance(entry, Job):
            return self.seconds["chain"] + self.chains * entry.seconds
        if isinstance(entry, Study):
            return self._study_seconds(entry)
        if isinstance(entry, Metrics):
            runs = ((job.last - job.first + 1) * int(job.chain["num_chains"]) for job in entry.jobs)
            return self.seconds["metrics"] * sum(runs)
        if isinstance(entry, Curves):
            settings = entry.spec["settings"].values()
            points = len(entry.spec["epsilons"]) * sum(len(s["accountants"]) for s in settings)
            return self.seconds["accounting"] * points
        return self.seconds[rule]

    def _study_seconds(self, study: Study) -> float:
        settings = study.settings
        units = self._units(settings)
        runs = len(settings["points"]) * (study.last - study.first + 1)
        here = f"{settings['paper']}/{study.experiment}/{study.problem}/{study.label}"
        each = self.measured.get(here)
        work = (self._by_size(settings) if each is None else each) * units * runs
        return self.seconds["study"] + work

    def _units(self, settings: Mapping[str, Any]) -> float:
        """Return the thousands of units of work in one run."""
        unit = self.studies.get(settings["study"], {}).get("unit", "")
        return float(settings["params"].get(str(unit), 1000)) / 1000

    def _by_size(self, settings: Mapping[str, Any]) -> float:
        """Return seconds per run and thousand units on a problem that was not measured."""
        kind = self.studies.get(settings["study"])
        if kind is None:
            return self.seconds["run"]
        method = str(settings["method"])
        each = kind["methods"].get(method, kind["other"])
        return float(each) * work_per_unit(settings, str(kind["grows_with"]))


def load(path: Path) -> Costs:
    """Read the measured costs.

    Raises
    ------
    DpmcError
        One line, if the file is missing or says something else.
    """
    values = read_yaml(path)
    errors = sorted(
        jsonschema.Draft202012Validator(SCHEMA).iter_errors(values),
        key=lambda error: list(map(str, error.path)),
    )
    if errors:
        where = ".".join(map(str, errors[0].absolute_path)) or "costs"
        raise DpmcError(f"{path}: {where}: {errors[0].message}")
    return Costs(**values)


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
        raise DpmcError(f"least: {least}, allowed a number > 0")
    if most_jobs < 1:
        raise DpmcError(f"most_jobs: {most_jobs}, allowed an integer >= 1")
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


def shape(problem: Mapping[str, Any]) -> tuple[int, int]:
    """Return the rows and columns of the data of a problem, without making them.

    Data of a kind that is not known here counts as 100,000 rows of 10 numbers.
    """
    params = problem["data"]["params"]
    if "dataset" in params:
        name = _uci_tables.ALIASES.get(params["dataset"], params["dataset"])
        table = _uci_tables.TABLES.get(name)
        if table is not None:
            return table.num_rows, len(table.features) + 1
    columns = next((len(params[key]) for key in ("theta", "mean") if _is_list(params, key)), 0)
    return int(params.get("num_rows", 100_000)), columns or int(params.get("dim", 9)) + 1


def megabytes(problem: Mapping[str, Any]) -> float:
    """Return the size of the rows of a problem."""
    rows, columns = shape(problem)
    return rows * columns * BYTES_PER_NUMBER / BYTES_PER_MB


def sites_megabytes(study: Study) -> float:
    """Return what a site for each row takes, where a method on networks keeps them."""
    settings = study.settings
    if settings["study"] != "networks" or settings["method"] != "ep":
        return 0.0
    rows, _ = shape(settings["problem"])
    numbers = rows * num_weights(settings) * NUMBERS_PER_SITE_WEIGHT
    return float(numbers * BYTES_PER_NUMBER / BYTES_PER_MB)


def runs_read(output: Output) -> int:
    """Return about how many runs the tables that an output reads are made of."""
    experiments = output.config.get("experiments", {})
    total = 0
    for experiment in experiments.values():
        for methods in experiment["methods"].values():
            for method in methods.values():
                points = math.prod(len(values) for values in method.get("grid", {}).values())
                budgets = method.get("epsilons") or experiment.get("epsilons") or [None]
                if "accountant" not in method:
                    budgets = [None]
                runs = method.get("replicates") or experiment["replicates"]
                total += points * len(budgets) * runs
    return total


def total(values: Iterable[float]) -> float:
    """Return a sum that does not depend on the order."""
    return math.fsum(values)


def work_per_unit(settings: Mapping[str, Any], grows_with: str) -> float:
    """Return what one unit of work of a run of a study grows with.

    Parameters
    ----------
    settings : mapping
        Of the study: a pass of a network visits each weight for each row (``"weights"``, in
        millions); an iteration of private regression visits each node (``"nodes"``, on
        average over the points of the job).
    grows_with : {"weights", "nodes", "nothing"}
    """
    if grows_with == "weights":
        rows, _ = shape(settings["problem"])
        return rows * num_weights(settings) / 1e6
    if grows_with == "nodes":
        nodes = [float(point.get("num_nodes", 1)) for point in settings["points"]]
        return 1 + sum(nodes) / len(nodes)
    return 1.0


def num_weights(settings: Mapping[str, Any]) -> int:
    """Return the weights of the network of a study, those of its inputs' biases included."""
    _, columns = shape(settings["problem"])
    data = settings["problem"]["data"]
    table = data["params"].get("dataset", data["name"])
    hidden = int(settings["params"].get("hidden", {}).get(table, 50))
    return hidden * columns + hidden + 1


def _is_list(params: Mapping[str, Any], key: str) -> bool:
    return isinstance(params.get(key), list)
