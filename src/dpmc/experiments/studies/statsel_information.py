"""Fisher information of noisy releases [alparslan2023thesis, chapter 4 and Figures 6.1 to 6.4]."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import pandas as pd

from dpmc import registry
from dpmc.experiments.data import population_rows
from dpmc.experiments.studies import _tables
from dpmc.experiments.studies._tables import Settings
from dpmc.numerics.source_digest import canonical
from dpmc.progress import Progress, silent
from dpmc.rng import stream
from dpmc.statsel import lookup
from dpmc.statsel.fisher.information import InformationEstimate, ReleaseSetting
from dpmc.types import NO_GUARANTEE, Dataset, DpmcError, check_epsilon

METHODS = "dpmc.statsel.fisher.methods"

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
    settings: Settings, dataset: Dataset, replicates: Iterable[int], progress: Progress = silent
) -> pd.DataFrame:
    """Compute the information at some points of a study.

    Parameters
    ----------
    settings : mapping
        ``problem`` has rows of :mod:`dpmc.experiments.data.population_rows`, whose population,
        theta, number and bound hold where a point has none. Each of ``points`` has ``statistic``
        and ``epsilon``; other keys are parameters of the method, one of
        :mod:`dpmc.statsel.fisher.methods`.
    dataset : Dataset
        Not read: nothing here is about rows.
    replicates : iterable of int
        Random numbers of the method, if it takes any.
    progress : callable
        Told the points done and to do.

    Returns
    -------
    pandas.DataFrame
        One row per point and replicate. ``epsilon`` is infinite where the method is told to
        leave the noise out.

    Raises
    ------
    DpmcError
        If a name or parameter is unknown or refused.
    """
    points, wanted = _tables.points(settings), list(replicates)
    module: Any = registry.load("statsel_information", settings["method"])
    rows: list[dict[str, Any]] = []
    for point in points:
        params, given = _parameters(module, point), setting(point)
        key = canonical([settings["method"], dict(point["params"]), dict(point["point"])])
        for replicate in wanted:
            rng = stream(settings["seed"], "information", key, replicate)
            found = module.evaluate(params, given, rng)
            rows.append({**_tables.place(point, replicate), **_row(point, params, given, found)})
            progress(len(rows), len(points) * len(wanted), "")
    return _tables.typed(rows, COLUMNS)


def setting(settings: Settings) -> ReleaseSetting:
    """Return what is released at one point.

    Raises
    ------
    DpmcError
        If a value is missing or refused.
    """
    point = settings["point"]
    for key in ("statistic", "epsilon"):
        if key not in point:
            raise DpmcError(f"{key}: missing, allowed a value at every point")
    data = {**settings["problem"]["data"]["params"]}
    data |= {key: point[key] for key in ("theta", "num_rows", "bound") if key in point}
    drawn = population_rows.Params(**data)
    check_epsilon(point["epsilon"], infinite=True)
    return ReleaseSetting(
        population_rows.population(drawn),
        lookup.statistic(str(point["statistic"])),
        drawn.num_rows,
        float(drawn.theta),
        float(point["epsilon"]),
    )


def _parameters(module: Any, settings: Settings) -> Any:
    """Return the parameters of the method: those of the study that it has, and of the point."""
    own = {key: value for key, value in settings["point"].items() if key not in RELEASED}
    shared = _tables.having(settings["params"], module.Params)
    return registry.parameters(module, {**shared, **own})


def _row(
    settings: Settings, params: Any, given: ReleaseSetting, found: InformationEstimate
) -> dict[str, Any]:
    noiseless = bool(getattr(params, "noiseless", False))
    return {
        **_tables.guaranteed(NO_GUARANTEE, ()),
        "status": "complete",
        "epsilon": math.inf if noiseless else given.epsilon,
        "delta": float(getattr(params, "delta", math.nan)),
        "statistic": str(settings["point"]["statistic"]),
        "theta": given.theta,
        "num_rows": given.num_rows,
        "bound": given.population.support[1],
        "information": found.information,
        "information_se": found.se,
        "published_formula": found.published,
        "num_outer": found.num_outer,
        "num_inner": found.num_inner,
    }
