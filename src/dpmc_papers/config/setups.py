"""Setups of chains and studies: all that determines a result, and the key of its streams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from dpmc.numerics import source_digest
from dpmc.yaml_files import Settings
from dpmc_papers.config.settings import Parameters, Part, Problem, Start, plain


class ProblemSetup(Settings, frozen=True):
    """A problem by its name: what determines its rows, its model and its start points."""

    name: str
    data: Part
    model: Part | None = None
    start: Start | None = None
    delta: float | None = None

    @classmethod
    def of(cls, name: str, problem: Problem) -> ProblemSetup:
        """Setup of an entry of ``problems``, whose label determines nothing."""
        start, delta = problem.start, problem.delta
        return cls(name=name, data=problem.data, model=problem.model, start=start, delta=delta)

    @classmethod
    def read(cls, name: str, entry: Mapping[str, Any]) -> ProblemSetup:
        """Setup of an entry of ``problems`` as JSON has it."""
        return cls.of(name, msgspec.convert(entry, Problem))

    def with_data(self, name: str, params: Mapping[str, Any]) -> ProblemSetup:
        """Problem of another name whose rows are drawn with some other parameters."""
        data = Part(name=self.data.name, params={**self.data.params, **params})
        return msgspec.structs.replace(self, name=name, data=data)


class BudgetSetup(msgspec.Struct, frozen=True, kw_only=True):
    """The budget of all chains of a replicate."""

    epsilon: float
    delta: float
    accountant: str
    split: str = "chains"


class ChainSetup(Settings, frozen=True):
    """One point of an experiment.

    ``budget`` is None where ``num_iterations`` is given; ``outside`` lists uses of the private
    rows that no guarantee covers.
    """

    paper: str
    problem: ProblemSetup
    method: str
    variant: str
    params: Parameters
    budget: BudgetSetup | None
    num_chains: int
    num_iterations: int | None
    outside: list[str]
    seed: int
    max_iterations: int | None = None


class _OfStudy(Settings, frozen=True):
    paper: str
    study: str
    experiment: str
    problem: ProblemSetup
    label: str
    method: str
    variant: str
    params: Parameters
    outside: list[str]
    seed: int


class StudyPoint(_OfStudy, frozen=True):
    """One point of a study; ``params`` are those of the study and of its methods."""

    point: Parameters

    def own(self, *names: str) -> Parameters:
        """Values of the point, but those called `names`."""
        return {key: value for key, value in self.point.items() if key not in names}


class StudySetup(_OfStudy, frozen=True):
    """Some points of a study that share a job."""

    points: list[Parameters]

    def each(self) -> list[StudyPoint]:
        """Points one by one."""
        shared = {key: getattr(self, key) for key in _OfStudy.__struct_fields__}
        return [StudyPoint(**shared, point=point) for point in self.points]


def canonical(setup: ChainSetup | StudyPoint | ProblemSetup | Part) -> str:
    """Text that keys random streams: what is given, numbers and order normalised.

    Should it change for a setup, every result of it is another draw.
    """
    return source_digest.canonical(plain(setup))
