"""Private distributed regression: what each release predicts, and how private it really is.

[alparslan2023thesis, chapter 7]: noise replicates of one release, its estimate scored on
test rows or against what generated the rows, its posterior against the non-private one.

As in the public code of the thesis, methods are compared on the same release: in a replicate all
methods of a profile that need the same statistics get the same noisy ones. S and z serve three
methods; MCMC-B&S, which needs u too, and adaSSP have releases of their own. A guarantee is that
of the release behind one estimate. Estimates from one release are post-processing of it: whoever
publishes several of them pays for it once, and for each other release besides.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from dpmc import checks, registry
from dpmc.diagnostics import autocorrelation, mmd
from dpmc.diagnostics.convergence import split_rhat
from dpmc.linreg import profiles, release, scores
from dpmc.linreg.methods import posterior
from dpmc.linreg.sufficient_statistics import node_statistics
from dpmc.linreg.types import NodeStatistics, NoisyStatistics, Prior, Regression
from dpmc.progress import Progress, silent
from dpmc.rng import stream
from dpmc.types import (
    NEIGHBOURS,
    NO_GUARANTEE,
    Array,
    Dataset,
    DpmcError,
    Guarantee,
    check_epsilon,
)
from dpmc_papers.config.setups import ProblemSetup, StudyPoint, StudySetup, canonical
from dpmc_papers.data import regression_rows, uci_regression
from dpmc_papers.studies import _tables

if TYPE_CHECKING:
    import pandas as pd

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
    "iac": "float64",
    "iac_components": "str",
    "epsilon_replace": "float64",
    "epsilon_add_remove": "float64",
    "diagnostics": "str",
}
unavailable = functools.partial(_tables.unavailable, COLUMNS)


@dataclass(frozen=True)
class Params:
    """Parameters of the study itself; the others of its ``params`` are those of methods.

    Parameters
    ----------
    fresh_rows : bool
        Give every replicate simulated rows of its own: those of the draw after its number.
    """

    fresh_rows: bool = False


class RegressionProblem(NamedTuple):
    """Rows to learn from, and what estimates are scored against."""

    x: Array
    y: Array
    bounds: tuple[float, float]
    test: tuple[Array, Array] | None
    truth: regression_rows.RegressionTruth | None


def run(
    setup: StudySetup, dataset: Dataset, replicates: Iterable[int], progress: Progress = silent
) -> pd.DataFrame:
    """Release, estimate and score at some points of a study.

    Each point has ``num_nodes`` and ``epsilon``. ``variant`` is the name of a profile, and
    replicates are draws of the noise. A method that does not have a parameter leaves it out, so
    that all of a study can share them. A score that does not apply is NaN; delta is one over the
    number of rows to learn from.
    """
    points, wanted = setup.each(), list(replicates)
    rows = []
    if Params(**_tables.having(setup.params, Params)).fresh_rows:
        for replicate in wanted:
            problem, drawn = _tables.drawn(setup.problem, setup.seed, replicate + 1)
            own = [msgspec.structs.replace(point, problem=problem) for point in points]
            rows += [row for point in own for row in _rows(point, drawn, [replicate])]
            progress(len(rows), len(points) * len(wanted), "")
        for row in rows:
            row["problem"] = setup.problem.name
        return _tables.typed(rows, COLUMNS)
    for point in points:
        for row in _rows(point, dataset, wanted):
            rows.append(row)
            progress(len(rows), len(points) * len(wanted), row["status"])
    return _tables.typed(rows, COLUMNS)


def check(point: StudyPoint) -> None:
    """Refuse a point that a run would refuse, whatever the bound of its targets."""
    Params(**_tables.having(point.params, Params))
    for key in ("num_nodes", "epsilon"):
        if key not in point.point:
            raise DpmcError(f"`{key}` must be given at every point")
    checks.at_least("num_nodes", point.point["num_nodes"], 1)
    check_epsilon(point.point["epsilon"])
    method_params(point, registry.load("regression", point.method), y_bound=1.0)


def _rows(
    point: StudyPoint, dataset: Dataset, replicates: Iterable[int]
) -> Iterator[dict[str, Any]]:
    """What is measured of each replicate of one point."""
    problem, exact, prior = prepared(point, dataset)
    reference = None
    if problem.truth is not None:
        reference = _reference(exact, prior, point.seed, point.problem.name)
    for replicate in replicates:
        fit, guarantees = estimate(point, exact, prior, problem.bounds, dataset, replicate)
        declared = guarantees.get("declared", NO_GUARANTEE)
        yield {
            **_tables.place(point, replicate),
            "delta": 1 / len(problem.x),
            **_tables.guaranteed(declared, [*point.outside, "a known seed"]),
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


def prepared(
    point: StudyPoint, dataset: Dataset
) -> tuple[RegressionProblem, NodeStatistics, Prior]:
    """Problem of a point, its statistics by node, and the prior of its variant."""
    problem = problem_of(point.problem, dataset)
    num_nodes, rows = int(point.point["num_nodes"]), len(problem.x)
    exact = node_statistics((problem.x, problem.y), num_nodes, rows, problem.bounds)
    profile = profiles.profile(point.variant)
    rng = stream(point.seed, "prior", point.problem.name)
    return problem, exact, profiles.make_prior(profile, exact.dim, rng)


def problem_of(setup: ProblemSetup, dataset: Dataset) -> RegressionProblem:
    """Rows to learn from, and what estimates are scored against."""
    bounds = float(dataset.bounds["x_norm"]), float(dataset.bounds["y_abs"])
    if setup.data.name == "uci_regression":
        part = uci_regression.split(dataset)
        return RegressionProblem(part.x, part.y, bounds, (part.x_test, part.y_test), None)
    params = registry.parameters(regression_rows, setup.data.params)
    x, y = dataset.x[:, :-1], dataset.x[:, -1]
    return RegressionProblem(x, y, bounds, None, regression_rows.truth(params))


def estimate(
    point: StudyPoint,
    exact: NodeStatistics,
    prior: Prior,
    bounds: tuple[float, float],
    dataset: Dataset,
    replicate: int,
) -> tuple[Regression, dict[str, Guarantee]]:
    """Release the statistics of one replicate and estimate from them.

    Noise is that of :func:`released`, which methods share; the chain of each draws from a
    stream of its own.

    Returns
    -------
    (Regression, dict of str to Guarantee)
        The guarantee ``declared`` by the profile, and that under each relation; none for a
        method that reads the statistics themselves.
    """
    module: Any = registry.load("regression", point.method)
    given = released(point, exact, bounds, dataset, replicate)
    params = method_params(point, module, bounds[1])
    key = canonical(point)
    fit = module.fit(given, prior, params, stream(point.seed, "chain", key, replicate))
    if isinstance(given, NodeStatistics):
        return fit, {}
    found = release.guarantees(given)
    guarantees: dict[str, Guarantee] = {"declared": given.guarantee}
    guarantees.update({str(name): found[name] for name in NEIGHBOURS})
    return fit, guarantees


def released(
    point: StudyPoint,
    exact: NodeStatistics,
    bounds: tuple[float, float],
    dataset: Dataset,
    replicate: int,
) -> NoisyStatistics | NodeStatistics:
    """What the method of a study is given: for one that is not private, all.

    Noise depends on the problem, the profile, the number of nodes, epsilon, the replicate and
    what is released, and on nothing else: the same for all methods that need the same release.
    """
    module: Any = registry.load("regression", point.method)
    if module.STATISTICS == "exact":
        return exact
    noise = _noise(point, module, bounds[1], replicate)
    terms = {
        **profiles.profile(point.variant).release_settings(module.STATISTICS),
        "bounds_source": dataset.bounds_source,
    }
    epsilon, delta = float(point.point["epsilon"]), 1 / int(exact.num_rows.sum())
    if module.STATISTICS == "own":
        terms["params"] = method_params(point, module, bounds[1])
        own: NoisyStatistics = module.release(exact, *bounds, epsilon, delta, noise, **terms)
        return own
    return release.release(exact, *bounds, epsilon, delta, noise, **terms)


def _noise(point: StudyPoint, module: Any, y_bound: float, replicate: int) -> np.random.Generator:
    """Stream of one release, which its terms name and nothing else does."""
    kind = module.STATISTICS
    if kind == "own":
        # Parameters may change the scale of noise. One draw at two scales would give it away.
        kind = f"{point.method}: {method_params(point, module, y_bound)}"
    nodes, epsilon = int(point.point["num_nodes"]), float(point.point["epsilon"])
    key = canonical(point.problem), point.variant, kind, nodes, epsilon, replicate
    return stream(point.seed, "noise", *key)


def method_params(point: StudyPoint, module: Any, y_bound: float) -> Any:
    """Parameters of a method: its profile's, then those of the study that it has."""
    own = profiles.profile(point.variant).parameters(point.method, y_bound)
    return registry.parameters(module, {**own, **_tables.having(point.params, module.Params)})


def _reference(exact: NodeStatistics, prior: Prior, seed: int, name: str) -> Array:
    """Draw from the non-private posterior, the same for all profiles."""
    params = posterior.Params(precision=profiles.MEAN_VARIANCE)
    draws = posterior.fit(exact, prior, params, stream(seed, "reference", name)).draws
    assert draws is not None
    return draws


def _scores(fit: Regression, problem: RegressionProblem, reference: Array | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if fit.status != "complete":
        return found
    if fit.draws is not None and len(fit.draws) >= 4:
        chain = fit.draws[:, None]
        found["rhat"] = split_rhat(chain)
        found["iac"], found["iac_components"] = autocorrelation.in_words(chain)
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
