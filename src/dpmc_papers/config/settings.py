"""Settings of a run as frozen types: what the YAML files of ``config/`` may say.

The files are checked against these types. Parameters of methods, models, data sets and studies
stay mappings: their own ``Params`` check them.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

from dpmc.yaml_files import Settings

T = TypeVar("T")
Parameters = dict[str, Any]

DIFFERENT = {"uniqueItems": True}
NAME = "lower-case letters, digits and underscores"
Name = Annotated[str, Meta(pattern="^[a-z0-9_]+$", description=NAME)]
Label = Annotated[
    str,
    Meta(
        pattern="^[a-z0-9_-]+$", description="lower-case letters, digits, underscores and hyphens"
    ),
]
Count = Annotated[int, Meta(ge=1, description="an integer >= 1")]
Replicates = Annotated[int, Meta(ge=1, le=100_000, description="an integer from 1 to 100000")]
Positive = Annotated[float, Meta(gt=0, description="a number > 0")]
Delta = Annotated[float, Meta(gt=0, lt=1, description="a number in (0, 1); write 1.0e-6 for 1e-6")]
Epsilons = Annotated[
    list[Positive],
    Meta(min_length=1, description="a list of different numbers > 0", extra_json_schema=DIFFERENT),
]
Values = Annotated[
    list[Any],
    Meta(min_length=1, description="a list of different values", extra_json_schema=DIFFERENT),
]
Names = Annotated[
    list[Name],
    Meta(description="a list of different names", extra_json_schema=DIFFERENT),
]
Folder = Annotated[str, Meta(min_length=1, description="the path of a folder")]


class Part(Settings, frozen=True):
    """A data set or a model: the name of its module, and its parameters."""

    name: str
    params: Parameters


class Start(Settings, frozen=True):
    """Where chains start."""

    rule: str
    centre: (
        Annotated[
            list[Annotated[float, Meta(description="a number")]],
            Meta(min_length=1, description="a list of numbers"),
        ]
        | None
    ) = None
    scale: (
        Annotated[
            Annotated[float, Meta(gt=0)] | Literal["reference"],
            Meta(description="a number > 0 or the word reference"),
        ]
        | None
    ) = None


class Problem(Settings, frozen=True):
    """Rows, and the model of them that chains are run on, under a budget with `delta`."""

    label: str
    data: Part
    model: Part | None = None
    start: Start | None = None
    delta: Delta | None = None


class Method(Settings, frozen=True):
    """A method of an experiment; `epsilons` and `replicates` replace those of the experiment."""

    method: str
    variant: Name
    params: Parameters
    accountant: str | None = None
    num_iterations: Count | None = None
    max_iterations: Count | None = None
    epsilons: Epsilons | None = None
    replicates: Replicates | None = None
    grid: Annotated[dict[str, Values], Meta(min_length=1)] | None = None


class Experiment(Settings, frozen=True):
    """Chains: methods by problem and label."""

    num_chains: Count
    replicates: Replicates
    methods: Annotated[
        dict[str, Annotated[dict[Label, Method], Meta(min_length=1)]], Meta(min_length=1)
    ]
    epsilons: Epsilons | None = None

    def budgets(self, method: Method) -> list[float | None]:
        """Values of epsilon at which a method runs, None for no budget."""
        if method.accountant is None:
            return [None]
        return [*(method.epsilons or self.epsilons or ())]


class StudyMethod(Settings, frozen=True):
    """A method of a study; what it gives replaces or adds to what the study gives."""

    method: str
    variant: Name
    params: Parameters = {}
    grid: dict[str, Values] = {}
    problems: Annotated[Names, Meta(min_length=1)] | None = None
    replicates: Replicates | None = None


class Study(Settings, frozen=True):
    """What is measured of replicates at each point of a grid, for each method and problem.

    Points that differ in the keys `together` alone are run as one. A job has `seeds_per_job`
    replicates of all points, a number for all problems or one for some; without it, one job does
    all of a problem. A study that is `timed` measures run times: no other job runs beside it, and
    what it writes depends on the machine.
    """

    study: str
    problems: Annotated[Names, Meta(min_length=1)]
    replicates: Replicates
    grid: dict[str, Values]
    methods: Annotated[dict[Label, StudyMethod], Meta(min_length=1)]
    together: Names = []
    timed: bool = False
    seeds_per_job: (
        Annotated[
            Count | Annotated[dict[Name, Count], Meta(min_length=1)],
            Meta(description="an integer >= 1, or a mapping from problems to such integers"),
        ]
        | None
    ) = None
    params: Parameters = {}

    def batch(self, problem: str) -> int | None:
        """The most replicates of a job on one problem, None for all."""
        given = self.seeds_per_job
        return given.get(problem) if isinstance(given, Mapping) else given

    def replicates_on(self, problem: str) -> dict[str, int]:
        """The replicates of each method that is run on a problem, by its label."""
        return {
            label: method.replicates or self.replicates
            for label, method in self.methods.items()
            if problem in (method.problems or self.problems)
        }

    def on(self, problem: str) -> Study:
        """What determines results on one problem, but the problem and how many replicates."""
        replace = msgspec.structs.replace
        methods = {
            label: replace(self.methods[label], problems=None, replicates=None)
            for label in self.replicates_on(problem)
        }
        return replace(self, problems=[problem], methods=methods, replicates=1, seeds_per_job=None)


class Curve(Settings, frozen=True):
    """A method whose iterations some accountants count; `epsilons` replace the common ones."""

    method: str
    params: Parameters
    accountants: Annotated[
        list[str],
        Meta(
            min_length=1,
            description="a list of different accountants",
            extra_json_schema=DIFFERENT,
        ),
    ]
    epsilons: Epsilons | None = None


class Curves(Settings, frozen=True):
    """Iterations that budgets buy, by several accountants."""

    delta: Delta
    num_rows: Count
    epsilons: Epsilons
    settings: Annotated[dict[Label, Curve], Meta(min_length=1)]


class ChainsRead(Settings, frozen=True):
    """The chains that an output reads: all points of a grid, or an end of it."""

    experiment: Name
    problem: Name
    point: Literal["all", "first", "last"]


class Output(Settings, frozen=True):
    """A figure or a table, the function that makes it, and what it reads.

    `metrics` names experiments and studies, `reference` and `data` problems, `accounting`
    curves.
    """

    kind: Literal["figure", "table"]
    function: Name
    caption: Annotated[
        str,
        Meta(pattern="^[a-z0-9_]+\\.rst$", description="the name of a file of workflow/report"),
    ]
    metrics: list[Name] = []
    chains: ChainsRead | None = None
    reference: list[Name] = []
    data: list[Name] = []
    accounting: list[Name] = []


class ReferenceSizes(Settings, frozen=True):
    """Sizes of the exact samples that chains are compared with."""

    num_draws: Count
    num_baselines: Count


class Paper(Settings, frozen=True):
    """A document: ``config/papers/<key>.yaml``, merged with the scale."""

    paper: Name
    title: str
    authors: str
    year: int
    seed: Annotated[int, Meta(ge=0, description="an integer >= 0")]
    problems: Annotated[dict[Name, Problem], Meta(min_length=1)]
    outputs: Annotated[dict[Name, Output], Meta(min_length=1)]
    url: str = ""
    code: str = ""
    outside: Annotated[
        list[str],
        Meta(description="a list of uses of the private rows that no guarantee covers"),
    ] = []
    shared: Annotated[dict[str, Any], Meta(description="a place for YAML anchors")] = {}
    reference: ReferenceSizes | None = None
    experiments: dict[Name, Experiment] = {}
    studies: dict[Name, Study] = {}
    accounting: dict[Name, Curves] = {}

    def plain(self) -> dict[str, Any]:
        """Settings as JSON has them, experiments and studies even if there are none."""
        return {"experiments": {}, "studies": {}, **plain(self)}

    def determining(self) -> dict[str, Any]:
        """The same without the sizes of jobs, which change no result."""
        values = self.plain()
        for study in values["studies"].values():
            study.pop("seeds_per_job", None)
        return values

    def part(self, name: str) -> Paper:
        """The settings that a figure or table may read."""
        output = self.outputs[name]
        read = {*output.metrics, *([output.chains.experiment] if output.chains else [])}
        experiments = _only(self.experiments, read)
        studies = _only(self.studies, output.metrics)
        problems = {p for experiment in experiments.values() for p in experiment.methods}
        problems |= {p for study in studies.values() for p in study.problems}
        return msgspec.structs.replace(
            self,
            problems=_only(self.problems, {*problems, *output.reference, *output.data}),
            experiments=experiments,
            studies=studies,
            accounting=_only(self.accounting, output.accounting),
            outputs={name: output},
        )


def _only(section: Mapping[str, T], names: Container[str]) -> dict[str, T]:
    return {key: value for key, value in section.items() if key in names}


class RunSettings(Settings, frozen=True):
    """What to compute: ``config/config.yaml``."""

    papers: Annotated[
        list[str],
        Meta(
            min_length=1,
            description="a list of keys of config/papers",
            extra_json_schema=DIFFERENT,
        ),
    ]
    scale: Annotated[str, Meta(description="the name of a file of config/scales")]
    results_dir: Folder


class Scale(Settings, frozen=True):
    """What differs at a scale: ``config/scales/<scale>.yaml``."""

    seeds_per_job: Count
    papers: Annotated[
        dict[str, dict[str, Any]],
        Meta(description="a mapping from the key of a paper to what differs at this scale"),
    ]


def plain(value: Any) -> Any:
    """Frozen values as JSON has them, without what was not given.

    1.0 reads as 1: what is equal must look equal to whoever compares settings.
    """
    return whole(msgspec.to_builtins(value))


def whole(value: Any) -> Any:
    """Nested values with integers in place of floats that are whole numbers."""
    if isinstance(value, Mapping):
        return {key: whole(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [whole(entry) for entry in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value
