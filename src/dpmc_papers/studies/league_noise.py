"""Noise that is correlated or hidden, on a normal target: see :mod:`dpmc_league.noises`.

Nothing is computed from records.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpmc import checks, registry
from dpmc.progress import Progress, silent
from dpmc.rng import stream
from dpmc.types import NO_GUARANTEE, Dataset, DpmcError
from dpmc_papers.config.setups import StudyPoint, StudySetup, canonical
from dpmc_papers.studies import _tables

if TYPE_CHECKING:
    import pandas as pd

METHODS = "dpmc_league.noises"

COLUMNS = {
    **_tables.COLUMNS,
    "batches": "int64",
    "correlation": "float64",
    "worth": "float64",
    "cost": "float64",
    "against_theory": "float64",
    "theory_share": "float64",
}


@dataclass(frozen=True)
class Params:
    """Size of the budget.

    Parameters
    ----------
    worth : float
        k, the exact draws that it is worth.
    """

    worth: float = 150.0

    def __post_init__(self) -> None:
        checks.positive("worth", self.worth)


def run(
    setup: StudySetup, dataset: Dataset, replicates: Iterable[int], progress: Progress = silent
) -> pd.DataFrame:
    """Run each point, which has ``batches`` and may have ``correlation``.

    ``cost`` is the mean square error of the mode times k, so that 1 over its mean over replicates
    is effective draws over k; ``against_theory`` that times ``theory_share``, with mean 1 where the
    theory is right.
    """

    def row(point: StudyPoint, replicate: int) -> dict[str, Any]:
        worth = Params(**_tables.having(point.params, Params)).worth
        entry, params = _method(point)
        rng = stream(point.seed, "chain", canonical(point), replicate)
        found = entry.run(params, worth, rng)
        return {
            **_tables.place(point, replicate),
            **_tables.guaranteed(NO_GUARANTEE, ()),
            "status": "complete",
            "batches": params.batches,
            "correlation": params.correlation,
            "worth": worth,
            "cost": worth * found.square_error,
            "against_theory": worth * found.square_error * found.share,
            "theory_share": found.share,
        }

    return _tables.tabulate(COLUMNS, itertools.product(setup.each(), replicates), progress, row)


def check(point: StudyPoint) -> None:
    """Refuse a point that a run would refuse."""
    Params(**_tables.having(point.params, Params))
    _, params = _method(point)
    if point.method == "hidden" and params.correlation:
        raise DpmcError(f"`correlation` must be 0 for hidden noise, got {params.correlation}")


def _method(point: StudyPoint) -> tuple[Any, Any]:
    entry: Any = registry.load("league_noise", point.method)
    return entry, _tables.method_params(entry, point, point.own("epsilon"))
