"""The private release of one statistic."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dpmc import checks
from dpmc.privacy import single_releases
from dpmc.privacy.ledger import Ledger, Noise, noise_of
from dpmc.statsel import records, smooth
from dpmc.statsel.records import InvalidRows
from dpmc.statsel.types import Mechanism, Population, Statistic, check_parts
from dpmc.types import Array, DpmcError, Guarantee, check_epsilon

# Narrowest range of a statistic: less, and ends beyond its inverse, leave sums no room.
NARROWEST = 1e-150
# Least smooth sensitivity, far below any other scale of noise.
LEAST_SENSITIVITY = 1e-280
# Relative rounding of one number: a transform and an average of two.
ROUNDING = 2.0**-48


@dataclass(frozen=True)
class ReleaseTerms:
    """Terms of a release: what a posterior given it has to know.

    Parameters
    ----------
    population, statistic, mechanism, epsilon, delta
        As `release` was given them.
    """

    population: Population
    statistic: Statistic
    mechanism: Mechanism
    epsilon: float
    delta: float | None


@dataclass(frozen=True)
class Release:
    """A released statistic and its guarantee.

    Parameters
    ----------
    y : float or ndarray of shape (n,)
        The noisy statistic, or one noisy number for each record.
    scale : float
        Standard deviation or Laplace scale of the noise, or probability of keeping a bit. NaN
        for noise by smooth sensitivity, whose scale is private.
    guarantee : Guarantee
        Of the release.
    n : int
        Number of records, public.
    noise : {"continuous", "discrete"}
        Whether the noise is floating-point noise, or the release was rounded to a grid.
    terms : ReleaseTerms
        What was released, by which mechanism, and for which epsilon and delta. A posterior given
        the release reads it here.
    """

    y: float | Array
    scale: float
    guarantee: Guarantee
    n: int
    noise: Noise
    terms: ReleaseTerms = field(repr=False)


@dataclass(frozen=True)
class ExactStatistic:
    """A statistic before noise, and the scale of its noise: both private.

    Parameters
    ----------
    value : float or ndarray of shape (n,)
        The exact statistic, or that of each record.
    scale : float
        Scale of the noise.
    num_clipped : int
        Records beyond the support of the population.
    n : int
        Records, whose number is public.
    """

    value: float | Array
    scale: float
    num_clipped: int
    n: int


def release(
    population: Population,
    statistic: Statistic,
    mechanism: Mechanism,
    x: npt.ArrayLike,
    epsilon: float,
    rng: np.random.Generator | None = None,
    delta: float | None = None,
    ledger: Ledger | None = None,
    *,
    noise: Noise | None = None,
    invalid_rows: InvalidRows = "refuse",
) -> Release:
    """Release a statistic of records, clipped to the support of their population.

    Parameters
    ----------
    population : Population
        Distribution of one record.
    statistic : Statistic
        The released statistic.
    mechanism : Mechanism
        Noise of the release.
    x : array_like of shape (n,)
        Records; n >= 1.
    epsilon : float
        Finite and > 0.
    rng : numpy.random.Generator, optional
        Only to repeat a release: whoever knows its seed can take the noise off. By default
        noise comes from the operating system.
    delta : float, optional
        For a mechanism that needs it.
    ledger : Ledger, optional
        Where to record a release with Gaussian noise; a new one by default. It knows no other
        noise: accountants add up Gaussian releases, and a release of a statistic is a single one,
        whose guarantee is complete as it stands.
    noise : {"continuous", "discrete"}, optional
        Discrete by default, and continuous with `rng`, as published. See
        :mod:`dpmc.privacy.single_releases`: the guarantee of continuous noise is that of real
        numbers, which its floating-point numbers do not keep.
    invalid_rows : {"refuse", "zero"}
        What becomes of a record that is no finite number or, for randomised response, no bit:
        it is an error, which reveals that there is one, or it counts as 0 before it is clipped.

    Returns
    -------
    Release

    Raises
    ------
    DpmcError
        If an argument is invalid, or the mechanism does not fit the statistic.

    Examples
    --------
    >>> from dpmc import statsel
    >>> records = statsel.population("normal_variance", bound=10.0)
    >>> x = records.draw(2.0, np.random.default_rng(1), 100)
    >>> absolute, laplace = statsel.statistic("abs_1"), statsel.mechanism("laplace")
    >>> release(records, absolute, laplace, x, epsilon=5.0).guarantee.epsilon
    5.0
    """
    checks.generator(rng)
    kind = noise_of(noise, published=rng is not None)
    check_parts(population, statistic, mechanism)
    check_epsilon(epsilon)
    if ledger is not None and mechanism.noise != "gaussian":
        raise DpmcError(
            f"`ledger` must be None unless the noise is Gaussian, got one with {mechanism.name}"
        )
    guarantee = mechanism.guarantee(epsilon, delta if mechanism.needs_delta else None)
    exact = before_noise(population, statistic, mechanism, x, epsilon, delta, invalid_rows)
    spread = statistic.range(population.support)
    rounding = rounding_of_mean(spread, exact.n) if statistic.kind == "mean" else ROUNDING
    y = _noisy(mechanism, exact, epsilon, rng, ledger, kind, rounding, spread)
    scale = float("nan") if mechanism.constants else exact.scale
    terms = ReleaseTerms(population, statistic, mechanism, float(epsilon), delta)
    return Release(y, scale, guarantee, exact.n, kind, terms)


def before_noise(
    population: Population,
    statistic: Statistic,
    mechanism: Mechanism,
    x: npt.ArrayLike,
    epsilon: float,
    delta: float | None = None,
    invalid_rows: InvalidRows = "refuse",
) -> ExactStatistic:
    """Statistic of clipped records and the scale of its noise, both private.

    Parameters
    ----------
    population, statistic, mechanism, x, epsilon, delta, invalid_rows
        See `release`.
    """
    check_epsilon(epsilon)
    check_fit(statistic, mechanism)
    check_range(statistic, population.support)
    sensitivity, beta = statistic.sensitivity(population.support), 0.0
    if mechanism.constants is not None:
        if delta is None:
            raise DpmcError(f"`delta` must be in (0, 1) for {mechanism.name}, got None")
        _, beta = mechanism.constants(epsilon, delta)
    checked = records.checked(x, invalid_rows)
    size = len(checked)
    scale = mechanism.scale(sensitivity, 1 if statistic.kind == "order" else size, epsilon)
    clipped = records.clip(checked, population.support)
    if mechanism.noise == "bits":
        clipped = records.bits(clipped, invalid_rows)
    # Rounding of a power may lead out of its range.
    s = np.clip(statistic.transform(clipped), *statistic.range(population.support))
    value: float | Array = s if mechanism.per_record else float(np.mean(s))
    if statistic.kind == "order":
        value = smooth.released(s, statistic)
    if mechanism.constants is not None:
        # The larger of two smooth bounds is one: noise never falls below what floats resolve.
        sensitivity = max(smooth.of(s, statistic, population.support, beta), LEAST_SENSITIVITY)
        scale = mechanism.scale(sensitivity, 1, epsilon)
    return ExactStatistic(value, scale, int(np.count_nonzero(checked != clipped)), size)


def check_range(statistic: Statistic, support: tuple[float, float]) -> None:
    """Refuse a support on which floating-point sums of a statistic lose its sensitivity."""
    low, high = statistic.range(support)
    width, largest = high - low, max(abs(low), abs(high))
    if not (width >= NARROWEST and largest <= min(1 / NARROWEST, 1e3 * width)):
        raise DpmcError(
            f"`support` must give {statistic.name} a range within +-1e150 that is not narrower "
            f"than 1e-150 or 1e-3 of its ends, got {low:g} to {high:g}"
        )


def check_fit(statistic: Statistic, mechanism: Mechanism) -> None:
    """Refuse noise that does not go with a statistic."""
    if statistic.kind == "order" and mechanism.per_record:
        raise DpmcError(
            f"`mechanism` must release a single number for {statistic.name}, got {mechanism.name!r}"
        )
    if statistic.kind == "mean" and mechanism.constants is not None:
        raise DpmcError(
            f"`mechanism` must release the mean of {statistic.name}, got {mechanism.name!r}, which "
            "releases order statistics only"
        )


def rounding_of_mean(spread: tuple[float, float], n: int) -> float:
    """Excess of what one record moves a floating-point mean by, over its sensitivity.

    Pairwise sums of n numbers add up at most 128 at once: their rounding is below
    ``(128 + log2 n) n u`` times the largest, u = 2**-53, in either data set.
    """
    low, high = spread
    terms = n * (128 + math.log2(n)) * 2.0**-52
    return ROUNDING + terms * max(abs(low), abs(high)) / (high - low)


def _noisy(
    mechanism: Mechanism,
    exact: ExactStatistic,
    epsilon: float,
    rng: np.random.Generator | None,
    ledger: Ledger | None,
    noise: Noise,
    rounding: float,
    spread: tuple[float, float],
) -> float | Array:
    value, scale = exact.value, exact.scale
    if mechanism.noise == "gaussian":
        book = Ledger() if ledger is None else ledger
        return single_releases.gaussian(
            value, scale * epsilon, 1 / epsilon, rng, book, noise, rounding
        )
    if mechanism.noise == "bits":
        return single_releases.randomised_response(np.asarray(value), scale, rng, noise)
    if mechanism.constants is not None:
        largest = mechanism.scale(spread[1] - spread[0], 1, epsilon)
        return single_releases.smooth_laplace(float(value), scale, largest, rng, noise)
    noisy = single_releases.laplace(value, scale, rng, noise, rounding)
    return noisy if mechanism.per_record else float(noisy)
