"""Rows of regressions that nobody's rows go into: columns, and responses to columns.

They are as untidy as rows of real tables are: columns are correlated, a third is 0 or 1 and a third
skewed, the linear predictor is bent, and responses spread more widely, and less evenly, than the
likelihood says. A search is best on rows that follow a model, and real ones do not.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from dpmc.fits.predictive import (
    BINOMIAL,
    GAMMA,
    LOGISTIC,
    MULTINOMIAL,
    NEGATIVE_BINOMIAL,
    ORDINAL,
    POISSON,
    WEIBULL,
)
from dpmc.types import Array

# Mean response of likelihoods that have no scale: the usual one, and what it must be below.
RATES = {
    LOGISTIC: (0.2, 1.0),
    BINOMIAL: (0.2, 1.0),
    POISSON: (1.0, 1e6),
    NEGATIVE_BINOMIAL: (1.0, 1e6),
}
# Of columns: their correlation, the share of ones of the rarest and of the most frequent one of 0
# and 1, and the deviation of the logarithm of a skewed one.
CORRELATION, RAREST, FREQUENT, SKEWED = 0.5, 0.05, 0.5, 0.75
# Deviation of the linear predictor, and how much of it is bent: the squares of what is linear.
PREDICTOR, BENT = 1.0, 0.1
# Degrees of freedom of residuals, how they spread with the predictor, and the variance of counts
# beyond their mean, over its square.
FREEDOM, UNEVEN, DISPERSION = 5.0, 0.3, 0.5
# Shape of gamma responses, and the deviation of log times over that of an exponential one.
SHAPE, TIMES = 2.0, 0.7


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


def responses(
    rng: np.random.Generator,
    likelihood: str,
    x: Array,
    rate: float | None,
    classes: int = 2,
    trials: int = 1,
) -> Array:
    """Responses to columns, shape (n,), with slopes that are drawn.

    Parameters
    ----------
    rng : numpy.random.Generator
    likelihood : str
    x : ndarray of shape (n, p)
    rate : float, optional
        Mean response, of a likelihood whose responses have no scale; of successes their share.
    classes : int
        Of ``"multinomial"`` and ``"ordinal"``, which are about as frequent.
    trials : int
        Of each response of ``"binomial"``.
    """
    sizes = x.std(axis=0)
    standard = (x - x.mean(axis=0)) / np.where(sizes > 0, sizes, 1.0)
    linear = standard @ rng.standard_normal(x.shape[1])
    linear *= PREDICTOR / max(float(linear.std()), 1e-12)
    predictor = linear + BENT * (linear**2 - PREDICTOR**2)
    if likelihood == ORDINAL:
        latent = predictor + np.exp(UNEVEN * linear) * rng.logistic(size=len(x))
        cuts = np.quantile(latent, np.arange(1, classes) / classes)
        return np.asarray(np.digitize(latent, cuts), dtype=np.float64)
    if likelihood == MULTINOMIAL:
        directions = rng.standard_normal((x.shape[1], classes))
        etas = standard @ directions / np.sqrt(x.shape[1])
        chosen = (etas + BENT * etas**2 + rng.gumbel(size=etas.shape)).argmax(axis=1)
        return np.asarray(chosen, dtype=np.float64)
    if likelihood == GAMMA:
        shape = SHAPE * np.exp(UNEVEN * linear)
        drawn = rng.standard_gamma(shape) / shape
        return np.asarray(np.exp(predictor) * np.maximum(drawn, 1e-300), dtype=np.float64)
    if likelihood == WEIBULL:
        spread = TIMES * np.exp(UNEVEN * linear)
        return np.asarray(np.exp(predictor + spread * np.log(rng.exponential(size=len(x)))))
    if likelihood not in RATES:
        noise = rng.standard_t(FREEDOM, len(x))
        return np.asarray(predictor + np.exp(UNEVEN * linear) * noise, dtype=np.float64)
    wanted = RATES[likelihood][0] if rate is None else rate
    link = expit if likelihood in (LOGISTIC, BINOMIAL) else np.exp
    low, high = -50.0, 50.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (low, middle) if link(middle + predictor).mean() > wanted else (middle, high)
    means = link(low + predictor)
    if likelihood == LOGISTIC:
        return np.asarray(rng.random(len(x)) < means, dtype=np.float64)
    if likelihood == BINOMIAL:
        chances = rng.beta(means / DISPERSION + 1e-9, (1 - means) / DISPERSION + 1e-9)
        return np.asarray(rng.binomial(trials, chances), dtype=np.float64)
    means = means * rng.gamma(1 / DISPERSION, DISPERSION, len(x))
    return np.asarray(rng.poisson(means), dtype=np.float64)
