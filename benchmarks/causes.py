"""What can be wrong with a regression on some rows, as the rows show without privacy.

Remarks of fits are judged by it: one that is needed should name one of these causes.
"""

from __future__ import annotations

import re

import numpy as np

import exact_regressions as regressions
from dpmc.families.regression import LINEAR, LOGISTIC, POISSON
from dpmc.types import Array
from exact_regressions import Posterior, Prior

BUDGET, RARE_CLASS, RARE_FEATURE = "budget", "rare class", "rare feature"
COLLINEAR, PRIOR, TAILS, VARIANCE = "collinear columns", "prior", "heavy tails", "variance"
# What a remark that names a cause has in it.
WORDS = {
    BUDGET: r"budget|epsilon|more rows|few rows",
    RARE_CLASS: r"rare|few (ones|zeros|counts|events)",
    RARE_FEATURE: r"rare|few rows",
    COLLINEAR: r"collinear|constant|combination|depend",
    PRIOR: r"prior_sd|units",
    TAILS: r"tail|outl|student_t",
    VARIANCE: r"var(y|ies|ia)|dispers|robust",
}
# A search that ended early is true of every fit that is far off.
SEARCH = r"search|arrived"
# Limits on: what noise does at best, shares, condition numbers, prior deviations of the mean,
# deviations of a feature that one row in a thousand exceeds, and variance of a score over that of
# the model, or the other way round.
FAR, FEW_ONES, FEW_FEATURES, CONDITION, PRIOR_DEVIATIONS, LONG, RATIO = 1, 0.05, 0.02, 30, 3, 8, 1.5
# Deviations of residuals that one row in a thousand exceeds, where the model has no such tails.
LONG_RESIDUALS = {LINEAR: 5, POISSON: 8}


def causes(
    family: str, posterior: Posterior, prior: Prior, design: Array, y: Array, limit: float
) -> list[str]:
    """Return what is true of these rows, of the most general kind first."""
    found = []
    if limit > FAR:
        found.append(BUDGET)
    share = min(y.mean(), 1 - y.mean()) if family == LOGISTIC else y.mean()
    if family in (LOGISTIC, POISSON) and share < FEW_ONES:
        found.append(RARE_CLASS)
    x = design[:, 1:]
    binary = ((x == x.min(axis=0)) | (x == x.max(axis=0))).all(axis=0)
    shares = (x > x.min(axis=0)).mean(axis=0)
    if np.any(binary & (np.minimum(shares, 1 - shares) < FEW_FEATURES)):
        found.append(RARE_FEATURE)
    spread = x.std(axis=0)
    standard = (x - x.mean(axis=0)) / np.where(spread > 0, spread, 1)
    if (spread == 0).any() or np.linalg.cond(standard) > CONDITION:
        found.append(COLLINEAR)
    away = posterior.mean - prior.mean
    if away @ prior.precision @ away > PRIOR_DEVIATIONS**2 * len(away):
        found.append(PRIOR)
    slopes = regressions.slopes(family, posterior.mean, design, y)
    residuals = slopes.slope / max(float(slopes.slope.std()), 1e-300)
    long = bool((np.quantile(np.abs(standard[:, ~binary]), 0.999, axis=0) > LONG).any())
    if long or np.quantile(np.abs(residuals), 0.999) > LONG_RESIDUALS.get(family, np.inf):
        found.append(TAILS)
    gradients = regressions.row_gradients(slopes, design)
    whole = np.linalg.cholesky(posterior.covariance)
    ratio = float(np.mean(np.sum((gradients @ whole) ** 2, axis=0)))
    if not 1 / RATIO <= ratio <= RATIO:
        found.append(VARIANCE)
    return found


def named(remarks: str, true: list[str]) -> bool:
    """Return whether remarks name one of the causes."""
    words = [SEARCH, *(WORDS[cause] for cause in true if cause)]
    return any(re.search(one, remarks, re.IGNORECASE) for one in words)
