"""The league: methods of :mod:`dpmc_league.rivals` on tasks with known posteriors.

What a method does wrong is the status of its row.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from dpmc import registry
from dpmc.progress import Progress, silent
from dpmc.types import Dataset
from dpmc_league import attack
from dpmc_papers.config.setups import StudyPoint, StudySetup
from dpmc_papers.studies import _league, _tables

if TYPE_CHECKING:
    import pandas as pd

METHODS = "dpmc_league.rivals"

Params = _league.Params
COLUMNS = _league.COLUMNS
unavailable = _league.unavailable


def run(
    setup: StudySetup, dataset: Dataset, replicates: Iterable[int], progress: Progress = silent
) -> pd.DataFrame:
    """Score a method at some points; see :func:`dpmc_papers.studies._league.run`."""
    return _league.run(setup, dataset, replicates, _method, progress)


def check(point: StudyPoint) -> None:
    """Refuse a point that a run would refuse."""
    _league.check(point)
    _method(point)


def _method(point: StudyPoint) -> Any:
    """Method of a point with its parameters."""
    module: Any = registry.load("league", point.method)
    params = _tables.method_params(module, point, point.own("epsilon", "num_rows"))
    if not fields(params):
        return module
    return SimpleNamespace(
        refusal=module.refusal,
        run=lambda task, terms: module.run(task, terms, params),
        identity=lambda: f"{attack.identity(module)} {params!r}",
    )
