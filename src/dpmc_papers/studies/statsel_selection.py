"""Study of a statistic chosen on a first part of the records, against fixed statistics.

[alparslan2023thesis, section 6.5, Figure 6.5]: the squared error of estimates of theta from
records in two parts, with the statistic of the second chosen on the first, and without choice.
"""

from __future__ import annotations

import collections
import itertools
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmc import checks, registry
from dpmc.progress import Progress, silent
from dpmc.rng import stream
from dpmc.statsel import lookup
from dpmc.statsel.selection import two_stage
from dpmc.statsel.selection.methods import SelectionResult, SelectionTask
from dpmc.statsel.selection.planning import SelectionPlan
from dpmc.types import Array, Dataset, DpmcError
from dpmc_papers.config.setups import StudyPoint, StudySetup
from dpmc_papers.studies import _tables

if TYPE_CHECKING:
    import pandas as pd

METHODS = "dpmc.statsel.selection.methods"

COLUMNS = {
    **_tables.COLUMNS,
    "theta": "float64",
    "bound": "float64",
    "num_initial": "int64",
    "num_rows": "int64",
    "num_runs": "int64",
    "mse": "float64",
    "mse_se": "float64",
    "estimate": "float64",
    **{f"selected_{name}": "float64" for name in ("q1", "median", "q3")},
    "selected_counts": "str",
}


@dataclass(frozen=True)
class Params:
    """Parameters of the study itself; the others of its ``params`` are those of methods.

    Parameters
    ----------
    powers : sequence of float
        a of the candidates |x|^a.
    first_power : float
        Of the statistic that the first part releases, and that is released without choice.
    num_initial : int
        Records n0 of the first part.
    num_runs : int
        Data sets of one replicate.
    num_points : int
        Points of the grid of theta.
    mechanism : {"laplace", "gaussian"}
    """

    powers: Sequence[float] = field(
        default_factory=lambda: [round(0.1 * k, 1) for k in range(1, 21)]
    )
    first_power: float = 1.0
    num_initial: int = 10
    num_runs: int = 750
    num_points: int = 200
    mechanism: str = "laplace"

    def __post_init__(self) -> None:
        checks.at_least("num_initial", self.num_initial, 1)
        checks.at_least("num_runs", self.num_runs, 2)
        if not self.powers:
            raise DpmcError("`powers` must have at least one candidate, got none")


def run(
    setup: StudySetup, dataset: Dataset, replicates: Iterable[int], progress: Progress = silent
) -> pd.DataFrame:
    """Release, estimate and score at some points of a study, which have ``epsilon`` and ``theta``.

    The problem has rows of :mod:`dpmc_papers.data.population_rows`, whose population, number and
    bound are taken. A replicate is ``num_runs`` data sets. Records and noise depend on theta and
    the replicate, so that all methods and budgets share them. ``mse`` is the mean squared error
    over its runs; quartiles and counts of the selected power are NaN and empty for methods that
    select nothing.
    """
    own = Params(**_tables.having(setup.params, Params))
    module: Any = registry.load("statsel_selection", setup.method)
    params = registry.parameters(module, _tables.having(setup.params, module.Params))
    plans: dict[float, tuple[SelectionTask, SelectionPlan]] = {}

    def row(point: StudyPoint, replicate: int) -> dict[str, Any]:
        epsilon = float(point.point["epsilon"])
        if epsilon not in plans:
            task = make_task(point, own)
            plans[epsilon] = task, module.prepare(task, params)
        task, plan = plans[epsilon]
        found = module.run(plan, params, *draws(point, task, own, replicate))
        return _row(point, own, task, found, replicate)

    return _tables.tabulate(COLUMNS, itertools.product(setup.each(), replicates), progress, row)


def check(point: StudyPoint) -> None:
    """Refuse a point that a run would refuse."""
    module = registry.load("statsel_selection", point.method)
    registry.parameters(module, _tables.having(point.params, module.Params))
    for key in ("epsilon", "theta"):
        if key not in point.point:
            raise DpmcError(f"`{key}` must be given at every point")
    make_task(point, Params(**_tables.having(point.params, Params)))


def make_task(point: StudyPoint, own: Params) -> SelectionTask:
    """What all methods are given at one point."""
    data = point.problem.data.params
    num_rows = int(data["num_rows"])
    if not own.num_initial < num_rows:
        wanted = f"below num_rows = {num_rows}"
        raise DpmcError(f"`num_initial` must be {wanted}, got {own.num_initial}")
    return SelectionTask(
        population=lookup.population(data["population"], bound=data["bound"]),
        mechanism=lookup.mechanism(own.mechanism),
        epsilon=float(point.point["epsilon"]),
        first=lookup.statistic(f"abs_{own.first_power:g}"),
        candidates=tuple(lookup.statistic(f"abs_{power:g}") for power in own.powers),
        sizes=(own.num_initial, num_rows - own.num_initial),
        num_points=own.num_points,
    )


def draws(
    point: StudyPoint, task: SelectionTask, own: Params, replicate: int
) -> tuple[Array, Array]:
    """Records, shape (R, n), and noise in units of its scale, shape (R, 2)."""
    theta = float(point.point["theta"])
    key = (point.problem.name, theta, replicate)
    rng = stream(point.seed, "selection data", *key)
    x = task.population.draw(theta, rng, (own.num_runs, sum(task.sizes)))
    rng = stream(point.seed, "selection noise", *key)
    return x, two_stage.draw_noise(task.mechanism, rng, own.num_runs)


def _row(
    point: StudyPoint, own: Params, task: SelectionTask, found: SelectionResult, replicate: int
) -> dict[str, Any]:
    theta = float(point.point["theta"])
    errors = (found.estimate - theta) ** 2
    return {
        **_tables.place(point, replicate),
        "delta": found.guarantee.delta,
        **_tables.guaranteed(found.guarantee, [*point.outside, "a known seed"]),
        "status": "complete",
        "theta": theta,
        "bound": task.population.support[1],
        "num_initial": own.num_initial,
        "num_rows": sum(task.sizes),
        "num_runs": own.num_runs,
        "mse": float(errors.mean()),
        "mse_se": float(errors.std(ddof=1) / math.sqrt(own.num_runs)),
        "estimate": float(found.estimate.mean()),
        **_selected(found.power),
    }


def _selected(power: Array) -> dict[str, Any]:
    if np.isnan(power).any():
        return {}
    quartiles = np.quantile(power, [0.25, 0.5, 0.75])
    counts = collections.Counter(f"{value:g}" for value in power)
    return {
        **dict(zip(("selected_q1", "selected_median", "selected_q3"), quartiles, strict=True)),
        "selected_counts": json.dumps(dict(sorted(counts.items(), key=lambda kv: float(kv[0])))),
    }
