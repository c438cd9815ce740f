"""Laws of counts, Poisson and negative binomial, and of their residuals when these are clipped."""

from __future__ import annotations

import math

import numpy as np

from dpmc.types import Array

# Dispersions to choose from, and parts of the best; by how much the number of rows in a bin may be
# another than a law says, as a share; and by how much a law with dispersion has to fit better.
DISPERSIONS = 2.0 ** np.arange(-6, 6)
FINER = 2.0 ** (np.arange(-3, 4) / 4)
SLACK, BETTER = 0.1, 6.0
# Residuals that are looked at, in standard deviations of counts at the mean rate; logarithm of a
# rate beyond which others are as good; rates to sum over.
LEAST, LARGEST, NODES = 0.5, 14.0, 141

# Counts that are summed over one by one; beyond, at so many quantiles of a normal distribution and
# of the gamma distribution that rates are drawn from.
MOST, QUANTILES, RATES_DRAWN = 1 << 13, 41, 101
# Logarithms of rates for which clipped counts are tabulated.
RATES = np.linspace(-8.0, 6.0, 141)


def chances(counts: Array, rates: Array, dispersion: float) -> Array:
    """Probabilities of counts 0, 1, ..., in columns, for rates in rows.

    Counts are negative binomial with variance ``rate + dispersion * rate**2``.
    """
    factorials = np.concatenate([[0.0], np.cumsum(np.log(counts[1:]))])
    if dispersion > 0:
        shape = 1 / dispersion
        rising = np.concatenate([[0.0], np.cumsum(np.log(shape + counts[:-1]))])
        logs = rising - factorials + shape * np.log(shape / (shape + rates))
        return np.asarray(np.exp(logs + counts * np.log(rates / (shape + rates))))
    return np.asarray(np.exp(counts * np.log(rates) - rates - factorials))


def clipped_counts(
    bound: float, mean: float, dispersion: float, logarithms: Array = RATES
) -> Array:
    """Mean, slope and variance of clipped residuals of counts, for some rates.

    The slope is that of their mean when the rate changes of which counts are drawn, by its
    logarithm, and not the one that residuals are taken at: of a row whose residual is clipped it
    is neither 0 nor 1. It is relative to that without a bound, the variance to that of Poisson
    counts without a bound, and of Poisson counts whatever the dispersion.

    Parameters
    ----------
    bound : float
    mean : float
        Rate from which on residuals are relative to their usual size.
    dispersion : float
        Of the counts that mean and slope are for.
    logarithms : ndarray of shape (k,)
        Of the rates.

    Returns
    -------
    ndarray of shape (3, k)
    """
    rates = np.exp(logarithms)[:, None]
    sizes = np.maximum(1.0, np.sqrt(rates / mean))
    counts: Array
    poisson: Array
    if float((rates + bound * sizes).max()) < MOST:
        # Clipped means follow from those of counts that end: beyond, residuals are clipped.
        counts = np.arange(int((rates + bound * sizes).max()) + 2.0)
        poisson, inside = counts, chances(counts, rates, dispersion)
        usual = chances(counts, rates, 0.0) if dispersion else inside
    else:
        poisson, counts = _large(rates, 0.0), _large(rates, dispersion)
        usual = np.full_like(poisson, 1 / poisson.shape[1])
        inside = np.full_like(counts, 1 / counts.shape[1])
    residuals = np.clip((counts - rates) / sizes, -bound, bound)
    short = (inside * (residuals - bound)).sum(axis=1)
    scores = (counts - rates) / (1 + dispersion * rates)
    slope = (inside * (residuals - bound) * scores).sum(axis=1) / (rates / sizes)[:, 0]
    residuals = np.clip((poisson - rates) / sizes, -bound, bound)
    first = (usual * (residuals - bound)).sum(axis=1)
    second = (usual * (residuals - bound) ** 2).sum(axis=1)
    variance = (second - first**2) / (rates / sizes**2)[:, 0]
    return np.stack([short + bound, slope, variance])


def _large(rates: Array, dispersion: float) -> Array:
    """Equally likely values of counts that are too large to be summed over, of shape (k, nodes)."""
    from scipy.special import gammaincinv, ndtri

    steps = ndtri((np.arange(QUANTILES) + 0.5) / QUANTILES)
    steps /= steps.std()
    if not dispersion:
        return np.asarray(rates + np.sqrt(rates) * steps)
    places = (np.arange(RATES_DRAWN) + 0.5) / RATES_DRAWN
    drawn = dispersion * gammaincinv(1 / dispersion, places)
    drawn /= drawn.mean()
    means = rates[:, :, None] * drawn[None, :, None]
    return np.asarray((means + np.sqrt(means) * steps).reshape(len(rates), -1))


def dispersion(
    binned: Array, noise: float, edges: Array, mean: float, centre: float, deviation: float
) -> float:
    """Dispersion of counts that fits noisy numbers of large residuals; or 0.

    Parameters
    ----------
    binned : ndarray of shape (k + 1,)
        Residuals between edges.
    noise : float
        Standard deviation of a number.
    edges : ndarray of shape (k,)
    mean : float
        Rate from which on residuals are relative to their usual size.
    centre, deviation : float
        Of the logarithms of rates, which are taken for normal.
    """
    from scipy.special import betainc, pdtr

    places = np.flatnonzero(edges >= LEAST * math.sqrt(mean))[::2]
    edges = edges[places]
    found = np.add.reduceat(binned, places + 1)
    normal = np.linspace(-3.5, 3.5, NODES)
    weights = np.exp(-(normal**2) / 2)
    rates = np.exp(np.minimum(centre + deviation * normal, LARGEST))[:, None]
    last = np.floor(rates + edges * np.maximum(1.0, np.sqrt(rates / mean)))
    num_rows = max(float(binned.sum()), 1.0)

    def misfit(one: float) -> float:
        below = betainc(1 / one, last + 1, 1 / (1 + one * rates)) if one else pdtr(last, rates)
        expected = num_rows * np.diff(weights @ below / weights.sum(), append=1.0)
        variance = 2 * noise**2 + expected + (SLACK * expected) ** 2
        return float(((found - expected) ** 2 / variance + np.log(variance)).sum())

    coarse = min(DISPERSIONS, key=misfit)
    best = min(coarse * FINER, key=misfit)
    return float(best) if misfit(best) < misfit(0.0) - BETTER else 0.0
