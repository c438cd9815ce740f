"""A release and the posterior it defines: prior, noise, shape of the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmc.numerics.small_matrices import compiled
from dpmc.statsel.order_draws import Order, order_of
from dpmc.statsel.types import Mechanism, Population, Statistic
from dpmc.types import Array, DpmcError


@compiled
def flat(theta: float) -> float:
    """Return the log-density of the uniform prior, up to a constant."""
    return 0.0


@dataclass(frozen=True)
class Prior:
    """The prior distribution of theta.

    Parameters
    ----------
    low, high : float
        Interval outside of which its density is 0; either end may be infinite.
    log_density : compiled function ``(theta) -> float``
        Up to a constant; by default that of the uniform distribution.

    Raises
    ------
    DpmcError
        If the interval is empty.
    """

    low: float
    high: float
    log_density: Any = flat

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise DpmcError(f"`prior` must have low < high, got ({self.low}, {self.high})")

    def log_densities(self, theta: Array) -> Array:
        """Return its log-density at each entry, up to a constant."""
        if self.log_density is flat:
            return np.zeros_like(theta)
        return np.array([self.log_density(value) for value in theta.tolist()])


@dataclass(frozen=True)
class Target:
    """A release, and the distribution of theta given it.

    Parameters
    ----------
    population : Population
    statistic : Statistic
    mechanism : Mechanism
    y : float or ndarray of shape (n,)
        The released mean or order statistic, or the released records.
    scale : float
        Scale of the noise, where it does not depend on the data.
    num_rows : int
        n.
    prior : Prior
    order : Order or None
        Of an order statistic.
    """

    population: Population
    statistic: Statistic
    mechanism: Mechanism
    y: Any
    scale: float
    num_rows: int
    prior: Prior
    order: Order | None = None

    @property
    def shape(self) -> str:
        """``"records"``, ``"order"`` or ``"mean"``: which chains and which integral it needs."""
        if self.mechanism.per_record:
            return "records"
        return "order" if self.order is not None else "mean"


def target(
    population: Population,
    statistic: Statistic,
    mechanism: Mechanism,
    y: Any,
    num_rows: int,
    epsilon: float,
    prior: Prior | tuple[float, float],
    delta: float | None = None,
) -> Target:
    """Return the target of a release, with the noise that the mechanism has.

    Parameters
    ----------
    population : Population
    statistic : Statistic
    mechanism : Mechanism
    y : float or array_like of shape (num_rows,)
        What was released: an array by mechanisms of single records alone.
    num_rows : int
    epsilon : float
    prior : Prior or (float, float)
        Two numbers are the uniform distribution between them.
    delta : float, optional
        The one asked for, of mechanisms that depend on it.

    Raises
    ------
    DpmcError
        If the prior leaves the domain of theta or `y` is not what the mechanism releases.
    """
    law = prior if isinstance(prior, Prior) else Prior(*map(float, prior))
    low, high = population.theta_domain
    if law.low < low or law.high > high:
        raise DpmcError(
            f"`prior` must lie inside ({low:g}, {high:g}), the domain of theta of "
            f"{population.name}, got ({law.low:g}, {law.high:g})"
        )
    wanted = (num_rows,) if mechanism.per_record else ()
    given = np.asarray(y, dtype=np.float64)
    if given.shape != wanted or not np.isfinite(given).all():
        raise DpmcError(
            f"`released` must be finite numbers of shape {wanted} for {mechanism.name}, got shape "
            f"{given.shape}{', not all finite' if given.shape == wanted else ''}"
        )
    kept = np.ascontiguousarray(given) if mechanism.per_record else float(given)
    if statistic.kind == "order":
        order = order_of(population, statistic, mechanism, num_rows, epsilon, delta)
        return Target(population, statistic, mechanism, kept, order.scale, num_rows, law, order)
    if mechanism.constants is not None:
        raise DpmcError(
            f"`mechanism` must release a mean of {statistic.name}, got {mechanism.name!r}, which "
            "releases order statistics only"
        )
    sensitivity = statistic.sensitivity(population.support)
    scale = mechanism.scale(sensitivity, num_rows, epsilon)
    return Target(population, statistic, mechanism, kept, scale, num_rows, law)
