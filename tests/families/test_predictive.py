"""Responses of new rows: their moments, whatever the likelihood, and what is refused.

Moments of random numbers are compared at six standard errors: a right function fails one of these
tests with a probability below 1e-7.
"""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpmc
from dpmc.fits import predictive
from dpmc.fits.predictive import responses
from dpmc.types import DpmcError

K = 40_000
THETA = np.array([0.3, -0.7])
X = np.array([[1.0, 2.0], [0.0, -1.0]])
MEANS = X @ THETA


def drawn(likelihood, theta, x):
    draws = np.tile(theta, (K, 1))
    return responses(likelihood, draws, x, np.random.default_rng(0))


def close(values, expected, sd):
    return np.all(np.abs(values.mean(axis=0) - expected) < 6 * sd / math.sqrt(K))


@pytest.mark.parametrize("intercept", [False, True])
def test_linear(intercept):
    likelihood = {"name": "linear", "intercept": intercept}
    theta = np.append(THETA, math.log(0.5))
    if intercept:
        theta = np.append(2.0, theta)
    values = drawn(likelihood, theta, X)
    expected = MEANS + 2.0 * intercept
    assert close(values, expected, 0.5)
    assert close((values - expected) ** 2, 0.25, 0.25 * math.sqrt(2))


def test_student_t():
    likelihood = {"name": "student_t", "intercept": False, "degrees_of_freedom": 4.0}
    values = drawn(likelihood, np.append(THETA, math.log(2.0)), X)
    # P(T < 0.7407) is 0.75 for four degrees of freedom.
    assert close(values < MEANS, 0.5, 0.5)
    assert close(values < MEANS + 2 * 0.74069708, 0.75, 0.5)


def test_logistic():
    values = drawn({"name": "logistic", "intercept": False}, THETA, X)
    assert set(np.unique(values)) == {0.0, 1.0}
    assert close(values, 1 / (1 + np.exp(-MEANS)), 0.5)


def test_poisson():
    values = drawn({"name": "poisson", "intercept": False}, THETA, X)
    assert close(values, np.exp(MEANS), np.exp(MEANS / 2))


@pytest.mark.parametrize("rate", [1e9, 1e11, 1e17, 1e25, 1e300])
def test_counts_of_large_rates_have_their_mean_and_spread(rate):
    values = drawn({"name": "poisson", "intercept": False}, [math.log(rate)], np.array([[1.0]]))
    # The logarithm of the rate is a float, too.
    scores = (values - np.exp(np.log(rate))) / math.sqrt(rate)
    if rate < 1e30:
        assert close(scores, 0.0, 1.0)
        assert close(scores**2, 1.0, math.sqrt(2))
    assert np.allclose(values, rate, rtol=1e-3)


def test_mixture():
    likelihood = {"name": "mixture", "weights": [0.25, 0.75], "sigma_x": 0.5}
    values = drawn(likelihood, np.array([-2.0, 0.0, 2.0, 1.0]), 1)[:, 0]
    assert close(values, [1.0, 0.75], np.array([2.0, 1.0]))
    assert close(values[:, 0] ** 2, 4.0 + 0.25, 3.0)


def test_network_by_hand():
    # One feature from 0 to 2, which the fit scales: one unit that is on, one that is off.
    likelihood = {
        "name": "network", "hidden": 2, "x_low": [0.0], "x_high": [2.0], "y_low": -1.0,
        "y_high": 1.0,
    }  # fmt: skip
    theta = np.array([1.0, 0.5, -1.0, 0.0, 2.0, 3.0, 0.25, -700.0])
    x = 1.5
    z = (x - 1.0) * math.sqrt(12) / 2
    unit = max((z + 0.5) / math.sqrt(2), 0.0)
    output = (2.0 * unit + 0.25) / math.sqrt(3)
    values = responses(likelihood, theta[None], [[x]], np.random.default_rng(0))
    assert values[0, 0] == pytest.approx(output * 2 / math.sqrt(12), rel=1e-12)


@pytest.mark.parametrize(
    ("likelihood", "x", "match"),
    [
        ({"name": "linear", "intercept": True}, X, "`x` must have 1 columns, got 2"),
        ({"name": "logistic", "intercept": False}, [1.0, 2.0], r"`x` must have shape \(m, p\)"),
        ({"name": "mixture", "weights": [1.0], "sigma_x": 1.0}, X, "`x` must be an integer"),
    ],
)
def test_rows_that_do_not_fit_are_refused(likelihood, x, match):
    with pytest.raises(DpmcError, match=match):
        responses(likelihood, np.zeros((2, 3)), x, np.random.default_rng(0))


