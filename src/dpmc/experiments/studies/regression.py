"""Private distributed regression: what each release predicts, and how private it really is.

[alparslan2023thesis, chapter 7]: noise replicates of one release, its estimate scored on
test rows or against what generated the rows, its posterior against the non-private one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dpmc import registry
from dpmc.diagnostics import mmd
from dpmc.diagnostics.convergence import split_rhat
from dpmc.experiments.data import regression_rows, uci_regression
from dpmc.experiments.studies import _tables
from dpmc.experiments.studies._tables import Settings
from dpmc.linreg import release, scores, variants
from dpmc.linreg.methods import posterior
from dpmc.linreg.sufficient_statistics import node_statistics
from dpmc.linreg.types import NodeStatistics, NoisyStatistics, Prior, Regression
from dpmc.numerics.source_digest import canonical
from dpmc.progress import Progress, silent
from dpmc.rng import stream
from dpmc.types import NEIGHBOURS, NO_GUARANTEE, Array, Dataset, Guarantee

METHODS = "dpmc.linreg.methods"

# Draws of a private posterior that are compared with the non-private one: every 50th of 5,000.
COMPARED = 100

COLUMNS = {
    **_tables.COLUMNS,
    "num_nodes": "int64",
    "num_rows": "int64",
    "dim": "int64",
    "num_clipped": "int64",
    "mse": "float64",
    "estimation": "float64",
    "prediction": "float64",
    "prediction_over_draws": "float64",
    "mmd_squared": "float64",
    "mmd_squared_printed": "float64",
    "mmd_squared_median": "float64",
    "rhat": "float64",
    "epsilon_replace": "float64",
    "epsilon_add_remove": "float64",
    "diagnostics": "str",
}


@dataclass(frozen=True)
class Params:
    """Parameters of the study itself; the others of its ``params`` are those of methods.

    Parameters
    ----------
    fresh_rows : bool
        Give every replicate simulated rows of its own: those of the draw after its number.
    """

    fresh_rows: bool = False


class Problem(NamedTuple):
    """Rows to learn from, and what estimates are scored against."""

    x: Array
    y: Array
    bounds: tuple[float, float]
    test: tuple[Array, Array] | None
    truth: regression_rows.Truth | None


def run(
    settings: Settings, dataset: Dataset, replicates: Iterable[int], progress: Progress = silent
) -> pd.DataFrame:
    """Release, estimate and score at some points of a study.

    Parameters
    ----------
    settings : mapping
        ``experiment``, ``problem``, ``label``, ``method``, ``variant`` (the name of a
        profile), ``params``, ``points`` (each with ``num_nodes`` and ``epsilon``),
        ``outside`` and ``seed``. ``params`` are those of :class:`Params` and of methods;
        what a method does not have is left out, so that all of a study can share them.
    dataset : Dataset
        Of :mod:`dpmc.experiments.data.uci_regression` or
        :mod:`dpmc.experiments.data.regression_rows`.
    replicates : iterable of int
        Draws of the noise.
    progress : callable
        Told the estimates done and to do.

    Returns
    -------
    pandas.DataFrame
        One row per point and replicate, columns and types of ``COLUMNS``; NaN where a score
        does not apply. delta is one over the number of rows to learn from.

    Raises
    ------
    DpmcError
        If a name or parameter is unknown or refused.
    """
    points, wanted = _tables.points(settings), list(replicates)
    rows = []
    if _tables.having(settings["params"], Params).get("fresh_rows"):
        for replicate in wanted:
            spec, drawn = _tables.drawn(settings, replicate + 1)
            own = [{**point, "problem": spec} for point in points]
            rows += [row for point in own for row in _rows(point, drawn, [replicate])]
            progress(len(rows), len(points) * len(wanted), "")
        for row in rows:
            row["problem"] = settings["problem"]["name"]
        return _tables.typed(rows, COLUMNS)
    for point in points:
        for row in _rows(point, dataset, wanted):
            rows.append(row)
            progress(len(rows), len(points) * len(wanted), row["status"])
    return _tables.typed(rows, COLUMNS)


def unavailable(settings: Settings, replicates: Iterable[int], reason: str) -> pd.DataFrame:
    """Return the table of :func:`run` where the data cannot be had: nothing but that."""
    return _tables.unavailable(settings, replicates, reason, COLUMNS)


def _rows(
    settings: Settings, dataset: Dataset, replicates: Iterable[int]
) -> Iterator[dict[str, Any]]:
    """Yield what is measured of each replicate of one point."""
    problem, exact, prior = prepared(settings, dataset)
    reference = None
    if problem.truth is not None:
        reference = _reference(exact, prior, settings["seed"], settings["problem"]["name"])
    for replicate in replicates:
        fit, guarantees = estimate(settings, exact, prior, problem.bounds, dataset, replicate)
        declared = guarantees.get("declared", NO_GUARANTEE)
        yield {
            **_tables.place(settings, replicate),
            "delta": 1 / len(problem.x),
            **_tables.guaranteed(declared, [*settings["outside"], "a known seed"]),
            "status": fit.status,
            "num_nodes": exact.num_nodes,
            "num_rows": len(problem.x),
            "dim": exact.dim,
            "num_clipped": exact.num_clipped,
            **_scores(fit, problem, reference),
            "epsilon_replace": guarantees.get("replace", NO_GUARANTEE).epsilon,
            "epsilon_add_remove": guarantees.get("add_remove", NO_GUARANTEE).epsilon,
            "diagnostics": json.dumps(_plain(fit.diagnostics), sort_keys=True),
        }


def prepared(settings: Settings, dataset: Dataset) -> tuple[Problem, NodeStatistics, Prior]:
    """Return the problem of a point, its statistics by node, and the prior of its variant."""
    problem = problem_of(settings["problem"], dataset)
    num_nodes, rows = int(settings["point"]["num_nodes"]), len(problem.x)
    exact = node_statistics((problem.x, problem.y), num_nodes, rows, problem.bounds)
    profile = variants.profile(settings["variant"])
    rng = stream(settings["seed"], "prior", settings["problem"]["name"])
    return problem, exact, variants.make_prior(profile, exact.dim, rng)


def problem_of(spec: Settings, dataset: Dataset) -> Problem:
    """Return the rows to learn from, and what estimates are scored against."""
    bounds = float(dataset.bounds["x_norm"]), float(dataset.bounds["y_abs"])
    if spec["data"]["name"] == "uci_regression":
        part = uci_regression.split(dataset)
        return Problem(part.x, part.y, bounds, (part.x_test, part.y_test), None)
    params = registry.parameters(regression_rows, dict(spec["data"]["params"]))
    x, y = dataset.x[:, :-1], dataset.x[:, -1]
    return Problem(x, y, bounds, None, regression_rows.truth(params))


def estimate(
    settings: Settings,
    exact: NodeStatistics,
    prior: Prior,
    bounds: tuple[float, float],
    dataset: Dataset,
    replicate: int,
) -> tuple[Regression, dict[str, Guarantee]]:
    """Release the statistics of one replicate and estimate from them.

    Returns
    -------
    (Regression, dict of str to Guarantee)
        The guarantee ``declared`` by the profile, and that under each relation; none for a
        method that reads the statistics themselves.
    """
    module: Any = registry.load("regression", settings["method"])
    given = released(settings, exact, bounds, dataset, replicate)
    params = method_params(settings, module, bounds[1])
    key = canonical(dict(settings))
    fit = module.fit(given, prior, params, stream(settings["seed"], "chain", key, replicate))
    if isinstance(given, NodeStatistics):
        return fit, {}
    found = release.guarantees(given)
    guarantees: dict[str, Guarantee] = {"declared": given.guarantee}
    guarantees.update({str(name): found[name] for name in NEIGHBOURS})
    return fit, guarantees


def released(
    settings: Settings,
    exact: NodeStatistics,
    bounds: tuple[float, float],
    dataset: Dataset,
    replicate: int,
) -> NoisyStatistics | NodeStatistics:
    """Return what the method of a study is given: for one that is not private, all."""
    module: Any = registry.load("regression", settings["method"])
    if module.STATISTICS == "exact":
        return exact
    noise = stream(settings["seed"], "noise", canonical(dict(settings)), replicate)
    terms = {
        **variants.profile(settings["variant"]).release_settings(module.STATISTICS),
        "bounds_source": dataset.bounds_source,
    }
    epsilon, delta = float(settings["point"]["epsilon"]), 1 / int(exact.num_rows.sum())
    if module.STATISTICS == "own":
        terms["params"] = method_params(settings, module, bounds[1])
        own: NoisyStatistics = module.release(exact, *bounds, epsilon, delta, noise, **terms)
        return own
    return release.release(exact, *bounds, epsilon, delta, noise, **terms)


def method_params(settings: Settings, module: Any, y_bound: float) -> Any:
    """Return the parameters of a method: its profile's, then those of the study that it has."""
    own = variants.profile(settings["variant"]).parameters(settings["method"], y_bound)
    return registry.parameters(module, {**own, **_tables.having(settings["params"], module.Params)})


