"""Contests of regressions: slopes under a budget against those that the rows alone say.

See :mod:`dpmc_league.contest`. Each replicate has rows of its own, which all methods share.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmc import registry
from dpmc.progress import Progress, silent
from dpmc.rng import stream
from dpmc.types import NO_GUARANTEE, Array, Dataset, DpmcError
from dpmc_league import contest
from dpmc_league.contest import Exact, Table
from dpmc_papers.config import grids
from dpmc_papers.config.problems import make_data
from dpmc_papers.config.setups import StudyPoint, StudySetup, canonical
from dpmc_papers.data import league_regression
from dpmc_papers.studies import _tables

if TYPE_CHECKING:
    import pandas as pd

METHODS = "dpmc_league.regressions"
# Parameters of the rows that a grid may have.
OF_ROWS = ("num_rows", "constant", "width", "shared")

COLUMNS = {
    **_tables.COLUMNS,
    "guarantee_unit": "str",
    **dict.fromkeys(OF_ROWS, "float64"),
    "dim": "float64",
    "num_ones": "float64",
    "num_steps": "float64",
    "clip_bound": "float64",
    **dict.fromkeys(contest.Scored._fields, "float64"),
    "square_error": "float64",
}


@dataclass(frozen=True)
class Params:
    """Parameters of the study itself; the others of its ``params`` are those of methods.

    Parameters
    ----------
    delta : float
        Of every budget that has one.
    """

    delta: float = 1e-6


def run(
    setup: StudySetup, dataset: Dataset, replicates: Iterable[int], progress: Progress = silent
) -> pd.DataFrame:
    """Fit and score at some points of a study, which have ``epsilon`` and parameters of rows.

    `dataset` is not read: a replicate has the draw of its number. Scores are those of
    :class:`dpmc_league.contest.Scored`; ``square_error`` is the square of ``slope_error``.
    """
    numbers, points = list(replicates), setup.each()
    found: dict[tuple[str, int], dict[str, Any]] = {}

    def row(point: StudyPoint, replicate: int) -> dict[str, Any]:
        if (key := (canonical(point), replicate)) not in found:
            scored = _scored(point, numbers)
            found.update({(key[0], n): one for n, one in zip(numbers, scored, strict=True)})
        return {**_tables.place(point, replicate), **point.own("epsilon"), **found[key]}

    pairs = [(point, replicate) for point in points for replicate in numbers]
    return _tables.tabulate(COLUMNS, pairs, progress, row)


def check(point: StudyPoint) -> None:
    """Refuse a point that a run would refuse."""
    own = Params(**_tables.having(point.params, Params))
    if _tables.budget(point, own.delta) is None:
        raise DpmcError("`epsilon` must be given")
    _method_params(point)
    _rows_params(point, 0)


def _scored(point: StudyPoint, numbers: list[int]) -> list[dict[str, Any]]:
    """Columns of all replicates of a point: a command runs once for all of them."""
    drawn = [_drawn(point, number) for number in numbers]
    module: Any = registry.load("league_regression", point.method)
    own = Params(**_tables.having(point.params, Params))
    budget = _tables.budget(point, own.delta)
    seeds = [int(_stream(point, number).integers(2**62)) for number in numbers]
    tables = [table for table, _, _ in drawn]
    try:
        estimates = module.fit(tables, _method_params(point), budget, seeds)
    except DpmcError as error:
        failed = {**_tables.guaranteed(NO_GUARANTEE, ()), "status": f"failed: {error}"}
        return [failed] * len(numbers)
    rows = []
    for estimate, (table, exact, truth) in zip(estimates, drawn, strict=True):
        scored = contest.score(estimate, exact, truth)._asdict()
        guarantee = estimate.guarantee
        rows.append(
            {
                "delta": guarantee.delta,
                **_tables.guaranteed(guarantee, point.outside),
                "guarantee_unit": guarantee.unit,
                "dim": float(len(truth)),
                "num_ones": float(np.sum(table.y)) if table.family == contest.LOGISTIC else np.nan,
                "status": "complete",
                **scored,
                "square_error": scored["slope_error"] ** 2,
            }
        )
    return rows


def _stream(point: StudyPoint, number: int) -> np.random.Generator:
    return stream(point.seed, "chain", canonical(point), number)


def _rows_params(point: StudyPoint, number: int) -> league_regression.Params:
    given = {key: point.point[key] for key in OF_ROWS if key in point.point}
    return league_regression.Params(**{**point.problem.data.params, **given, "draw": number})


def _method_params(point: StudyPoint) -> Any:
    module: Any = registry.load("league_regression", point.method)
    return _tables.method_params(module, point, point.own("epsilon", *OF_ROWS))


def _drawn(point: StudyPoint, number: int) -> tuple[Table, Exact, Array]:
    """Rows of a replicate, which all methods and budgets share, exact slopes and true ones."""
    given = {key: point.point[key] for key in OF_ROWS if key in point.point}
    name = f"{point.problem.name} {grids.name(given)} {number}"
    problem = point.problem.with_data(name, {**given, "draw": number})
    dataset = make_data(problem, point.seed)
    assert dataset.truth is not None
    table = league_regression.table(_rows_params(point, number), dataset)
    return table, contest.exact(table), dataset.truth