@pytest.mark.filterwarnings("ignore::dpmc.PosteriorWarning")
def test_columns_of_a_data_frame_are_taken_by_their_names():
    rng = np.random.default_rng(1)
    rows = pd.DataFrame({"age": rng.normal(size=4000), "dose": rng.normal(size=4000)})
    y = rows["age"] - rows["dose"]
    fit = dpmc.regression(rows, y, epsilon=50.0, delta=1e-6, seed=1, num_draws=50, progress=False)
    new = rows.head(3)
    right = fit.predict(new, seed=1)
    assert (fit.predict(new[["dose", "age"]].assign(other=1.0), seed=1) == right).all()
    assert (fit.predict(new.to_numpy(), seed=1) == right).all()
    assert (fit.predict(new.to_numpy()[:, ::-1], seed=1) != right).any()
    query = pl.from_pandas(new[["dose", "age"]]).lazy()
    assert (fit.predict(query, seed=1) == right).all()
    with pytest.raises(DpmcError, match="`x` must have the column 'age' of the fit, and has sev"):
        fit.predict(new[["age", "dose", "age"]])
    with pytest.raises(DpmcError, match="`x` must have the column 'dose' of the fit, and has not"):
        fit.predict(new[["age"]])


def fit_of(likelihood, draws, **more):
    plan = dpmc.types.Plan(likelihood={"name": likelihood, "intercept": True} | more)
    guarantee = dpmc.types.Guarantee(1.0, 1e-6)
    return dpmc.Fit(np.asarray(draws)[None], {}, {}, "complete", (), guarantee, plan)


def coefficients(seed=0, k=4000):
    return np.array([0.2, -0.5, 0.3]) + 0.1 * np.random.default_rng(seed).normal(size=(k, 3))


@pytest.mark.parametrize(
    ("likelihood", "link"), [("logistic", lambda eta: 1 / (1 + np.exp(-eta))), ("poisson", np.exp)]
)
def test_means_are_those_of_responses(likelihood, link):
    fit = fit_of(likelihood, coefficients())
    eta = fit.predict(X, kind="linear")
    assert np.allclose(eta, fit.kept()[0] @ np.column_stack([np.ones(2), X]).T)
    means = fit.predict(X, kind="mean")
    assert np.allclose(means, link(eta))
    found = fit.predict(X, seed=1)
    assert close(found - means, 0.0, found.std(axis=0) * math.sqrt(K / len(found)))
    if likelihood == "logistic":
        assert np.array_equal(fit.predict(X, kind="probability"), means)


@pytest.mark.parametrize("likelihood", ["negative_binomial", "gamma", "weibull"])
def test_means_and_spreads_of_laws_with_a_shape(likelihood):
    """At one theta: mean and variance by hand, at six standard errors of 40,000 draws."""
    shape = 0.5
    theta = np.append(THETA, math.log(shape))
    fit = fit_of(likelihood, np.tile(theta, (K, 1)), intercept=False)
    rate, found = np.exp(MEANS), fit.predict(X, seed=1)
    if likelihood == "negative_binomial":
        mean, variance = rate, rate + shape * rate**2
    elif likelihood == "gamma":
        mean, variance = rate, rate**2 / shape
    else:
        mean = rate * math.gamma(1 + shape)
        variance = rate**2 * (math.gamma(1 + 2 * shape) - math.gamma(1 + shape) ** 2)
    assert np.allclose(fit.predict(X, kind="mean")[0], mean)
    assert close(found, mean, np.sqrt(variance))
    squares = (found - mean) ** 2
    assert close(squares, variance, squares.std(axis=0))


def test_successes_of_trials():
    fit = fit_of("binomial", np.tile(THETA, (K, 1)), intercept=False)
    chance, trials = 1 / (1 + np.exp(-MEANS)), np.array([3.0, 20.0])
    assert np.allclose(fit.predict(X, kind="probability")[0], chance)
    assert np.allclose(fit.predict(X, kind="mean", trials=trials)[0], trials * chance)
    found = fit.predict(X, trials=trials, seed=1)
    assert close(found, trials * chance, np.sqrt(trials * chance * (1 - chance)))
    with pytest.raises(DpmcError, match="`trials` must be given"):
        fit.predict(X)


def test_probabilities_of_classes():
    theta = np.array([0.2, 0.5, -0.3, 0.1])  # two coefficients of each of two classes
    fit = fit_of("multinomial", np.tile(theta, (K, 1)), intercept=False, classes=3)
    whole = np.column_stack([np.ones(2), np.exp(X @ theta[:2]), np.exp(X @ theta[2:])])
    expected = whole / whole.sum(axis=1, keepdims=True)
    assert np.allclose(fit.predict(X, kind="probability")[0], expected)
    assert np.allclose(fit.predict(X, kind="linear")[0], np.log(whole[:, 1:]))
    drawn = fit.predict(X, seed=1)
    for k in range(3):
        assert close(drawn == k, expected[:, k], 0.5)


def test_probabilities_of_classes_in_order():
    theta = np.append(THETA, [-1.0, 0.5, 2.0])
    fit = fit_of("ordinal", np.tile(theta, (K, 1)), intercept=False, classes=4)
    below = 1 / (1 + np.exp(MEANS[:, None] - theta[2:]))
    expected = np.diff(np.column_stack([np.zeros(2), below, np.ones(2)]), axis=1)
    found = fit.predict(X, kind="probability", interval=0.9)
    assert found.mean.shape == found.low.shape == (2, 4)
    assert np.allclose(found.mean, expected)
    drawn = fit.predict(X, seed=1)
    for k in range(4):
        assert close(drawn == k, expected[:, k], 0.5)
    with pytest.raises(DpmcError, match="`kind` must not be 'mean' of responses"):
        fit.predict(X, kind="mean")


