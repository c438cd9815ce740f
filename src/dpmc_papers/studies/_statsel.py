"""Records, release and target of studies of posteriors given a release."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from dpmc import checks, registry
from dpmc.numerics.source_digest import canonical
from dpmc.rng import stream
from dpmc.statsel import lookup, releases, targets
from dpmc.statsel.posterior import order_table, quadrature
from dpmc.statsel.posterior.quadrature import QuadraturePosterior
from dpmc.statsel.releases import Release
from dpmc.statsel.targets import PosteriorTarget, ThetaPrior
from dpmc.types import DpmcError, check_epsilon
from dpmc_papers.config.settings import plain
from dpmc_papers.config.setups import ProblemSetup, StudyPoint
from dpmc_papers.data import population_rows
from dpmc_papers.studies import _tables

KIND = "statsel_posterior"
# Quadrature nodes of an order statistic with constant noise: as many as published results have.
RANK_NODES = 2000
# Keys of a point that say what is released and concluded; others are parameters of the method.
RELEASED = ("statistic", "theta", "epsilon", "num_rows", "bound", "prior_high")


@dataclass(frozen=True)
class Params:
    """Parameters of a study itself; the others of its ``params`` are those of methods.

    Parameters
    ----------
    mechanism : str
    prior_high : float
        The prior is flat up to here, from the lower end of the domain of theta or, where that
        is infinite, from ``-prior_high``.
    delta : float, optional
        Asked for, of mechanisms that depend on it.
    num_lags : int
        Of a table of autocorrelations by lag; 0 for one of times.
    num_chains : int
        Chains of each release.
    """

    mechanism: str
    prior_high: float = 100.0
    delta: float | None = None
    num_lags: int = 0
    num_chains: int = 1

    def __post_init__(self) -> None:
        checks.positive("prior_high", self.prior_high)
        checks.at_least("num_lags", self.num_lags, 0)
        checks.at_least("num_chains", self.num_chains, 1)


class Observed(NamedTuple):
    """One release of one replicate."""

    target: PosteriorTarget
    released: Release
    theta: float
    num_rows: int


def study_params(point: StudyPoint) -> Params:
    """Parameters of the study at a point."""
    shared = _tables.having(point.params, Params)
    own = {key: point.point[key] for key in ("prior_high",) if key in point.point}
    return Params(**{"mechanism": "", **shared, **own})


def method_params(module: Any, point: StudyPoint) -> Any:
    """Parameters of the method: those of the study that it has, and of the point."""
    own = point.own(*RELEASED)
    return registry.parameters(module, {**_tables.having(point.params, module.Params), **own})


class Chosen(NamedTuple):
    """What is released at one point."""

    problem: ProblemSetup
    population: Any
    statistic: Any
    mechanism: Any
    epsilon: float
    theta: float


def released_at(point: StudyPoint, params: Params) -> Chosen:
    """What is released at a point."""
    for key in ("statistic", "epsilon"):
        if key not in point.point:
            raise DpmcError(f"`{key}` must be given at every point")
    names = ("theta", "num_rows", "bound")
    own = {str(key): point.point[key] for key in names if key in point.point}
    problem = point.problem.with_data(point.problem.name, own)
    drawn = population_rows.Params(**problem.data.params)
    check_epsilon(point.point["epsilon"])
    return Chosen(
        problem,
        population_rows.population(drawn),
        lookup.statistic(str(point.point["statistic"])),
        lookup.mechanism(params.mechanism),
        float(point.point["epsilon"]),
        float(drawn.theta),
    )


def check(point: StudyPoint) -> None:
    """Refuse a point that a run would refuse."""
    released_at(point, study_params(point))
    method_params(registry.load(KIND, point.method), point)


def observe(point: StudyPoint, params: Params, replicate: int) -> Observed:
    """Draw the records of a replicate and release one statistic of them.

    All statistics, budgets and methods share the records of a replicate; methods share the
    release too. Records at two values of theta come from the same base variables.
    """
    chosen = released_at(point, params)
    other, drawn = _tables.drawn(chosen.problem, point.seed, replicate + 1)
    population, statistic, mechanism = chosen.population, chosen.statistic, chosen.mechanism
    epsilon, name = chosen.epsilon, point.point["statistic"]
    key = canonical([plain(other.data), params.mechanism, params.delta, name, epsilon])
    released = releases.release(
        population,
        statistic,
        mechanism,
        drawn.x[:, 0],
        epsilon,
        stream(point.seed, "noise", key, replicate),
        params.delta,
    )
    low = population.theta_domain[0]
    prior = ThetaPrior(low if math.isfinite(low) else -params.prior_high, float(params.prior_high))
    target = targets.target(
        population, statistic, mechanism, released.y, released.n, epsilon, prior, params.delta
    )
    return Observed(target, released, chosen.theta, released.n)


def reference(target: PosteriorTarget) -> QuadraturePosterior:
    """Posterior of a target by quadrature."""
    constant = target.order is not None and target.order.alpha == 0
    num = RANK_NODES if constant else order_table.DATA_SETS
    return quadrature.quadrature(target, quadrature.likelihood(target, num))


def columns(point: StudyPoint, observed: Observed, params: Params, replicate: int) -> Any:
    """Columns that every row of a release has."""
    return {
        **_tables.place(point, replicate),
        **_tables.guaranteed(observed.released.guarantee, [*point.outside, "a known seed"]),
        "status": "complete",
        "delta": math.nan if params.delta is None else params.delta,
        "statistic": str(point.point["statistic"]),
        "theta": observed.theta,
        "num_rows": observed.num_rows,
    }
