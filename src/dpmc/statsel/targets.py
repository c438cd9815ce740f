"""A release and the posterior it defines: prior, noise, shape of the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmc import checks
from dpmc.numerics.small_matrices import compiled
from dpmc.statsel.order_draws import Order, order_of
from dpmc.statsel.types import Mechanism, Population, Statistic
from dpmc.types import Array, DpmcError


@compiled
def flat(theta: float) -> float:
    """Log-density of the uniform prior, up to a constant."""
    return 0.0


@dataclass(frozen=True)
class ThetaPrior:
    """The prior distribution of theta.

    Parameters
    ----------
    low, high : float
        Interval outside of which its density is 0; either end may be infinite.
    log_density : compiled function ``(theta) -> float``
        Up to a constant; by default that of the uniform distribution.
    """

    low: float
    high: float
    log_density: Any = flat

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise DpmcError(f"`prior` must have low < high, got ({self.low}, {self.high})")

    def log_densities(self, theta: Array) -> Array:
        """Its log-density at each entry, up to a constant."""
        if self.log_density is flat:
            return np.zeros_like(theta)
        return np.array([self.log_density(value) for value in theta.tolist()])


@dataclass(frozen=True)
class PosteriorTarget:
    """A release, and the distribution of theta given it.

    Parameters
    ----------
    population : Population
        Distribution of one record.
    statistic : Statistic
        The released statistic.
    mechanism : Mechanism
        Noise of the release.
    y : float or ndarray of shape (n,)
        The released mean or order statistic, or the released records.
    scale : float
        Scale of the noise, where it does not depend on the data.
    num_rows : int
        n.
    prior : ThetaPrior
        Distribution of theta.
    order : Order or None
        Of an order statistic.
    """

    population: Population
    statistic: Statistic
    mechanism: Mechanism
    y: Any
    scale: float
    num_rows: int
    prior: ThetaPrior
    order: Order | None = None

    @property
    def shape(self) -> str:
        """``"records"``, ``"order"`` or ``"mean"``: which chains and which integral it needs."""
        if self.mechanism.per_record:
            return "records"
        return "order" if self.order is not None else "mean"


def _prior(prior: Any) -> ThetaPrior:
    if isinstance(prior, ThetaPrior):
        return prior
    ends = checks.real_numbers(prior)
    if np.shape(prior) != (2,) or ends.shape != (2,):
        raise DpmcError(f"`prior` must be two numbers or a ThetaPrior, got {prior!r}")
    return ThetaPrior(float(ends[0]), float(ends[1]))


def target(
    population: Population,
    statistic: Statistic,
    mechanism: Mechanism,
    y: Any,
    num_rows: int,
    epsilon: float,
    prior: ThetaPrior | tuple[float, float],
    delta: float | None = None,
) -> PosteriorTarget:
    """Target of a release, with the noise that the mechanism has.

    Parameters
    ----------
    y : float or array_like of shape (num_rows,)
        What was released: an array by mechanisms of single records alone.
    epsilon : float
        The one of the release.
    delta : float, optional
        The one asked for, of mechanisms that depend on it.
    """
    theta_prior = _prior(prior)
    low, high = population.theta_domain
    if theta_prior.low < low or theta_prior.high > high:
        raise DpmcError(
            f"`prior` must lie inside ({low:g}, {high:g}), the domain of theta of "
            f"{population.name}, got ({theta_prior.low:g}, {theta_prior.high:g})"
        )
    expected_shape = (num_rows,) if mechanism.per_record else ()
    released = np.asarray(y, dtype=np.float64)
    if released.shape != expected_shape or not np.isfinite(released).all():
        problem = ", not all finite" if released.shape == expected_shape else ""
        raise DpmcError(
            f"`released` must be finite numbers of shape {expected_shape} for {mechanism.name}, "
            f"got shape {released.shape}{problem}"
        )
    value = np.ascontiguousarray(released) if mechanism.per_record else float(released)
    if statistic.kind == "order":
        order = order_of(population, statistic, mechanism, num_rows, epsilon, delta)
        return PosteriorTarget(
            population, statistic, mechanism, value, order.scale, num_rows, theta_prior, order
        )
    if mechanism.constants is not None:
        raise DpmcError(
            f"`mechanism` must release a mean of {statistic.name}, got {mechanism.name!r}, which "
            "releases order statistics only"
        )
    sensitivity = statistic.sensitivity(population.support)
    scale = mechanism.scale(sensitivity, num_rows, epsilon)
    return PosteriorTarget(population, statistic, mechanism, value, scale, num_rows, theta_prior)
