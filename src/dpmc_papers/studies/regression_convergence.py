"""Study of convergence: chains on one release that start far apart.

[alparslan2023thesis, chapter 7] runs one chain per release, from one start. A chain that stays
near its start agrees with itself and is wrong: here two chains on the same release start at two
places, and what they say is compared.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmc import registry
from dpmc.diagnostics import autocorrelation, convergence
from dpmc.linreg import scores
from dpmc.linreg.types import NoisyStatistics, Prior
from dpmc.progress import Progress, silent
from dpmc.rng import stream
from dpmc.types import Array, Dataset, DpmcError
from dpmc_papers.config.setups import StudyPoint, StudySetup, canonical
from dpmc_papers.studies import _tables, regression
from dpmc_papers.studies.regression import (
    RegressionProblem,
    method_params,
    prepared,
    released,
)

if TYPE_CHECKING:
    import pandas as pd

METHODS = "dpmc.linreg.methods"

__all__ = ["check", "run", "unavailable"]

STARTS = ("node", "pooled")

COLUMNS = {
    **_tables.COLUMNS,
    "num_nodes": "int64",
    "num_rows": "int64",
    "dim": "int64",
    "num_iterations": "int64",
    "rhat": "float64",
    **{f"rhat_{start}": "float64" for start in STARTS},
    "ess_bulk": "float64",
    "iac": "float64",
    "iac_components": "str",
    "separation": "float64",
    **{f"mse_{start}": "float64" for start in STARTS},
    "mse_zero": "float64",
}
unavailable = functools.partial(_tables.unavailable, COLUMNS)


def run(
    setup: StudySetup, dataset: Dataset, replicates: Iterable[int], progress: Progress = silent
) -> pd.DataFrame:
    """Run a chain from each start on every release of a study, and compare them.

    Points are as for :func:`dpmc_papers.studies.regression.run`; the method has a parameter
    ``start``. ``rhat`` and ``ess_bulk`` are of both chains together, the worst of all coefficients,
    ``iac`` is the largest integrated autocorrelation time of them, and ``iac_components`` has each
    by start, ``rhat_<start>`` of the two halves of one chain; ``separation`` is the largest
    difference of posterior means in units of the larger posterior standard deviation;
    ``mse_<start>`` is the test error of the mean of a chain, ``mse_zero`` that of predicting zero,
    NaN without test rows.
    """
    points = setup.each()
    ready = functools.lru_cache(1)(lambda place: prepared(points[place], dataset))

    def row(point: StudyPoint, replicate: int) -> dict[str, Any]:
        problem, exact, prior = ready(points.index(point))
        given = released(point, exact, problem.bounds, dataset, replicate)
        assert isinstance(given, NoisyStatistics)
        return _row(point, problem, given, prior, replicate)

    return _tables.tabulate(COLUMNS, itertools.product(points, replicates), progress, row)


def check(point: StudyPoint) -> None:
    """Refuse a point that a run would refuse, whatever the bound of its targets."""
    regression.check(point)
    _module(point)


def _module(point: StudyPoint) -> Any:
    module: Any = registry.load("regression", point.method)
    if "start" not in {entry.name for entry in fields(module.Params)}:
        wanted = "one that can start at several places"
        raise DpmcError(f"`method` must be {wanted}, got {point.method!r}")
    return module


def _row(
    point: StudyPoint,
    problem: RegressionProblem,
    given: NoisyStatistics,
    prior: Prior,
    replicate: int,
) -> dict[str, Any]:
    module = _module(point)
    seed, key = point.seed, canonical(point)
    base = method_params(point, module, problem.bounds[1])
    fits = {}
    for start in STARTS:
        # The published start adds one to each diagonal.
        params = replace(base, start=start, ridge=base.ridge or 1.0)
        fits[start] = module.fit(given, prior, params, stream(seed, "chain", key, replicate, start))
    complete = all(fit.status == "complete" for fit in fits.values())
    draws = {start: fit.draws for start, fit in fits.items()} if complete else {}
    return {
        **_tables.place(point, replicate),
        "delta": 1 / len(problem.x),
        **_tables.guaranteed(given.guarantee, [*point.outside, "a known seed"]),
        "status": next((f.status for f in fits.values() if f.status != "complete"), "complete"),
        "num_nodes": given.num_nodes,
        "num_rows": len(problem.x),
        "dim": given.dim,
        "num_iterations": base.num_iterations,
        **compared(draws),
        **_errors(draws, problem),
    }


def compared(draws: dict[str, Array]) -> dict[str, Any]:
    """How two chains, by start, agree with themselves and with each other."""
    if not draws:
        return {}
    both = convergence.diagnose(list(draws.values()))
    each = {
        f"rhat_{start}": convergence.diagnose([chain])["rhat"] for start, chain in draws.items()
    }
    times = autocorrelation.in_words(np.stack(list(draws.values()), axis=1))
    first, second = draws.values()
    width = np.maximum(first.std(axis=0), second.std(axis=0))
    apart = np.abs(first.mean(axis=0) - second.mean(axis=0))
    separation = float(np.max(apart / width)) if width.all() else math.inf
    return {
        "rhat": both["rhat"],
        "ess_bulk": both["ess_bulk"],
        **dict(zip(("iac", "iac_components"), times, strict=True)),
        **each,
        "separation": separation,
    }


def _errors(draws: dict[str, Array], problem: RegressionProblem) -> dict[str, float]:
    if problem.test is None:
        return {}
    means = {f"mse_{start}": chain.mean(axis=0) for start, chain in draws.items()}
    means["mse_zero"] = np.zeros(problem.x.shape[1])
    return {name: scores.prediction_error(mean, *problem.test) for name, mean in means.items()}
