"""Variational inference of the league on normal targets, where the law that it looks for is known.

Limits are 4.5 standard errors, or tails of chi-squared laws of 1e-5: below 1e-4 for all.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import dpmc_league
from dpmc.privacy.budgets import GaussianBudget
from dpmc.privacy.ledger import Ledger
from dpmc.rng import Streams
from dpmc_league import gaussian_laws
from dpmc_league.price import Normal
from dpmc_league.rivals import variational, variational_aware
from dpmc_league.submission import Terms

WORTH, RUNS, DIM = 40.0, 60, 2


def laws(gradient=None):
    found = []
    for number in range(RUNS):
        ground = Normal.of(DIM, WORTH, Streams.of(20261124, "test", "variational", number))
        if gradient is not None:
            ground = Changed(ground, gradient)
        ledger = Ledger(GaussianBudget(ground.mu * (1 + 1e-9)))
        found.append(gaussian_laws.approximate(ground, ledger, 10**7))
        assert ledger.remaining < 1e-6 * ground.mu**2
    return found


class Changed:
    """A ground with another gradient."""

    def __init__(self, ground, gradient):
        self._ground, self._gradient = ground, gradient

    def __getattr__(self, name):
        return getattr(self._ground, name)

    def gradient(self, z, ledger, multiplier):
        return self._gradient(self._ground.gradient(z, ledger, multiplier))


def tail(errors, variances):
    """Return the two-sided tail of the sum of standardised squares."""
    total = float(np.sum(np.square(errors) / variances))
    count = np.size(errors)
    return 2 * min(stats.chi2.cdf(total, count), stats.chi2.sf(total, count))


def test_the_error_of_the_mean_is_as_large_as_it_is_said_to_be():
    found = laws()
    errors = np.array([law.mean for law in found])
    assert tail(errors, np.array([law.error for law in found])) > 1e-5
    # Noise of the points alone, without that of privacy, is far too little.
    points = [law.variances / (1 - gaussian_laws.BEFORE) / gaussian_laws.STEPS for law in found]
    assert tail(errors, np.array(points)) < 1e-5


def test_widths_are_those_of_the_target_and_not_of_a_steeper_one():
    def deviation(found):
        widths = np.array([law.variances.mean() for law in found])
        return abs(widths.mean() - 1) / (widths.std(ddof=1) / math.sqrt(RUNS))

    assert deviation(laws()) < 4.5
    assert deviation(laws(lambda slope: 1.5 * slope)) > 4.5


@pytest.mark.parametrize("method", [variational, variational_aware])
def test_draws_on_a_task_are_near_the_posterior_and_their_ledger_is_kept(method):
    task = dpmc_league.task("gaussian-2-v1")
    terms = Terms(4.0, task.delta, num_draws=2000, seed=1)
    found = method.run(task, terms)
    score = dpmc_league.score(task, np.moveaxis(found.draws, 0, 1), found.ledger, epsilon=4.0)
    assert score.scored
    assert score.epsilon <= 4.0 * 1.005
    assert score.sliced_wasserstein < 0.5


def test_the_noise_aware_law_is_the_wider_one():
    task = dpmc_league.task("gaussian-2-v1")
    terms = Terms(1.0, task.delta, num_draws=4000, seed=1)
    narrow, wide = (
        one.run(task, terms).draws[:, 0].var(axis=0) for one in (variational, variational_aware)
    )
    assert (wide > narrow).all()
    fewer = replace(terms, epsilon=4.0)
    assert (variational_aware.run(task, fewer).draws[:, 0].var(axis=0) < wide).all()
