"""Plans by fits of public rows, against fits of other rows of the same kind."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dpmc
from dpmc import priors
from dpmc.automatic.prior import Prior
from dpmc.families.likelihoods import LIKELIHOODS
from dpmc.families.regression import MODELS, built
from dpmc.planning import made_up, simulated
from dpmc.planning.exact import Exact, normal
from dpmc.rng import stream

pytestmark = pytest.mark.filterwarnings("ignore::dpmc.PosteriorWarning")

BUDGET = {"epsilon": 1.0, "delta": 1e-6}


@pytest.fixture(autouse=True)
def _few(monkeypatch):
    monkeypatch.setattr(simulated, "DATA_SETS", 4)


def logistic_rows(rng, num_rows, rate=0.3):
    x = rng.exponential(1.0, (num_rows, 2))
    y = rng.random(num_rows) < 1 / (1 + np.exp(-math.log(rate / (1 - rate)) - 0.5 * (x - 1).sum(1)))
    return np.column_stack([x, y])


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_errors_are_as_planned_within_a_factor_of_three(epsilon):
    """Of 27 fits, beside a plan that rests on a few data sets; seeds are fixed."""
    older, rows = (logistic_rows(stream(0, "plans", k), 3000) for k in range(2))
    planned = dpmc.plan("logistic", rows.shape, epsilon=epsilon, delta=1e-6, rows=older)
    model = built("logistic", 2, True, prior_sd=100.0, freedom=4.0)
    exact, sd = Exact(model, rows).posterior(Prior.of(model), np.zeros(3), np.eye(3) / 20)
    errors = []
    for seed in range(27):
        fit = dpmc.regression(
            rows[:, :2], rows[:, 2], likelihood="logistic", epsilon=epsilon, delta=1e-6, seed=seed
        )
        away = (fit.draws.mean(axis=(0, 1)) - exact) / sd
        errors.append(np.sqrt(np.mean(away**2)))
    assert 1 / 3 < np.median(errors) / planned.error < 3
    assert planned.rows == "public, as given"


@pytest.mark.parametrize("likelihood", MODELS)
def test_newton_steps_end_at_the_mode(likelihood):
    """At the mode slopes are zero, and deviations are those of its curvature."""
    rng = stream(0, "mode", likelihood)
    x = rng.normal(size=(400, 2))
    rows = np.column_stack([x, made_up.responses(rng, likelihood, x, None)])
    model = built(likelihood, 2, True, prior_sd=1.0, freedom=4.0)
    precision = np.diag(np.arange(1.0, model.dim + 1))
    prior = normal(np.full(model.dim, 0.5), precision)
    mode, sd = Exact(model, rows).posterior(prior, np.zeros(model.dim), 0.1 * np.eye(model.dim))

    def slope(theta):
        features = model.features(rows) if model.features else rows.T
        return np.sum([model.gradient(tuple(theta), tuple(z)) for z in features.T], axis=0) + (
            prior.gradient(theta)
        )

    step = 1e-5 * np.eye(model.dim)
    curvature = np.array([(slope(mode - one) - slope(mode + one)) / 2e-5 for one in step])
    covariance = np.linalg.inv((curvature + curvature.T) / 2)
    assert np.abs(slope(mode) * sd).max() < 1e-2
    np.testing.assert_allclose(sd, np.sqrt(np.diag(covariance)), rtol=2e-2)


def test_more_privacy_rarer_ones_and_fewer_rows_cost_more():
    many, rare = (
        dpmc.plan("logistic", (20_000, 4), **BUDGET, rate=rate).error for rate in (0.3, 0.02)
    )
    assert rare > 1.5 * many
    planned = dpmc.plan("logistic", (2000, 4), **BUDGET, rate=0.3)
    assert planned.large_error >= planned.error
    assert planned.large_width >= planned.width > 1
    curve = planned.curve(epsilon=[0.5, 1, 8], num_rows=[500, 2000])
    assert curve.shape == (6, 6)
    errors = curve.pivot(index="num_rows", columns="epsilon", values="error")
    assert errors.loc[2000, 1.0] == planned.error
    assert (errors[0.5] > errors[8.0]).all()
    # Where noise leaves the word to the prior, errors are as large as posteriors are narrow.
    assert errors.loc[500, 8.0] > errors.loc[2000, 8.0]
    for wrong in ({"epsilon": [1, -1]}, {"num_rows": 0.5}, {"epsilon": "1"}):
        with pytest.raises(dpmc.DpmcError, match=r"`(epsilon|num_rows)` must be"):
            planned.curve(**wrong)


def test_a_plan_is_read_and_shown():
    planned = dpmc.plan("poisson", (300, 4), epsilon=0.5, delta=1e-6, rate=2.5)
    lines = str(planned).splitlines()
    assert lines[0].startswith("Privacy is expected to displace means by")
    assert lines[1].startswith("By fits of 4 data sets of 300 rows: made-up columns")
    assert lines[1].endswith("responses of mean 2.5.")
    assert lines[2].startswith("Heavier tails, rarer groups")
    assert lines[3].startswith("A typical fit says: The budget does not show in which units")
    assert planned._repr_html_().count("<p>") == len(lines)
    assert repr(planned) == str(planned)


def test_columns_alone_are_given_responses():
    x = stream(0, "columns").normal([50, 1900], [5, 30], (40, 2))
    planned = dpmc.plan("logistic", (1000, 3), **BUDGET, rows=x, rate=0.1, intercept=False)
    assert planned.rows == "public columns, as given, and made-up responses of mean 0.1"
    assert 0 < planned.error < math.inf
    robust = dpmc.plan("linear", (1000, 3), **BUDGET, rows=x, covariance="robust")
    assert 0 < robust.error < math.inf


def test_made_up_responses_have_the_mean_that_is_asked_for():
    """Standard errors are 0.001 and 0.02; of a share and of counts that spread twice as widely."""
    rng = stream(0, "made up")
    x = made_up.columns(rng, 40_000, 5)
    assert made_up.responses(rng, "logistic", x, 0.05).mean() == pytest.approx(0.05, abs=0.005)
    counts = made_up.responses(rng, "poisson", x, 3.0)
    assert counts.mean() == pytest.approx(3.0, abs=0.15)
    assert counts.var() > 2 * counts.mean()
    assert {*np.unique(x[:, 1])} == {0.0, 1.0}


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_likelihoods_of_the_general_search_are_planned(likelihood, monkeypatch):
    """Responses are possible ones, and a larger budget is expected to buy more."""
    monkeypatch.setattr(simulated, "DATA_SETS", 1)
    more = {"binomial": {"trials": 9}, "multinomial": {"classes": 3}, "ordinal": {"classes": 4}}
    options = more.get(likelihood, {})
    rng = stream(0, "made up", likelihood)
    x = made_up.columns(rng, 5000, 3)
    y = made_up.responses(rng, likelihood, x, None, **options)
    assert LIKELIHOODS[likelihood].allowed(y).all()
    assert y.max() <= options.get("trials", math.inf)
    assert len(np.unique(y)) == options.get("classes", len(np.unique(y)))
    planned = dpmc.plan(likelihood, (500, 2), epsilon=1, delta=1e-6, **options)
    assert planned.error > 2 * planned.curve(epsilon=100.0)["error"][0] > 0


def test_successes_and_counts_have_the_mean_that_is_asked_for():
    """Standard errors are 0.02 and 0.06."""
    rng = stream(0, "made up")
    x = rng.normal(size=(40_000, 1))
    ones = made_up.responses(rng, "binomial", x, 0.3, trials=20)
    assert ones.mean() == pytest.approx(6.0, abs=0.15)
    counts = made_up.responses(rng, "negative_binomial", x, 3.0)
    assert counts.mean() == pytest.approx(3.0, abs=0.4)


@pytest.mark.parametrize(
    ("likelihood", "options", "told"),
    [
        ("binomial", {}, "`trials` must be given with likelihood 'binomial'"),
        ("binomial", {"trials": 0}, "`trials` must be an integer of at least 1, got 0"),
        ("gamma", {"trials": 3}, "`trials` must be None with likelihood 'gamma'"),
        (
            "ordinal",
            {},
            "`classes` must be given with likelihood 'ordinal', an integer of at least 3",
        ),
        ("gamma", {"rate": 2.0}, "`rate` must be left out where no shares of ones, or counts"),
    ],
)
def test_what_a_likelihood_has_nothing_for_is_refused(likelihood, options, told):
    with pytest.raises(dpmc.DpmcError) as caught:
        dpmc.plan(likelihood, (1000, 3), **BUDGET, **options)
    assert str(caught.value).startswith(told)


def test_a_model_of_ones_own_is_planned_by_what_simulates_it():
    def log_likelihood(p, row):
        x, y = row
        return -math.log(p.sigma) - 0.5 * ((y - p.slope * x) / p.sigma) ** 2

    model = dpmc.model(
        log_likelihood,
        {"slope": priors.normal(0, 1), "sigma": priors.half_normal(2)},
        num_columns=2,
    )
    sizes = []

    def rows(rng, num_rows):
        sizes.append(num_rows)
        x = rng.normal(size=num_rows)
        return np.column_stack([x, rng.normal() * x + rng.normal(size=num_rows)])

    planned = dpmc.plan(model, (2000, 2), **BUDGET, rows=rows)
    assert sizes == [2000] * 4
    assert 0 < planned.error < 10
    blind = dpmc.plan(model, (2000, 2), **BUDGET)
    assert blind.rows == "standard normal columns"
    few = dpmc.plan(model, (20, 2), epsilon=0.1, delta=1e-6)
    assert "No row was used" in str(few)


def test_large_tables_are_simulated_as_they_are_up_to_a_number(monkeypatch):
    monkeypatch.setattr(simulated, "MOST_ROWS", (1000, 1000))
    monkeypatch.setattr(simulated, "ALL_ROWS", (1000, 1000))
    planned = dpmc.plan("linear", (10**9, 3), **BUDGET)
    assert "By fits of 3 data sets of 1,000 rows, no more:" in str(planned)
