"""Runs that are published, as the configuration has them, and samples of them.

A run is one replicate at one point. Its rows are those that it has in ``runs.parquet``: one, or one
for each of what a study measures of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from dpmc.types import UNAVAILABLE
from dpmc_papers.config import grids, problems
from dpmc_papers.config.setups import ProblemSetup
from dpmc_papers.pipeline.run_studies import Part, parts
from dpmc_papers.pipeline.workload import Point, Workload

if TYPE_CHECKING:
    import pandas as pd

KEYS = ("experiment", "problem", "label", "point", "replicate")
Key = tuple[str, str, str, str, int]


@dataclass(frozen=True)
class Run:
    """A replicate at one point, as the configuration has it.

    Parameters
    ----------
    key : tuple of (str, str, str, str, int)
        Its experiment, problem, label, point and replicate, which find its published rows.
    setup : ProblemSetup
        Where its rows come from.
    made_by : Point or Part
        What makes it; a part has this point and this replicate alone.
    """

    key: Key
    setup: ProblemSetup
    made_by: Point | Part

    @property
    def told(self) -> str:
        """What it is, in words."""
        experiment, problem, label, point, replicate = self.key
        return f"{label} on {problem}, {point}, replicate {replicate} ({experiment})"


def runs(work: Workload) -> list[Run]:
    """Every run of a document but those whose run time is what is measured."""
    return [*_chains(work), *_studies(work)]


class Published(Mapping[Key, "pd.DataFrame"]):
    """The published rows of each run whose data were there.

    Parameters
    ----------
    table : pandas.DataFrame
        All runs of a document, as ``runs.parquet`` has them.
    """

    def __init__(self, table: pd.DataFrame) -> None:
        self._table = table[~table["status"].str.startswith(UNAVAILABLE)]
        self._places: dict[Key, list[int]] = {}
        columns = [self._table[name].tolist() for name in KEYS]
        for place, key in enumerate(zip(*columns, strict=True)):
            self._places.setdefault(key, []).append(place)

    def __getitem__(self, key: Key) -> pd.DataFrame:
        return self._table.iloc[self._places[key]]

    def __contains__(self, key: object) -> bool:
        return key in self._places

    def __iter__(self) -> Iterator[Key]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def population(
    work: Workload, published: Mapping[Key, pd.DataFrame]
) -> tuple[list[Run], list[str]]:
    """Published runs that can be made again here, and in words which cannot."""
    configured = runs(work)
    there = [run for run in configured if run.key in published]
    away = {name for name, setup in work.problems.items() if not problems.is_here(setup)}
    here = [run for run in there if run.setup.name not in away]
    gone = len(published.keys() - {run.key for run in configured})
    counts = {
        f"need raw files that are not here ({', '.join(sorted(away))})": len(there) - len(here),
        "are configured and not published, or had no data then": len(configured) - len(there),
        "are published and no longer configured, or measure run times": gone,
    }
    return here, [f"{number:,} runs {words}" for words, number in counts.items() if number]


def sample(candidates: Sequence[Run], number: int, seed: int) -> list[Run]:
    """Draw runs at random, each as likely as any other, none twice; by problem.

    Rows of a problem are then made once. All runs are drawn if there are no more than `number`.
    """
    size = min(number, len(candidates))
    rng = np.random.default_rng(seed)
    places = rng.choice(len(candidates), size, replace=False, shuffle=False)
    chosen = [candidates[place] for place in sorted(places.tolist())]
    return sorted(chosen, key=lambda run: run.setup.name)


def one_of_each(candidates: Sequence[Run], seed: int) -> list[Run]:
    """Draw one run of every method of every experiment, each of its runs as likely; by problem."""
    of: dict[tuple[str, str], list[Run]] = {}
    for run in candidates:
        experiment, _, label, *_ = run.key
        of.setdefault((experiment, label), []).append(run)
    rng = np.random.default_rng(seed)
    chosen = [group[rng.integers(len(group))] for group in of.values()]
    return sorted(chosen, key=lambda run: run.setup.name)


def _chains(work: Workload) -> Iterator[Run]:
    for point in work.points:
        for replicate in range(point.replicates):
            key = (point.experiment, point.problem, point.label, point.point, replicate)
            yield Run(key, point.setup.problem, point)


def _studies(work: Workload) -> Iterator[Run]:
    for name, study in work.paper.studies.items():
        if study.timed:
            continue
        for path in work.studies(name):
            for part in parts(work.files[path].settings):
                yield from _of_part(part)


def _of_part(part: Part) -> Iterator[Run]:
    setup = part.setup
    for values in setup.points:
        for replicate in part.replicates:
            alone = Part(replace(setup, points=[values]), [replicate])
            point = grids.name(values)
            key = (setup.experiment, setup.problem.name, setup.label, point, replicate)
            yield Run(key, setup.problem, alone)
