"""The search for a centre from far away: indefinite curvature, and norms of two kinds."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import dpmc
from dpmc.automatic import purse
from dpmc.automatic.curvature import Curvature
from dpmc.automatic.purse import Purse, search
from dpmc.automatic.whitened import _beyond
from dpmc.models import linear, poisson
from dpmc.privacy.budgets import GaussianBudget
from dpmc.privacy.clipped import row_count
from dpmc.privacy.ledger import Ledger
from dpmc.rng import stream

SEEDS = range(5)


def fitted(model, rows: np.ndarray, epsilon: float, seed: int) -> np.ndarray:
    """Return draws of one fit, shape (m, d)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpmc.PosteriorWarning)
        fit = dpmc.fit(model, rows, epsilon=epsilon, delta=1e-6, num_draws=500, seed=seed)
    return fit.draws.reshape(-1, model.dim)


def widths_of_a_regression() -> list[float]:
    """Return the widest posterior deviation of fits that begin where the Hessian is indefinite.

    At zero coefficients and a noise of one the residuals have a mean, so that the noise and the
    constant are tied: the log-likelihood bends upwards in one direction.
    """
    rng = stream(0, "search", "regression")
    x = rng.uniform(-1, 1, (5000, 2))
    y = 0.45 + x @ [-0.66, -0.33] + 0.57 * rng.standard_normal(5000)
    model = linear.build(linear.Params(2, prior_sd=1, log_noise_sd=0.5))
    rows = np.column_stack([x, y])
    return [float(fitted(model, rows, 4.0, seed).std(axis=0).max()) for seed in SEEDS]


def test_steps_climb_where_the_posterior_bends_upwards(monkeypatch):
    """Fixed seeds: exact deviations are at most 0.014, and epsilon 4 about doubles them."""
    assert max(widths_of_a_regression()) < 0.05
    # Steps along such a direction used to be held for noise, until the budget was spent.
    monkeypatch.setattr(
        Curvature,
        "for_steps",
        lambda self: self._with(np.maximum(self.values, self.floor)),
    )
    assert max(widths_of_a_regression()) > 0.2


def errors_of_rare_counts() -> list[float]:
    """Return errors of the constant of a Poisson regression in own deviations: few are not 0."""
    rng = stream(0, "search", "rare")
    x = rng.uniform(-1, 1, (5000, 2))
    y = rng.poisson(np.exp(-2.9 + x @ [0.6, -1.7]))
    model = poisson.build(poisson.Params(2, prior_sd=1))
    found = []
    for seed in SEEDS:
        constant = fitted(model, np.column_stack([x, y]), 0.5, seed)[:, 0]
        found.append(float((constant.mean() + 2.9) / constant.std()))
    return found


def test_rare_rows_with_large_gradients_are_not_clipped_away(monkeypatch):
    """Fixed seeds; five exact posteriors would all be within 4 deviations but for 3 in 10,000."""
    assert max(map(abs, errors_of_rare_counts())) < 4
    # A count that only tells 15 % of the rows from none clips them to the size of the others.
    monkeypatch.setattr("dpmc.automatic.bounds.COUNTS", 0.1)
    monkeypatch.setattr("dpmc.automatic.bounds.GRADIENT_COUNTS", 0.5)
    monkeypatch.setattr("dpmc.automatic.bounds.UNCLEAR", 2.5)
    monkeypatch.setattr(purse, "MOST_LEAPS", 0)
    assert max(map(abs, errors_of_rare_counts())) > 6


def rich(seed: int) -> Purse:
    budget = GaussianBudget.of(200.0, 1e-6)
    return Purse(Ledger(budget, "continuous"), stream(0, "search", "purse", seed))


def counted(norms: np.ndarray):
    """Return what counts rows beyond lengths, as sums over rows do."""
    return lambda lengths: {
        length: row_count(count)
        for length, count in zip(
            sorted(lengths), _beyond(norms, np.array(sorted(lengths))), strict=True
        )
    }


@pytest.mark.parametrize("seed", range(3))
def test_a_search_leaves_its_interval_for_norms_of_another_kind(seed):
    """Counts have a noise of 3 rows, against hundreds that decide."""
    norms = np.concatenate([np.full(4500, 0.01), np.full(500, 3.0)])
    bound = search(rich(seed), counted(norms), 100, -7.5, -4.5, 3, 0.3)
    assert 3.0 <= bound < 3.0 * 2**1.5
    assert search(rich(seed), counted(norms[:4500]), 100, -7.5, -4.5, 3, 0.3) < 0.014


def test_rows_beyond_a_length_are_those_that_are_longer():
    norms = np.array([0.0, 1.0, 1.0, 2.5, np.inf, np.nan, 1e300])
    lengths = np.array([0.5, 1.0, 2.0, 1e299])
    by_hand = [np.count_nonzero(norms > length) for length in lengths]
    assert _beyond(norms, lengths).tolist() == by_hand


@pytest.mark.parametrize("norm", [np.inf, 1e300])
def test_a_search_ends_whatever_the_norms(norm):
    bound = search(rich(0), counted(np.full(5000, norm)), 100, -1.5, 1.5, 3, 0.3)
    assert bound == 2.0 ** (1.5 + purse.MOST_LEAPS * 1.5)
    assert search(rich(0), counted(np.full(5000, np.nan)), 100, -1.5, 1.5, 3, 0.3) < 2.0
