"""Study of Theorem 4.1 of [vinaroz2022dpsep]: printed and corrected bounds against the truth."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from dpmc import registry
from dpmc.progress import Progress, silent
from dpmc.rng import stream
from dpmc.types import NO_GUARANTEE, Dataset
from dpmc_papers.config.setups import StudyPoint, StudySetup, canonical
from dpmc_papers.studies import _tables

if TYPE_CHECKING:
    import pandas as pd

METHODS = "dpmc.ep.perturbation.methods"

VALUES = (
    "threshold",
    "probability",
    "probability_se",
    "published_bound",
    "corrected_bound",
    "simulated_bound",
    "second_order",
)

COLUMNS = {
    **_tables.COLUMNS,
    "dim": "int64",
    "noise_sd": "float64",
    **dict.fromkeys(VALUES, "float64"),
}


def run(
    setup: StudySetup, dataset: Dataset, replicates: Iterable[int], progress: Progress = silent
) -> pd.DataFrame:
    """Tabulate bounds and simulated probabilities.

    Parameters
    ----------
    setup : StudySetup
        ``method`` is where the noise is added, one of :mod:`dpmc.ep.perturbation.methods`; each of
        ``points`` has ``dim`` and ``noise_sd``.
    dataset : Dataset
        Not read: nothing here is about rows.
    replicates : iterable of int
    progress : callable

    Returns
    -------
    pandas.DataFrame
        One row per point, replicate and threshold: see :func:`dpmc.ep.perturbation.bounds.table`.
    """
    module: Any = registry.load("perturbation", setup.method)
    params = registry.parameters(module, setup.params)
    points, wanted = setup.each(), list(replicates)
    rows: list[dict[str, Any]] = []
    for done, point in enumerate(points):
        key = canonical(point)
        for replicate in wanted:
            found = module.table(params, point.point, stream(setup.seed, "noise", key, replicate))
            shared = {
                **_tables.place(point, replicate),
                **_tables.guaranteed(NO_GUARANTEE, ()),
                "status": "complete",
                "dim": int(point.point["dim"]),
                "noise_sd": float(point.point["noise_sd"]),
            }
            rows += [
                {**shared, **{name: entry.get(name, math.nan) for name in VALUES}}
                for entry in found.to_dict("records")
            ]
        progress(done + 1, len(points), "")
    return _tables.typed(rows, COLUMNS)


def check(point: StudyPoint) -> None:
    """Refuse a point that a run would refuse."""
    registry.parameters(registry.load("perturbation", point.method), point.params)
