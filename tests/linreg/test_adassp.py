"""adaSSP and the references without privacy: formulas, guarantees and refusals."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from dpmc.linreg.methods import adassp, ols, posterior
from dpmc.linreg.release import guarantees
from dpmc.linreg.release_terms import EXACT_COUNTS
from dpmc.linreg.types import NodeStatistics, Prior
from dpmc.privacy.events import gaussian
from dpmc.privacy.gaussian_noise import analytic_multiplier, true_delta, true_epsilon
from dpmc.privacy.ledger import Ledger
from dpmc.privacy.published_noise import published_multiplier
from dpmc.rng import stream

EPSILON, DELTA, BOUNDS = 1.0, 1e-5, (2.0, 0.5)
LOG = math.log(6 / DELTA)


def rows(num_rows=90, dim=3):
    """Rows within `BOUNDS`, of a regression with noise."""
    rng = stream(7, "tests", "adassp", num_rows, dim)
    x = rng.standard_normal((num_rows, dim))
    x *= 2.0 / np.maximum(2.0, np.linalg.norm(x, axis=1, keepdims=True))
    y = 0.1 * x @ np.arange(1, dim + 1) + 0.05 * rng.standard_normal(num_rows)
    return x, np.clip(y, -0.5, 0.5)


def statistics_of(x, y, num_nodes=3):
    nodes = list(zip(np.split(x, num_nodes), np.split(y, num_nodes), strict=True))
    return NodeStatistics(
        num_rows=np.array([len(b) for _, b in nodes]),
        s=np.stack([a.T @ a for a, _ in nodes]),
        z=np.stack([a.T @ b for a, b in nodes]),
        u=np.array([b @ b for _, b in nodes]),
        bounds=BOUNDS,
    )


def prior(dim=3, variance=38.0):
    return Prior(np.zeros(dim), variance * np.eye(dim), 20.0, 0.5, np.eye(dim), dim + 1.0)


def released(key=0, **settings):
    rng = stream(7, "tests", "adassp noise", key)
    return adassp.release(statistics_of(*rows()), *BOUNDS, EPSILON, DELTA, rng, **settings)


# --- release


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_each_third_of_the_budget_pays_for_one_release(neighbours):
    ledgers = [Ledger() for _ in range(3)]
    noisy = released(neighbours=neighbours, ledgers=ledgers)
    sigma = analytic_multiplier(EPSILON / 3, DELTA / 3)
    assert all(ledger.counts == {gaussian(sigma): 3} for ledger in ledgers)
    replaced = neighbours == "replace"
    assert noisy.s_sd == pytest.approx(sigma * 4 * (math.sqrt(2) if replaced else 1))
    assert noisy.z_sd == pytest.approx(sigma * (2 if replaced else 1))
    assert noisy.extra["smallest_eigenvalue_sd"] == pytest.approx(sigma * 4)
    assert noisy.u is None
    np.testing.assert_array_equal(noisy.s, np.swapaxes(noisy.s, 1, 2))


def test_three_releases_together_are_better_than_the_sum_of_their_thirds():
    noisy = released(neighbours="add_remove")
    sigma = analytic_multiplier(EPSILON / 3, DELTA / 3)
    # All three at once: S and z by the same row, the eigenvalue by as much as it can.
    assert noisy.guarantee.epsilon == pytest.approx(true_epsilon(sigma / math.sqrt(3), DELTA))
    assert noisy.guarantee.epsilon < 0.8 * EPSILON
    assert noisy.guarantee.outside == (EXACT_COUNTS,)
    assert guarantees(noisy)["replace"].epsilon > noisy.guarantee.epsilon


def test_an_adversary_stays_within_the_guarantee_of_all_three():
    """Rows exchanged in a data set whose weakest direction the row carries."""
    noisy = released()
    x, y = rows(30)
    best = 0.0
    for x_new, y_new in (((0, 0, 2.0), -0.5), ((0, 2.0, 0), -0.5), ((0.1, 0.2, 1.99), -0.5)):
        x[0], y[0] = (2.0, 0, 0), 0.5
        old = statistics_of(x, y, 1)
        x[0] = np.array(x_new) * 2.0 / max(2.0, np.linalg.norm(x_new))
        y[0] = y_new
        new = statistics_of(x, y, 1)
        i, j = np.triu_indices(3)
        eigenvalues = [np.linalg.eigvalsh(each.s[0])[0] for each in (old, new)]
        moved = np.concatenate(
            [
                (new.s - old.s)[0][i, j] / noisy.s_sd,
                (new.z - old.z)[0] / noisy.z_sd,
                [np.ptp(eigenvalues) / noisy.extra["smallest_eigenvalue_sd"]],
            ]
        )
        best = max(best, float(np.linalg.norm(moved)))
    shift = float(noisy.extra["shift_replace"])
    assert 0.75 * shift < best <= shift


def test_published_noise_on_the_eigenvalue_misses_its_third():
    """At (1/3, delta/3): for delta = 1e-5 and below, as the number of rows has it."""
    for delta, spent in ((1e-5, 3.47e-6), (1 / 347900, 1.65e-6)):
        sigma = math.sqrt(math.log(6 / delta)) / (1 / 3)
        assert true_delta(sigma, 1 / 3) == pytest.approx(spent, rel=0.01)
        assert true_delta(sigma, 1 / 3) > delta / 3
        assert true_delta(analytic_multiplier(1 / 3, delta / 3), 1 / 3) <= delta / 3
    published = adassp.Params(lambda_noise="published")
    noisy = released(params=published)
    assert noisy.extra["smallest_eigenvalue_sd"] == pytest.approx(math.sqrt(LOG) / (1 / 3) * 4)


def test_the_published_release_has_the_guarantee_of_its_own_noise():
    noisy = released(
        params=adassp.Params(lambda_noise="published"),
        neighbours="add_remove",
        calibration="published",
        bounds_source="data",
    )
    sigma = published_multiplier(1 / 3, DELTA / 3)
    shift = math.sqrt(2 / sigma**2 + 1 / (9 * LOG))
    assert noisy.guarantee.epsilon == pytest.approx(true_epsilon(1 / shift, DELTA))
    assert noisy.guarantee.epsilon > 2 * EPSILON
    assert "bounds taken from the data" in noisy.guarantee.outside


def test_noise_on_eigenvalues_has_its_deviation():
    """Chance of a false alarm 1e-6, on fresh noise; half of it is found out."""
    x, y = rows(3000, 1)
    exact = statistics_of(x, y, 3000)
    noisy = adassp.release(exact, *BOUNDS, EPSILON, DELTA, np.random.default_rng())
    noise = noisy.extra["smallest_eigenvalue"] - exact.s[:, 0, 0]
    scaled = noise / noisy.extra["smallest_eigenvalue_sd"]
    low, high = stats.chi2(3000).ppf([5e-7, 1 - 5e-7])
    assert low < scaled @ scaled < high
    assert not low < (scaled @ scaled) / 4 < high


# --- fit


def made_up(smallest, s, z, params=None):
    """Return a release with chosen values in place of noisy ones."""
    exact = statistics_of(*rows(), num_nodes=len(smallest))
    noisy = adassp.release(exact, *BOUNDS, EPSILON, DELTA, np.random.default_rng(), params=params)
    extra = {**noisy.extra, "smallest_eigenvalue": np.array(smallest, float)}
    return replace(noisy, s=s, z=z, extra=extra)


@pytest.mark.parametrize("lambda_noise", ["analytic", "published"])
def test_ridges_follow_the_published_formula(lambda_noise):
    """[Wang 2018] at d = 3, B = 2: written out."""
    params = adassp.Params(lambda_noise=lambda_noise, lambda_rule="sum", rho=0.05)
    s, z = np.stack([np.eye(3)] * 3), np.ones((3, 3))
    noisy = made_up([0.0, 250.0, 1e6], s, z, params)
    third = EPSILON / 3
    needed = math.sqrt(3 * LOG * math.log(2 * 9 / 0.05)) * 4 / third
    down = [max(0.0, value - LOG / third * 4) for value in (0.0, 250.0, 1e6)]
    expected = [max(0.0, needed - value) for value in down]
    assert 0 < expected[1] < expected[0]
    assert expected[2] == 0
    np.testing.assert_allclose(adassp.ridges(noisy, params), expected, rtol=1e-12)
    fit = adassp.fit(noisy, prior(), params, np.random.default_rng())
    assert fit.diagnostics["ridge"] == pytest.approx(sum(expected))
    np.testing.assert_allclose(fit.coefficients, 3 / (3 + sum(expected)), rtol=1e-12)
    root = adassp.fit(noisy, prior(), adassp.Params(), np.random.default_rng())
    assert root.diagnostics["ridge"] == pytest.approx(math.hypot(*expected))


@pytest.mark.parametrize(("neighbours", "covered"), [("add_remove", True), ("replace", False)])
def test_the_ridge_covers_the_noise_that_its_formula_is_made_for(neighbours, covered):
    """The norm of the noise of 400 nodes, fixed seed, exceeds it in a share of at most rho."""
    exact, rng = statistics_of(*rows(1200), 400), stream(7, "tests", "ridge")
    noisy = adassp.release(exact, *BOUNDS, EPSILON, DELTA, rng, neighbours=neighbours)
    weak = replace(noisy, extra={**noisy.extra, "smallest_eigenvalue": np.zeros(400)})
    norms = np.abs(np.linalg.eigvalsh(noisy.s - exact.s)).max(axis=1)
    share = (norms > adassp.ridges(weak, adassp.Params(rho=0.05))).mean()
    assert (share <= 0.05) == covered


def test_the_root_rule_does_not_grow_with_nodes_as_the_sum_does():
    fits = {}
    for rule in ("root", "sum"):
        noisy = made_up([0.0] * 9, np.stack([np.eye(3)] * 9), np.ones((9, 3)))
        params = adassp.Params(lambda_rule=rule)
        fits[rule] = adassp.fit(noisy, prior(), params, np.random.default_rng())
    assert fits["sum"].diagnostics["ridge"] == pytest.approx(3 * fits["root"].diagnostics["ridge"])


def test_with_a_huge_budget_adassp_is_least_squares():
    exact = statistics_of(*rows(90_000), 3)
    rng = np.random.default_rng()
    noisy = adassp.release(exact, *BOUNDS, 5e3, 0.3, rng)
    fit = adassp.fit(noisy, prior(), adassp.Params(), rng)
    least = ols.fit(exact, prior(), ols.Params(), rng)
    assert fit.diagnostics["ridge"] == 0
    np.testing.assert_allclose(fit.coefficients, least.coefficients, atol=2e-4)
    assert fit.guarantee == noisy.guarantee
    assert fit.status == "complete"


# --- references without privacy


def test_least_squares_agrees_with_the_rows():
    x, y = rows()
    fit = ols.fit(statistics_of(x, y), prior(), ols.Params(), np.random.default_rng())
    theta, residual, *_ = np.linalg.lstsq(x, y, rcond=None)
    np.testing.assert_allclose(fit.coefficients, theta, rtol=1e-10)
    variance = float(residual[0]) / (90 - 3)
    assert fit.diagnostics["noise_variance"] == pytest.approx(variance)
    np.testing.assert_allclose(fit.covariance, variance * np.linalg.inv(x.T @ x), rtol=1e-9)
    assert not fit.guarantee.private


@pytest.mark.parametrize("precision", [None, 1.7])
def test_the_posterior_is_normal_inverse_gamma(precision):
    """Against dense algebra, with a prior mean that is not zero."""
    x, y = rows()
    made = prior(variance=0.6)
    made = Prior(np.array([0.3, -0.2, 0.1]), made.covariance, 3.0, 0.7, made.scale, made.dof)
    fit = posterior.fit(
        statistics_of(x, y), made, posterior.Params(10, precision), np.random.default_rng()
    )
    l0 = (1 / 0.6 if precision is None else precision) * np.eye(3)
    ln = x.T @ x + l0
    mn = np.linalg.solve(ln, x.T @ y + l0 @ made.mean)
    bn = 0.7 + (y @ y + made.mean @ l0 @ made.mean - mn @ ln @ mn) / 2
    np.testing.assert_allclose(fit.coefficients, mn, rtol=1e-10)
    assert fit.diagnostics["shape"] == 3 + 45
    assert fit.diagnostics["rate"] == pytest.approx(bn, rel=1e-10)
    np.testing.assert_allclose(fit.covariance, bn / 47 * np.linalg.inv(ln), rtol=1e-10)


def test_draws_of_the_posterior_have_its_law():
    """Each whitened coefficient is t, sigma_y^2 inverse gamma: false alarm 1e-6 in all."""
    x, y = rows()
    fit = posterior.fit(
        statistics_of(x, y), prior(), posterior.Params(5000), np.random.default_rng()
    )
    an, bn = fit.diagnostics["shape"], fit.diagnostics["rate"]
    scale = fit.covariance * (an - 1) / an
    white = np.linalg.solve(np.linalg.cholesky(scale), (fit.draws - fit.coefficients).T)
    laws = [stats.kstest(each, stats.t(2 * an).cdf).pvalue for each in white]
    laws.append(stats.kstest(fit.variances, stats.invgamma(an, scale=bn).cdf).pvalue)
    assert min(laws) > 1e-6 / 4
    assert stats.kstest(white[0] * 1.2, stats.t(2 * an).cdf).pvalue < 1e-6
