"""Study of the time that the samplers of private distributed regression take per iteration.

The one study whose tables hold times: they differ between machines and runs.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

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
    "seconds": "float64",
    "microseconds": "float64",
}


def run(
    setup: StudySetup, dataset: Dataset, replicates: Iterable[int], progress: Progress = silent
) -> pd.DataFrame:
    """Time one sampler at some points of a study.

    These are as for :func:`dpmc_papers.studies.regression.run`. Each point has a ``dim`` too, in
    place of that of the problem, whose rows are drawn anew; ``params`` have ``num_iterations``.
    ``seconds`` are of processor time, the release and the start of the chain included, and
    ``microseconds`` these per iteration.
    """
    _timed(setup.each()[0], -1)  # so that nothing is compiled while time is taken
    return _tables.tabulate(COLUMNS, itertools.product(setup.each(), replicates), progress, _timed)


def check(point: StudyPoint) -> None:
    """Refuse a point that a run would refuse, whatever the bound of its targets."""
    regression.check(point)
    for key, given in (("dim", point.point), ("num_iterations", point.params)):
        if key not in given:
            raise DpmcError(f"`{key}` must be given")


def _timed(point: StudyPoint, replicate: int) -> dict[str, Any]:
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
        "seconds": seconds,
        "microseconds": 1e6 * seconds / count,
    }
