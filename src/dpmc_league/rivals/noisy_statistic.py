"""One noisy mean of row summaries, and exact draws from the posterior that knows of the noise.

[Bernstein and Sheldon 2018, "Differentially private Bayesian inference for exponential families"]
for known covariances: the noise adds to the variance of the mean, and everything stays in closed
form.
"""

from __future__ import annotations

from dpmc.privacy.budgets import GaussianBudget
from dpmc.privacy.ledger import Ledger
from dpmc.rng import Streams
from dpmc.rows.vectors import clipped_mean
from dpmc.types import NoParams
from dpmc_league.footing import OUTSIDE_SEED
from dpmc_league.submission import Submission, Terms
from dpmc_league.task import Task

TITLE = "one noisy statistic"
Params = NoParams


def refusal(task: Task) -> str:
    """Why the method cannot take part."""
    return "" if task.statistic is not None else "no low-dimensional sufficient statistic is known"


def run(task: Task, terms: Terms) -> Submission:
    """Release the mean once, and draw from the noise-aware posterior."""
    statistic = task.statistic
    assert statistic is not None
    streams = Streams.of(terms.seed, "league", "noisy_statistic", task.name)
    ledger = Ledger(GaussianBudget(terms.mu))
    multiplier = ledger.least_multiplier()
    mean = clipped_mean(statistic.summaries(task.rows), statistic.bound)
    noisy = ledger.release(mean, multiplier, streams.noise)
    variance = (mean.sensitivity * multiplier) ** 2
    draws = statistic.draw(noisy, variance, terms.num_draws, streams.chain)
    outside = () if terms.seed is None else (OUTSIDE_SEED,)
    return Submission(draws[:, None, :], ledger.records(), outside)
