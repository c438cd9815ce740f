"""Bayesian networks on public tables: test errors of EP, SEP and DP-SEP over random splits.

[vinaroz2022dpsep, section 6.2, Tables 2 to 4]: every replicate is a split of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmc import registry
from dpmc.ep.network.layout import COUNTS
from dpmc.ep.network.scores import scores
from dpmc.ep.network.task import Fitted, Task
from dpmc.progress import Progress, silent
from dpmc.rng import stream
from dpmc.types import NO_GUARANTEE, Dataset, DpmcError, MemoryLimitError
from dpmc_papers.config.setups import ProblemSetup, StudyPoint, StudySetup, canonical
from dpmc_papers.data import uci_network
from dpmc_papers.studies import _tables

if TYPE_CHECKING:
    import pandas as pd

METHODS = "dpmc.ep.network.methods"

# Methods that keep a site for each row: the mean and natural parameters of every weight.
SITES = ("ep",)

# How the status of a fit begins that this machine has no memory for.
REFUSED = "refused"

COLUMNS = {
    **_tables.COLUMNS,
    "table_rows": "int64",
    "num_rows": "int64",
    "num_inputs": "int64",
    "hidden": "int64",
    "num_clipped_rows": "int64",
    "rmse": "float64",
    "loglik": "float64",
    "rmse_of_mean": "float64",
    "noise_variance": "float64",
    **dict.fromkeys(COUNTS, "int64"),
}
unavailable = functools.partial(_tables.unavailable, COLUMNS)


@dataclass(frozen=True)
class Params:
    """Parameters of the study itself; the others of its ``params`` are those of methods.

    Parameters
    ----------
    delta : float
        Of every budget.
    hidden : mapping of str to int
        Hidden units, by table.
    published_noise : mapping of str to (float, float)
        Constants of the public code, by table: see :class:`dpmc.ep.network.task.Task`.
    """

    delta: float = 1e-5
    hidden: Mapping[str, int] = field(default_factory=dict)
    published_noise: Mapping[str, Sequence[float]] = field(default_factory=dict)


def run(
    setup: StudySetup, dataset: Dataset, replicates: Iterable[int], progress: Progress = silent
) -> pd.DataFrame:
    """Fit and score one method on some splits.

    Points of methods with a budget have ``epsilon``; what else they have are parameters of the
    method. `dataset` is not read: replicate r has the split of seed r + 1. ``rmse`` and ``loglik``
    are of its test rows, in the units of the target; ``rmse_of_mean`` is that of predicting what
    the target was centred at. A fit that takes more memory than there is has a status that says how
    much.

    Raises
    ------
    UnavailableError
        If the table cannot be had.
    """

    @functools.lru_cache(1)
    def split(replicate: int) -> Dataset:
        return _tables.drawn(setup.problem, setup.seed, replicate + 1, "seed")[1]

    pairs = [(point, replicate) for replicate in replicates for point in setup.each()]
    return _tables.tabulate(COLUMNS, pairs, progress, lambda p, r: _row(p, split(r), r))


def _row(point: StudyPoint, dataset: Dataset, replicate: int) -> dict[str, Any]:
    module: Any = registry.load("networks", point.method)
    own = Params(**_tables.having(point.params, Params))
    part = uci_network.split(dataset)
    task = make_task(point, dataset, own)
    budget = _tables.budget(point, own.delta)
    params = _tables.method_params(module, point, point.own("epsilon"))
    rng = stream(point.seed, "chain", canonical(point), replicate)
    shared = {
        **_tables.place(point, replicate),
        **({} if budget is None else {"delta": own.delta}),
        "table_rows": len(part.y) + len(part.y_test),
        "num_rows": len(part.y),
        "num_inputs": part.x.shape[1],
        "hidden": task.hidden,
        "num_clipped_rows": int(dataset.facts["num_clipped"]),
    }
    try:
        found: Fitted = module.fit(part.x, part.y, task, params, budget, rng)
    except MemoryLimitError as refused:
        none = _tables.guaranteed(NO_GUARANTEE, ())
        return {**shared, **none, "status": f"{REFUSED}: {refused}"}
    return {
        **shared,
        **_tables.guaranteed(found.guarantee, [*point.outside, "a known seed"]),
        "status": found.predictor.status,
        **_scores(found, part),
        **{name: int(found.counters.get(name, 0)) for name in COUNTS},
    }


def check(point: StudyPoint) -> None:
    """Refuse a point that a run would refuse."""
    own = Params(**_tables.having(point.params, Params))
    _hidden(point.problem, own)
    _tables.budget(point, own.delta)
    module = registry.load("networks", point.method)
    _tables.method_params(module, point, point.own("epsilon"))


def table_of(problem: ProblemSetup) -> str:
    """Name of the table of a problem."""
    return str(problem.data.params.get("dataset", problem.data.name))


def _hidden(problem: ProblemSetup, own: Params) -> int:
    table = table_of(problem)
    if table not in own.hidden:
        raise DpmcError(f"`hidden` must have a number for {table}")
    return int(own.hidden[table])


def make_task(point: StudyPoint, dataset: Dataset, own: Params) -> Task:
    """What is public of a problem."""
    table, hidden = table_of(point.problem), _hidden(point.problem, own)
    noise = own.published_noise.get(table)
    pair = None if noise is None else (float(noise[0]), float(noise[1]))
    return Task(table, hidden, pair, dataset.bounds_source == "data")


def _scores(found: Fitted, part: uci_network.NetworkSplit) -> dict[str, float]:
    shift, scale = part.y_shift, part.y_scale
    targets = shift + scale * part.y_test
    trivial = float(np.sqrt(np.mean((targets - shift) ** 2)))
    if found.predictor.status != "complete":
        return {"rmse_of_mean": trivial}
    noise = found.predictor.noise_variance
    told = scores(*found.predictor.predict(part.x_test), noise, targets, shift, scale)
    return {
        "rmse": told.rmse,
        "loglik": told.log_likelihood,
        "rmse_of_mean": trivial,
        "noise_variance": noise * scale**2,
    }
