"""The samplers of private regression have the posterior that they claim; broken ones do not.

Against quadrature: posterior means within 5 standard errors by effective sample size, an
error rate of 6e-7 for each of some thirty comparisons.

Joint tests [Geweke 2004] in a form that is exact: parameters from the prior, data given
them, then some iterations given the data. If every step leaves its conditional invariant,
parameters and data have their joint law again, under which the quantities below have laws
known in closed form. Each is compared with its law by a Kolmogorov-Smirnov test at level
1e-7: an error rate below 3e-6 for the file. A chain told of another model than the one that made
its data is one whose conditionals are wrong; each such fault has to fail at the same level.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpmc.linreg.gibbs.conditionals import WALK_ACCEPTANCE, PriorTerms, ReleasedStatistics
from dpmc.linreg.gibbs.gaussian_moves import Frame
from dpmc.linreg.gibbs.normal_x import NormalXSettings, Tuning, sample
from dpmc.linreg.gibbs.wishart_moves import StatisticsScratch, StatisticsState
from dpmc.linreg.methods import mcmc_fixed_s, mcmc_normal_x
from dpmc.linreg.types import NoisyStatistics
from tests.reference import regression_posterior
from tests.support.linreg_releases import (
    NO_GUARANTEE,
    dense_prior,
    positive,
    release,
    symmetric_noise,
    thesis_prior,
)

pytestmark = pytest.mark.slow

ERRORS = 5.0
LEVEL = 1e-7
CHAINS, STEPS = 1600, 8
DIM, ROWS = 2, np.array([6, 9])
S_SD, Z_SD = 3.0, 2.0
PRIOR = dense_prior(DIM)


def error_of_mean(draws) -> float:
    """Return the difference of a sequence of draws to zero in standard errors."""
    import arviz  # not for those who only list tests

    size = float(arviz.ess(draws[None], method="mean"))
    return abs(float(draws.mean())) / (float(draws.std()) / math.sqrt(size))


@pytest.mark.parametrize(("rows", "ridge"), [((400,), 0.0), ((400,), 1.0), ((150, 250), 0.0)])
def test_fixed_s_agrees_with_quadrature(rows, ridge):
    """One node and several: with one, the chain works in the eigenbasis."""
    rng = np.random.default_rng(17)
    noisy = release(rng, rows, np.array([0.4, -0.8, 0.1]), 20.0)
    prior = thesis_prior(3)
    truth = regression_posterior.fixed_s(noisy, prior, ridge)
    params = mcmc_fixed_s.Params(60_000, 2_000, ridge=ridge)
    found = mcmc_fixed_s.fit(noisy, prior, params, rng)
    for k in range(3):
        away = found.draws[:, k] - truth.mean[k]
        assert error_of_mean(away) < ERRORS
        assert error_of_mean(away**2 - truth.sd[k] ** 2) < ERRORS
    assert error_of_mean(found.variances - truth.variance_mean) < ERRORS
    # The walk on log sigma_y^2 without its Jacobian has this target.
    broken = thesis_prior(3)
    object.__setattr__(broken, "shape", prior.shape + 1)
    other = mcmc_fixed_s.fit(noisy, broken, params, rng)
    assert error_of_mean(other.variances - truth.variance_mean) > ERRORS


def test_the_linear_walk_has_the_same_law():
    rng = np.random.default_rng(18)
    noisy = release(rng, (60, 90), np.array([0.4, -0.8]), 3.0)
    prior = dense_prior(2)
    truth = regression_posterior.fixed_s(noisy, prior)
    params = mcmc_fixed_s.Params(60_000, 2_000, variance_move="linear", variance_walk_sd=0.3)
    found = mcmc_fixed_s.fit(noisy, prior, params, rng)
    assert error_of_mean(found.variances - truth.variance_mean) < ERRORS
    assert error_of_mean(found.draws[:, 0] - truth.mean[0]) < ERRORS


def test_quadrature_has_mass_one_and_does_not_depend_on_its_points():
    rng = np.random.default_rng(19)
    noisy = release(rng, (60, 90), np.array([0.4, -0.8]), 3.0)
    few, many = (
        regression_posterior.fixed_s(noisy, dense_prior(2), 0.0, num) for num in (120, 400)
    )
    np.testing.assert_allclose(few.mean, many.mean, rtol=1e-9)
    np.testing.assert_allclose(few.sd, many.sd, rtol=1e-9)
    points = few.mean[0] + few.sd[0] * np.linspace(-60, 60, 6001)
    assert np.trapezoid(few.density(0, points), points) == pytest.approx(1, abs=1e-7)
    mass = np.trapezoid(many.variance_density(), many.variances)
    assert mass == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("move", ["gaussian", "wishart"])
def test_normal_x_agrees_with_quadrature_in_one_dimension(move):
    rng = np.random.default_rng(20)
    noisy = release(rng, (300,), np.array([0.6]), 20.0)
    prior = thesis_prior(1)
    truth = regression_posterior.normal_x(noisy, prior)
    finer = regression_posterior.normal_x(noisy, prior, 900)
    assert truth.mean == pytest.approx(finer.mean, rel=1e-8)
    params = mcmc_normal_x.Params(40_000, 2_000, statistics_move=move)
    found = mcmc_normal_x.fit(noisy, prior, params, rng)
    away = found.draws[:, 0] - truth.mean
    assert error_of_mean(away) < ERRORS
    assert error_of_mean(away**2 - truth.sd**2) < ERRORS
    assert error_of_mean(found.variances - truth.variance_mean) < ERRORS


def drawn_release(rng, s, theta, variance) -> NoisyStatistics:
    """Return noisy statistics of nodes with these S_j."""
    s_hat, z_hat = [], []
    for one in s:
        root = np.linalg.cholesky(variance * one + Z_SD**2 * np.eye(DIM))
        s_hat.append(one + symmetric_noise(rng, DIM, S_SD))
        z_hat.append(one @ theta + root @ rng.standard_normal(DIM))
    noise = (S_SD, Z_SD, 0.0)
    return NoisyStatistics(ROWS, np.array(s_hat), np.array(z_hat), None, *noise, NO_GUARANTEE)


def parameters(rng) -> tuple[np.ndarray, float]:
    """Return theta and sigma_y^2 from their prior."""
    theta = rng.multivariate_normal(PRIOR.mean, PRIOR.covariance)
    return theta, float(PRIOR.rate / rng.standard_gamma(PRIOR.shape))


def common_quantities(noisy, s, theta, variance) -> dict[str, float]:
    """Return what is known of theta, sigma_y^2 and the residuals of zhat."""
    root = np.linalg.cholesky(PRIOR.covariance)
    square = 0.0
    for one, z in zip(s, noisy.z, strict=True):
        m = variance * one + Z_SD**2 * np.eye(DIM)
        square += (z - one @ theta) @ np.linalg.solve(m, z - one @ theta)
    first, second = np.linalg.solve(root, theta - PRIOR.mean)
    return {"first": first, "second": second, "variance": variance, "residual": square}


LAWS = {
    "first": stats.norm(),
    "second": stats.norm(),
    "variance": stats.invgamma(PRIOR.shape, scale=PRIOR.rate),
    "residual": stats.chi2(DIM * len(ROWS)),
    "noise": stats.chi2(len(ROWS) * DIM * (DIM + 1) / 2),
    "first_node": stats.chi2(DIM * ROWS[0]),
    "second_node": stats.chi2(DIM * ROWS[1]),
    "features": stats.chi2(DIM * PRIOR.dof),
}


def smallest_p_value(quantities) -> float:
    """Return the smallest p-value of all quantities against their laws."""
    values = {name: np.array([one[name] for one in quantities]) for name in quantities[0]}
    return min(stats.kstest(found, LAWS[name].cdf).pvalue for name, found in values.items())


def fixed_s_chains(log_move=True, **wrong) -> float:
    """Return the smallest p-value of chains of MCMC-fixedS that start from the joint law."""
    rng, found = np.random.default_rng(21), []
    settings = mcmc_fixed_s.FixedSSettings(STEPS, STEPS - 1, log_move, 0)
    terms = PriorTerms.of(PRIOR)
    terms = terms._replace(
        **{name: value for name, value in wrong.items() if name in terms._fields}
    )
    draws, variances = np.empty((1, DIM)), np.empty(1)
    for s in positive(rng, 2 * CHAINS, DIM).reshape(CHAINS, 2, DIM, DIM):
        theta, variance = parameters(rng)
        noisy = drawn_release(rng, s, theta, variance)
        values, vectors = np.linalg.eigh(s)
        rows = np.ascontiguousarray(np.swapaxes(vectors, 1, 2))
        z = np.einsum("jlk,jk->jl", rows, noisy.z)
        z_variance = wrong.get("z_variance", Z_SD**2)
        spectra = mcmc_fixed_s.Spectra(rows, values, z, float(z_variance), False)
        mcmc_fixed_s.sample(spectra, terms, settings, 0.8, variance, rng, draws, variances)
        found.append(common_quantities(noisy, s, draws[0], variances[0]))
    return smallest_p_value(found)


def test_fixed_s_keeps_the_joint_law():
    assert fixed_s_chains() > LEVEL
    assert fixed_s_chains(log_move=False) > LEVEL


@pytest.mark.parametrize(
    "wrong",
    [
        {"shape": PRIOR.shape + 1},  # the walk on log sigma_y^2 without its Jacobian
        {"z_variance": 2 * Z_SD**2},
        {"shift": np.zeros(DIM)},  # C^-1 m left out
        {"precision": 2 * PriorTerms.of(PRIOR).precision},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_broken_fixed_s_does_not(wrong):
    assert fixed_s_chains(**wrong) < LEVEL


def normal_x_chains(wishart=False, scale_moves=2, **wrong) -> float:
    """Return the smallest p-value of chains of MCMC-normalX that start from the joint law."""
    rng, found = np.random.default_rng(22), []
    settings = NormalXSettings(STEPS, 0, wishart, True, True, WALK_ACCEPTANCE, scale_moves, 0.0)
    terms, frame, scratch = PriorTerms.of(PRIOR), Frame.of(DIM), StatisticsScratch.of(2, DIM)
    terms = terms._replace(
        **{name: value for name, value in wrong.items() if name in terms._fields}
    )
    draws, variances, accepted = np.empty((STEPS, DIM)), np.empty(STEPS), np.zeros(3)
    precisions = stats.wishart(PRIOR.dof, np.linalg.inv(PRIOR.scale)).rvs(CHAINS, random_state=rng)
    for precision in precisions:
        root = np.linalg.cholesky(np.linalg.inv(precision))
        rows = [rng.standard_normal((n, DIM)) @ root.T for n in ROWS]
        theta, variance = parameters(rng)
        s = np.array([x.T @ x for x in rows])
        noisy = drawn_release(rng, s, theta, variance)
        released = ReleasedStatistics.of(noisy)
        told = {name: value for name, value in wrong.items() if name in released._fields}
        tuning = Tuning.of(released, wishart, 0.8)
        tuning.node_step[:] = -math.log(20.0) if wishart else math.log(0.8)
        state = StatisticsState.of(s, theta, variance)
        arguments = (released._replace(**told), terms, settings, tuning, state, frame, scratch)
        assert sample(*arguments, rng, draws, variances, accepted) == (0, STEPS)
        found.append(node_quantities(noisy, state))
    assert (accepted[[0, 2]] > 0.1 * CHAINS * STEPS).all()
    return smallest_p_value(found)


def node_quantities(noisy, state) -> dict[str, float]:
    """Return what is known of the S_j and W, and of the rest."""
    upper = np.triu_indices(DIM)
    noise = sum(np.sum((a - b)[upper] ** 2) for a, b in zip(noisy.s, state.s, strict=True))
    first, second = (np.trace(state.precision @ s) for s in state.s)
    return common_quantities(noisy, state.s, state.theta, state.variance[0]) | {
        "noise": noise / S_SD**2,
        "first_node": first,
        "second_node": second,
        "features": np.trace(PRIOR.scale @ state.precision),
    }


@pytest.mark.parametrize(
    ("wishart", "scale_moves"),
    [(False, 0), (True, 0), (False, 2)],
    ids=["gaussian", "wishart", "scale"],
)
def test_normal_x_keeps_the_joint_law(wishart, scale_moves):
    assert normal_x_chains(wishart, scale_moves) > LEVEL


@pytest.mark.parametrize(
    "wrong",
    [
        {"num_rows": ROWS + DIM + 1.0},  # |S_j|^(n_j / 2) in place of its density
        {"s_variance": S_SD**2 / 2},  # every entry of the noise counted twice
        {"dof": PRIOR.dof + DIM + 1},  # of W, and of the integral over it
        {"total_rows": float(ROWS.sum() + DIM + 1)},  # the Jacobian of a change of scale
        {"z_variance": 2 * Z_SD**2},
        {"shape": PRIOR.shape + 1},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_broken_normal_x_does_not(wrong):
    assert normal_x_chains(**wrong) < LEVEL
