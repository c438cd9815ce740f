"""MCMC-B&S: Gibbs sampling from noisy S, z and u [Bernstein and Sheldon 2019].

Extended to several nodes and features as in [alparslan2023thesis, section 7.1.2]. The sums
of each node, T_j = sum of w w' with w = (x, y), are sampled along with the parameters.

What is exact: with ``law="wishart"`` the chain leaves the posterior of the whole model
invariant, T_j ~ Wishart(n_j, G) with Gaussian noise. What is not: as published
(``law="normal"``) T_j is drawn under its normal approximation, but the parameters given T_j
under its exact distribution. The two conditionals belong to no common joint distribution, and the
sums can lose positive definiteness: S is then projected and given a ridge, and the rate of
sigma_y^2 is floored. The effect of the approximation falls with n_j, that of the repairs does not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpmc import checks
from dpmc.linreg.gibbs.bernstein_sheldon import (
    COMPLETE,
    ENDS,
    FLOORED,
    NUM_TALLIES,
    PROJECTED,
    SumChainSettings,
    released_sums,
    run,
    start_sums,
)
from dpmc.linreg.gibbs.conditionals import beliefs_of
from dpmc.linreg.gibbs.covariance_moves import directions
from dpmc.linreg.gibbs.latent_sums import GAVE_UP, TRIES
from dpmc.linreg.types import NoisyStatistics, Prior, Regression
from dpmc.types import DpmcError, is_real

STATISTICS: Literal["sz", "szu", "own", "exact"] = "szu"

UPDATES = ("augmented", "direct")


@dataclass(frozen=True)
class Params:
    """Settings of MCMC-B&S; the defaults sample the exact posterior.

    Parameters
    ----------
    num_iterations, burn_in : int
        Iterations in all, and those not returned.
    update : {"augmented", "direct"}
        How sums of a node are drawn: through a rotation invariant part of the noise, or
        with the covariance of all their entries as published. One distribution, other costs.
    law : {"wishart", "normal"}
        Law of the sums given the parameters, when they are drawn.
    coefficient_prior : {"independent", "conjugate"}
        theta ~ N(m, C) whatever sigma_y^2, the prior of the other methods; or, as
        published, theta ~ N(m, sigma_y^2 / precision).
    precision : float, optional
        Of the conjugate prior, a multiple of the identity; the inverse of C by default.
    project : bool
        Replace the sum of all S_j by its nearest positive semi-definite matrix, with
        ``law="normal"`` only: under the other distribution it is positive definite.
    ridge : float
        Multiple of the identity that is added after the projection, 1 as published.
    joint_moves : int, optional
        Moves per iteration of all sums together with the covariance of a row, with
        ``law="wishart"`` only. By default 3 (d + 1) with it: without them, chains of much
        noise hardly move. None as published.
    variance_start : float, optional
        First sigma_y^2, the prior mean (or mode, where there is no mean) by default. The
        independent prior alone reads it.
    """

    num_iterations: int = 10_000
    burn_in: int = 5_000
    update: str = "augmented"
    law: str = "wishart"
    coefficient_prior: str = "independent"
    precision: float | None = None
    project: bool = False
    ridge: float = 0.0
    joint_moves: int | None = None
    variance_start: float | None = None

    def __post_init__(self) -> None:
        checks.at_least("num_iterations", self.num_iterations, 1)
        checks.at_least("burn_in", self.burn_in, 0)
        if self.burn_in >= self.num_iterations:
            raise DpmcError(
                f"`burn_in` must be below num_iterations={self.num_iterations}, got {self.burn_in}"
            )
        checks.one_of("update", self.update, UPDATES)
        checks.one_of("law", self.law, ("wishart", "normal"))
        checks.one_of("coefficient_prior", self.coefficient_prior, ("independent", "conjugate"))
        checks.positive("precision", self.precision, optional=True)
        checks.positive("variance_start", self.variance_start, optional=True)
        checks.one_of("project", self.project, (False, True))
        if not (is_real(self.ridge) and 0 <= self.ridge < math.inf):
            raise DpmcError(f"`ridge` must be a finite number >= 0, got {self.ridge!r}")
        if self.law == "wishart" and (self.project or self.ridge):
            repair = "project" if self.project else "ridge"
            value = getattr(self, repair)
            raise DpmcError(f"`{repair}` must be {type(value)()} with law='wishart', got {value}")
        if self.joint_moves is not None:
            checks.at_least("joint_moves", self.joint_moves, 0)
            if self.law == "normal" and self.joint_moves:
                raise DpmcError(
                    f"`joint_moves` must be 0 with law='normal', got {self.joint_moves}"
                )
        if self.precision is not None and self.coefficient_prior == "independent":
            raise DpmcError(
                "`precision` must be None with coefficient_prior='independent', "
                f"got {self.precision}"
            )


def fit(
    noisy: NoisyStatistics, prior: Prior, params: Params, rng: np.random.Generator
) -> Regression:
    """Sample theta and sigma_y^2 given noisy S, z and u of all nodes.

    Returns
    -------
    Regression
        With draws after burn-in. Diagnostics: the part of iterations in which S was
        projected, ``projected``, and in which the rate was floored, ``floored``; the mean
        number of points that a slice tried, ``slice_tries``, and the part of slices that
        stayed where they were, ``slice_gave_up``. A chain that ended early says why in
        ``status``; its estimate is NaN if it has no draws.
    """
    released = released_sums(noisy)
    check_sizes(noisy, prior, params)
    settings = settings_of(params, noisy.dim)
    sums = start_sums(released) if settings.exact else released.noisy.copy()
    kept = params.num_iterations - params.burn_in
    draws, variances = np.empty((kept, noisy.dim)), np.empty(kept)
    tallies = np.zeros(NUM_TALLIES, dtype=np.int64)
    iterations, end = run(
        released,
        beliefs_of(prior, params.coefficient_prior == "conjugate", params.precision),
        settings,
        directions(released),
        sums,
        params.variance_start or prior_variance(prior),
        rng,
        draws,
        variances,
        tallies,
    )
    stored = max(0, iterations - params.burn_in)
    slices = iterations * noisy.num_nodes
    counted = {"projected": iterations, "floored": iterations}
    counted |= {"slice_tries": slices, "slice_gave_up": slices}
    places = (PROJECTED, FLOORED, TRIES, GAVE_UP)
    return Regression(
        draws[:stored].mean(axis=0) if stored else np.full(noisy.dim, np.nan),
        noisy.guarantee,
        draws[:stored],
        variances[:stored],
        diagnostics={
            name: float(tallies[place] / max(1, total))
            for place, (name, total) in zip(places, counted.items(), strict=True)
        },
        status=COMPLETE if end == 0 else f"stopped at iteration {iterations + 1}: {ENDS[end]}",
    )


def check_sizes(noisy: NoisyStatistics, prior: Prior, params: Params) -> None:
    """Refuse a prior of other dimension, and nodes too small for the Wishart distribution."""
    if prior.dim != noisy.dim:
        raise DpmcError(f"`prior` must have the {noisy.dim} features released, got {prior.dim}")
    least = int(noisy.num_rows.min())
    if params.law == "wishart" and least < noisy.dim + 1:
        raise DpmcError(
            f"`num_rows` must be at least {noisy.dim + 1} at every node with law='wishart', "
            f"got {least}"
        )


def prior_variance(prior: Prior) -> float:
    """Prior mean of sigma_y^2, or its mode where there is no mean."""
    return prior.rate / (prior.shape - 1 if prior.shape > 1 else prior.shape + 1)


def settings_of(params: Params, dim: int) -> SumChainSettings:
    """Settings for `dim` features, as compiled code reads them."""
    exact, joint_moves = params.law == "wishart", params.joint_moves
    if joint_moves is None:
        joint_moves = 3 * (dim + 1) if exact else 0
    return SumChainSettings(
        exact,
        params.update == "augmented",
        params.project,
        float(params.ridge),
        joint_moves,
        params.num_iterations,
        params.burn_in,
    )