def test_intervals_hold_their_share_of_draws():
    """Of all draws; a share of one in four of them is within 0.01 of it, or 5 deviations."""
    fit = fit_of("poisson", coefficients(k=40_000))
    found = fit.predict(X, kind="mean", interval=0.8)
    values = fit.predict(X, kind="mean")
    held = ((found.low <= values) & (values <= found.high)).mean(axis=0)
    assert np.all(np.abs(held - 0.8) < 5 * math.sqrt(0.16 / 1000))
    assert np.allclose(found.mean, values.mean(axis=0), rtol=0.02)
    wider = fit.predict(X, interval=0.8, seed=1)
    assert np.all(wider.high - wider.low > found.high - found.low)


def test_intervals_of_many_rows_need_memory_for_some(monkeypatch):
    fit = fit_of("logistic", coefficients(k=1000))
    x = np.random.default_rng(0).normal(size=(20_000, 2))
    whole = fit.predict(x, kind="probability", interval=0.9)
    monkeypatch.setattr(predictive, "AT_ONCE", 1 << 17)
    tracemalloc.start()
    try:
        some = fit.predict(x, kind="probability", interval=0.9)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    for one, other in zip(whole, some, strict=True):
        assert np.allclose(one, other, rtol=1e-12)
    assert most < 16 << 20  # all numbers would be 160 MB


def test_an_offset_of_new_rows_is_added():
    fit = fit_of("poisson", coefficients(), offset=True)
    there = fit.predict(X, kind="linear", offset=[0.0, 2.0])
    assert np.allclose(
        there - [0.0, 2.0], fit_of("poisson", coefficients()).predict(X, kind="linear")
    )
    for offset in (None, [1.0], [np.nan, 0.0]):
        with pytest.raises(DpmcError, match="`offset` must be"):
            fit.predict(X, offset=offset)
    with pytest.raises(DpmcError, match="`offset` must be None"):
        fit_of("poisson", coefficients()).predict(X, offset=[0.0, 1.0])
    rows = pd.DataFrame(X, index=["a", "b"])
    with pytest.raises(DpmcError, match="`offset` must have the index of `x`"):
        fit.predict(rows, offset=pd.Series([0.0, 2.0], index=["b", "a"]))


def test_no_rows_have_no_predictions():
    fit = fit_of("multinomial", np.ones((50, 6)), classes=3)
    found = fit.predict(np.zeros((0, 2)), kind="probability", interval=0.9)
    assert found.mean.shape == found.high.shape == (0, 3)


@pytest.mark.parametrize("trials", [-1.0, 2.5, 1e30])
def test_trials_that_are_no_counts_are_refused(trials):
    with pytest.raises(DpmcError, match="`trials` must be integers from 0 to"):
        fit_of("binomial", coefficients()).predict(X, trials=[1.0, trials])


def test_a_model_of_ones_own_predicts_by_a_function():
    guarantee = dpmc.types.Guarantee(1.0, 1e-6)
    fit = dpmc.Fit(coefficients()[None], {}, {}, "complete", (), guarantee)

    def survival(theta, x):
        return np.exp(-np.exp(theta[0] + x @ theta[1:]))

    found = fit.predict(X, kind=survival)
    assert found.shape == (4000, 2)
    assert found[7] == pytest.approx(survival(fit.kept()[0, 7], X))
    ends = fit.predict(X, kind=survival, interval=0.9)
    assert np.all((ends.low < ends.mean) & (ends.mean < ends.high))
    with pytest.raises(DpmcError, match="`kind` must be a function of theta and rows"):
        fit.predict(X)
    with pytest.raises(DpmcError, match="`kind` must give a number for each of 2 rows"):
        fit.predict(X, kind=lambda theta, x: theta)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"kind": "proba"}, "`kind` must be one of"),
        ({"kind": "probability"}, "`kind` must not be 'probability' of responses"),
        ({"interval": 90}, "`interval` must be between 0 and 1, got 90"),
    ],
)
def test_predictions_that_there_are_none_of_are_refused(options, match):
    with pytest.raises(DpmcError, match=match):
        fit_of("poisson", coefficients()).predict(X, **options)


def test_a_rate_beyond_all_numbers_is_told():
    likelihood = {"name": "poisson", "intercept": False}
    draws = np.array([[800.0], [math.inf], [math.nan], [-math.inf], [2.0]])
    values = responses(likelihood, draws, np.array([[1.0]]), np.random.default_rng(0))
    assert values[:2].tolist() == [[math.inf], [math.inf]]
    assert np.isnan(values[2])
    assert values[3] == 0
    assert np.isfinite(values[4])


def test_scales_are_inverse():
    x = np.linspace(-3, 9, 7)
    there = predictive.scaled_to_unit(x, -3.0, 9.0)
    assert np.allclose(predictive.scaled_back(there, -3.0, 9.0), x)