def _reference(exact: NodeStatistics, prior: Prior, seed: int, name: str) -> Array:
    """Draw from the non-private posterior, the same for all profiles."""
    params = posterior.Params(precision=variants.MEAN_VARIANCE)
    draws = posterior.fit(exact, prior, params, stream(seed, "reference", name)).draws
    assert draws is not None
    return draws


def _scores(fit: Regression, problem: Problem, reference: Array | None) -> dict[str, float]:
    found: dict[str, float] = {}
    if fit.status != "complete":
        return found
    if fit.draws is not None and len(fit.draws) >= 4:
        found["rhat"] = split_rhat(fit.draws[:, None])
    if problem.test is not None:
        found["mse"] = scores.prediction_error(fit.coefficients, *problem.test)
    if problem.truth is not None:
        truth = problem.truth
        found |= scores.coefficient_errors(
            fit.coefficients, truth.coefficients, truth.feature_covariance, fit.draws
        )
        if reference is not None and fit.draws is not None:
            thin = max(1, len(fit.draws) // COMPARED) if fit.covariance is None else 1
            found |= mmd.posterior_mmd(fit.draws[::thin], reference)
    return found


def _plain(values: Any) -> dict[str, Any]:
    return {
        key: value.tolist() if isinstance(value, np.ndarray | np.generic) else value
        for key, value in values.items()
    }
