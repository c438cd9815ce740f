"""Integrated autocorrelation times: draws of a chain that are worth one independent draw.

The integrated autocorrelation time (IAC) of a stationary sequence is
``1 + 2 sum_{k >= 1} rho_k``: the variance of its mean is that of an independent sample, times it.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpmc.types import Array, DpmcError

# Sokal's window: the first lag that is so many times the time summed up to it.
WINDOW = 5.0
# A chain shorter than so many autocorrelation times says little about them.
LEAST_TIMES = 100.0


class ShortChainWarning(UserWarning):
    """A chain too short for its autocorrelation time to be relied on."""


@dataclass(frozen=True)
class AutocorrelationTime:
    """The integrated autocorrelation time of one chain, estimated in two ways.

    Parameters
    ----------
    sokal : float
        By the self-consistent window [Sokal 1997]; NaN for a chain that stands still.
    geyer : float
        By the initial monotone sequence [Geyer 1992]; NaN for a chain that stands still.
    first : float
        Autocorrelation at lag 1.
    num_draws : int
        Length of the chain.
    """

    sokal: float
    geyer: float
    first: float
    num_draws: int

    @property
    def value(self) -> float:
        """The estimate to use: Sokal's, Geyer's where successive draws repel each other.

        Sokal's window closes at once where the autocorrelation is negative, and the sum up
        to it may be negative.
        """
        return self.geyer if self.first < 0 or self.sokal <= 0 else self.sokal

    @property
    def reliable(self) -> bool:
        """True if the chain has the length of 100 autocorrelation times."""
        return self.num_draws >= LEAST_TIMES * max(self.value, self.geyer)  # False for NaN


def autocovariance(x: npt.ArrayLike) -> Array:
    """Autocovariance at lags 0 to n - 1, each sum divided by n, shape (n,)."""
    values = np.asarray(x, dtype=np.float64)
    if values.ndim != 1 or values.size < 4 or not np.isfinite(values).all():
        raise DpmcError(
            f"`chain` must be a sequence of at least 4 finite numbers, got shape {values.shape}"
        )
    n = values.size
    size = 1 << (2 * n - 1).bit_length()
    spectrum = np.fft.rfft(values - values.mean(), size)
    found: Array = np.fft.irfft(spectrum.real**2 + spectrum.imag**2, size)[:n] / n
    return found


def autocorrelation(x: npt.ArrayLike, num_lags: int | None = None) -> Array:
    """Autocorrelation at lags 0 to `num_lags`, NaN for a chain that stands still."""
    values = np.asarray(x, dtype=np.float64)
    found = autocovariance(values)
    found = np.full_like(found, math.nan) if np.ptp(values) == 0 else found / found[0]
    return found if num_lags is None else found[: num_lags + 1]


def autocorrelation_time(x: npt.ArrayLike, warn: bool = True) -> AutocorrelationTime:
    """Integrated autocorrelation time of a chain without its burn-in.

    Parameters
    ----------
    x : array_like of shape (n,)
        A function of the state.
    warn : bool
        Warn of a chain shorter than 100 times it.

    References
    ----------
    Sokal 1997, section 3; Geyer 1992, section 3.3.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=2000)
    >>> 0.5 < autocorrelation_time(x).value < 2
    True
    """
    rho = autocorrelation(x)
    times = AutocorrelationTime(sokal(rho), geyer(rho), float(rho[1]), rho.size)
    if warn and not times.reliable:
        warnings.warn(
            f"`chain` must have at least 100 times its autocorrelation time of about "
            f"{times.value:.3g} draws, got {times.num_draws}",
            ShortChainWarning,
            stacklevel=2,
        )
    return times


def autocorrelation_times(draws: Array) -> Array:
    """Integrated autocorrelation time of every chain and component.

    Parameters
    ----------
    draws : ndarray of shape (k, chains, d)
        Chains without their burn-in.

    Returns
    -------
    ndarray of shape (chains, d)
        NaN for a component that stands still or is not finite, and below four draws. A chain
        shorter than 100 times its own autocorrelation time says little about it.

    References
    ----------
    Sokal 1997, section 3; Geyer 1992, section 3.3.
    """
    times = np.full(draws.shape[1:], math.nan)
    for chain, component in np.ndindex(*times.shape):
        values = draws[:, chain, component]
        if values.size >= 4 and np.isfinite(values).all():
            times[chain, component] = autocorrelation_time(values, warn=False).value
    return times


def in_words(draws: Array) -> tuple[float, str]:
    """Largest integrated autocorrelation time, and all of them as a text.

    Parameters
    ----------
    draws : ndarray of shape (k, chains, d)
        Chains without their burn-in.

    Returns
    -------
    largest : float
        Of all chains and components; NaN if one of them stands still.
    each : str
        Chains are separated by semicolons and their components by spaces.
    """
    times = autocorrelation_times(draws)
    each = "; ".join(" ".join(f"{time:.4g}" for time in chain) for chain in times)
    return (math.nan if np.isnan(times).any() else float(times.max())), each


def sokal(rho: Array) -> float:
    """Sum up to the smallest W >= 5 IAC(W); `rho` has shape (n,), from lag 0 on."""
    if np.isnan(rho).any():
        return math.nan
    times = 2 * np.cumsum(rho) - 1
    closed = np.arange(times.size) >= WINDOW * times
    return float(times[np.argmax(closed)] if closed.any() else times[-1])


def geyer(rho: Array) -> float:
    """Sum over pairs of lags while it is positive, pairs made non-increasing."""
    if np.isnan(rho).any():
        return math.nan
    pairs = rho[: rho.size - rho.size % 2].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs <= 0)
    pairs = pairs[: negative[0]] if negative.size else pairs
    return float(2 * np.minimum.accumulate(pairs).sum() - 1) if pairs.size else 0.0


def standard_error(x: npt.ArrayLike, warn: bool = True) -> float:
    """Monte Carlo standard error of the mean of a chain, ``sd sqrt(IAC / n)``.

    NaN for a chain that stands still, and where a few draws that alternate have an estimate of the
    time below zero.
    """
    values = np.asarray(x, dtype=np.float64)
    time = autocorrelation_time(values, warn).value
    return float(values.std() * math.sqrt(time / values.size)) if time >= 0 else math.nan
