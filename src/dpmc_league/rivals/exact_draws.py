"""Exact draws that a budget buys: the yardstick of all others.

A draw from a normal posterior with known covariance is a Gaussian release of its mean, with the
spread of the posterior for its noise [Wang, Fienberg and Smola 2015, "Privacy for free"]. Where a
row moves the mean by at most c posterior standard deviations a draw costs c^2 of mu^2, and the
budget buys k = (mu / c)^2 of them. The prior counts as flat: in these tasks it moves the mean by
less than a thousandth of a standard deviation.
"""

from __future__ import annotations

import numpy as np

from dpmc.privacy.budgets import GaussianBudget
from dpmc.privacy.ledger import Ledger
from dpmc.rng import Streams
from dpmc.rows.vectors import clipped_mean
from dpmc.types import NoParams
from dpmc_league.footing import OUTSIDE_SEED
from dpmc_league.submission import Submission, Terms
from dpmc_league.task import Task

TITLE = "exact draws that the budget buys"
Params = NoParams


def refusal(task: Task) -> str:
    """Why the method cannot take part."""
    normal = task.statistic is not None and task.statistic.exact_spread is not None
    return "" if normal else "the posterior is not normal in a sufficient statistic"


def run(task: Task, terms: Terms) -> Submission:
    """Release as many draws as the budget has room for, `num_draws` at most."""
    statistic = task.statistic
    assert statistic is not None
    assert statistic.exact_spread is not None
    assert statistic.transform is not None
    streams = Streams.of(terms.seed, "league", "exact_draws", task.name)
    ledger = Ledger(GaussianBudget(terms.mu))
    mean = clipped_mean(statistic.summaries(task.rows), statistic.bound)
    multiplier = statistic.exact_spread / mean.sensitivity
    number = min(int((terms.mu * multiplier) ** 2 * (1 - 1e-12)), terms.num_draws)
    means = np.empty((number, len(mean.value)))
    for k in range(number):
        means[k] = ledger.release(mean, multiplier, streams.noise)
    outside = () if terms.seed is None else (OUTSIDE_SEED,)
    return Submission(statistic.transform(means)[:, None, :], ledger.records(), outside)
