"""Records, release and target of studies of posteriors given a release."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from dpmc import checks, registry
from dpmc.experiments.data import population_rows
from dpmc.experiments.studies import _tables
from dpmc.experiments.studies._tables import Settings
from dpmc.numerics.source_digest import canonical
from dpmc.rng import stream
from dpmc.statsel import lookup, releases, targets
from dpmc.statsel.releases import Release
from dpmc.statsel.targets import PosteriorTarget, ThetaPrior
from dpmc.types import DpmcError

KIND = "statsel_posterior"
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
    num_data_sets : int
        See :func:`dpmc.statsel.posterior.quadrature.likelihood`.
    num_lags : int
        Of a table of autocorrelations by lag; 0 for one of times.
    num_chains : int
        Chains of each release.
    """

    mechanism: str
    prior_high: float = 100.0
    delta: float | None = None
    num_data_sets: int = 2000
    num_lags: int = 0
    num_chains: int = 1

    def __post_init__(self) -> None:
        checks.positive("prior_high", self.prior_high)
        checks.at_least("num_data_sets", self.num_data_sets, 2)
        checks.at_least("num_lags", self.num_lags, 0)
        checks.at_least("num_chains", self.num_chains, 1)


class Observed(NamedTuple):
    """One release of one replicate."""

    target: PosteriorTarget
    released: Release
    theta: float
    num_rows: int


def study_params(settings: Settings) -> Params:
    """Return the parameters of the study at a point."""
    shared = _tables.having(settings["params"], Params)
    own = {key: settings["point"][key] for key in ("prior_high",) if key in settings["point"]}
    return Params(**{"mechanism": "", **shared, **own})


def method_params(module: Any, settings: Settings) -> Any:
    """Return the parameters of the method: those of the study that it has, and of the point."""
    own = {key: value for key, value in settings["point"].items() if key not in RELEASED}
    return registry.parameters(module, {**_tables.having(settings["params"], module.Params), **own})


def observe(settings: Settings, params: Params, replicate: int) -> Observed:
    """Draw the records of a replicate and release one statistic of them.

    All statistics, budgets and methods share the records of a replicate; methods share the
    release too. Records at two values of theta come from the same base variables.

    Raises
    ------
    DpmcError
        If a name or a value is unknown or refused.
    """
    point, problem = settings["point"], dict(settings["problem"])
    for key in ("statistic", "epsilon"):
        if key not in point:
            raise DpmcError(f"{key}: missing, allowed a value at every point")
    data = {key: point[key] for key in ("theta", "num_rows", "bound") if key in point}
    given = {**problem["data"]["params"], **data}
    problem["data"] = {**problem["data"], "params": given}
    spec, drawn = _tables.drawn({**settings, "problem": problem}, replicate + 1)
    population = population_rows.population(population_rows.Params(**given))
    statistic = lookup.statistic(str(point["statistic"]))
    mechanism = lookup.mechanism(params.mechanism)
    epsilon = float(point["epsilon"])
    key = canonical([spec["data"], params.mechanism, params.delta, point["statistic"], epsilon])
    released = releases.release(
        population,
        statistic,
        mechanism,
        drawn.x[:, 0],
        epsilon,
        stream(settings["seed"], "noise", key, replicate),
        params.delta,
    )
    low = population.theta_domain[0]
    prior = ThetaPrior(low if math.isfinite(low) else -params.prior_high, float(params.prior_high))
    target = targets.target(
        population, statistic, mechanism, released.y, released.n, epsilon, prior, params.delta
    )
    return Observed(target, released, float(given["theta"]), released.n)


def columns(settings: Settings, observed: Observed, params: Params, replicate: int) -> Any:
    """Return the columns that every row of a release has."""
    return {
        **_tables.place(settings, replicate),
        **_tables.guaranteed(observed.released.guarantee, [*settings["outside"], "a known seed"]),
        "status": "complete",
        "delta": math.nan if params.delta is None else params.delta,
        "statistic": str(settings["point"]["statistic"]),
        "theta": observed.theta,
        "num_rows": observed.num_rows,
    }
