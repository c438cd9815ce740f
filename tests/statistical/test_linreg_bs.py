"""MCMC-B&S samples the posterior of its model; chains broken on purpose do not.

The joint test is exact, as in test_invariance: short chains that start from independent
exact draws of parameters, sums and release jointly end in such draws. Their states are
compared with fresh draws by two-sample Kolmogorov-Smirnov tests at level 1e-7; with about two
hundred of them the error rate of the file is below 3e-5. Every broken variant has to fail
at that same level.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dpmc.linreg.gibbs import bernstein_sheldon, covariance_moves
from dpmc.linreg.gibbs.conditionals import beliefs_of
from dpmc.linreg.gibbs.covariance_moves import directions
from dpmc.linreg.gibbs.latent_sums import ReleasedSums, joint_covariance
from dpmc.linreg.methods import mcmc_bs
from dpmc.linreg.types import Prior
from dpmc.rng import stream
from tests.support.linreg_releases import FLAT, UPPER, noisy_statistics, symmetric

pytestmark = pytest.mark.slow

LEVEL = 1e-7
CHAINS = 2000
# So few rows that the law of their sums is far from normal, and noise that is larger.
COUNTS = np.array([4.0, 5.0])
NOISE = np.full((3, 3), 100.0)
PRIOR = Prior(
    np.array([0.5, -1.0]),
    np.array([[1.0, 0.3], [0.3, 0.5]]),
    5.0,
    2.0,
    np.array([[4.0, 1.0], [1.0, 3.0]]),
    6.0,
)


def joint_draws(name: str, conjugate: bool = False) -> tuple[np.ndarray, ...]:
    """Draw parameters from the prior, sums of all nodes and their noisy release."""
    rng = stream(25, "joint", name)
    variance = stats.invgamma(PRIOR.shape, scale=PRIOR.rate).rvs(CHAINS, random_state=rng)
    sd = np.sqrt(variance)[:, None] if conjugate else 1.0
    root = np.linalg.cholesky(PRIOR.covariance)
    theta = PRIOR.mean + sd * (rng.standard_normal((CHAINS, 2)) @ root.T)
    features = stats.invwishart(PRIOR.dof, PRIOR.scale).rvs(CHAINS, random_state=rng)
    sums = np.empty((CHAINS, len(COUNTS), 3, 3))
    for j, count in enumerate(COUNTS.astype(int)):
        x = rng.standard_normal((CHAINS, count, 2)) @ np.linalg.cholesky(features).mT
        noise = np.sqrt(variance)[:, None] * rng.standard_normal((CHAINS, count))
        w = np.concatenate([x, (np.einsum("cni,ci->cn", x, theta) + noise)[..., None]], axis=2)
        sums[:, j] = w.mT @ w
    noise = np.sqrt(NOISE[UPPER]) * rng.standard_normal((CHAINS * len(COUNTS), 6))
    return theta, variance, sums, sums + symmetric(noise).reshape(sums.shape), features


def summaries(theta, variance, sums, noisy, features=None):
    """Return functions of joint draws whose laws are compared, shape (chains, m).

    None needs parameters and sums of the same moment: a chain returns parameters that it
    had before it moved the sums.
    """
    total, seen = sums.sum(axis=1), noisy.sum(axis=1)
    noise = (noisy - sums)[:, :, UPPER[0], UPPER[1]].reshape(len(sums), -1)
    return np.column_stack(
        [
            theta,
            np.log(variance),
            theta[:, 0] * theta[:, 1],
            np.log(np.abs(np.diagonal(sums, axis1=2, axis2=3)).reshape(len(sums), -1)),
            total[:, 0, 1] / np.sqrt(np.abs(total[:, 0, 0] * total[:, 1, 1])),
            seen[:, 0, 2] - np.einsum("ck,ck->c", seen[:, 0, :2], theta),
            seen[:, 2, 2] * variance,
            total[:, 0, 2] * noisy[:, 0, 0, 2],
            noise,
            (noise**2).sum(axis=1),
        ]
    )


def compare(last: tuple, conjugate: bool = False) -> np.ndarray:
    """Return p-values of joint draws, or of their first few, against fresh ones."""
    fresh = summaries(*joint_draws("fresh", conjugate))
    pairs = zip(summaries(*last).T, fresh.T, strict=True)
    return np.array([stats.ks_2samp(a, b).pvalue for a, b in pairs])


def geweke(steps=10, prior=PRIOR, rows_conjugate=False, **settings) -> np.ndarray:
    """Return p-values of the states of chains after some steps from exact draws."""
    params = mcmc_bs.Params(num_iterations=steps, burn_in=steps - 1, **settings)
    theta, variance, sums, noisy, _ = joint_draws("start", rows_conjugate)
    beliefs = beliefs_of(prior, params.coefficient_prior == "conjugate", params.precision)
    options, tallies = mcmc_bs.settings_of(params, 2), np.zeros(4, dtype=np.int64)
    rng, draws, variances = stream(26, "geweke"), np.empty((1, 2)), np.empty(1)
    for c in range(CHAINS):
        released = ReleasedSums(noisy[c], NOISE, COUNTS)
        axes = directions(released)
        done = bernstein_sheldon.run(
            released, beliefs, options, axes, sums[c], variance[c], rng, draws, variances, tallies
        )
        assert done == (steps, 0)
        theta[c], variance[c] = draws[0], variances[0]
    return compare((theta, variance, sums, noisy), rows_conjugate)


@pytest.mark.parametrize("joint_moves", [0, None])
@pytest.mark.parametrize("coefficient_prior", ["independent", "conjugate"])
@pytest.mark.parametrize("update", mcmc_bs.UPDATES)
def test_chains_leave_the_joint_law_invariant(update, coefficient_prior, joint_moves):
    settings = {"update": update, "coefficient_prior": coefficient_prior}
    p = geweke(
        5, rows_conjugate=coefficient_prior == "conjugate", joint_moves=joint_moves, **settings
    )
    assert (p > LEVEL).all()


def test_with_as_many_steps_as_a_broken_chain_gets_they_still_do():
    assert (geweke() > LEVEL).all()


BROKEN_PRIORS = {
    "dof": Prior(PRIOR.mean, PRIOR.covariance, 5.0, 2.0, PRIOR.scale, PRIOR.dof + 2),
    "rate": Prior(PRIOR.mean, PRIOR.covariance, 5.0, 2.6, PRIOR.scale, PRIOR.dof),
    "covariance": Prior(PRIOR.mean, 4 * PRIOR.covariance, 5.0, 2.0, PRIOR.scale, PRIOR.dof),
}


@pytest.mark.parametrize("what", BROKEN_PRIORS)
def test_with_another_prior_they_do_not(what):
    assert (geweke(prior=BROKEN_PRIORS[what]) < LEVEL).any()


def test_with_the_prior_that_scales_they_do_not():
    """Rows of the independent prior, chains of the conjugate one."""
    assert (geweke(coefficient_prior="conjugate") < LEVEL).any()


def test_with_sums_under_their_normal_law_they_do_not():
    """As published, but for the ridge: what the error of few rows amounts to."""
    assert (geweke(law="normal", project=True) < LEVEL).any()


def moved(monkeypatch, jacobian: bool, chains=1500, moves=9) -> np.ndarray:
    """Return p-values after joint moves alone, run in Python so that a part can be replaced."""
    theta, variance, sums, noisy, features = (a[:chains] for a in joint_draws("moves"))
    log_density = covariance_moves.log_density

    def without(t, line, beliefs):
        return log_density(t, line, beliefs) - (line.size + 1) * (t if line.scales else 0)

    if not jacobian:
        monkeypatch.setattr(covariance_moves, "log_density", without)
        monkeypatch.setattr(
            covariance_moves, "draw_parameter", covariance_moves.draw_parameter.py_func
        )
    rng, beliefs, joint = stream(34, "moves"), beliefs_of(PRIOR, False), np.empty((3, 3))
    for c in range(chains):
        released = ReleasedSums(noisy[c], NOISE, COUNTS)
        joint_covariance(theta[c], variance[c], features[c], joint)
        axes = directions(released)
        move = covariance_moves.move_jointly.py_func
        variance[c] = move(released, beliefs, axes, moves, joint, sums[c], rng)
    # theta moves along, but only sigma_y^2 is returned: it is compared as it was before.
    return compare((theta, variance, sums, noisy))


def test_joint_moves_alone_leave_the_joint_law_invariant(monkeypatch):
    assert (moved(monkeypatch, jacobian=True) > LEVEL).all()


def test_joint_moves_without_their_jacobian_do_not(monkeypatch):
    assert (moved(monkeypatch, jacobian=False) < LEVEL).any()


def test_joint_moves_make_chains_of_much_noise_move():
    """Effective draws of 4,000: tens without, more than two hundred with."""
    from arviz import ess

    noisy, sizes = noisy_statistics(sd=100.0), {}
    for count in (0, None):
        params = mcmc_bs.Params(5_000, 1_000, joint_moves=count)
        fit = mcmc_bs.fit(noisy, FLAT, params, stream(35, "moves"))
        sizes[count] = min(float(ess(column[None])) for column in fit.draws.T)
    assert sizes[None] > 200 > 2 * sizes[0]


@pytest.mark.parametrize("law", ["wishart", "normal"])
def test_chains_of_both_updates_have_the_same_posterior(law):
    """Means and standard deviations within 5.5 standard errors: error rate below 1e-6."""
    from arviz import ess

    noisy, moments = noisy_statistics(sd=20.0), {}
    for update in mcmc_bs.UPDATES:
        params = mcmc_bs.Params(20_000, 2_000, update=update, law=law)
        fit = mcmc_bs.fit(noisy, FLAT, params, stream(28, update, law))
        values = np.column_stack([fit.draws, np.log(fit.variances)])
        values = np.column_stack([values, (values - values.mean(0)) ** 2])
        sizes = np.array([float(ess(column[None])) for column in values.T])
        assert sizes.min() > 100, "too few draws to tell anything"
        moments[update] = values.mean(0), values.std(0) / np.sqrt(sizes)
    (a, a_se), (b, b_se) = moments["augmented"], moments["direct"]
    assert (np.abs(a - b) < 5.5 * np.hypot(a_se, b_se)).all()


def test_with_hardly_any_noise_the_posterior_is_the_nonprivate_one():
    """sigma_y^2 integrated out on a grid; 5.5 standard errors of independent draws."""
    noisy = noisy_statistics(sd=1e-4)
    s, z, u = noisy.s.sum(0), noisy.z.sum(0), noisy.u.sum()
    grid = np.geomspace(0.3, 1.5, 2000)
    means, logs = [], []
    for variance in grid:
        precision = s / variance + np.eye(2) / 4.0
        mean = np.linalg.solve(precision, z / variance)
        means.append(mean)
        quadratic = u / variance - mean @ precision @ mean
        logs.append(-(3.0 + 550) * np.log(variance) - 2.0 / variance - quadratic / 2)
        logs[-1] -= np.linalg.slogdet(precision)[1] / 2
    weights = np.exp(np.array(logs) - max(logs))
    exact = weights @ np.array(means) / weights.sum()
    fit = mcmc_bs.fit(noisy, FLAT, mcmc_bs.Params(6_000, 1_000), stream(29, "no noise"))
    error = fit.draws.std(0) / np.sqrt(len(fit.draws) / 2)
    assert (np.abs(fit.coefficients - exact) < 5.5 * error).all()
    np.testing.assert_array_equal(fit.coefficients, fit.draws.mean(0))
