"""Rows of regressions that nobody's rows go into: columns, and responses to columns.

They are as untidy as rows of real tables are: columns are correlated, a third is 0 or 1 and a third
skewed, the linear predictor is bent, and responses spread more widely, and less evenly, than the
likelihood says. A search is best on rows that follow a model, and real ones do not.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from dpmc.fits.predictive import LOGISTIC, POISSON
from dpmc.types import Array

# Mean response of likelihoods that have no scale: the usual one, and what it must be below.
RATES = {LOGISTIC: (0.2, 1.0), POISSON: (1.0, 1e6)}
# Of columns: their correlation, the share of ones of the rarest and of the most frequent one of 0
# and 1, and the deviation of the logarithm of a skewed one.
CORRELATION, RAREST, FREQUENT, SKEWED = 0.5, 0.05, 0.5, 0.75
# Deviation of the linear predictor, and how much of it is bent: the squares of what is linear.
PREDICTOR, BENT = 1.0, 0.1
# Degrees of freedom of residuals, how they spread with the predictor, and the variance of counts
# beyond their mean, over its square.
FREEDOM, UNEVEN, DISPERSION = 5.0, 0.3, 0.5


def columns(rng: np.random.Generator, num_rows: int, num_columns: int) -> Array:
    """Columns, shape (n, p): normal, 0/1 and skewed by turns."""
    shared = rng.standard_normal((num_rows, 1))
    own = rng.standard_normal((num_rows, num_columns))
    x = np.sqrt(CORRELATION) * shared + np.sqrt(1 - CORRELATION) * own
    for k in range(1, num_columns, 3):
        share = np.exp(rng.uniform(np.log(RAREST), np.log(FREQUENT)))
        x[:, k] = x[:, k] > np.quantile(x[:, k], 1 - share)
    x[:, 2::3] = np.exp(SKEWED * x[:, 2::3])
    return np.asarray(x, dtype=np.float64)


def responses(rng: np.random.Generator, likelihood: str, x: Array, rate: float | None) -> Array:
    """Responses to columns, shape (n,), with slopes that are drawn.

    Parameters
    ----------
    rng : numpy.random.Generator
    likelihood : str
    x : ndarray of shape (n, p)
    rate : float, optional
        Mean response, of a likelihood whose responses have no scale.
    """
    spread = x.std(axis=0)
    standard = (x - x.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    linear = standard @ rng.standard_normal(x.shape[1])
    linear *= PREDICTOR / max(float(linear.std()), 1e-12)
    predictor = linear + BENT * (linear**2 - PREDICTOR**2)
    if likelihood not in RATES:
        noise = rng.standard_t(FREEDOM, len(x))
        return np.asarray(predictor + np.exp(UNEVEN * linear) * noise, dtype=np.float64)
    wanted = RATES[likelihood][0] if rate is None else rate
    link = expit if likelihood == LOGISTIC else np.exp
    low, high = -50.0, 50.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (low, middle) if link(middle + predictor).mean() > wanted else (middle, high)
    means = link(low + predictor)
    if likelihood == LOGISTIC:
        return np.asarray(rng.random(len(x)) < means, dtype=np.float64)
    means = means * rng.gamma(1 / DISPERSION, DISPERSION, len(x))
    return np.asarray(rng.poisson(means), dtype=np.float64)
