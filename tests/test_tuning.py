"""Parameters that are left out, chosen from a search under the same budget."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import dpmc
from dpmc import registry, tuning
from dpmc.mcmc.methods import dp_sgld, dp_sgnht
from dpmc.mcmc.scale import DECISION, FEWEST, ITERATIONS, Scale
from dpmc.models import gaussian_mean
from dpmc.privacy import accounting, calibration, compose, events
from dpmc.privacy.budgets import GaussianBudget
from dpmc.types import Budget
from tests.support.methods import ALL, TUNED
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
    assert pytest.approx(best, abs=0.005) == DECISION


# Methods whose releases are of all rows, and of batches.
WHOLE = tuple(name for name in TUNED if ALL[name].ROW_ORDER == "features")
BATCHES = tuple(name for name in TUNED if name not in WHOLE)


@pytest.mark.parametrize("method", WHOLE)
@pytest.mark.parametrize("diagnostics", ["private", "none"])
def test_search_and_chains_share_one_budget(method, diagnostics):
    """In mu^2, by hand: what both released is within the budget, and so is what the plan holds."""
    result = fit(method, diagnostics=diagnostics, max_iterations=50)
    whole = GaussianBudget.of(4.0, 1e-5).mu ** 2
    spent = sum(count / m**2 for m, count in multipliers(result.ledger))
    planned = sum(count / m**2 for m, count in multipliers(result.plan.releases.items()))
    assert spent <= planned * (1 + 1e-9) <= whole * (1 + 1e-9)
    assert result.guarantee.epsilon <= 4.0
    assert result.plan.audit.epsilon <= 4.0 * (1 + 1e-6)
    assert len(result.ledger) > 4  # the search is in it


@pytest.mark.parametrize("method", BATCHES)
def test_search_and_batches_have_budgets_of_their_own(method):
    """Epsilons and deltas add up, by hand; chains that forgot the search exceed the budget."""
    result = fit(method, diagnostics="none")
    (epsilon, part), delta = result.plan.search, 1e-5
    planned = events.parse(result.plan.releases.items())
    (chains,) = planned
    before = [(m, n) for m, n in result.ledger if events.parse([(m, n)]).keys() != {chains}]
    assert len(before) > 3  # the search is in it
    spent = math.sqrt(sum(count / m**2 for m, count in multipliers(before)))
    by_search = {events.gaussian(1 / spent): 1}
    assert accounting.load("gaussian").epsilon(by_search, part) <= epsilon * (1 + 1e-6)
    name = calibration.best_accountant(planned)
    left = accounting.load(name).epsilon(planned, (delta - part) * (1 - 1e-12))
    assert epsilon + left <= result.guarantee.epsilon * (1 + 1e-6)
    assert (result.guarantee.delta, result.guarantee.accountant) == (delta, "composition")
    assert 3.9 < result.guarantee.epsilon <= 4.0
    assert result.plan.epsilon == 4.0
    assert result.plan.audit.epsilon <= 4.0 * (1 + 1e-2)  # by another accountant
    assert compose([result], delta).epsilon == pytest.approx(result.guarantee.epsilon)
    whole = calibration.plan(
        events.Releases((), ((chains, 1),)), Budget(4.0, delta, name), num_chains=2
    )
    assert whole.num_iterations > result.plan.num_iterations
    broken = {**whole.counts, **by_search}
    assert accounting.load(calibration.best_accountant(broken)).epsilon(broken, delta) > 4.2


def total_delta(choices, mu, epsilon):
    """Return delta at epsilon of a mu-GDP search and the chains that its outcome makes worst.

    The privacy loss of the search is normal, and what is left of epsilon after it decides: the
    chains then have the largest delta of all choices there.
    """
    z, weights = np.polynomial.hermite_e.hermegauss(80)
    weights /= weights.sum()

    def delta(counts, left):
        if left >= 0:
            return accounting.load("subsampled").delta(counts, left)
        # Of a symmetric profile, below zero.
        return 1 - math.exp(left) + math.exp(left) * delta(counts, -left)

    left = epsilon - (mu**2 / 2 + mu * z)
    return sum(
        w * max(delta(counts, x) for counts in choices) for w, x in zip(weights, left, strict=True)
    )


def test_choices_after_a_search_exceed_a_budget_that_each_of_them_keeps():
    """The broken variant: search and batches in one plan. Apart, the worst choices keep delta."""
    epsilon, delta, rows = 4.0, 1e-6, 20_000
    kinds = [
        events.sampled_gaussian(z, b, rows) for z, b in ((6.0, 10_000), (0.75, 400), (1.5, 400))
    ]

    def most(event, budget, *once):
        releases = events.Releases(tuple((one, 1) for one in once), ((event, 1),))
        return calibration.plan(releases, Budget(*budget, "subsampled"))

    mu = GaussianBudget.of(epsilon, delta).mu / 2
    search = events.gaussian(1 / mu)
    plans = [most(event, (epsilon, delta), search) for event in kinds]
    choices = [{event: plan.num_iterations} for event, plan in zip(kinds, plans, strict=True)]
    for plan, counts in zip(plans, choices, strict=True):
        spent = accounting.load("subsampled").delta(plan.counts, epsilon)
        assert spent <= delta
        assert total_delta([counts], mu, epsilon) == pytest.approx(spent, rel=0.02)
    assert total_delta(choices, mu, epsilon) > 1.2 * delta
    shares = tuning.shares(dp_sgld, epsilon, delta)
    apart = [most(event, shares.apart.rest).counts for event in kinds]
    assert total_delta(apart, shares.search.mu, epsilon) < delta


def test_a_budget_that_forgot_the_search_would_be_exceeded():
    """The broken variant: chains that take all of the budget, and the search besides."""
    result = fit(diagnostics="none", max_iterations=None)
    kept = dict(result.plan.releases)
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


@pytest.mark.parametrize("method", TUNED)
def test_chains_reach_a_posterior_that_is_known(method):
    """With a budget that carries one. Means within 4 standard errors of 30 independent draws.

    A false alarm for one component has a probability of 6e-5, of all six 4e-4; deviations within
    a factor of 2 are 5 standard errors of so many draws away. The seed is fixed.
    """
    result = fit(method, epsilon=300.0, num_chains=4, max_iterations=20_000)
    precision = N * np.linalg.inv(COVARIANCE) + np.eye(2) / 100.0
    covariance = np.linalg.inv(precision)
    mean = covariance @ (N * np.linalg.inv(COVARIANCE) @ ROWS.mean(axis=0))
    sd = np.sqrt(np.diag(covariance))
    kept = result.kept()
    assert np.abs(kept.mean(axis=(0, 1)) - mean).max() < 4 * sd.max() / math.sqrt(30)
    ratio = kept.std(axis=(0, 1)) / sd
    assert ratio.min() > 0.5
    assert ratio.max() < 2
    if "accepted" in result.totals:
        assert 0.1 < result.fraction("accepted", "num_iterations") < 0.9


def in_deviations(mu=0.3, row_gradient=0.1, num_chains=4, scales=(1.0, 1.0, 1.0)):
    """Return what chains are scaled by, of a posterior with these standard deviations."""
    covariance = np.diag(np.square(scales))
    return Scale(np.zeros(3), covariance, row_gradient, mu, num_chains, 10_000, 1.0)


MEANT = {"dp_sgld": FEWEST, "dp_sgnht": FEWEST}


@pytest.mark.parametrize("method", BATCHES)
def test_a_small_budget_affords_as_many_iterations_as_steps_are_made_small_for(method):
    """Rules reckon with the limit of many releases with much noise; accountants are exact.

    A rule whose steps were twice as long would afford a quarter, or half, of the iterations.
    """
    scale = in_deviations()
    module = registry.load("method", method)
    settings = registry.parameters(module, module.tuned(scale))
    releases = module.releases(settings, scale.num_rows)
    epsilon = accounting.load("gaussian").epsilon({events.gaussian(1 / scale.mu): 1}, 1e-5)
    name = calibration.best_accountant(releases.counts(1, 1))
    plan = calibration.plan(releases, Budget(epsilon, 1e-5, name), scale.num_chains)
    meant = MEANT.get(method, ITERATIONS)
    assert 0.55 * meant < plan.num_iterations < 1.45 * meant


def test_gradient_methods_are_stable_where_scales_differ():
    """A step is short beside the narrowest direction: an update there shrinks a distance."""
    scale = in_deviations(mu=1e3, scales=(1.0, 0.01, 0.1))
    langevin = dp_sgld.tuned(scale)["step_size"] / scale.num_rows
    assert langevin == pytest.approx(dp_sgld.DRIFT * 1e-4)
    spun = dp_sgnht.tuned(scale)
    step, friction = spun["step_size"] / scale.num_rows, spun["friction"]
    for deviation in (1.0, 0.01, 0.1):
        move = [[1.0, step], [-step / deviation**2, 1 - step * friction]]
        assert np.abs(np.linalg.eigvals(move)).max() < 1
    broken = [[1.0, 40 * step], [-40 * step / 1e-4, 1 - 40 * step * friction]]
    assert np.abs(np.linalg.eigvals(broken)).max() > 1


def test_parameters_that_are_given_stay():
    """A step that is given is taken, and without one missing there is no search."""
    small = fit(proposal_sd=1e-9, max_iterations=30)
    assert np.abs(np.diff(small.draws, axis=1)).max() < 1e-7
    given = {"proposal_sd": 0.01, "ratio_noise_multiplier": 30.0, "ratio_clip_bound": 3.0}
    whole = fit(**given, max_iterations=30)
    assert len(whole.ledger) == 2  # ratios, and the share of clipped ones
    starts = fit(proposal_sd=1e-9, max_iterations=30, start=[1.0, -2.0]).draws[:, 0]
    assert np.abs(starts - ROWS.mean(axis=0)).max() < 0.5  # the centre, not the origin


def test_noise_may_be_discrete():
    assert fit(noise="discrete", max_iterations=20).guarantee.noise == "discrete"


@pytest.mark.parametrize("method", TUNED)
def test_rows_that_say_nothing_leave_the_prior_and_are_no_error(method):
    """Their gradients were so short that no grid had room for the noise of Langevin dynamics."""
    nothing = np.full((300, 2), np.nan)
    options = {"epsilon": 8.0, "delta": 1e-5, "num_chains": 1, "max_iterations": 20}
    given = dict(**options, noise="discrete", seed=1, invalid_rows="zero", progress=False)
    assert dpmc.fit(MODEL, nothing, method=method, **given).status in ("complete", "max_iterations")


def test_others_say_what_they_lack():
    with pytest.raises(dpmc.DpmcError, match="`proposal_sd` must be given to rwmh"):
        fit("rwmh", epsilon=None, delta=None, num_iterations=5)
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
