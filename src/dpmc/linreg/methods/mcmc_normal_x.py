"""MCMC-normalX: theta, sigma_y^2, W and all S_j, where rows of features are Gaussian.

[alparslan2023thesis, Algorithm 16]. The published chain moves each S_j by a Wishart walk from
psd(Shat_j) + I. From a dozen features or several nodes on it does not leave the neighbourhood
of that start in 10,000 iterations, so that chains which start there agree with each other
and not with the posterior: with 14 features and ten nodes, epsilon 1, coefficients were off
by up to eight posterior standard deviations at an R-hat of 1.05. The default moves, see
:mod:`dpmc.linreg.gibbs.wishart_moves` and :mod:`dpmc.linreg.gibbs.scale_moves`, reach the same
distribution from both starts. To judge a chain, run some from ``start="pooled"`` and some from
``"node"``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpmc import checks
from dpmc.linreg.gibbs import common as gibbs
from dpmc.linreg.gibbs.conditionals import (
    WALK_ACCEPTANCE,
    PriorTerms,
    ReleasedStatistics,
    coefficient_posterior,
)
from dpmc.linreg.gibbs.gaussian_moves import Frame
from dpmc.linreg.gibbs.normal_x import FAILURES, NormalXSettings, Tuning, sample
from dpmc.linreg.gibbs.wishart_moves import StatisticsScratch, StatisticsState
from dpmc.linreg.types import NoisyStatistics, Prior, Regression
from dpmc.numerics.small_matrices import psd, spectrum
from dpmc.types import Array, DpmcError, is_real

STATISTICS: Literal["sz", "szu", "own", "exact"] = "sz"

STATISTICS_MOVES = ("gaussian", "wishart")
STARTS = ("pooled", "node")


@dataclass(frozen=True)
class Params(gibbs.GibbsParams):
    """Settings of MCMC-normalX, in addition to those of every chain.

    Parameters
    ----------
    statistics_move : {"gaussian", "wishart"}
        How each S_j moves: autoregressive about its Gaussian approximation, or by the
        Wishart walk of [alparslan2023thesis, Algorithm 14].
    target_acceptance : float, optional
        Of the moves of each S_j, in (0, 1); by default 0.25, with one feature 0.44.
    scale_moves : int, optional
        Common changes of scale in each iteration; by default two for each feature.
    start : {"pooled", "node"}
        Where the S_j start: at their share of psd(sum_j Shat_j), eigenvalues no smaller
        than its noise, or each at psd(Shat_j) + ridge as published.
    """

    statistics_move: str = "gaussian"
    target_acceptance: float | None = None
    scale_moves: int | None = None
    start: str = "pooled"

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of("statistics_move", self.statistics_move, STATISTICS_MOVES)
        target = self.target_acceptance
        if target is not None and not (is_real(target) and 0 < target < 1):
            raise DpmcError(f"`target_acceptance` must be in (0, 1), got {target!r}")
        if self.scale_moves is not None:
            checks.at_least("scale_moves", self.scale_moves, 0)
        checks.one_of("start", self.start, STARTS)
        if self.start == "node" and not self.ridge > 0:
            raise DpmcError(f"`ridge` must be positive with start='node', got {self.ridge!r}")


def settings_of(params: Params, dim: int) -> NormalXSettings:
    """Settings as compiled code reads them."""
    wishart = params.statistics_move == "wishart"
    return NormalXSettings(
        params.num_iterations,
        params.burn_in,
        wishart,
        params.variance_move == "log",
        params.adaptation == "frozen",
        params.target_acceptance or (WALK_ACCEPTANCE if dim == 1 else 0.25),
        2 * dim if params.scale_moves is None else params.scale_moves,
        # The degrees of freedom of the walk stay above d + 2.
        -math.log(dim + 2) if wishart else 0.0,
    )


def first_state(noisy: NoisyStatistics, prior: Prior, params: Params) -> StatisticsState:
    """First state of a chain: pooled at the mean of theta there, as published at 0."""
    variance = params.first_variance(prior)
    if params.start == "node":
        s = psd(noisy.s) + params.ridge * np.eye(prior.dim)
        return StatisticsState.of(s, np.zeros(prior.dim), variance)
    values, vectors = spectrum(noisy.s.sum(axis=0))
    values = np.maximum(values, noisy.s_sd * math.sqrt(noisy.num_nodes)) + params.ridge
    shares = np.asarray(noisy.num_rows) / np.sum(noisy.num_rows)
    s = shares[:, None, None] * ((vectors * values) @ vectors.T)
    mean, _ = coefficient_posterior(s, noisy.z, variance, float(noisy.z_sd) ** 2, prior)
    return StatisticsState.of(s, mean, variance)


def fit(
    noisy: NoisyStatistics, prior: Prior, params: Params, rng: np.random.Generator
) -> Regression:
    """Run one chain.

    Returns
    -------
    Regression
        Diagnostics: acceptance rates after burn-in of moves of nodes, of scales and of
        sigma_y^2, and the steps at the end.
    """
    gibbs.check_release(noisy, prior, least_rows=prior.dim)
    released, settings = ReleasedStatistics.of(noisy), settings_of(params, prior.dim)
    tuning = Tuning.of(released, settings.wishart, params.variance_walk_sd)
    kept = params.num_iterations - params.burn_in
    draws, variances, accepted = np.empty((kept, prior.dim)), np.empty(kept), np.zeros(3)
    code, done = sample(
        released,
        PriorTerms.of(prior),
        settings,
        tuning,
        first_state(noisy, prior, params),
        Frame.of(prior.dim),
        StatisticsScratch.of(noisy.num_nodes, prior.dim),
        rng,
        draws,
        variances,
        accepted,
    )
    kept = max(done - params.burn_in, 0)
    failure = f"{FAILURES[code]} in iteration {done + 1}" if code else ""
    diagnostics = _rates(accepted, kept, noisy.num_nodes, settings, tuning)
    return gibbs.regression(noisy, draws[:kept], variances[:kept], diagnostics, failure)


def _rates(
    accepted: Array, kept: int, num_nodes: int, settings: NormalXSettings, tuning: Tuning
) -> dict[str, float]:
    tried = np.maximum(kept * np.array([num_nodes, settings.scale_moves, 1]), 1)
    nodes, scales, variance = accepted / tried
    steps = np.exp(tuning.node_step)
    return {
        "acceptance_statistics": float(nodes),
        "acceptance_scale": float(scales),
        "acceptance_variance": float(variance),
        "smallest_statistics_step": float(steps.min()),
        "variance_walk_sd": float(np.exp(tuning.walk[0])),
    }
