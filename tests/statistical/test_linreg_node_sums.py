"""Both updates of the sums of a node keep their law; updates broken on purpose do not.

The tests of laws are exact, as in test_invariance: what starts from independent exact draws
of a joint law is, after any number of updates, a sample of independent exact draws again.
The nodes of one call, with one G, are that sample. Each comparison is a Kolmogorov-Smirnov
test at level 1e-7; with about a hundred and thirty of them the error rate of the file is
below 2e-5. Every broken variant has to fail at that same level.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dpmc.linreg.gibbs import latent_sums
from dpmc.linreg.gibbs.latent_sums import ReleasedSums, log_density_ratio, product_covariance
from dpmc.rng import stream

pytestmark = pytest.mark.slow

LEVEL = 1e-7
UPPER = np.triu_indices(3)
JOINT = np.array([[2.0, 0.6, 1.0], [0.6, 0.7, -0.3], [1.0, -0.3, 1.5]])
# Noise of the size of the spread of the sums, where both matter, and smaller noise.
VARIANCES = {
    "one": np.full((3, 3), 16.0),
    "small": np.full((3, 3), 1.0),
    "several": np.array([[16.0, 20.0, 25.0], [20.0, 12.0, 25.0], [25.0, 25.0, 40.0]]),
}
UPDATES = {"augmented": latent_sums.update_augmented, "direct": latent_sums.update_direct}
DIRECTIONS = np.vstack([np.eye(3), np.eye(3) - np.roll(np.eye(3), 1, axis=1)])
# A Wishart law so far from normal that the difference shows.
ROWS = 6


def symmetric(entries: np.ndarray) -> np.ndarray:
    out = np.empty((len(entries), 3, 3))
    out[:, UPPER[0], UPPER[1]] = out[:, UPPER[1], UPPER[0]] = entries
    return out


def nodes(law: str, variances: np.ndarray, num: int) -> tuple[np.ndarray, ReleasedSums]:
    """Draw the sums of nodes with the same G, and release them with noise."""
    rng = stream(21, "nodes", law, num, float(variances.sum()))
    if law == "wishart":
        sums = stats.wishart(ROWS, JOINT).rvs(num, random_state=rng)
    else:
        factor = np.linalg.cholesky(ROWS * product_covariance(JOINT))
        sums = symmetric(ROWS * JOINT[UPPER] + rng.standard_normal((num, 6)) @ factor.T)
    noise = np.sqrt(variances[UPPER]) * rng.standard_normal((num, 6))
    return sums, ReleasedSums(sums + symmetric(noise), variances, np.full(num, float(ROWS)))


def p_values(
    law: str, sums: np.ndarray, released: ReleasedSums, variances: np.ndarray
) -> np.ndarray:
    """Compare the noise, and the sums, with their laws, which are independent."""
    noise = ((released.noisy - sums)[:, UPPER[0], UPPER[1]]) / np.sqrt(variances[UPPER])
    tests = [stats.kstest(column, "norm") for column in noise.T]
    tests.append(stats.kstest(np.sum(noise**2, axis=1), stats.chi2(6).cdf))
    if law == "wishart":
        traces = np.einsum("ik,nki->n", np.linalg.inv(JOINT), sums)
        tests.append(stats.kstest(traces, stats.chi2(3 * ROWS).cdf))
        for a in DIRECTIONS:
            ratios = np.einsum("i,nik,k->n", a, sums, a) / (a @ JOINT @ a)
            tests.append(stats.kstest(ratios, stats.chi2(ROWS).cdf))
    else:
        root = np.linalg.cholesky(ROWS * product_covariance(JOINT))
        centred = sums[:, UPPER[0], UPPER[1]] - ROWS * JOINT[UPPER]
        tests += [stats.kstest(column, "norm") for column in np.linalg.solve(root, centred.T)]
    return np.array([test.pvalue for test in tests])


def after(update, law, variances, num=4000, steps=4, start_law=None, claimed=None):
    """Update the sums of some nodes and test them against the law that they had."""
    start_law = start_law or law
    sums, released = nodes(start_law, variances, num)
    seen = released._replace(variances=variances if claimed is None else claimed)
    rng, tallies = stream(22, "updates", law, num), np.zeros(2, dtype=np.int64)
    for _ in range(steps):
        update(seen, JOINT, law == "wishart", sums, rng, tallies)
    return p_values(start_law, sums, released, variances)


@pytest.mark.parametrize("noise", VARIANCES)
@pytest.mark.parametrize("law", ["wishart", "normal"])
@pytest.mark.parametrize("name", UPDATES)
def test_both_updates_leave_the_law_of_the_sums_invariant(name, law, noise):
    assert (after(UPDATES[name], law, VARIANCES[noise]) > LEVEL).all()


@pytest.mark.parametrize("name", UPDATES)
def test_the_normal_update_does_not_keep_the_wishart_law(name):
    p = after(UPDATES[name], "normal", VARIANCES["one"], start_law="wishart")
    assert (p < LEVEL).any()


@pytest.mark.parametrize("name", UPDATES)
def test_noise_taken_for_the_rotation_invariant_one_breaks_the_law(name):
    """Half of the variance off the diagonal: the independent rest forgotten."""
    halved = np.where(np.eye(3), 1.0, 0.5) * VARIANCES["one"]
    assert (after(UPDATES[name], "wishart", VARIANCES["one"], claimed=halved) < LEVEL).any()


def no_spread(sums, noisy, variances, invariant, rng, out):
    """A smoothing that takes the expectation in place of a draw."""
    share = invariant * np.where(np.eye(3), 1.0, 0.5) / variances
    out[:] = sums + share * (noisy - sums)


def no_ratio(sums, mean, noise, count, rng, out, factor):
    """A slice that takes the normal draw."""
    out[:] = mean + noise
    return 1


@pytest.mark.parametrize(
    ("part", "broken", "noise"),
    [("smooth", no_spread, "small"), ("elliptical_slice", no_ratio, "one")],
)
def test_an_update_with_a_broken_part_fails(monkeypatch, part, broken, noise):
    python, variances = latent_sums.update_augmented.py_func, VARIANCES[noise]
    assert (after(python, "wishart", variances, num=1500) > LEVEL).all()
    monkeypatch.setattr(latent_sums, part, broken)
    assert (after(python, "wishart", variances, num=1500) < LEVEL).any()


def test_successive_sums_correlate_by_at_most_one_half():
    """Within five standard errors, and more than 0.4 where nothing but noise is unknown."""
    num, rng = 20_000, stream(23, "correlation")
    for rows, least in ((3.0, 0.0), (4000.0, 0.4)):
        noisy = np.tile(rows * JOINT, (num, 1, 1))
        released = ReleasedSums(noisy, VARIANCES["one"], np.full(num, rows))
        tallies, sums = np.zeros(2, dtype=np.int64), noisy.copy()
        latent_sums.update_direct(released, JOINT, False, sums, rng, tallies)
        before = sums[:, UPPER[0], UPPER[1]].copy()
        latent_sums.update_augmented(released, JOINT, False, sums, rng, tallies)
        pairs = zip(before.T, sums[:, UPPER[0], UPPER[1]].T, strict=True)
        correlations = np.array([np.corrcoef(a, b)[0, 1] for a, b in pairs])
        assert correlations.max() < 0.5 + 5 / np.sqrt(num)
        assert correlations.max() > least


def test_the_covariance_of_products_is_that_of_gaussian_integrals():
    """Three Gauss-Hermite nodes per dimension integrate the fourth moments exactly."""
    points, weights = np.polynomial.hermite_e.hermegauss(3)
    grid = np.stack(np.meshgrid(points, points, points), axis=-1).reshape(-1, 3)
    mass = np.prod(np.stack(np.meshgrid(weights, weights, weights), axis=-1), axis=-1).ravel()
    mass /= mass.sum()
    w = grid @ np.linalg.cholesky(JOINT).T
    products = w[:, UPPER[0]] * w[:, UPPER[1]]
    mean = mass @ products
    np.testing.assert_allclose(mean, JOINT[UPPER], rtol=1e-12)
    covariance = (products - mean).T @ (mass[:, None] * (products - mean))
    np.testing.assert_allclose(product_covariance(JOINT), covariance, rtol=1e-11, atol=1e-12)


def test_the_ratio_of_laws_is_that_of_their_densities():
    white, factor = np.linalg.inv(np.linalg.cholesky(JOINT)), np.empty((3, 3))
    normal = stats.multivariate_normal(ROWS * JOINT[UPPER], ROWS * product_covariance(JOINT))
    wishart = stats.wishart(ROWS, JOINT)
    sums = wishart.rvs(20, random_state=stream(24, "ratio"))
    expected = [wishart.logpdf(t) - normal.logpdf(t[UPPER]) for t in sums]
    actual = [log_density_ratio(white @ t @ white.T / ROWS, ROWS, factor) for t in sums]
    constants = np.subtract(expected, actual)
    np.testing.assert_allclose(constants, constants[0], rtol=0, atol=1e-10)
    assert log_density_ratio(np.eye(3), ROWS, factor) == 0
    assert log_density_ratio(np.diag([1.0, 1.0, -1.0]), ROWS, factor) == -np.inf
