"""The private release of one statistic."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpmc.privacy.mechanisms import Ledger
from dpmc.statsel import smooth
from dpmc.statsel.values import Mechanism, Population, Statistic, check_epsilon
from dpmc.types import Array, DpmcError, Guarantee


@dataclass(frozen=True)
class Release:
    """What is known of the records.

    Parameters
    ----------
    y : float or ndarray of shape (n,)
        The noisy statistic, or one noisy number for each record.
    scale : float
        Standard deviation or Laplace scale of the noise, or probability of keeping a bit. NaN
        for noise by smooth sensitivity, whose scale is private.
    guarantee : Guarantee
    n : int
        Number of records, public.
    """

    y: float | Array
    scale: float
    guarantee: Guarantee
    n: int


@dataclass(frozen=True)
class Exact:
    """A statistic before noise, and the scale of its noise: both private.

    Parameters
    ----------
    value : float or ndarray of shape (n,)
    scale : float
    num_clipped : int
        Records beyond the support of the population.
    """

    value: float | Array
    scale: float
    num_clipped: int


def release(
    population: Population,
    statistic: Statistic,
    mechanism: Mechanism,
    x: npt.ArrayLike,
    epsilon: float,
    rng: np.random.Generator,
    delta: float | None = None,
    ledger: Ledger | None = None,
) -> Release:
    """Release a statistic of records, clipped to the support of their population.

    Parameters
    ----------
    population : Population
    statistic : Statistic
    mechanism : Mechanism
    x : array_like of shape (n,)
        Records, finite; n >= 1.
    epsilon : float
        Finite and > 0.
    rng : numpy.random.Generator
        Seeded by the operating system where privacy is meant.
    delta : float, optional
        For a mechanism that needs it.
    ledger : Ledger, optional
        Where to record a release with Gaussian noise; a new one by default. It knows no other
        noise: accountants add up Gaussian releases, and a release here is a single one, whose
        guarantee is complete as it stands.

    Returns
    -------
    Release

    Raises
    ------
    DpmcError
        If an argument is not allowed, or the mechanism does not fit the statistic.
    """
    exact = before_noise(population, statistic, mechanism, x, epsilon, delta)
    guarantee = mechanism.guarantee(epsilon, delta if mechanism.needs_delta else None)
    y = _noisy(mechanism, exact, epsilon, rng, ledger)
    scale = float("nan") if mechanism.constants else exact.scale
    return Release(y, scale, guarantee, np.size(x))


def before_noise(
    population: Population,
    statistic: Statistic,
    mechanism: Mechanism,
    x: npt.ArrayLike,
    epsilon: float,
    delta: float | None = None,
) -> Exact:
    """Return the statistic of clipped records and the scale of its noise, both private.

    Parameters
    ----------
    population, statistic, mechanism, x, epsilon, delta
        See `release`.

    Raises
    ------
    DpmcError
        As `release`.
    """
    check_epsilon(epsilon)
    check_fit(statistic, mechanism)
    records = np.asarray(x, dtype=np.float64)
    if records.ndim != 1 or not records.size or not np.isfinite(records).all():
        raise DpmcError(f"x: shape {records.shape}, allowed one or more finite numbers in a row")
    clipped = np.clip(records, *population.support)
    if mechanism.noise == "bits" and not np.isin(clipped, (0.0, 1.0)).all():
        raise DpmcError("x: a record that is no bit, allowed 0 and 1 for randomised_response")
    # Rounding of a power may lead out of its range.
    s = np.clip(statistic.transform(clipped), *statistic.range(population.support))
    value: float | Array = s if mechanism.per_record else float(np.mean(s))
    sensitivity, n = statistic.sensitivity(population.support), len(s)
    if statistic.kind == "order":
        value, n = smooth.released(s, statistic), 1
    if mechanism.constants is not None:
        if delta is None:
            raise DpmcError(f"delta: None, allowed a number in (0, 1) for {mechanism.name}")
        _, beta = mechanism.constants(epsilon, delta)
        sensitivity = smooth.of(s, statistic, population.support, beta)
    scale = mechanism.scale(sensitivity, n, epsilon)
    return Exact(value, scale, int(np.count_nonzero(records != clipped)))


def check_fit(statistic: Statistic, mechanism: Mechanism) -> None:
    """Refuse noise that does not go with a statistic.

    Raises
    ------
    DpmcError
        Naming what does.
    """
    if statistic.kind == "order" and mechanism.per_record:
        raise DpmcError(
            f"mechanism: {mechanism.name!r}, allowed one that releases a single number for "
            f"{statistic.name}"
        )
    if statistic.kind == "mean" and mechanism.constants is not None:
        raise DpmcError(
            f"mechanism: {mechanism.name!r}, allowed for an order statistic, not for the mean of "
            f"{statistic.name}"
        )


def _noisy(
    mechanism: Mechanism,
    exact: Exact,
    epsilon: float,
    rng: np.random.Generator,
    ledger: Ledger | None,
) -> float | Array:
    value, scale = exact.value, exact.scale
    if mechanism.noise == "gaussian":
        book = Ledger() if ledger is None else ledger
        return book.release(value, scale * epsilon, 1 / epsilon, rng)
    if ledger is not None:
        raise DpmcError(f"ledger: given with {mechanism.name}, allowed with Gaussian noise alone")
    if mechanism.noise == "bits":
        flipped = rng.random(np.shape(value)) >= scale
        return np.where(flipped, 1.0 - np.asarray(value), value)
    noisy = value + scale * rng.laplace(size=np.shape(value))
    return noisy if mechanism.per_record else float(noisy)
