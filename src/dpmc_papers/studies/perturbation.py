"""Study of Theorem 4.1 of [vinaroz2022dpsep]: printed and corrected bounds against the truth."""

from __future__ import annotations

import itertools
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
    """Tabulate bounds and simulated probabilities: see :func:`dpmc.ep.perturbation.bounds.table`.

    The method is where the noise is added; each point has ``dim`` and ``noise_sd``. There is one
    row per threshold too. Nothing here is about rows.
    """
    module: Any = registry.load("perturbation", setup.method)
    params = registry.parameters(module, setup.params)

    def rows(point: StudyPoint, replicate: int) -> list[dict[str, Any]]:
        rng = stream(setup.seed, "noise", canonical(point), replicate)
        shared = {
            **_tables.place(point, replicate),
            **_tables.guaranteed(NO_GUARANTEE, ()),
            "status": "complete",
            "dim": int(point.point["dim"]),
            "noise_sd": float(point.point["noise_sd"]),
        }
        return [
            {**shared, **{name: entry.get(name, math.nan) for name in VALUES}}
            for entry in module.table(params, point.point, rng).to_dict("records")
        ]

    return _tables.tabulate(COLUMNS, itertools.product(setup.each(), replicates), progress, rows)


def check(point: StudyPoint) -> None:
    """Refuse a point that a run would refuse."""
    registry.parameters(registry.load("perturbation", point.method), point.params)
