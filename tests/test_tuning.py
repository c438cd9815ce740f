"""Parameters that are left out, chosen from a search under the same budget."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import dpmc
from dpmc import tuning
from dpmc.models import gaussian_mean
from dpmc.privacy import accounting, events
from dpmc.privacy.budgets import GaussianBudget
from tests.support.posteriors import rows

pytestmark = pytest.mark.filterwarnings("ignore::dpmc.PosteriorWarning")

COVARIANCE = np.array([[1.0, 0.5], [0.5, 4.0]])
MODEL = gaussian_mean.build(gaussian_mean.Params(2, COVARIANCE.tolist(), prior_variance=100.0))
N = 2000
ROWS = rows("tuning", N, 2).x @ np.linalg.cholesky(COVARIANCE).T + [1.0, -2.0]


def fit(method="dp_penalty", **changes):
    given = {"epsilon": 4.0, "delta": 1e-5, "seed": 5, "progress": False, "num_chains": 2}
    return dpmc.fit(MODEL, ROWS, method=method, **{**given, **changes})


def multipliers(ledger):
    """Return noise multipliers and counts of Gaussian releases from all rows."""
    return [(float(text[len("gaussian(") : -1]), count) for text, count in ledger]


def test_a_decision_is_as_noisy_as_pays_best():
    """Of decisions 2 Phi(-s / 2) accept, and they are s^2 as many: the product counts."""
    s = np.linspace(0.5, 5, 46_000)
    best = s[np.argmax(s**2 * stats.norm.cdf(-s / 2))]
    assert pytest.approx(best, abs=0.005) == tuning.DECISION


@pytest.mark.parametrize("method", tuning.RULES)
@pytest.mark.parametrize("diagnostics", ["private", "none"])
def test_search_and_chains_share_one_budget(method, diagnostics):
    """In mu^2, by hand: what both released is within the budget, and so is what the plan holds."""
    result = fit(method, diagnostics=diagnostics, max_iterations=50)
    whole = GaussianBudget.of(4.0, 1e-5).mu ** 2
    spent = sum(count / m**2 for m, count in multipliers(result.ledger))
    planned = sum(count / m**2 for m, count in multipliers(result.plan["releases"].items()))
    assert spent <= planned * (1 + 1e-9) <= whole * (1 + 1e-9)
    assert result.guarantee.epsilon <= 4.0
    assert result.plan["audit"]["epsilon"] <= 4.0 * (1 + 1e-6)
    assert len(result.ledger) > 4  # the search is in it


def test_a_budget_that_forgot_the_search_would_be_exceeded():
    """The broken variant: chains that take all of the budget, and the search besides."""
    result = fit(diagnostics="none", max_iterations=None)
    kept = dict(result.plan["releases"])
    search = max(kept, key=lambda text: -kept[text])  # released once
    share = 1 / float(search[len("gaussian(") : -1]) ** 2
    whole = GaussianBudget.of(4.0, 1e-5).mu ** 2
    assert share == pytest.approx(tuning.SHARE * whole)
    broken = {events.gaussian(1 / math.sqrt(whole)): 1, events.gaussian(1 / math.sqrt(share)): 1}
    assert accounting.load("gaussian").epsilon(broken, 1e-5) > 4.3
    right = {
        events.gaussian(1 / math.sqrt(whole - share)): 1,
        events.gaussian(1 / math.sqrt(share)): 1,
    }
    assert accounting.load("gaussian").epsilon(right, 1e-5) == pytest.approx(4.0, rel=1e-5)


@pytest.mark.parametrize("method", tuning.RULES)
def test_chains_reach_a_posterior_that_is_known(method):
    """With a budget that carries one. Means within 4 standard errors of 30 independent draws.

    A false alarm for one component has a probability of 6e-5, of all six 4e-4; deviations within
    a factor of 2 are 5 standard errors of so many draws away. The seed is fixed.
    """
    result = fit(method, epsilon=300.0, num_chains=4)
    precision = N * np.linalg.inv(COVARIANCE) + np.eye(2) / 100.0
    covariance = np.linalg.inv(precision)
    mean = covariance @ (N * np.linalg.inv(COVARIANCE) @ ROWS.mean(axis=0))
    sd = np.sqrt(np.diag(covariance))
    kept = result.kept()
    assert np.abs(kept.mean(axis=(0, 1)) - mean).max() < 4 * sd.max() / math.sqrt(30)
    ratio = kept.std(axis=(0, 1)) / sd
    assert ratio.min() > 0.5
    assert ratio.max() < 2
    assert 0.1 < result.fraction("accepted", "num_iterations") < 0.9


def test_parameters_that_are_given_stay():
    """A step that is given is taken, and without one missing there is no search."""
    small = fit(proposal_sd=1e-9, max_iterations=30)
    assert np.abs(np.diff(small.draws, axis=0)).max() < 1e-7
    given = {"proposal_sd": 0.01, "ratio_noise_multiplier": 30.0, "ratio_clip_bound": 3.0}
    whole = fit(**given, max_iterations=30)
    assert len(whole.ledger) == 2  # ratios, and the share of clipped ones
    starts = fit(proposal_sd=1e-9, max_iterations=30, start=[1.0, -2.0]).draws[0]
    assert np.abs(starts - ROWS.mean(axis=0)).max() < 0.5  # the centre, not the origin


def test_noise_may_be_discrete():
    assert fit(noise="discrete", max_iterations=20).plan["noise"] == "discrete"


def test_others_say_what_they_lack():
    with pytest.raises(dpmc.DpmcError, match="`batch_size` must be given to dp_sgld"):
        fit("dp_sgld")
    with pytest.raises(dpmc.DpmcError, match="did you mean proposal_sd"):
        fit(proposal_std=1.0)
    with pytest.raises(dpmc.DpmcError, match=r"`delta` must be in \(0, 1\), got None"):
        fit(delta=None)


def test_a_model_without_gradients_that_fit_is_refused_before_any_row():
    wrong = dpmc.Model(
        "wrong",
        2,
        lambda t, z: -0.5 * ((z[0] - t[0]) ** 2 + (z[1] - t[1]) ** 2),
        lambda t, z: (t[0] - z[0], z[1] - t[1]),
        MODEL.log_prior,
        MODEL.log_prior_gradient,
    )
    with pytest.raises(dpmc.DpmcError, match="`gradient` must be that of log_likelihood"):
        dpmc.fit(wrong, ROWS, method="dp_penalty", epsilon=1, delta=1e-5)
