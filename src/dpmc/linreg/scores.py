"""How good an estimate or a posterior of regression coefficients is.

Prediction and estimation errors, intervals over repeated releases, and the distance of a
private posterior from the non-private one [alparslan2023thesis, chapter 7].
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpmc import checks
from dpmc.discrepancy import squared_mmd, within_width
from dpmc.types import Array, DpmcError

# The squared width h of the kernel in the public code of the thesis.
SQUARED_WIDTH = 0.1
LEVEL = 0.9


class Interval(NamedTuple):
    """A mean over independent runs, and an interval that covers its expectation."""

    mean: float
    low: float
    high: float


def _shaped(name: str, values: Array, shape: tuple[int, ...], text: str) -> Array:
    """Return `values` as an array, refusing another shape (-1 is any length) or NaN."""
    array = np.asarray(values, dtype=np.float64)
    fits = array.ndim == len(shape) and all(
        b in (-1, a) for a, b in zip(array.shape, shape, strict=True)
    )
    if not fits or array.size == 0:
        raise DpmcError(f"{name}: shape {array.shape}, allowed {text}")
    if not np.isfinite(array).all():
        raise DpmcError(f"{name}: NaN or infinite entries, allowed finite numbers")
    return array


def prediction_error(coefficients: Array, x: Array, y: Array) -> float:
    """Return the mean squared error of x'theta on test rows.

    Parameters
    ----------
    coefficients : ndarray of shape (d,)
        theta, for a posterior its mean: the mean of predictions is the prediction of
        the mean.
    x : ndarray of shape (m, d)
    y : ndarray of shape (m,)

    Returns
    -------
    float
        In the squared units of y.

    Raises
    ------
    DpmcError
        If shapes do not fit or an entry is not finite.
    """
    theta = _shaped("coefficients", coefficients, (-1,), "(d,)")
    x = _shaped("x", x, (-1, theta.size), f"(m, {theta.size})")
    y = _shaped("y", y, (len(x),), f"({len(x)},)")
    return float(np.mean((y - x @ theta) ** 2))


def coefficient_errors(
    coefficients: Array, truth: Array, feature_covariance: Array, draws: Array | None = None
) -> dict[str, float]:
    """Return how far coefficients are from those that generated the rows.

    The published figures mix two losses: that of the point estimate for adaSSP and
    Bayes-fixedS-fast, and the loss averaged over draws for the Markov chains. The second is
    larger by the trace of Sigma_x times the posterior covariance.

    Parameters
    ----------
    coefficients : ndarray of shape (d,)
        The point estimate.
    truth : ndarray of shape (d,)
    feature_covariance : ndarray of shape (d, d)
        Sigma_x of zero-mean features.
    draws : ndarray of shape (k, d), optional
        Draws of theta.

    Returns
    -------
    dict of str to float
        ``estimation``, the mean over components of the squared error; ``prediction``,
        (theta - truth)' Sigma_x (theta - truth), which is the squared error of a prediction
        at a new row less the noise variance; and ``prediction_over_draws``, its mean over
        `draws`, NaN without draws.

    Raises
    ------
    DpmcError
        If shapes do not fit or an entry is not finite.
    """
    theta = _shaped("coefficients", coefficients, (-1,), "(d,)")
    dim = theta.size
    truth = _shaped("truth", truth, (dim,), f"({dim},)")
    covariance = _shaped("feature_covariance", feature_covariance, (dim, dim), f"({dim}, {dim})")
    error = theta - truth
    over_draws = math.nan
    if draws is not None:
        errors = _shaped("draws", draws, (-1, dim), f"(k, {dim})") - truth
        over_draws = float(np.mean(np.einsum("ki,ij,kj->k", errors, covariance, errors)))
    return {
        "estimation": float(np.mean(error**2)),
        "prediction": float(error @ covariance @ error),
        "prediction_over_draws": over_draws,
    }


def t_interval(values: Array, level: float = LEVEL) -> Interval:
    """Return the mean of independent runs and its Student t interval.

    Parameters
    ----------
    values : ndarray of shape (m,)
        At least two; fifty runs have 49 degrees of freedom.
    level : float
        Coverage, in (0, 1).

    Returns
    -------
    Interval

    Raises
    ------
    DpmcError
        If there are fewer than two values, one is not finite, or `level` is out of range.
    """
    values = _shaped("values", values, (-1,), "(m,), m >= 2")
    if len(values) < 2:
        raise DpmcError(f"values: {len(values)} of them, allowed 2 or more")
    if not 0 < level < 1:
        raise DpmcError(f"level: {level}, allowed a number in (0, 1)")
    from scipy.special import stdtrit

    mean = float(np.mean(values))
    quantile = float(stdtrit(len(values) - 1, 0.5 + level / 2))
    half = quantile * float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return Interval(mean, mean - half, mean + half)


def gaussian_mmd(x: Array, y: Array, squared_width: float = SQUARED_WIDTH) -> float:
    """Return the unbiased squared discrepancy with the kernel of the public code.

    The kernel is the density of N(x, h I) at y. Pairs of a sample with itself leave out the
    diagonal, all cross pairs are used, so that samples may differ in size.

    Parameters
    ----------
    x : ndarray of shape (N, d)
    y : ndarray of shape (M, d)
    squared_width : float
        h, positive, in the squared units of x.

    Returns
    -------
    float
        Can be negative.

    Raises
    ------
    DpmcError
        If a sample has fewer than two points, the dimensions differ, or h is not positive.
    """
    checks.positive("squared_width", squared_width)
    x, y = _samples(x, y)
    scale = float((2 * math.pi * squared_width) ** (-x.shape[1] / 2))
    return scale * float(squared_mmd(x, y, np.array([math.sqrt(squared_width)]))[0])


def rank_one_mmd(x: Array, y: Array) -> float:
    """Return the unbiased squared discrepancy with the kernel printed in the thesis.

    That kernel, exp(-(|x|^2 + |y|^2) / 2) / (2 pi), is a product f(x) f(y): the discrepancy
    is the squared difference of the means of f, and is zero for many pairs of laws, for
    example N(0, 1) and N(0.831, 0.01). It is no measure of distance, and is here to show it.

    Parameters
    ----------
    x : ndarray of shape (N, d)
    y : ndarray of shape (M, d)

    Returns
    -------
    float
        Can be negative.

    Raises
    ------
    DpmcError
        If a sample has fewer than two points or the dimensions differ.

    References
    ----------
    [alparslan2023thesis, chapter 7], before section 7.1.
    """
    x, y = _samples(x, y)
    f, g = (np.exp(-0.5 * np.sum(sample**2, axis=1)) for sample in (x, y))

    def within(values: Array) -> float:
        n = len(values)
        return float((values.sum() ** 2 - np.sum(values**2)) / (n * (n - 1)))

    cross = float(np.mean(f)) * float(np.mean(g))
    return (within(f) + within(g) - 2 * cross) / (2 * math.pi)


def posterior_mmd(draws: Array, reference: Array) -> dict[str, float]:
    """Return every discrepancy of a private from the non-private posterior.

    Parameters
    ----------
    draws : ndarray of shape (N, d)
        Nearly independent draws of the private posterior; the thesis takes every 50th.
    reference : ndarray of shape (M, d)
        Draws of the non-private posterior.

    Returns
    -------
    dict of str to float
        ``mmd_squared`` (kernel of the public code), ``mmd_squared_printed`` (kernel of the
        text, see :func:`rank_one_mmd`) and ``mmd_squared_median`` (Gaussian kernel of height
        1 whose width is the median distance within the reference, so that one scale serves
        all private posteriors).

    Raises
    ------
    DpmcError
        If a sample has fewer than two points, the dimensions differ, or all points of the
        reference are the same.
    """
    draws, reference = _samples(draws, reference)
    width = within_width(reference)
    if not width > 0:
        raise DpmcError("reference: median distance 0, allowed distinct points")
    return {
        "mmd_squared": gaussian_mmd(draws, reference),
        "mmd_squared_printed": rank_one_mmd(draws, reference),
        "mmd_squared_median": float(squared_mmd(draws, reference, np.array([width]))[0]),
    }


def _samples(x: Array, y: Array) -> tuple[Array, Array]:
    x = _shaped("samples", x, (-1, -1), "(N, d)")
    y = _shaped("samples", y, (-1, x.shape[1]), f"(M, {x.shape[1]})")
    if min(len(x), len(y)) < 2:
        raise DpmcError(f"samples: {len(x)} and {len(y)} points, allowed at least 2 each")
    return x, y
