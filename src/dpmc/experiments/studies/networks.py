"""Bayesian networks on public tables: test errors of EP, SEP and DP-SEP over random splits.

[vinaroz2022dpsep, section 6.2, Tables 2 to 4]: every replicate is a split of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from dpmc import registry
from dpmc.ep.network.layout import COUNTS
from dpmc.ep.network.scores import scores
from dpmc.ep.network.task import Fitted, Task
from dpmc.experiments.data import uci_network
from dpmc.experiments.studies import _tables
from dpmc.experiments.studies._tables import Settings
from dpmc.numerics.source_digest import canonical
from dpmc.progress import Progress, silent
from dpmc.rng import stream
from dpmc.types import NO_GUARANTEE, Budget, Dataset, DpmcError, MemoryLimitError

METHODS = "dpmc.ep.network.methods"

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
    settings: Settings, dataset: Dataset, replicates: Iterable[int], progress: Progress = silent
) -> pd.DataFrame:
    """Fit and score one method on some splits.

    Parameters
    ----------
    settings : mapping
        ``experiment``, ``problem``, ``label``, ``method``, ``variant``, ``params``, ``points``
        (those of methods with a budget have ``epsilon``; what else they have are parameters
        of the method), ``outside`` and ``seed``.
    dataset : Dataset
        Not read: replicate r has the split of seed r + 1.
    replicates : iterable of int
    progress : callable
        Told the fits done and to do.

    Returns
    -------
    pandas.DataFrame
        One row per point and split: ``rmse`` and ``loglik`` on its test rows, in the units of
        the target; ``rmse_of_mean`` is that of predicting what the target was centred at.
        A fit that takes more memory than there is has a status that says how much.

    Raises
    ------
    DpmcError
        If a name or parameter is unknown or refused.
    UnavailableError
        If the table cannot be had.
    """
    points, wanted = _tables.points(settings), list(replicates)
    rows = []
    for replicate in wanted:
        _, rows_of_split = _tables.drawn(settings, replicate + 1, "seed")
        for point in points:
            rows.append(_row(point, rows_of_split, replicate, progress))
            progress(len(rows), len(points) * len(wanted), rows[-1]["status"])
    return _tables.typed(rows, COLUMNS)


def unavailable(settings: Settings, replicates: Iterable[int], reason: str) -> pd.DataFrame:
    """Return the table of :func:`run` where the data cannot be had: nothing but that."""
    return _tables.unavailable(settings, replicates, reason, COLUMNS)


def _row(
    settings: Settings, dataset: Dataset, replicate: int, progress: Progress
) -> dict[str, Any]:
    module: Any = registry.load("networks", settings["method"])
    own = Params(**_tables.having(settings["params"], Params))
    part = uci_network.split(dataset)
    task = make_task(settings, dataset, own)
    point = settings["point"]
    budget = Budget(float(point["epsilon"]), own.delta, "rdp") if "epsilon" in point else None
    asked = {key: value for key, value in point.items() if key != "epsilon"}
    given = _tables.having({**_tables.EXACT, **settings["params"]}, module.Params)
    params = registry.parameters(module, {**given, **asked})
    rng = stream(settings["seed"], "chain", canonical(dict(settings)), replicate)
    shared = {
        **_tables.place(settings, replicate),
        **({} if budget is None else {"delta": own.delta}),
        "table_rows": len(part.y) + len(part.y_test),
        "num_rows": len(part.y),
        "num_inputs": part.x.shape[1],
        "hidden": task.hidden,
        "num_clipped_rows": int(dataset.bounds["num_clipped"]),
    }
    try:
        found: Fitted = module.fit(part.x, part.y, task, params, budget, rng)
    except MemoryLimitError as refused:
        none = _tables.guaranteed(NO_GUARANTEE, ())
        return {**shared, **none, "status": f"{REFUSED}: {refused}"}
    return {
        **shared,
        **_tables.guaranteed(found.guarantee, [*settings["outside"], "a known seed"]),
        "status": found.predictor.status,
        **_scores(found, part),
        **{name: int(found.counters.get(name, 0)) for name in COUNTS},
    }


def make_task(settings: Settings, dataset: Dataset, own: Params) -> Task:
    """Return what is public of a problem.

    Raises
    ------
    DpmcError
        If no hidden units are given for its table.
    """
    data = settings["problem"]["data"]
    table = str(data["params"].get("dataset", data["name"]))
    if table not in own.hidden:
        raise DpmcError(f"hidden: none for {table}, allowed a number for each table")
    noise = own.published_noise.get(table)
    pair = None if noise is None else (float(noise[0]), float(noise[1]))
    return Task(table, int(own.hidden[table]), pair, dataset.bounds_source == "data")


def _scores(found: Fitted, part: uci_network.Split) -> dict[str, float]:
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
