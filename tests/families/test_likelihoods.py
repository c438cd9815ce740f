"""Regressions by the general search: estimates without privacy, hostile rows, what is charged."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.optimize import minimize
from statsmodels.miscmodels.ordinal_model import OrderedModel

import dpmc
import dpmc.privacy
from dpmc.families import general
from dpmc.families.likelihoods import LIKELIHOODS
from dpmc.privacy.budgets import GaussianBudget
from dpmc.privacy.ledger import Ledger
from dpmc.rng import stream
from dpmc.types import DpmcError
from tests.automatic.replay import Recording

NUM_ROWS = 5000
SETTINGS = {"delta": 1e-6, "progress": False, "num_draws": 500, "seed": 1}


def simulated(name, num_rows=NUM_ROWS):
    """Return one feature in raw units, responses, and what stands beside them."""
    rng = stream(0, "likelihoods", name)
    x = 50 + 20 * rng.normal(size=(num_rows, 1))
    eta = 0.3 + 0.02 * (x[:, 0] - 50)
    if name == "negative_binomial":
        offset = rng.uniform(0, 2, num_rows)
        varied = rng.gamma(1 / 0.7, 0.7, num_rows)
        return x, rng.poisson(np.exp(eta + offset) * varied) * 1.0, {"offset": offset}
    if name == "binomial":
        trials = 1.0 + rng.poisson(10, num_rows)
        return (
            x,
            rng.binomial(trials.astype(int), 1 / (1 + np.exp(2 - eta))) * 1.0,
            {"trials": trials},
        )
    if name == "gamma":
        return x, 1000 * np.exp(eta) * rng.gamma(2, 1 / 2, num_rows), {}
    if name == "weibull":
        time = np.exp(eta + 0.5 * np.log(rng.exponential(size=num_rows)))
        end = np.exp(rng.normal(0.5, 1, num_rows))
        return x, np.minimum(time, end), {"event": (time <= end) * 1.0}
    if name == "multinomial":
        whole = np.column_stack([np.zeros(num_rows), eta - 1, -eta / 2])
        y = (whole + rng.gumbel(size=whole.shape)).argmax(axis=1)
        return x, y * 1.0, {"classes": 3}
    y = np.digitize(eta + rng.logistic(size=num_rows), [-1.0, 0.5, 1.5])
    return x, y * 1.0, {"classes": 4}


def without_privacy(name, x, y, beside):
    """Return maximum likelihood estimates, in the order of the components of a fit."""
    design = sm.add_constant(x)
    if name == "negative_binomial":
        found = sm.NegativeBinomial(y, design, offset=beside["offset"]).fit(disp=0).params
        return np.append(found[:-1], math.log(found[-1]))
    if name == "binomial":
        both = np.column_stack([y, beside["trials"] - y])
        return sm.GLM(both, design, family=sm.families.Binomial()).fit().params
    if name == "multinomial":
        return sm.MNLogit(y, design).fit(disp=0).params.T.ravel()
    if name == "ordinal":
        model = OrderedModel(y, x / 20, distr="logit")
        found = model.fit(method="bfgs", disp=0).params
        return np.append(found[0] / 20, model.transform_threshold_params(found)[1:-1])

    def cost(theta):
        log_ratio = np.log(y) - theta[0] - theta[1] * (x[:, 0] - 50) / 20
        if name == "gamma":
            shape = math.exp(theta[2])
            log_y = shape * (theta[2] + log_ratio - np.exp(log_ratio)) - math.lgamma(shape)
            return -log_y.sum()
        z = log_ratio * math.exp(-theta[2])
        return -(beside["event"] * (z - theta[2]) - np.exp(z)).sum()

    found = minimize(cost, [np.log(y).mean(), 0.0, 0.0], method="BFGS").x
    return np.array([found[0] - 50 / 20 * found[1], found[1] / 20, found[2]])


def fitted(x, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpmc.PosteriorWarning)
        return dpmc.regression(x, y, **{"epsilon": 1e4, **SETTINGS, **options})


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_little_noise_gives_the_estimates_without_privacy(name):
    """Means are within a third of a posterior deviation: errors of draws have a 44th of one."""
    x, y, beside = simulated(name)
    fit = fitted(x, y, likelihood=name, **beside)
    draws = fit.draws.reshape(-1, len(fit.names))
    exact = without_privacy(name, x, y, beside)
    assert len(exact) == len(fit.names)
    assert np.all(np.abs(draws.mean(axis=0) - exact) < draws.std(axis=0) / 3)
    # Widths: information is that of at most all rows, in units of a feature of deviation 20.
    slope = fit.names.index("x1[1]" if name == "multinomial" else "x1")
    assert 0.3 < draws[:, slope].std() * 20 * math.sqrt(NUM_ROWS) < 4


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_all_that_is_released_is_in_the_ledger(name, monkeypatch):
    released, original = [], Ledger.release

    def counted(self, *given, **options):
        released.append(given[0].sensitivity)
        return original(self, *given, **options)

    monkeypatch.setattr(Ledger, "release", counted)
    x, y, beside = simulated(name, 2000)
    fit = fitted(x, y, likelihood=name, epsilon=1.0, **beside)
    assert sum(count for _, count in fit.ledger) == len(released)
    assert dpmc.privacy.compose([fit], delta=1e-6).epsilon == pytest.approx(1.0, rel=1e-3)
    assert any(stage.get("release") == "units" for stage in fit.plan.stages)


@pytest.mark.parametrize("name", ["gamma", "ordinal"])
def test_draws_follow_from_what_was_released(name, monkeypatch):
    """Rows with other units, and the same answers: the same draws."""
    answers, seen = None, []
    for unit in (1.0, 30.0):
        x, y, beside = simulated(name, 2000)
        ledger = Recording(GaussianBudget.of(1.0, 1e-6), answers)
        monkeypatch.setattr(general, "Ledger", lambda *given, ledger=ledger: ledger)
        y = unit * y if name == "gamma" else y
        fit = fitted(unit * x, y, likelihood=name, epsilon=1.0, **beside)
        seen.append(fit.draws)
        answers = ledger.transcript
    assert np.array_equal(*seen)


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_hostile_rows_are_rows_like_others(name):
    """One row in twenty is not a number, or beyond all: there is a posterior all the same."""
    x, y, beside = simulated(name)
    worst = [math.nan, math.inf, -math.inf, 1e308, -1e308, 1e-308, 0.0, 0.5]
    places = np.arange(0, NUM_ROWS, 40)
    x[places, 0] = np.resize(worst, len(places))
    y[places + 1] = np.resize(worst, len(places))
    for what, column in beside.items():
        if what != "classes":
            column[places + 2] = np.resize(worst, len(places))
    fit = fitted(x, y, likelihood=name, epsilon=8.0, invalid_rows="zero", **beside)
    assert np.isfinite(fit.draws).all()
    refused = "must (hold finite numbers only|be a|be positive)"
    with pytest.raises(DpmcError, match=refused):
        fitted(x, y, likelihood=name, **beside)


def test_a_prior_of_ones_own_is_in_units_of_the_rows():
    x, y, _ = simulated("gamma")
    loose = fitted(x, y, likelihood="gamma", prior_sd=[20.0, 1.0]).draws[..., 1].mean()
    tight = fitted(x, y, likelihood="gamma", prior_sd=[20.0, 1e-4]).draws[..., 1].mean()
    assert abs(loose - 0.02) < 0.002
    assert abs(tight) < 0.5 * abs(loose)


@pytest.mark.parametrize("name", ["gamma", "negative_binomial"])
def test_a_prior_may_have_a_mean(name):
    """One that is so narrow that rows have no word in it; the other coefficient is free."""
    x, y, beside = simulated(name)
    narrow = {"intercept": 20.0, "x1": 1e-5}
    means = {"x1": 0.05, "intercept": 3.0}
    fit = fitted(x, y, likelihood=name, prior_sd=narrow, prior_mean=means, **beside)
    assert abs(fit.draws[..., 1].mean() - 0.05) < 2e-5
    exact = without_privacy(name, x, y, beside)
    free = fitted(x, y, likelihood=name, prior_sd=20.0, prior_mean=means, **beside)
    assert np.all(np.abs(free.draws.mean(axis=(0, 1)) - exact) < free.draws.std(axis=(0, 1)) / 3)
    assert fit.plan.prior["mean"] == [3.0, 0.05]


@pytest.mark.parametrize("name", ["gamma", "ordinal"])
def test_chains_of_a_method_are_about_the_same_posterior(name):
    """Without privacy; means of some hundred effective draws err by a tenth of a deviation."""
    x, y, beside = simulated(name, 2000)
    x = (x - 50) / 20
    near = fitted(x, y, likelihood=name, **beside)
    start = None if name == "ordinal" else near.draws.mean(axis=(0, 1))
    steps = {"step_size": 0.01, "num_leapfrog_steps": 8, "num_iterations": 1000, "num_chains": 2}
    free = {"method": "hmc", "epsilon": None, "delta": None, "num_draws": None, "start": start}
    fit = fitted(x, y, likelihood=name, **beside, **free, **steps)
    assert fit.names == near.names
    sd = near.draws.std(axis=(0, 1))
    assert np.all(np.abs(fit.kept().mean(axis=(0, 1)) - near.draws.mean(axis=(0, 1))) < sd / 3)
    assert np.allclose(fit.kept().std(axis=(0, 1)), sd, rtol=0.2)
    assert fit.predict(x[:3], kind="response", seed=1).shape[1] == 3


def test_a_private_method_takes_offsets_and_weights():
    """What an offset adds is missing in the intercept; a weight of 0 leaves a row out."""
    x, y, _ = simulated("gamma", 2000)
    x, y = (x - 50) / 20, np.ceil(y / 1000)
    given = {"likelihood": "poisson", "method": "dp_penalty", "epsilon": 10.0, "num_draws": None}
    plain = fitted(x, y, **given)
    moved = fitted(x, y, offset=np.full(2000, 3.0), **given)
    assert abs(plain.kept()[..., 0].mean() - moved.kept()[..., 0].mean() - 3) < 0.5
    outliers = np.append(y, np.full(500, 1e4)), np.append(np.ones(2000), np.zeros(500))
    without = fitted(np.append(x, x[:500], axis=0), outliers[0], weights=outliers[1], **given)
    assert abs(without.kept()[..., 0].mean() - plain.kept()[..., 0].mean()) < 0.5
    assert without.guarantee.epsilon == 10.0


def scaled_and_columns():
    location, scale = np.array([3.0, -50.0]), np.array([0.5, 20.0])
    plain = general.Scaled(location, scale, 4.0, middle=7.0)
    united = general.Scaled(location, scale, 4.0, middle=7.0, unit=100.0)
    return [
        (plain, general.Columns("gamma", 2, True), 4),
        (united, general.Columns("linear", 2, True, weighted=True), 4),
        (general.Scaled(location, scale, 4.0), general.Columns("multinomial", 2, True, 4), 9),
        (general.Scaled(0 * location, scale, 0.0), general.Columns("binomial", 2, False), 2),
    ]


@pytest.mark.parametrize(("scaled", "columns", "dim"), scaled_and_columns())
def test_a_point_of_a_user_is_one_of_the_model_and_back(scaled, columns, dim):
    point = np.random.default_rng(0).normal(size=dim)
    assert np.allclose(scaled.back(columns, scaled.forth(columns, point)), point)


def test_a_search_begins_where_it_is_told():
    x, y, _ = simulated("gamma", 2000)
    given = {"likelihood": "gamma", "epsilon": 1.0}
    starts = [None, [-0.7, 0.02, 0.7], [8.0, 0.0, 0.0]]
    fits = [fitted(x, y, start=start, **given) for start in starts]
    firsts = [fit.plan.stages[1]["gradient_clip_bound"] for fit in fits]
    assert len({*firsts}) == 3


REFUSED = [
    ({"likelihood": "multinomial"}, "`classes` must be given with likelihood"),
    ({"likelihood": "gamma", "classes": 3}, "`classes` must be None with likelihood 'gamma'"),
    ({"likelihood": "gamma", "event": np.ones(9)}, "`event` must be None with likelihood 'gamma'"),
    ({"likelihood": "weibull", "event": np.full(9, 2.0)}, "`event` must be 0 or 1"),
    ({"likelihood": "multinomial", "classes": 3, "offset": np.ones(9)}, "`offset` must be None"),
    ({"likelihood": "binomial"}, "`trials` must be given with likelihood 'binomial'"),
    ({"likelihood": "binomial", "trials": np.zeros(9)}, "`trials` must be a positive count"),
    ({"likelihood": "binomial", "trials": np.full(9, 2.0), "y": np.full(9, 3.0)}, "at most `tr"),
    ({"likelihood": "gamma", "method": "dp_hmc", "prior_sd": [1, 2]}, "one number beside a `met"),
    ({"likelihood": "gamma", "method": "dp_hmc", "prior_sd": -1.0}, "`prior_sd` must be positive"),
    ({"likelihood": "gamma", "method": "nuts"}, "must be one of"),
    ({"likelihood": "ordinal", "classes": 3, "y": np.full(9, 3.0)}, "`y` must be a class 0, 1"),
    ({"likelihood": "negative_binomial", "y": np.full(9, 0.5)}, "`y` must be a count"),
]


@pytest.mark.parametrize(("options", "match"), REFUSED)
def test_what_a_likelihood_has_nothing_for_is_refused(options, match):
    given = {"y": np.ones(9), **options}
    with pytest.raises(DpmcError, match=match):
        fitted(np.ones((9, 1)), given.pop("y"), **given)


def test_checks_see_a_shape_that_is_not_the_models_and_robust_widths_differ():
    """A check of a right model is beyond four errors in 6e-5 of cases; the seed is fixed."""
    rng = stream(0, "likelihoods", "checks")
    x = rng.uniform(-1, 1, (NUM_ROWS, 1))
    shape = 4.0 ** (2 * x[:, 0])
    wrong = np.exp(x[:, 0]) * rng.gamma(shape) / shape
    right = np.exp(x[:, 0]) * rng.gamma(2.0, 0.5, NUM_ROWS)
    given = {"likelihood": "gamma", "epsilon": 50.0}
    assert all(abs(one.away) < 4 for one in fitted(x, right, **given).check().checks)
    plain = fitted(x, wrong, **given)
    robust = fitted(x, wrong, covariance="robust", **given)
    for fit in (plain, robust):
        assert any(one.away > 4 for one in fit.check().checks if "quantile" in one.what)
    assert not np.allclose(plain.draws.std(axis=(0, 1)), robust.draws.std(axis=(0, 1)), rtol=0.02)
