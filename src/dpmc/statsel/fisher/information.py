"""Fisher information on theta in the release of a statistic by a mechanism.

[alparslan2023thesis, section 4.2]. Means are normal by the central limit theorem, records
keep their own distribution, and order statistics are simulated; every value is for all n records.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from dpmc import checks
from dpmc.rng import stream
from dpmc.statsel import laplace_clt
from dpmc.statsel import moments as closed_moments
from dpmc.statsel.fisher import order_statistics, quadrature
from dpmc.statsel.fisher.order_statistics import Simulation
from dpmc.statsel.moments import Moments
from dpmc.statsel.order_draws import order_of
from dpmc.statsel.types import Mechanism, Population, Statistic, plain
from dpmc.types import Array, DpmcError, check_delta, check_epsilon

Values = float | npt.ArrayLike
Curve = Callable[[float, float], float]
# Factor of the second term of the information of a mean of bits: right, and as printed.
SECOND_TERM = {"half": 0.5, "published": 1.0}
# Simulations share their random numbers, so that curves are smooth and differences small.
_SEED = 0


class ReleaseSetting(NamedTuple):
    """One release, of whose Fisher information there is an estimate."""

    population: Population  # Distribution of one record
    statistic: Statistic  # The released statistic
    num_rows: int  # n
    theta: float  # Parameter at which the information is taken
    epsilon: float  # Infinity without noise


class InformationEstimate(NamedTuple):
    """Estimate of a Fisher information, and how it was computed."""

    information: float  # Fisher information on theta in all records
    se: float = 0.0  # Standard error of a simulation, else 0; NaN where it is not known
    published: float = math.nan  # What the printed formula gives, where it differs; else NaN
    # num_outer and num_inner: Monte Carlo sizes, NaN where nothing is simulated.
    num_outer: float = math.nan
    num_inner: float = math.nan


def mean_with_gaussian(moments: Moments, theta: Values, num_rows: int, scale: Values) -> Array:
    """Information in a mean with Gaussian noise [section 4.2.1].

    ``F = m'^2 / H + (V' / n)^2 / (2 H^2)`` with ``H = V / n + scale^2``.

    `theta`, `scale`: the standard deviation of the noise is 0 where there is none.
    """
    place = np.asarray(theta, np.float64)
    covariance = plain(moments.variance)(place) / num_rows + np.square(scale)
    first = plain(moments.d_mean)(place) ** 2 / covariance
    second = (plain(moments.d_variance)(place) / (num_rows * covariance)) ** 2 / 2
    return np.asarray(first + second, np.float64)


def mean_with_laplace(moments: Moments, theta: Values, num_rows: int, scale: Values) -> Array:
    """Information in a mean with Laplace noise [section 4.2.2], to 1e-11, relative.

    `scale`: of the noise; 0 where there is none.
    """
    place = np.asarray(theta, np.float64)
    return laplace_clt.information(
        plain(moments.variance)(place) / num_rows,
        plain(moments.d_mean)(place),
        plain(moments.d_variance)(place) / num_rows,
        np.asarray(scale, np.float64),
    )


def randomised_response(theta: Values, num_rows: int, epsilon: Values) -> Array:
    """F_1, the information in n randomised responses [example 6].

    `epsilon`: of epsilon-DP.
    """
    slope = np.tanh(np.asarray(epsilon, np.float64) / 2)
    share = 0.5 + slope * (np.asarray(theta, np.float64) - 0.5)
    return np.asarray(num_rows * slope**2 / (share * (1 - share)), np.float64)


def mean_of_bits(
    theta: Values, num_rows: int, noise_variance: Values, second_term: str = "half"
) -> Array:
    """Information in N(theta, w / n), w = theta (1 - theta) + the noise variance.

    ``n / w + (1 - 2 theta)^2 / (2 w^2)``. [alparslan2023thesis, example 6] prints F_2, with
    noise variance 1 / epsilon^2, and F_3, with 1 / (n epsilon^2), without the 1/2.

    `noise_variance`: variance of the noise, in units of one record. `second_term` in {"half",
    "published"}: with the factor 1/2, or as printed.
    """
    checks.one_of("second_term", second_term, tuple(SECOND_TERM))
    place = np.asarray(theta, np.float64)
    variance = place * (1 - place) + np.asarray(noise_variance, np.float64)
    second = SECOND_TERM[second_term] * ((1 - 2 * place) / variance) ** 2
    return np.asarray(num_rows / variance + second, np.float64)


def noisy_bits(theta: Values, num_rows: int, epsilon: Values, second_term: str = "half") -> Array:
    """F_2: of the mean of bits with Gaussian noise on each, at epsilon-GDP."""
    variance = np.asarray(epsilon, np.float64) ** -2.0
    return mean_of_bits(theta, num_rows, variance, second_term)


def noisy_mean(theta: Values, num_rows: int, epsilon: Values, second_term: str = "half") -> Array:
    """F_3: of the mean of bits with Gaussian noise on it, at epsilon-GDP."""
    variance = np.asarray(epsilon, np.float64) ** -2.0 / num_rows
    return mean_of_bits(theta, num_rows, variance, second_term)


def matched(epsilon: float) -> float:
    """Mu at which randomised response with `epsilon` is mu-GDP, and no less.

    ``2 Phi^-1(e^epsilon / (1 + e^epsilon))``: what Gaussian noise is given in a comparison at
    equal privacy, since [alparslan2023thesis, example 6] sets mu = epsilon.
    """
    return float(-2 * ndtri(1 / (1 + math.exp(epsilon))))


def information(
    population: Population,
    statistic: Statistic,
    mechanism: Mechanism,
    epsilon: float,
    num_rows: int,
    theta: float,
    delta: float | None = None,
    simulation: Simulation | None = None,
) -> float:
    """Fisher information on theta in the release of n records.

    Parameters
    ----------
    epsilon : float
        > 0; infinity without noise.
    delta : float, optional
        For mechanisms that need one.
    simulation : Simulation, optional
        Of order statistics: always with the same random numbers.
    """
    return curve(population, statistic, mechanism, num_rows, delta, simulation)(epsilon, theta)


def curve(
    population: Population,
    statistic: Statistic,
    mechanism: Mechanism,
    num_rows: int,
    delta: float | None = None,
    simulation: Simulation | None = None,
) -> Curve:
    """Return :func:`information` as a function of epsilon and theta."""
    checks.at_least("n", num_rows, 1)
    if mechanism.needs_delta:
        check_delta(delta, mechanism.name)
    evaluate = _raw(population, statistic, mechanism, num_rows, delta, simulation)

    def checked(epsilon: float, theta: float) -> float:
        check_epsilon(epsilon, infinite=True)
        population.check_theta(theta)
        return evaluate(float(epsilon), float(theta))

    return checked


def value_or_nan(curve: Curve, epsilon: float, theta: float) -> float:
    """Information, NaN where the mechanism refuses the budget or theta."""
    try:
        return curve(float(epsilon), float(theta))
    except DpmcError:
        return math.nan


def check_bits(release: ReleaseSetting) -> None:
    """Refuse records that are not bits, or another statistic of them."""
    if release.population.name != "bernoulli" or release.statistic.kind != "mean":
        raise DpmcError(
            f"`statistic` must be the mean of bits of bernoulli, got {release.statistic.name!r} of "
            f"{release.population.name}"
        )


def _raw(
    population: Population,
    statistic: Statistic,
    mechanism: Mechanism,
    num_rows: int,
    delta: float | None,
    simulation: Simulation | None,
) -> Curve:
    width = statistic.sensitivity(population.support)
    if mechanism.noise == "bits":
        if population.name != "bernoulli" or statistic.kind != "mean":
            raise DpmcError(
                f"`mechanism` {mechanism.name!r} must release the bits of bernoulli, got "
                f"{statistic.name} of {population.name}"
            )
        return lambda epsilon, theta: float(randomised_response(theta, num_rows, epsilon))
    if statistic.kind == "order":
        return _of_order(population, statistic, mechanism, num_rows, delta, simulation)
    if mechanism.constants is not None:
        raise DpmcError(
            f"`statistic` must be median or max for {mechanism.name}, whose noise depends on the "
            f"data, got {statistic.name!r}"
        )
    if mechanism.per_record:
        return lambda epsilon, theta: quadrature.per_record(
            population,
            statistic,
            theta,
            num_rows,
            mechanism.scale(width, num_rows, epsilon),
            mechanism.noise,
        )
    moments = closed_moments.of(population, statistic)
    of_mean = mean_with_gaussian if mechanism.noise == "gaussian" else mean_with_laplace
    return lambda epsilon, theta: float(
        of_mean(moments, theta, num_rows, mechanism.scale(width, num_rows, epsilon))
    )


def _of_order(
    population: Population,
    statistic: Statistic,
    mechanism: Mechanism,
    num_rows: int,
    delta: float | None,
    simulation: Simulation | None,
) -> Curve:
    if population.base == "unit":
        raise DpmcError(
            f"`population` must have a density for {statistic.name}, got {population.name!r}"
        )

    def value(epsilon: float, theta: float) -> float:
        if math.isinf(epsilon):
            raise DpmcError(f"`epsilon` must be finite for {statistic.name}, got inf")
        order = order_of(population, statistic, mechanism, num_rows, epsilon, delta)
        rng = stream(_SEED, "order information", statistic.name, num_rows)
        estimate = order_statistics.information(
            population, statistic, order, theta, rng, simulation
        )
        return estimate.value

    if mechanism.noise != "laplace" or mechanism.per_record:
        order_of(population, statistic, mechanism, num_rows, 1.0, delta)  # which refuses it
    return value
