"""Nodes under common changes of scale, against dense algebra."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpmc.linreg.gibbs import normal_x, scale_moves, whitened_nodes
from dpmc.linreg.gibbs.conditionals import PriorTerms, ReleasedStatistics
from dpmc.linreg.gibbs.wishart_moves import StatisticsScratch, StatisticsState
from dpmc.numerics.compiled import kept_loop
from tests.support.linreg_releases import dense_prior, positive, release

# Parts of compiled loops, kept on disk like these.
refresh = kept_loop(normal_x.refresh)
propose_scale = kept_loop(scale_moves.propose_scale)
scale_move = kept_loop(scale_moves.scale_move)
sum_nodes = kept_loop(scale_moves.sum_nodes)
close_nodes = kept_loop(whitened_nodes.close_nodes)
open_nodes = kept_loop(whitened_nodes.open_nodes)

ROWS = (30, 41)
VARIANCE = 0.3


def chain(dim, noise_sd=4.0):
    """Return a release of two nodes, a prior, a basis, and a state with its nodes open."""
    rng = np.random.default_rng(dim)
    released = ReleasedStatistics.of(release(rng, ROWS, rng.standard_normal(dim), noise_sd))
    s = positive(rng, len(ROWS), dim, dim + 35)
    state = StatisticsState.of(s, rng.standard_normal(dim), VARIANCE)
    scratch, terms = StatisticsScratch.of(len(ROWS), dim), PriorTerms.of(dense_prior(dim))
    assert refresh(released, state, scratch)
    assert sum_nodes(terms, state, scratch)
    assert open_nodes(released, state, scratch.nodes)
    basis = np.ascontiguousarray(np.linalg.qr(rng.standard_normal((dim, dim)))[0])
    return released, terms, basis, state, scratch


def covariance(released, s):
    return VARIANCE * s + released.z_variance * np.eye(len(s))


def log_likelihood(released, s, theta) -> float:
    """Return that of all that is released, from SciPy."""
    upper, found = np.triu_indices(len(theta)), 0.0
    for one, s_hat, z in zip(s, released.s, released.z, strict=True):
        found += stats.norm.logpdf(s_hat[upper], one[upper], math.sqrt(released.s_variance)).sum()
        found += stats.multivariate_normal(one @ theta, covariance(released, one)).logpdf(z)
    return float(found)


def stretched(basis, i, k, step):
    """Return T = exp(step b_i b_k')."""
    factor = math.expm1(step) if i == k else step
    return np.eye(len(basis)) + factor * np.outer(basis[i], basis[k])


def rows_of(nodes, first, count):
    """Return rows of the room, without what pads them."""
    table = nodes.room.reshape(-1, nodes.width)
    np.testing.assert_array_equal(table[first : first + count, nodes.dim :], 0.0)
    return table[first : first + count, : nodes.dim]


def check_nodes(released, nodes, s, theta) -> None:
    """Compare what is known of each node with dense algebra."""
    for j, (one, s_hat, z) in enumerate(zip(s, released.s, released.z, strict=True)):
        places = [
            whitened_nodes.matrix(nodes, j, which) // nodes.width
            for which in range(whitened_nodes.NUM_MATRICES + 1)
        ]
        np.testing.assert_allclose(rows_of(nodes, places[0], nodes.dim), one, atol=1e-10)
        whitener = rows_of(nodes, places[2], nodes.dim).T
        white = whitener @ covariance(released, one) @ whitener.T
        np.testing.assert_allclose(white, np.eye(nodes.dim), atol=1e-10)
        gap, _, residual = rows_of(nodes, places[3], 3)
        np.testing.assert_allclose(gap, np.diag(s_hat - one), atol=1e-10)
        np.testing.assert_allclose(residual, whitener @ (z - one @ theta), atol=1e-10)


# Dimensions around the width of the lanes.
@pytest.mark.parametrize("dim", [1, 3, 8, 9, 17])
def test_moves_one_after_another_are_those_of_dense_algebra(dim):
    """Stretches and shears, each proposed twice, with and without theta, and then accepted."""
    released, terms, basis, state, scratch = chain(dim)
    nodes, s, theta = scratch.nodes, state.s.copy(), state.theta.copy()
    check_nodes(released, nodes, s, theta)
    ends = [(0, 0, 0.2), (0, dim - 1, -0.3), (dim // 2, 0, 0.4), (dim - 1, dim - 1, -0.1)]
    for i, k, step in ends:
        if i != k or dim == 1:
            step *= 0.5
        matrix = stretched(basis, i, k, step)
        new = matrix @ s @ matrix.T
        whitened_nodes.aim(nodes, basis[i], basis[k])
        for lift in (0.0, -0.7):
            change = scale_moves.scale_change(i == k, step, basis[i] @ theta, lift)
            moved = theta + lift * basis[k]
            expected = log_likelihood(released, new, moved) - log_likelihood(released, s, theta)
            assert propose_scale(released, change, state, scratch) == pytest.approx(
                expected, rel=1e-9, abs=1e-9
            )
            total = terms.scale + new.sum(axis=0)
            np.testing.assert_allclose(scratch.total, total, rtol=1e-12, atol=1e-10)
        check_nodes(released, nodes, s, theta)
        state.total[:] = scratch.total
        s, theta = new, moved
        for j in range(len(ROWS)):
            state.log_likelihood[j] += scale_moves.accept_node(
                nodes, j, change, released.z_variance
            )
        check_nodes(released, nodes, s, theta)
    state.theta[:] = theta
    found = state.log_likelihood.copy()
    assert close_nodes(released, nodes, state)
    np.testing.assert_allclose(state.s, s, rtol=1e-12, atol=1e-10)
    np.testing.assert_array_equal(state.s, np.swapaxes(state.s, 1, 2))
    for factor, one in zip(state.factors, s, strict=True):
        np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(covariance(released, one)))
    assert refresh(released, state, scratch)
    np.testing.assert_allclose(found, state.log_likelihood, rtol=1e-10)


@pytest.mark.parametrize(("i", "k"), [(1, 1), (0, 2)])
@pytest.mark.parametrize("carry", [0.0, 1.0])
def test_moves_are_accepted_by_the_ratio_of_the_densities(i, k, carry):
    """Some moves of one chain, with their Jacobians; both answers are met."""
    dim, sd, n, prior = 3, 0.2, sum(ROWS), dense_prior(3)
    released, terms, basis, state, scratch = chain(dim, noise_sd=40.0)
    s, theta, answers = state.s.copy(), state.theta.copy(), set()

    def log_density(s, theta):
        found = log_likelihood(released, s, theta)
        found += stats.multivariate_normal(prior.mean, prior.covariance).logpdf(theta)
        log_det = np.linalg.slogdet(prior.scale + s.sum(axis=0))[1]
        return found - 0.5 * (prior.dof + n) * log_det

    for seed in range(12):
        rng = np.random.default_rng(seed)
        step, uniform = sd * rng.standard_normal(), rng.random()
        matrix = stretched(basis, i, k, step)
        new = matrix @ s @ matrix.T
        lift = math.expm1(-carry * step) if i == k else -carry * step
        moved = theta + lift * (basis[i] @ theta) * basis[k]
        log_ratio = log_density(new, moved) - log_density(s, theta)
        log_ratio += (n - carry) * step if i == k else 0.0
        rng = np.random.default_rng(seed)
        arguments = (released, terms, basis, i, k, carry, sd, state, scratch, rng)
        accepted, chance = scale_move(*arguments)
        assert chance == pytest.approx(min(1.0, math.exp(log_ratio)), rel=1e-8)
        assert accepted == (math.log1p(-uniform) < log_ratio)
        if accepted:
            s, theta = new, moved
        answers.add(accepted)
        np.testing.assert_allclose(state.theta, theta, rtol=1e-10)
        check_nodes(released, scratch.nodes, s, theta)
    assert answers == {True, False}


def test_nodes_without_a_factor_are_found_out():
    released, _, basis, state, scratch = chain(3)
    nodes = scratch.nodes
    whitened_nodes.aim(nodes, basis[0], basis[0])
    change = scale_moves.scale_change(True, 0.1, 0.0, 0.0)
    assert propose_scale(released, change, state, scratch) > -math.inf
    # Noise on zhat_j of a variance that no node can have.
    wrong = released._replace(z_variance=-1e12)
    shrunk = scale_moves.scale_change(True, -0.1, 0.0, 0.0)
    assert propose_scale(wrong, shrunk, state, scratch) == -math.inf
    assert not close_nodes(wrong, nodes, state)
    state.s[1] *= -1.0
    assert not open_nodes(released, state, nodes)
