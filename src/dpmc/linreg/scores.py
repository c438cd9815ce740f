"""Scores of an estimate or a posterior of regression coefficients.

Prediction and estimation errors, and the distance of a private posterior from the non-private one
[alparslan2023thesis, chapter 7].
"""

from __future__ import annotations

import math

import numpy as np

from dpmc.checks import shaped
from dpmc.types import Array


def prediction_error(coefficients: Array, x: Array, y: Array) -> float:
    """Mean squared error of x'theta on test rows.

    In the squared units of y.

    Parameters
    ----------
    coefficients : ndarray of shape (d,)
        theta, for a posterior its mean: the mean of predictions is the prediction of
        the mean.
    x : ndarray of shape (m, d)
        Features of the test rows.
    y : ndarray of shape (m,)
        Targets of the test rows.
    """
    theta = shaped("coefficients", coefficients, (-1,), "(d,)")
    x = shaped("x", x, (-1, theta.size), f"(m, {theta.size})")
    y = shaped("y", y, (len(x),), f"({len(x)},)")
    return float(np.mean((y - x @ theta) ** 2))


def coefficient_errors(
    coefficients: Array, truth: Array, feature_covariance: Array, draws: Array | None = None
) -> dict[str, float]:
    """Errors of coefficients against those that generated the rows.

    The published figures mix two losses: that of the point estimate for adaSSP and
    Bayes-fixedS-fast, and the loss averaged over draws for the Markov chains. The second is
    larger by the trace of Sigma_x times the posterior covariance.

    Parameters
    ----------
    coefficients : ndarray of shape (d,)
        The point estimate.
    truth : ndarray of shape (d,)
        Coefficients that generated the rows.
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
    """
    theta = shaped("coefficients", coefficients, (-1,), "(d,)")
    dim = theta.size
    truth = shaped("truth", truth, (dim,), f"({dim},)")
    covariance = shaped("feature_covariance", feature_covariance, (dim, dim), f"({dim}, {dim})")
    error = theta - truth
    over_draws = math.nan
    if draws is not None:
        errors = shaped("draws", draws, (-1, dim), f"(k, {dim})") - truth
        over_draws = float(np.mean(np.einsum("ki,ij,kj->k", errors, covariance, errors)))
    return {
        "estimation": float(np.mean(error**2)),
        "prediction": float(error @ covariance @ error),
        "prediction_over_draws": over_draws,
    }
