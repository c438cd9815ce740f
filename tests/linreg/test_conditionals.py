"""Compiled conditionals against dense algebra and SciPy's densities."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from dpmc.linreg.gibbs import conditionals, gaussian_moves, normal_x, wishart_moves
from dpmc.linreg.methods import bayes_fixed_s_fast, mcmc_fixed_s, mcmc_normal_x
from dpmc.numerics import small_matrices
from dpmc.types import DpmcError
from tests.support.linreg_releases import (
    dense_prior,
    positive,
    release,
    symmetric_noise,
)

DIM = 3


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def lower(matrix):
    factor = np.zeros_like(matrix)
    assert small_matrices.cholesky(matrix, factor)
    return factor


def node_state(rng, noise_sd=4.0):
    """Return a release of two nodes, a state away from it, its scratch and its frame."""
    noisy = release(rng, (30, 41), np.array([0.5, -1.0, 0.3]), noise_sd)
    released = conditionals.ReleasedStatistics.of(noisy)
    state = wishart_moves.StatisticsState.of(
        positive(rng, 2, DIM, 35), rng.standard_normal(DIM), 0.3
    )
    state.precision[:] = np.linalg.inv(np.eye(DIM) + 0.4)
    scratch, frame = wishart_moves.StatisticsScratch.of(2, DIM), gaussian_moves.Frame.of(DIM)
    for j in range(2):
        m = state.variance[0] * state.s[j] + released.z_variance * np.eye(DIM)
        state.factors[j] = np.linalg.cholesky(m)
        state.log_det[j] = np.linalg.slogdet(state.s[j])[1]
        state.log_likelihood[j] = conditionals.node_log_likelihood(
            state.s[j], released.z[j], state.theta, state.factors[j], scratch.x
        )
    return released, state, scratch, frame


def log_conditional(released, j, s, state) -> float:
    """Return the log-density of S_j given the rest, from SciPy."""
    scale = np.linalg.inv(state.precision)
    upper = np.triu_indices(DIM)
    noise_sd = math.sqrt(released.s_variance)
    m = state.variance[0] * s + released.z_variance * np.eye(DIM)
    return float(
        stats.wishart(released.num_rows[j], scale).logpdf(s)
        + stats.norm.logpdf(released.s[j][upper], s[upper], noise_sd).sum()
        + stats.multivariate_normal(s @ state.theta, m).logpdf(released.z[j])
    )


def test_small_algebra_is_that_of_numpy(rng):
    a, b = positive(rng, 2, 5, 12)
    factor, full = lower(a), rng.standard_normal((5, 5))
    np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(a), rtol=1e-12)
    assert small_matrices.log_determinant(factor) == pytest.approx(
        np.linalg.slogdet(a)[1], rel=1e-12
    )
    root = np.linalg.cholesky(a)
    for solve, left in (
        (small_matrices.solve_lower_matrix, root),
        (small_matrices.solve_upper_matrix, root.T),
    ):
        found = full.copy()
        solve(factor, found)
        np.testing.assert_allclose(left @ found, full, atol=1e-11)
    out, scratch = np.empty((5, 5)), np.empty((5, 5))
    for action, expected in (
        (lambda: small_matrices.gram(full, out), full.T @ full),
        (lambda: small_matrices.row_products(full, out), full @ full.T),
        (lambda: small_matrices.congruence(full, b, scratch, out), full @ b @ full.T),
        (lambda: small_matrices.self_product(factor, out), a),
    ):
        action()
        np.testing.assert_allclose(out, expected, atol=1e-11)
    inverse = np.linalg.inv(root)
    assert wishart_moves.inverse_square(factor, np.empty(5)) == pytest.approx(np.sum(inverse**2))


def test_the_nearest_positive_semi_definite_matrix(rng):
    matrix = symmetric_noise(rng, 4, 1.0)
    nearest = small_matrices.psd(matrix)
    assert np.linalg.eigvalsh(nearest)[0] > -1e-14
    # What is taken away is negative and orthogonal to what is left.
    assert np.linalg.eigvalsh(matrix - nearest)[-1] < 1e-14
    assert np.sum((matrix - nearest) * nearest) == pytest.approx(0, abs=1e-13)
    with pytest.raises(DpmcError, match="finite"):
        small_matrices.psd(np.full((2, 2), math.nan))


@pytest.mark.parametrize("num", [1, 4])
def test_coefficients_given_the_rest_agree_with_dense_algebra(rng, num):
    prior, s = dense_prior(DIM), positive(rng, num, DIM)
    z, variance, z_variance = rng.standard_normal((num, DIM)), 0.7, 2.3
    inverses = np.linalg.inv(variance * s + z_variance * np.eye(DIM))
    precision = np.linalg.inv(prior.covariance) + (s @ inverses @ s).sum(axis=0)
    shift = np.linalg.solve(prior.covariance, prior.mean)
    shift = shift + np.einsum("jik,jkl,jl->i", s, inverses, z)
    expected = np.linalg.solve(precision, shift)
    mean, covariance = conditionals.coefficient_posterior(s, z, variance, z_variance, prior)
    np.testing.assert_allclose(mean, expected, rtol=1e-12)
    np.testing.assert_allclose(covariance, np.linalg.inv(precision), rtol=1e-12)
    # As printed: the precision in place of the covariance.
    assert not np.allclose(precision @ shift, mean, rtol=0.1)

    terms = conditionals.PriorTerms.of(prior)
    total, pull = terms.precision.copy(), terms.shift.copy()
    scratch, node, own = np.empty((DIM, DIM)), np.empty((DIM, DIM)), np.empty(DIM)
    for j in range(num):
        factor = np.linalg.cholesky(variance * s[j] + z_variance * np.eye(DIM))
        conditionals.node_terms(s[j], z[j], factor, scratch, node, own)
        total += node
        pull += own
    found = np.empty(DIM)
    assert conditionals.coefficient_mean(total, pull, scratch, found)
    np.testing.assert_allclose(total, precision, rtol=1e-12)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_the_log_ratio_of_the_wishart_walk_is_that_of_scipy(rng):
    dof, s = 17.3, positive(rng, 1, DIM)[0]
    bartlett = np.zeros((DIM, DIM))
    small_matrices.bartlett(dof, rng, bartlett)
    root = np.linalg.cholesky(s)
    new = root @ bartlett @ bartlett.T @ root.T / dof
    back = stats.wishart(dof, new / dof).logpdf(s)
    there = stats.wishart(dof, s / dof).logpdf(new)
    found = wishart_moves.wishart_log_ratio(bartlett, dof, np.empty(DIM))
    assert found == pytest.approx(back - there, abs=1e-10)


def test_bartlett_factors_are_those_of_a_wishart_law(rng):
    """Exact laws, each at level 1e-6: chi^2 traces and determinant-like diagonal entries."""
    dof, draws = 4.6, []
    factor = np.zeros((DIM, DIM))
    for _ in range(4000):
        small_matrices.bartlett(dof, rng, factor)
        draws.append(factor.copy())
    draws = np.array(draws)
    assert stats.kstest((draws**2).sum(axis=(1, 2)), stats.chi2(DIM * dof).cdf).pvalue > 1e-6
    for i in range(DIM):
        assert stats.kstest(draws[:, i, i] ** 2, stats.chi2(dof - i).cdf).pvalue > 1e-6


def test_the_density_of_a_node_is_that_of_scipy(rng):
    released, state, scratch, _ = node_state(rng)
    for j in range(2):
        values = []
        for s in (state.s[j], positive(rng, 1, DIM, 35)[0]):
            m = state.variance[0] * s + released.z_variance * np.eye(DIM)
            likelihood = conditionals.node_log_likelihood(
                s, released.z[j], state.theta, np.linalg.cholesky(m), scratch.x
            )
            log_det = np.linalg.slogdet(s)[1]
            density = wishart_moves.node_log_density(
                released, j, s, log_det, likelihood, state.precision
            )
            values.append(density - log_conditional(released, j, s, state))
        assert values[0] == pytest.approx(values[1], abs=1e-9)


def test_the_gaussian_approximation_agrees_with_dense_algebra(rng):
    """Its mean, given zhat, by conditioning in all D entries at once."""
    released, state, scratch, frame = node_state(rng)
    gaussian_moves.set_frame(state.precision, frame)
    assert gaussian_moves.approximate(released, 0, state, frame, scratch)
    pairs = [(i, k) for i in range(DIM) for k in range(i + 1)]
    linear = np.zeros((DIM, len(pairs)))
    for column, (i, k) in enumerate(pairs):
        linear[i, column] = frame.theta[k]
        linear[k, column] = frame.theta[i]
    spread = np.array([frame.spread[p] for p in pairs])
    centre = np.array([frame.centre[p] for p in pairs])
    predicted = (linear * spread) @ linear.T + np.diag(frame.z_spread)
    gain = (linear * spread).T @ np.linalg.inv(predicted)
    expected = centre + gain @ (frame.z - linear @ centre)
    np.testing.assert_allclose([frame.mean[p] for p in pairs], expected, rtol=1e-10)
    np.testing.assert_allclose(frame.rows @ released.s[0] @ frame.rows.T, frame.s_hat, atol=1e-9)


def test_the_gaussian_approximation_is_exact_where_the_law_is_gaussian(rng):
    """With one feature and many rows its log-density differs from the law by little."""
    noisy = release(rng, (100_000,), np.array([0.4]), 300.0)
    released = conditionals.ReleasedStatistics.of(noisy)
    state = wishart_moves.StatisticsState.of(np.array([[[1e5]]]), np.array([0.4]), 0.1)
    state.precision[:] = 1.0
    scratch, frame = wishart_moves.StatisticsScratch.of(1, 1), gaussian_moves.Frame.of(1)
    gaussian_moves.set_frame(state.precision, frame)
    assert gaussian_moves.approximate(released, 0, state, frame, scratch)
    gaps = []
    for s in np.linspace(-300, 300, 5) + frame.mean[0, 0]:
        matrix = np.array([[s]])
        factor = np.sqrt(state.variance[0] * matrix + released.z_variance)
        likelihood = conditionals.node_log_likelihood(
            matrix, released.z[0], state.theta, factor, scratch.x
        )
        gaps.append(
            wishart_moves.node_log_density(
                released, 0, matrix, math.log(s), likelihood, state.precision
            )
            - gaussian_moves.approximate_log_density(frame, matrix, scratch.x)
        )
    assert np.ptp(gaps) < 0.02


def test_fixed_s_sees_the_likelihood_of_dense_algebra(rng):
    noisy = release(rng, (30, 41), np.array([0.5, -1.0, 0.3]), 4.0)
    spectra = mcmc_fixed_s.Spectra.of(noisy, 0.5, False)
    terms = conditionals.PriorTerms.of(dense_prior(DIM))
    theta, residual = rng.standard_normal(DIM), np.empty((2, DIM))
    mcmc_fixed_s.residuals(spectra, theta, residual)
    values = []
    for variance in (0.2, 3.0):
        expected = stats.invgamma(4.0, scale=3.0).logpdf(variance)
        for j in range(2):
            s = small_matrices.psd(noisy.s[j]) + 0.5 * np.eye(DIM)
            m = variance * s + noisy.z_sd**2 * np.eye(DIM)
            expected += stats.multivariate_normal(s @ theta, m).logpdf(noisy.z[j])
        values.append(mcmc_fixed_s.log_target(spectra, terms, residual, variance) - expected)
    assert values[0] == pytest.approx(values[1], abs=1e-9)


def test_fixed_s_fast_is_the_closed_form(rng):
    noisy = release(rng, (30, 41), np.array([0.5, -1.0, 0.3]), 4.0)
    prior = dense_prior(DIM)
    params = bayes_fixed_s_fast.Params(0.3, num_draws=4000)
    found = bayes_fixed_s_fast.fit(noisy, prior, params, rng)
    s = small_matrices.psd(noisy.s)
    mean, covariance = conditionals.coefficient_posterior(s, noisy.z, 0.3, 16.0, prior)
    np.testing.assert_allclose(found.coefficients, mean)
    np.testing.assert_allclose(found.covariance, covariance)
    white = (found.draws - mean) @ np.linalg.inv(np.linalg.cholesky(covariance)).T
    assert stats.kstest(white.ravel(), "norm").pvalue > 1e-6


METHODS = (mcmc_fixed_s, mcmc_normal_x)


@pytest.mark.parametrize("method", METHODS)
def test_a_chain_is_a_function_of_its_stream(rng, method):
    noisy, prior = release(rng, (30, 41), np.array([0.5, -1.0, 0.3]), 4.0), dense_prior(DIM)
    params = method.Params(60, 20)
    first, again, other = (
        method.fit(noisy, prior, params, np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first.draws, again.draws)
    assert not np.array_equal(first.draws, other.draws)
    assert first.draws.shape == (40, DIM)
    assert first.variances.shape == (40,)
    np.testing.assert_allclose(first.coefficients, first.draws.mean(axis=0))
    assert first.status == "complete"


def test_a_chain_that_breaks_says_why_and_keeps_no_such_draw(rng, monkeypatch):
    noisy, prior = release(rng, (30, 41), np.array([0.5, -1.0, 0.3]), 4.0), dense_prior(DIM)
    # An eigenvalue at zero, and noise whose variance is no number above it.
    flat = dataclasses.replace(noisy, s=noisy.s - 1e3 * np.eye(DIM), z_sd=1e-170)
    found = mcmc_fixed_s.fit(flat, prior, mcmc_fixed_s.Params(60, 0), rng)
    assert found.status == "stopped: the precision of theta is not positive definite in iteration 1"
    assert found.draws.shape == (0, DIM)
    assert np.isnan(found.coefficients).all()
    start = wishart_moves.StatisticsState.of(-np.ones((2, DIM, DIM)), np.zeros(DIM), 1.0)
    monkeypatch.setattr(mcmc_normal_x, "first_state", lambda *args: start)
    found = mcmc_normal_x.fit(noisy, prior, mcmc_normal_x.Params(60, 0), rng)
    assert found.status == "stopped: a node covariance is not positive definite in iteration 1"
    assert found.draws.shape == (0, DIM)


def test_degrees_of_freedom_of_the_precision_are_those_of_its_prior_and_all_rows(monkeypatch):
    """Tests of the law of the precision are in tests/statistical."""
    told, rng = [], np.random.default_rng(5)
    monkeypatch.setattr(normal_x, "refresh", lambda *_: True)
    monkeypatch.setattr(normal_x, "sweep_scales", lambda *_: (True, 0))
    monkeypatch.setattr(
        normal_x, "draw_precision", lambda total, dof, *_: told.append(dof) or False
    )
    noisy = release(rng, (7, 11), np.array([0.5, -0.5]), 1.0)
    prior = dense_prior(2)
    settings = normal_x.NormalXSettings(3, 0, False, True, True, 0.44, 0, 0.0)
    state = wishart_moves.StatisticsState.of(np.array(noisy.s), np.zeros(2), 1.0)
    released = conditionals.ReleasedStatistics.of(noisy)
    arguments = (released, conditionals.PriorTerms.of(prior), settings, None, state, None)
    scratch = wishart_moves.StatisticsScratch.of(2, 2)
    stopped = normal_x.sample.py_func(*arguments, scratch, *[None] * 4)
    assert stopped == (1, 0)
    assert told == [prior.dof + 7 + 11]
