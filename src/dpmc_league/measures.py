"""Distances of draws from exact ones: each measure has a closed form where it is tested."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from scipy.special import logsumexp

from dpmc.diagnostics.mmd import Reference, squared_mmd
from dpmc.numerics.compiled import compile_once, compile_source
from dpmc.rng import stream
from dpmc.rows.kernels import tuple_text
from dpmc.types import Array, Model

# Draws of either sample that enter sums over pairs, directions of slices, quantiles of each.
PAIRED = 2000
DIRECTIONS, QUANTILES = 100, 1000
# Draws and rows of a predictive score.
SCORED_DRAWS, SCORED_ROWS = 400, 500


def thinned(draws: Array, most: int) -> Array:
    """At most `most` draws, evenly spaced, the last among them."""
    if len(draws) <= most:
        return draws
    kept: Array = draws[np.linspace(0, len(draws) - 1, most).round().astype(int)]
    return kept


def mmd(draws: Array, reference: Reference) -> float:
    """Maximum mean discrepancy, its width the median distance in the reference.

    The root of the absolute value of the unbiased estimate: with 2,000 draws of either sample,
    exact ones have about 0.01 to 0.03.
    """
    u = squared_mmd(thinned(draws, PAIRED), reference.draws, np.array([reference.width]))
    return math.sqrt(abs(float(u[0])))


def sliced_wasserstein(draws: Array, reference: Reference) -> float:
    """Sliced 2-Wasserstein distance, after whitening by the reference.

    The root of the mean, over 100 fixed directions, of the squared distance between quantiles. A
    shift by v posterior standard deviations gives |v| / sqrt(d), a widening by s gives |s - 1|.
    """
    dim = draws.shape[1]
    directions = stream(1, "league", "directions", dim).standard_normal((dim, DIRECTIONS))
    directions /= np.linalg.norm(directions, axis=0)
    levels = (np.arange(QUANTILES) + 0.5) / QUANTILES
    ours = np.quantile(draws @ reference.whitener @ directions, levels, axis=0)
    theirs = np.quantile(reference.white @ directions, levels, axis=0)
    return float(np.sqrt(np.mean((ours - theirs) ** 2)))


def mean_errors(draws: Array, reference: Array) -> Array:
    """Errors of the means in posterior standard deviations, shape (d,)."""
    errors: Array = (draws.mean(axis=0) - reference.mean(axis=0)) / reference.std(axis=0)
    return errors


def deviation_ratios(draws: Array, reference: Array) -> Array:
    """Standard deviations over those of the posterior, shape (d,)."""
    ratios: Array = draws.std(axis=0) / reference.std(axis=0)
    return ratios


def effective_draws(errors: Array) -> float:
    """Number of independent exact draws that have means with such an error.

    That is 1 over the mean square of the errors of the means, in posterior standard deviations.
    From one run it has the relative error of 1 over a chi-square with d degrees of freedom: average
    the squares over runs, then invert.
    """
    square = float(np.mean(np.square(errors)))
    return math.inf if square == 0 else 1 / square


def coverage(draws: Array, reference: Array, level: float) -> float:
    """Share of exact draws within central intervals of a level, over all components.

    The level itself for exact draws. Of a private posterior that is as wide as the noise makes it,
    the mean over releases is the level too: it says where an exact draw may be. One that forgets
    the noise covers less.
    """
    tails = (0.5 * (1 - level), 0.5 * (1 + level))
    low, high = np.quantile(draws, tails, axis=0)
    return float(np.mean((reference >= low) & (reference <= high)))


def predictive(model: Model, draws: Array, reference: Array, rows: Array) -> float:
    """Mean log predictive density of fresh rows, less that of the reference.

    What the model leaves out of its log-likelihood, since it is free of theta, cancels. Zero for
    exact draws, negative for worse ones.
    """
    ours, theirs = (
        _log_predictive(model, thinned(sample, SCORED_DRAWS), rows[:SCORED_ROWS])
        for sample in (draws, reference)
    )
    return float(np.mean(ours - theirs))


def _log_predictive(model: Model, thetas: Array, rows: Array) -> Array:
    """Log of the mean likelihood of each row over draws, shape (m,)."""
    features = np.ascontiguousarray((model.features or np.transpose)(rows), dtype=np.float64)
    coefficients: Any = (
        (lambda theta: theta) if model.coefficients is None else compile_once(model.coefficients)
    )
    count = len(coefficients(thetas[0]))
    kernel = _likelihood_kernel(model.log_likelihood, count, len(features))
    values = np.empty((len(thetas), len(rows)))
    for k, theta in enumerate(thetas):
        kernel(features, coefficients(theta), values[k])
    log_mean: Array = logsumexp(values, axis=0) - math.log(len(thetas))
    return log_mean


@functools.cache
def _likelihood_kernel(log_likelihood: Any, num_coefficients: int, num_features: int) -> Any:
    """Compile the log-likelihood of every row: ``(features, c, out)``, out of shape (n,)."""
    source = f"""
def kernel(features, coefficients, out):
    c = {tuple_text("coefficients[{k}]", num_coefficients)}
    for j in range(out.size):
        out[j] = log_likelihood(c, {tuple_text("features[{k}, j]", num_features)})
"""
    return compile_source(source, log_likelihood=compile_once(log_likelihood))
