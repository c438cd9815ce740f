"""Estimators of Fisher information; a new one is an entry of ``TABLE``.

Each has ``Params`` and ``evaluate(params, release, rng)``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmc import checks
from dpmc.statsel import mechanisms, moments
from dpmc.statsel.fisher import information, monte_carlo, order_statistics, quadrature
from dpmc.statsel.fisher.information import InformationEstimate, ReleaseSetting
from dpmc.statsel.fisher.monte_carlo import LatentSampler, MonteCarloSizes
from dpmc.statsel.fisher.order_statistics import Simulation
from dpmc.statsel.order_draws import Order, order_of
from dpmc.statsel.types import Mechanism
from dpmc.types import Array, NoParams

Evaluate = Callable[[Any, ReleaseSetting, np.random.Generator], InformationEstimate]


@dataclass(frozen=True)
class Estimator:
    """An estimator, with its parameters."""

    name: str
    Params: type[Any]
    evaluate: Evaluate


@dataclass(frozen=True)
class NoiseParams:
    """Whether there is noise.

    Parameters
    ----------
    noiseless : bool
        Leave the noise out, whatever epsilon is.
    """

    noiseless: bool = False


def by_clt(mechanism: Mechanism, formula: Callable[..., Array]) -> Evaluate:
    """Evaluate a formula for a mean that is normal by the central limit theorem."""

    def evaluate(
        params: NoiseParams, release: ReleaseSetting, rng: np.random.Generator
    ) -> InformationEstimate:
        epsilon = math.inf if params.noiseless else release.epsilon
        scale = _scale(mechanism, release, epsilon)
        closed_forms = moments.of(release.population, release.statistic)
        value = formula(closed_forms, release.theta, release.num_rows, scale)
        return InformationEstimate(float(value))

    return evaluate


def _scale(mechanism: Mechanism, release: ReleaseSetting, epsilon: float) -> float:
    sensitivity = release.statistic.sensitivity(release.population.support)
    return mechanism.scale(sensitivity, release.num_rows, epsilon)


@dataclass(frozen=True)
class MatchedParams:
    """At which privacy noise is added.

    Parameters
    ----------
    matched : bool
        Give Gaussian noise the privacy that randomised response has at epsilon, in place of
        epsilon-GDP.
    """

    matched: bool = False


@dataclass(frozen=True)
class BitsParams:
    """Which formula, and at which privacy.

    Parameters
    ----------
    second_term : {"half", "published"}
        With the 1/2 that the thesis leaves out, or without.
    matched : bool
        See `MatchedParams`.
    """

    second_term: str = "half"
    matched: bool = False

    def __post_init__(self) -> None:
        checks.one_of("second_term", self.second_term, tuple(information.SECOND_TERM))


def by_formula_of_bits(formula: Callable[..., Array]) -> Evaluate:
    """Evaluate a formula for bits with Gaussian noise, and what it gives as printed."""

    def evaluate(
        params: BitsParams, release: ReleaseSetting, rng: np.random.Generator
    ) -> InformationEstimate:
        information.check_bits(release)
        mu = information.matched(release.epsilon) if params.matched else release.epsilon
        value, published = (
            float(formula(release.theta, release.num_rows, mu, term))
            for term in (params.second_term, "published")
        )
        return InformationEstimate(value, published=published)

    return evaluate


def randomised_response(
    params: NoParams, release: ReleaseSetting, rng: np.random.Generator
) -> InformationEstimate:
    """Evaluate the formula for randomised response."""
    information.check_bits(release)
    value = information.randomised_response(release.theta, release.num_rows, release.epsilon)
    return InformationEstimate(float(value))


def binomial_mean(
    params: MatchedParams, release: ReleaseSetting, rng: np.random.Generator
) -> InformationEstimate:
    """Quadrature for a noisy mean of bits, the mean being binomial and not normal."""
    information.check_bits(release)
    mu = information.matched(release.epsilon) if params.matched else release.epsilon
    return InformationEstimate(quadrature.noisy_count(release.theta, release.num_rows, mu))


@dataclass(frozen=True)
class PerRecordParams:
    """The noise.

    Parameters
    ----------
    noise : {"laplace", "gaussian"}
        epsilon is of epsilon-DP, or of epsilon-GDP.
    noiseless : bool
        Without noise, whatever epsilon is.
    """

    noise: str = "laplace"
    noiseless: bool = False

    def __post_init__(self) -> None:
        checks.one_of("noise", self.noise, ("laplace", "gaussian"))


def per_record(
    params: PerRecordParams, release: ReleaseSetting, rng: np.random.Generator
) -> InformationEstimate:
    """Quadrature for records with noise of their own."""
    population, statistic, num_rows, theta, epsilon = release
    width = statistic.sensitivity(population.support)
    scale = 0.0 if params.noiseless else width / epsilon
    value = quadrature.per_record(population, statistic, theta, num_rows, scale, params.noise)
    return InformationEstimate(value)


def laplace_monte_carlo(
    params: MonteCarloSizes, release: ReleaseSetting, rng: np.random.Generator
) -> InformationEstimate:
    """Algorithm 6, for a mean with Laplace noise."""
    scale = _scale(mechanisms.laplace(), release, release.epsilon)
    closed_forms = moments.of(release.population, release.statistic)
    sampler = monte_carlo.of_mean(closed_forms, release.theta, release.num_rows, scale)
    return _sampled(sampler, params, rng)


def per_record_monte_carlo(
    params: MonteCarloSizes, release: ReleaseSetting, rng: np.random.Generator
) -> InformationEstimate:
    """Algorithm 8, for records with Laplace noise: n times the information in one."""
    scale = _scale(mechanisms.per_record_laplace(), release, release.epsilon)
    sampler = monte_carlo.of_record(release.population, release.statistic, release.theta, scale)
    return _sampled(sampler, params, rng, copies=release.num_rows)


def _sampled(
    sampler: LatentSampler, sizes: MonteCarloSizes, rng: np.random.Generator, copies: int = 1
) -> InformationEstimate:
    value, se = monte_carlo.estimate(sampler, sizes, rng)
    return InformationEstimate(
        copies * value, copies * se, num_outer=sizes.num_outer, num_inner=sizes.num_inner
    )


@dataclass(frozen=True)
class SmoothMonteCarloParams(MonteCarloSizes):
    """Monte Carlo sizes and the noise.

    Parameters
    ----------
    num_outer, num_inner, estimator, shared
        See `MonteCarloSizes`; the latent draws are whole data sets.
    delta : float
        Privacy parameter of the release.
    alpha, beta : float, optional
        Constants of the noise; by default those of `smooth_laplace` for epsilon and delta.
    """

    num_outer: int = 300
    num_inner: int = 1000
    delta: float = 1e-4
    alpha: float | None = None
    beta: float | None = None


def smooth_monte_carlo(
    params: SmoothMonteCarloParams, release: ReleaseSetting, rng: np.random.Generator
) -> InformationEstimate:
    """Algorithm 7, for an order statistic."""
    order = _order(params, release)
    sampler = monte_carlo.of_data(release.population, release.statistic, order, release.theta)
    return _sampled(sampler, params, rng)


@dataclass(frozen=True)
class SmoothParams(Simulation):
    """The simulation and the noise.

    Parameters
    ----------
    num_draws, num_groups, step
        See `Simulation`.
    delta, alpha, beta
        See `SmoothMonteCarloParams`.
    """

    delta: float = 1e-4
    alpha: float | None = None
    beta: float | None = None


def smooth(
    params: SmoothParams, release: ReleaseSetting, rng: np.random.Generator
) -> InformationEstimate:
    """Simulate with common random numbers, for an order statistic."""
    estimate = order_statistics.information(
        release.population, release.statistic, _order(params, release), release.theta, rng, params
    )
    return InformationEstimate(
        estimate.value, estimate.se, num_outer=math.nan, num_inner=params.num_draws
    )


def _order(params: SmoothParams | SmoothMonteCarloParams, release: ReleaseSetting) -> Order:
    mechanism = mechanisms.smooth_laplace(params.alpha, params.beta)
    population, statistic, num_rows, _, epsilon = release
    return order_of(population, statistic, mechanism, num_rows, epsilon, params.delta)


GAUSSIAN = by_clt(mechanisms.gaussian(), information.mean_with_gaussian)
LAPLACE = by_clt(mechanisms.laplace(), information.mean_with_laplace)
TABLE = {
    estimator.name: estimator
    for estimator in (
        Estimator("gaussian_clt", NoiseParams, GAUSSIAN),
        Estimator("laplace_clt", NoiseParams, LAPLACE),
        Estimator("randomised_response", NoParams, randomised_response),
        Estimator("noisy_bits", BitsParams, by_formula_of_bits(information.noisy_bits)),
        Estimator("noisy_mean", BitsParams, by_formula_of_bits(information.noisy_mean)),
        Estimator("binomial_mean", MatchedParams, binomial_mean),
        Estimator("per_record", PerRecordParams, per_record),
        Estimator("laplace_monte_carlo", MonteCarloSizes, laplace_monte_carlo),
        Estimator("per_record_monte_carlo", MonteCarloSizes, per_record_monte_carlo),
        Estimator("smooth_monte_carlo", SmoothMonteCarloParams, smooth_monte_carlo),
        Estimator("smooth", SmoothParams, smooth),
    )
}
