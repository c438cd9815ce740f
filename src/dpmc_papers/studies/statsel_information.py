"""Fisher information of noisy releases [alparslan2023thesis, chapter 4 and Figures 6.1 to 6.4]."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from dpmc import registry
from dpmc.numerics.source_digest import canonical
from dpmc.progress import Progress, silent
from dpmc.rng import stream
from dpmc.statsel import lookup
from dpmc.statsel.fisher.information import InformationEstimate, ReleaseSetting
from dpmc.types import NO_GUARANTEE, Dataset, DpmcError, check_epsilon
from dpmc_papers.config.setups import StudyPoint, StudySetup
from dpmc_papers.data import population_rows
from dpmc_papers.studies import _tables

if TYPE_CHECKING:
    import pandas as pd

METHODS = "dpmc.statsel.fisher.estimators"

COLUMNS = {
    **_tables.COLUMNS,
    "statistic": "str",
    "theta": "float64",
    "num_rows": "int64",
    "bound": "float64",
    "information": "float64",
    "information_se": "float64",
    "published_formula": "float64",
    "num_outer": "float64",
    "num_inner": "float64",
}
# Keys of a point that say what is released; all others are parameters of the method.
RELEASED = ("statistic", "theta", "epsilon", "num_rows", "bound")


def run(
    setup: StudySetup, dataset: Dataset, replicates: Iterable[int], progress: Progress = silent
) -> pd.DataFrame:
    """Compute the information at some points of a study, which have ``statistic`` and ``epsilon``.

    The problem has rows of :mod:`dpmc_papers.data.population_rows`, whose population, theta, number
    and bound hold where a point has none; other keys of a point are parameters of the method.
    Nothing here is about rows. ``epsilon`` is infinite where the method leaves the noise out.
    """
    module: Any = registry.load("statsel_information", setup.method)

    def row(point: StudyPoint, replicate: int) -> dict[str, Any]:
        params, given = _parameters(module, point), setting(point)
        key = canonical([point.method, point.params, point.point])
        found = module.evaluate(params, given, stream(setup.seed, "information", key, replicate))
        return {**_tables.place(point, replicate), **_row(point, params, given, found)}

    return _tables.tabulate(COLUMNS, itertools.product(setup.each(), replicates), progress, row)


def check(point: StudyPoint) -> None:
    """Refuse a point that a run would refuse."""
    setting(point)
    _parameters(registry.load("statsel_information", point.method), point)


def setting(point: StudyPoint) -> ReleaseSetting:
    """What is released at one point."""
    chosen = point.point
    for key in ("statistic", "epsilon"):
        if key not in chosen:
            raise DpmcError(f"`{key}` must be given at every point")
    data = dict(point.problem.data.params)
    data |= {key: chosen[key] for key in ("theta", "num_rows", "bound") if key in chosen}
    drawn = population_rows.Params(**data)
    check_epsilon(chosen["epsilon"], infinite=True)
    return ReleaseSetting(
        population_rows.population(drawn),
        lookup.statistic(str(chosen["statistic"])),
        drawn.num_rows,
        float(drawn.theta),
        float(chosen["epsilon"]),
    )


def _parameters(module: Any, point: StudyPoint) -> Any:
    """Parameters of the method: those of the study that it has, and of the point."""
    shared = _tables.having(point.params, module.Params)
    return registry.parameters(module, {**shared, **point.own(*RELEASED)})


def _row(
    point: StudyPoint, params: Any, given: ReleaseSetting, found: InformationEstimate
) -> dict[str, Any]:
    noiseless = bool(getattr(params, "noiseless", False))
    return {
        **_tables.guaranteed(NO_GUARANTEE, ()),
        "status": "complete",
        "epsilon": math.inf if noiseless else given.epsilon,
        "delta": float(getattr(params, "delta", math.nan)),
        "statistic": str(point.point["statistic"]),
        "theta": given.theta,
        "num_rows": given.num_rows,
        "bound": given.population.support[1],
        "information": found.information,
        "information_se": found.se,
        "published_formula": found.published,
        "num_outer": found.num_outer,
        "num_inner": found.num_inner,
    }
