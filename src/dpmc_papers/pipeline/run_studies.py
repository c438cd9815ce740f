"""The replicates of a study on one problem, measured from its settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from dpmc import registry
from dpmc.progress import Progress
from dpmc.types import Dataset, UnavailableError
from dpmc_papers.config import grids
from dpmc_papers.config.settings import Study
from dpmc_papers.config.setups import ProblemSetup, StudySetup

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Part:
    """Replicates of a method of a study, at points that are run as one.

    Parameters
    ----------
    setup : StudySetup
        What ``run`` of the module in :mod:`dpmc_papers.studies` receives.
    replicates : sequence of int
    """

    setup: StudySetup
    replicates: Sequence[int]

    @property
    def told(self) -> str:
        """What it is, in words."""
        first, last = self.replicates[0], self.replicates[-1]
        points = [grids.name(point) for point in self.setup.points]
        ends = " to ".join(dict.fromkeys((points[0], points[-1])))
        return f"{self.setup.label}, {ends}, replicates {first} to {last}"


def parts(given: Mapping[str, Any]) -> Iterator[Part]:
    """Parts of a study on one problem, from the settings of its job, in their order."""
    study = msgspec.convert(given["study"], Study)
    for label, (first, last) in given["seeds"].items():
        method = study.methods[label]
        for _, points in grids.together({**study.grid, **method.grid}, study.together):
            setup = StudySetup(
                paper=given["paper"],
                study=study.study,
                experiment=given["experiment"],
                problem=msgspec.convert(given["problem"], ProblemSetup),
                label=label,
                method=method.method,
                variant=method.variant,
                params={**study.params, **method.params},
                outside=given["outside"],
                seed=given["seed"],
                points=points,
            )
            yield Part(setup, range(first, last + 1))


def measured(part: Part, rows: Callable[[], Dataset], progress: Progress) -> pd.DataFrame:
    """What the module of a study measures, in the order of points and replicates.

    If `rows`, which returns those of the problem, says that they cannot be had, the table says so.
    """
    study = registry.load("study", part.setup.study)
    table: pd.DataFrame
    try:
        table = study.run(part.setup, rows(), part.replicates, progress)
    except UnavailableError as error:
        table = study.unavailable(part.setup, part.replicates, str(error))
    places = {grids.name(point): place for place, point in enumerate(part.setup.points)}
    order = table.assign(_place=table["point"].map(places))
    kept = order.sort_values(["_place", "replicate"], kind="stable").index
    return table.loc[kept].reset_index(drop=True)
