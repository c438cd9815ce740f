"""Study of the time that the samplers of private distributed regression take per iteration.

The one study whose tables hold times: they differ between machines and runs.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

import pandas as pd

from dpmc.experiments.config.problems import make_data
from dpmc.experiments.studies import _tables, regression
from dpmc.experiments.studies._tables import Settings
from dpmc.progress import Progress, silent
from dpmc.types import Dataset

METHODS = "dpmc.linreg.methods"

COLUMNS = {
    **_tables.COLUMNS,
    "num_nodes": "int64",
    "num_rows": "int64",
    "dim": "int64",
    "num_iterations": "int64",
    "microseconds": "float64",
}


def run(
    settings: Settings, dataset: Dataset, replicates: Iterable[int], progress: Progress = silent
) -> pd.DataFrame:
    """Time one sampler at some points of a study.

    Parameters
    ----------
    settings : mapping
        As for :func:`dpmc.experiments.studies.regression.run`; each of ``points`` has a ``dim``
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
    points, wanted = _tables.points(settings), list(replicates)
    _timed(points[0], -1)  # so that nothing is compiled while time is taken
    table = []
    for point in points:
        for replicate in wanted:
            table.append(_timed(point, replicate))
            progress(len(table), len(points) * len(wanted), "")
    return pd.DataFrame(table, columns=list(COLUMNS)).astype(COLUMNS)


def _timed(settings: Settings, replicate: int) -> dict[str, object]:
    spec, point = settings["problem"], settings["point"]
    params = {**spec["data"]["params"], "dim": int(point["dim"])}
    spec = {**spec, "data": {**spec["data"], "params": params}}
    dataset = make_data(spec, settings["seed"])
    problem, exact, prior = regression.prepared({**settings, "problem": spec}, dataset)
    rows = len(problem.x)
    start = time.process_time()
    fit, found = regression.estimate(settings, exact, prior, problem.bounds, dataset, replicate)
    seconds = time.process_time() - start
    count = int(settings["params"]["num_iterations"])
    return {
        **_tables.place(settings, replicate),
        "delta": 1 / rows,
        **_tables.guaranteed(found["declared"], [*settings["outside"], "a known seed"]),
        "status": fit.status,
        "num_nodes": exact.num_nodes,
        "num_rows": rows,
        "dim": exact.dim,
        "num_iterations": count,
        "microseconds": 1e6 * seconds / count,
    }
