"""Regressions of so few rows that noise hides how many there are: the prior has the word."""

from __future__ import annotations

import math

import numpy as np

from dpmc.automatic.glm.prior import LOG_SCALE, Frame
from dpmc.types import Array, Plan

# Deviations of its noise that a count of rows has to exceed.
CLEAR = 4.0


def fewest(mu: float, share: float) -> float:
    """Number of rows from which on a count of them, for a share of the budget, tells anything."""
    return CLEAR / (mu * math.sqrt(share))


def frame_of(num_features: int, intercept: bool) -> Frame:
    """Frame of columns that are taken as they are."""
    return Frame.of(np.zeros(num_features), np.ones(num_features), (0.0, 1.0), intercept)


def prior_of(
    frame: Frame, intercept: bool, scaled: bool, prior_sd: Array | None, prior_mean: Array | None
) -> tuple[Array, Array]:
    """Mean and covariance of the coefficients and of the logarithm of the scale, if there is one.

    The default prior is the widest of those that a search chooses from.
    """
    if prior_sd is None:
        coefficients = frame.outside(frame.usual(intercept)[0])
        mean, variances = coefficients.mean, np.diag(coefficients.covariance())
    else:
        mean = np.zeros_like(prior_sd) if prior_mean is None else prior_mean
        variances = prior_sd**2
    if scaled:
        mean, variances = np.append(mean, 0.0), np.append(variances, LOG_SCALE**2)
    return mean, np.diag(variances)


def plan_of(mean: Array, covariance: Array, num_rows: int) -> Plan:
    """Plan of a fit that is the prior."""
    return Plan(
        method="prior",
        effective_draws=0.0,
        widening=(math.inf,) * len(mean),
        statement="These are draws from the prior.",
        prior={"mean": mean.tolist(), "precision": np.linalg.inv(covariance).tolist()},
        details={"num_rows": num_rows},
    )
