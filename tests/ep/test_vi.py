"""Variational inference: the gradient against differences, what it learns, what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate
from scipy.stats import norm

from dpmc.ep.network import vi
from dpmc.ep.network.vi import VIState, backward, forward, objective_and_gradient
from dpmc.types import DpmcError


def problem(seed=1, hidden=4, dim=3, batch_size=6, num_samples=5):
    rng = np.random.default_rng(seed)
    num_weights = hidden * (dim + 1) + hidden + 1
    state = VIState(rng.standard_normal(num_weights), rng.normal(-2, 1, num_weights), 0.4)
    z = np.column_stack([rng.standard_normal((batch_size, dim)), np.ones(batch_size)])
    return (
        state,
        z,
        rng.standard_normal(batch_size),
        rng.standard_normal((num_samples, num_weights)),
    )


def flat(state):
    return np.concatenate([state.mean, state.log_variance, [state.log_precision]])


def unflat(vector):
    middle = len(vector) // 2
    return VIState(vector[:middle], vector[middle:-1], float(vector[-1]))


def differences(state, z, y, noise, num_rows, prior_precision):
    """Central differences of the objective, of order 4."""
    start, gradient, h = flat(state), [], 1e-4
    for i in range(len(start)):
        values = []
        for k in (-2, -1, 1, 2):
            moved = start.copy()
            moved[i] += k * h
            args = (unflat(moved), z, y, noise, num_rows, prior_precision)
            values.append(objective_and_gradient(*args)[0])
        gradient.append((values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * h))
    return np.array(gradient)


def wave(seed=3, num_rows=400, noise_sd=0.1):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, (num_rows, 1))
    return x, np.sin(2 * x[:, 0]) + noise_sd * rng.standard_normal(num_rows)


SETTINGS = vi.Params(num_passes=150, batch_size=50, learning_rate=0.02)


@pytest.fixture(scope="module")
def fitted():
    x, y = wave()
    return vi.fit(x, y, 20, SETTINGS, np.random.default_rng(5))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_gradient_is_that_of_the_objective(seed):
    args = (*problem(seed), 40, 2.5)
    expected = differences(*args)
    ours = flat(objective_and_gradient(*args)[1])
    np.testing.assert_allclose(ours, expected, atol=1e-9 * max(1.0, np.abs(expected).max()))


def test_outputs_are_those_of_the_network():
    state, z, _, noise = problem(hidden=4, dim=3)
    weights = state.mean + noise
    passed = forward(weights, z, 4)
    for s in range(len(weights)):
        first, second = weights[s, :16].reshape(4, 4), weights[s, 16:]
        units = np.maximum(0, first @ z.T) / 2
        expected = (second[:4] @ units + second[4]) / math.sqrt(5)
        np.testing.assert_allclose(passed.output[s], expected, rtol=1e-12)
    assert backward(passed, np.zeros_like(passed.output), z).shape == weights.shape


def test_divergence_is_that_from_the_prior():
    """By quadrature for one weight at a time, the rest of the objective being the same."""
    state, z, y, noise = problem(hidden=1, dim=1)
    prior_precision, num_rows = 2.5, 7

    def at(log_variance, mean_shift):
        # The draws stay where they are, so that only the divergence changes.
        moved = state._replace(
            mean=state.mean + mean_shift, log_variance=state.log_variance + log_variance
        )
        weights = state.mean + np.exp(0.5 * state.log_variance) * noise
        still = (weights - moved.mean) / np.exp(0.5 * moved.log_variance)
        return num_rows * objective_and_gradient(moved, z, y, still, num_rows, prior_precision)[0]

    def divergence(mean, variance):
        q, p = norm(mean, math.sqrt(variance)), norm(0, math.sqrt(1 / prior_precision))
        lo, hi = mean - 12 * math.sqrt(variance), mean + 12 * math.sqrt(variance)
        return integrate.quad(lambda w: q.pdf(w) * (q.logpdf(w) - p.logpdf(w)), lo, hi)[0]

    def total(log_variance, mean_shift):
        pairs = zip(state.mean + mean_shift, np.exp(state.log_variance + log_variance), strict=True)
        return sum(divergence(m, v) for m, v in pairs)

    assert at(0.7, -0.4) - at(0, 0) == pytest.approx(total(0.7, -0.4) - total(0, 0), rel=1e-7)


def test_it_learns_a_function_and_its_noise(fitted):
    """The target has variance 0.5, its noise 0.01."""
    assert fitted.status == "complete"
    x, y = wave(seed=4)
    mean, variance = fitted.predict(x)
    assert np.mean((mean - np.sin(2 * x[:, 0])) ** 2) < 0.02
    assert 0.005 < fitted.noise_variance < 0.04
    assert (variance > 0).all()
    total = variance + fitted.noise_variance
    log_density = np.mean(norm.logpdf(y, mean, np.sqrt(total)))
    assert log_density > np.mean(norm.logpdf(y, 0, y.std())) + 0.7
    assert fitted.objective[-1] < fitted.objective[0] - 0.5
    assert len(fitted.objective) == SETTINGS.num_passes


def test_it_is_less_certain_away_from_the_rows(fitted):
    near = fitted.predict(np.array([[0.0], [1.0]]))[1].max()
    assert fitted.predict(np.array([[8.0], [-8.0]]))[1].min() > 4 * near


def test_predictions_are_moments_over_the_draws(fitted):
    x = np.array([[0.3], [-1.7]])
    outputs = forward(fitted.draws, np.column_stack([x, np.ones(2)]), fitted.hidden).output
    mean, variance = fitted.predict(x)
    np.testing.assert_allclose(mean, outputs.mean(axis=0))
    np.testing.assert_allclose(variance, outputs.var(axis=0, ddof=1))


def test_a_run_that_breaks_says_so_and_stays_finite():
    x, y = wave(num_rows=50)
    settings = vi.Params(num_passes=30, learning_rate=400.0)
    broken = vi.fit(x, y, 4, settings, np.random.default_rng(1))
    assert broken.status.startswith("pass ")
    assert broken.status.endswith("of 30: the objective is not finite")
    assert len(broken.objective) < 30
    values = (broken.mean, broken.log_variance, broken.noise_variance, broken.objective)
    assert all(np.isfinite(value).all() for value in values)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_passes": 2.0}, "num_passes.*2.0"),
        ({"batch_size": 0}, r"batch_size.*\b0\b"),
        ({"num_samples": 0}, r"num_samples.*\b0\b"),
        ({"learning_rate": 0.0}, "learning_rate.*0.0"),
        ({"prior_precision": math.nan}, "prior_precision.*nan"),
    ],
)
def test_bad_settings_are_refused(changes, message):
    with pytest.raises(DpmcError, match=message):
        vi.Params(**changes)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (np.ones(4), np.ones(4), r"`x` must have shape \(m, d\), got \(4,\)"),
        (np.ones((4, 0)), np.ones(4), r"`x` must have .*\(4, 0\)"),
        (np.full((4, 1), np.nan), np.ones(4), "`x` must hold finite"),
        (
            np.ones((4, 1)),
            np.ones(3),
            r"`y` must have shape \(4,\) and at least one row, got shape \(3,\)",
        ),
        (np.ones((0, 1)), np.ones(0), "at least one row"),
        (np.ones((4, 1)), np.full(4, np.inf), "`y` must hold finite"),
    ],
)
def test_bad_rows_are_refused(x, y, message):
    with pytest.raises(DpmcError, match=message):
        vi.fit(x, y, 20, vi.Params(), np.random.default_rng(1))


def test_rows_of_another_width_are_not_predicted(fitted):
    with pytest.raises(DpmcError, match=r"`x` must have shape \(m, 1\), got \(2, 3\)"):
        fitted.predict(np.ones((2, 3)))
