"""Study of the time that the samplers of private distributed regression take per iteration.

The one study whose tables hold times: they differ between machines and runs.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from dpmc.progress import Progress, silent
from dpmc.types import Dataset, DpmcError
from dpmc_papers.config.problems import make_data
from dpmc_papers.config.setups import StudyPoint, StudySetup
from dpmc_papers.studies import _tables, regression

if TYPE_CHECKING:
    import pandas as pd

METHODS = "dpmc.linreg.methods"

__all__ = ["check", "run"]

COLUMNS = {
    **_tables.COLUMNS,
    "num_nodes": "int64",
    "num_rows": "int64",
    "dim": "int64",
    "num_iterations": "int64",
    "microseconds": "float64",
}


def run(
    setup: StudySetup, dataset: Dataset, replicates: Iterable[int], progress: Progress = silent
) -> pd.DataFrame:
    """Time one sampler at some points of a study.

    Parameters
    ----------
    setup : StudySetup
        As for :func:`dpmc_papers.studies.regression.run`; each of ``points`` has a ``dim``
        too, in place of that of the problem, and ``params`` have ``num_iterations``.
    dataset : Dataset
        Not read: rows are drawn for each dimension.
    replicates, progress
        As there.

    Returns
    -------
    pandas.DataFrame
        One row per point and replicate: ``microseconds`` of processor time per iteration,
        the release and the start of the chain included.
    """
    points, wanted = setup.each(), list(replicates)
    _timed(points[0], -1)  # so that nothing is compiled while time is taken
    table = []
    for point in points:
        for replicate in wanted:
            table.append(_timed(point, replicate))
            progress(len(table), len(points) * len(wanted), "")
    return _tables.typed(table, COLUMNS)


def check(point: StudyPoint) -> None:
    """Refuse a point that a run would refuse, whatever the bound of its targets."""
    regression.check(point)
    for key, given in (("dim", point.point), ("num_iterations", point.params)):
        if key not in given:
            raise DpmcError(f"`{key}` must be given")


def _timed(point: StudyPoint, replicate: int) -> dict[str, object]:
    sized = point.problem.with_data(point.problem.name, {"dim": int(point.point["dim"])})
    dataset = make_data(sized, point.seed)
    at_size = msgspec.structs.replace(point, problem=sized)
    problem, exact, prior = regression.prepared(at_size, dataset)
    rows = len(problem.x)
    start = time.process_time()
    fit, found = regression.estimate(point, exact, prior, problem.bounds, dataset, replicate)
    seconds = time.process_time() - start
    count = int(point.params["num_iterations"])
    return {
        **_tables.place(point, replicate),
        "delta": 1 / rows,
        **_tables.guaranteed(found["declared"], [*point.outside, "a known seed"]),
        "status": fit.status,
        "num_nodes": exact.num_nodes,
        "num_rows": rows,
        "dim": exact.dim,
        "num_iterations": count,
        "microseconds": 1e6 * seconds / count,
    }
