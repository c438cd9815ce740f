"""MCMC-B&S as its users meet it: what it returns, counts and refuses."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dpmc.linreg.gibbs import covariance_moves
from dpmc.linreg.gibbs.conditionals import beliefs_of
from dpmc.linreg.gibbs.latent_sums import ReleasedSums, joint_covariance
from dpmc.linreg.methods import mcmc_bs
from dpmc.linreg.types import Prior
from dpmc.rng import stream
from dpmc.types import Guarantee
from tests.support.linreg_releases import FLAT, noisy_statistics

PRIOR = Prior(
    np.array([0.5, -1.0]),
    np.array([[1.0, 0.3], [0.3, 0.5]]),
    5.0,
    2.0,
    np.array([[4.0, 1.0], [1.0, 3.0]]),
    6.0,
)


def dense_log_density(k, joint, sums, released, conjugate):
    """Prior of G, Jacobian and density of the noise, by the textbook and SciPy."""
    turned = k @ joint @ k.T
    features, theta = turned[:2, :2], np.linalg.solve(turned[:2, :2], turned[:2, 2])
    variance = turned[2, 2] - theta @ features @ theta
    covariance = PRIOR.covariance * (variance if conjugate else 1.0)
    value = stats.invwishart(PRIOR.dof, PRIOR.scale).logpdf(features)
    value += stats.multivariate_normal(PRIOR.mean, covariance).logpdf(theta)
    value += stats.invgamma(PRIOR.shape, scale=PRIOR.rate).logpdf(variance)
    value += 4 * np.linalg.slogdet(k)[1] - np.linalg.slogdet(features)[1]
    upper = np.triu_indices(3)
    residuals = (released.noisy - k @ sums @ k.T)[:, upper[0], upper[1]]
    return value + stats.norm(scale=np.sqrt(released.variances[upper])).logpdf(residuals).sum()


@pytest.mark.parametrize("conjugate", [False, True])
def test_the_density_of_a_joint_move_is_that_of_dense_algebra(conjugate):
    rng = stream(36, "dense")
    rows = rng.standard_normal((2, 30, 3)) @ np.array([[1, 0.2, 0.5], [0, 0.7, 0.1], [0, 0, 0.8]])
    sums = rows.mT @ rows
    noise = np.array([[9.0, 4.0, 2.0], [4.0, 6.0, 3.0], [2.0, 3.0, 5.0]])
    noisy = sums + np.array([[[3.0, 1, 2], [1, -2, 1], [2, 1, 4.0]], -2 * np.eye(3)])
    released = ReleasedSums(noisy, noise, np.array([30.0, 30.0]))
    joint, polynomial = np.empty((3, 3)), np.empty(5)
    joint_covariance(np.array([0.3, -0.8]), 0.7, np.array([[1.2, 0.3], [0.3, 0.9]]), joint)
    basis, dual = covariance_moves.directions(released)
    np.testing.assert_allclose(basis @ dual.T, np.eye(3), atol=1e-12)
    beliefs = beliefs_of(PRIOR, conjugate)
    for first, second in ((0, 0), (2, 2), (0, 1), (2, 0), (1, 2)):
        c, r, scales = basis[first], dual[second], first == second
        nodes = covariance_moves.latent_nodes(released, sums)
        covariance_moves.aim(nodes, c, r)
        covariance_moves.noise_polynomial(nodes, polynomial)
        precision = np.linalg.inv(joint)
        image = precision @ c
        line = covariance_moves.line_of(precision, image, c, r, scales, polynomial, beliefs)
        at = {}
        for t in (0.0, -0.4, 0.05, 0.8):
            k = np.eye(3) + (np.expm1(t) if scales else t) * np.outer(c, r)
            log_density = covariance_moves.log_density(t, line, beliefs)
            at[t] = log_density - dense_log_density(k, joint, sums, released, conjugate)
            out = precision.copy()
            back = covariance_moves.back(t, scales)
            covariance_moves.turn_precision(image, line.length, r, back, out)
            np.testing.assert_allclose(out, np.linalg.inv(k @ joint @ k.T), rtol=1e-9, atol=1e-10)
            moved, room = np.empty_like(sums), nodes._replace(room=nodes.room.copy())
            covariance_moves.turn_sums(room, np.expm1(t) if scales else t)
            covariance_moves.copy_sums(room, moved)
            np.testing.assert_allclose(moved, k @ sums @ k.T, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(list(at.values()), at[0.0], rtol=0, atol=1e-9)


PUBLISHED = {
    "law": "normal",
    "update": "direct",
    "coefficient_prior": "conjugate",
    "precision": 0.5 / 19,
    "project": True,
    "ridge": 1.0,
}


def test_the_published_chain_counts_its_repairs():
    params = mcmc_bs.Params(400, 100, **PUBLISHED)
    fits = {
        sd: mcmc_bs.fit(noisy_statistics(sd=sd), FLAT, params, stream(30, "published"))
        for sd in (5.0, 2000.0)
    }
    assert fits[5.0].diagnostics["projected"] == fits[5.0].diagnostics["floored"] == 0
    assert 0 < fits[2000.0].diagnostics["projected"] <= 1
    assert 0 < fits[2000.0].diagnostics["floored"] <= 1
    for fit in fits.values():
        assert fit.status == "complete"
        assert fit.draws.shape == (300, 2)
        assert np.isfinite(fit.draws).all()
        assert (fit.variances > 0).all()
        assert fit.guarantee == Guarantee(1.0, 1e-5)


def test_without_a_repair_the_published_chain_stops_and_says_why():
    params = mcmc_bs.Params(400, 0, **(PUBLISHED | {"project": False, "ridge": 0.0}))
    fit = mcmc_bs.fit(noisy_statistics(sd=2000.0), FLAT, params, stream(32, "stops"))
    assert fit.status.startswith("stopped at iteration ")
    assert fit.status.endswith("S is not positive definite")
    assert len(fit.draws) == len(fit.variances) < 400
    assert np.isfinite(fit.draws).all()
