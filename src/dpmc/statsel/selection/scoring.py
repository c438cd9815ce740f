"""Post-processing of the two releases: scores of the candidates, and posterior means of theta."""

from __future__ import annotations

import numpy as np

from dpmc.statsel.selection.initial_distributions import (
    NOISES,
    Indices,
    MeanDistributions,
    normalised,
)
from dpmc.statsel.selection.planning import SelectionPlan
from dpmc.types import Array


def select(plan: SelectionPlan, first: Array) -> Indices:
    """Return the candidate with the lowest score given y0, shape (R,): post-processing of it."""
    best: Indices = np.argmin(scores(plan, first), axis=1)
    return best


def scores(plan: SelectionPlan, first: Array) -> Array:
    """Return the score of every candidate given y0, shape (R, K)."""
    zero = np.zeros(len(first), dtype=np.int64)
    weights = normalised(log_likelihood(plan, plan.first_distributions, first, zero))
    expected_cost: Array = weights @ plan.cost.T
    return expected_cost


def estimate(plan: SelectionPlan, first: Array | None, second: Array, selected: Indices) -> Array:
    """Return posterior means of theta given y1, and y0 unless it is None, shape (R,)."""
    log_posterior = log_likelihood(plan, plan.distributions, second, selected)
    if first is not None:
        zero = np.zeros(len(first), dtype=np.int64)
        log_posterior += log_likelihood(plan, plan.first_distributions, first, zero)
    means: Array = normalised(log_posterior) @ plan.theta
    return means


def log_likelihood(
    plan: SelectionPlan, distributions: MeanDistributions, y: Array, index: Indices
) -> Array:
    """Return log p(y | theta) of releases on the grid, shape (R, G).

    Parameters
    ----------
    distributions : MeanDistributions
        Of the released statistics.
    y : ndarray of shape (R,)
        Released means.
    index : ndarray of int, shape (R,)
        Of the statistic that each y releases.
    """
    out = np.empty((len(y), len(plan.theta)))
    NOISES[plan.mechanism.noise].fill(
        y, index, distributions.mean, distributions.sd, distributions.scale, out
    )
    return out
