"""Chains for a release: their parts, what they accept, and that they can be run in parts.

Statistical limits are at 5 standard errors, an error rate of 6e-7 for each of a dozen.
"""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest
from scipy import stats

import dpmc.statsel as selection
from dpmc import registry
from dpmc.diagnostics.autocorrelation import ShortChainWarning
from dpmc.numerics.normal_quantile import normal_quantile
from dpmc.statsel import order_draws, releases, smooth, targets
from dpmc.statsel.chains.common import RIGHT, ThetaWalk, exponentiate, pick
from dpmc.statsel.chains.driver import ChainRun
from dpmc.statsel.posterior import likelihoods
from dpmc.statsel.releases import Release, ReleaseTerms
from dpmc.types import NO_GUARANTEE, DpmcError

POPULATION = selection.population("normal_variance", bound=10.0)
ABSOLUTE = selection.statistic("abs_1")
LAPLACE = selection.mechanism("laplace")
SMOOTH = selection.mechanism("smooth_laplace")
TERMS = ReleaseTerms(POPULATION, ABSOLUTE, LAPLACE, 5.0, None)
RELEASE = Release(1.15, math.nan, NO_GUARANTEE, 100, "continuous", TERMS)


def test_normal_quantiles_are_exact():
    p = np.concatenate(
        [np.logspace(-300, -2, 60), np.linspace(0.02, 0.98, 97), 1 - 1e-9 * 7.0 ** -np.arange(3)]
    )
    found = np.array([normal_quantile(value) for value in p])
    np.testing.assert_allclose(found, stats.norm.ppf(p), rtol=1e-13, atol=1e-15)


def revealed(order, num, seed=1):
    """Return data sets of which all ranks are known."""
    particles, rng = order_draws.Particles.of(num, order.num), np.random.default_rng(seed)
    wide = order._replace(alpha=1.0, beta=0.0, high=1e6)
    released_at = order_draws.make_released_at(POPULATION.generate, ABSOLUTE.transform)
    for i in range(num):
        order_draws.draw_centre(order, particles, i, rng)
        released_at(wide, particles, i, 1.0, rng)
    assert (particles.reach == [1, order.num]).all()
    return particles


@pytest.mark.parametrize(("statistic", "n"), [("median", 9), ("median", 10), ("max", 7)])
def test_order_statistics_have_their_distributions(statistic, n):
    """Every rank by a Kolmogorov-Smirnov test at level 1e-6; 2,000 data sets."""
    chosen = selection.statistic(statistic)
    order = order_draws.order_of(POPULATION, chosen, LAPLACE, n, 5.0)
    z = revealed(order, 2000).z
    assert (np.diff(z, axis=1) >= 0).all()
    u = 2 * stats.norm.cdf(z) - 1
    for j in range(n):
        assert stats.kstest(u[:, j], stats.beta(j + 1, n - j).cdf).pvalue > 1e-6
    # The correlation of neighbours shows how ranks depend on each other.
    cov = np.cov(u[:, 2], u[:, 3])[0, 1]
    assert cov == pytest.approx(3 * (n - 3) / ((n + 1) ** 2 * (n + 2)), rel=0.25)


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize(("statistic", "n"), [("median", 40), ("median", 41), ("max", 30)])
def test_released_numbers_are_those_of_all_records(statistic, n, average):
    """Against the search through sorted records, at two thetas, some records clipped."""
    chosen = selection.statistic(
        statistic, **({"average": average} if statistic == "median" else {})
    )
    order = order_draws.order_of(POPULATION, chosen, SMOOTH, n, 5.0, 1e-4)
    particles, rng = revealed(order, 20), np.random.default_rng(2)
    released_at = order_draws.make_released_at(POPULATION.generate, ABSOLUTE.transform)
    for i in range(20):
        for theta in (2.0, 40.0):
            s = np.minimum(math.sqrt(theta) * particles.z[i], 10.0)
            value, scale = released_at(order, particles, i, theta, rng)
            assert value == pytest.approx(smooth.released(s, chosen), rel=1e-14)
            width = smooth.of(s, chosen, POPULATION.support, order.beta)
            assert scale == pytest.approx(width / order.alpha, rel=1e-12)


def test_noise_of_constant_scale_is_that_of_the_release():
    chosen, x = selection.statistic("max"), np.linspace(-3, 3, 20)
    order = order_draws.order_of(POPULATION, chosen, LAPLACE, 20, 4.0)
    exact = releases.before_noise(POPULATION, chosen, LAPLACE, x, 4.0)
    assert order.scale == exact.scale


def test_weights_are_relative_to_the_largest():
    logs = np.array([-1e4, -1e4 + 1, -math.inf])
    top, total = exponentiate(logs, 0)
    assert (top, total) == pytest.approx((-1e4 + 1, 1 + math.exp(-1)))
    assert logs[2] == 0
    rng = np.random.default_rng(3)
    counts = np.bincount([pick(logs, total, rng) for _ in range(20_000)], minlength=3)
    share = math.exp(-1) / total
    assert counts[2] == 0
    assert abs(counts[0] - 20_000 * share) < 5 * math.sqrt(20_000 * share * (1 - share))


TARGETS = {
    "mh": ("abs_1", "laplace", 1.15),
    "pmmh": ("abs_1", "laplace", 1.15),
    "mhaar": ("abs_1", "laplace", 1.15),
    "exact": ("max", "laplace", 2.3),
    "sequential": ("abs_1", "per_record_laplace", None),
}


def chain(method, **params):
    statistic, mechanism, y = TARGETS[method]
    made, n = selection.mechanism(mechanism), 100 if method != "sequential" else 6
    y = np.linspace(0, 3, n) if y is None else y
    given = targets.target(POPULATION, selection.statistic(statistic), made, y, n, 5.0, (0.0, 30.0))
    module = registry.load("statsel_posterior", method)
    settings = module.Params(**({"num_particles": 4} if method != "mh" else {}), **params)
    walk, rng = ThetaWalk(0.0, 30.0, 1.0), np.random.default_rng(4)
    return module.chain(ChainRun(given, settings, RIGHT, walk, 2.0, rng))


@pytest.mark.parametrize("method", TARGETS)
def test_a_chain_goes_on_where_it_ended(method):
    whole, parts = np.empty(300), np.empty(300)
    moves = chain(method)(whole)
    advance = chain(method)
    assert sum(advance(parts[k : k + 75]) for k in range(0, 300, 75)) == moves
    np.testing.assert_array_equal(whole, parts)
    assert 10 < moves < 290
    assert moves == np.count_nonzero(np.diff(np.concatenate([[2.0], whole])))
    assert ((whole > 0) & (whole < 30)).all()


def test_sampling_tells_how_sure_it_is():
    found = selection.sample(
        RELEASE, prior=(0.0, 100.0), num_iterations=40_000, seed=2, progress=True
    )
    known = selection.reference(RELEASE, prior=(0.0, 100.0))
    assert abs(found.mean - known.mean) < 5 * found.standard_error
    assert 1 < found.autocorrelation_time.value < 20
    assert (found.method, found.theta.shape) == ("mh", (36_000,))
    with pytest.warns(ShortChainWarning):
        selection.sample(
            RELEASE, prior=(0.0, 100.0), num_iterations=50, proposal_sd=0.01, start=2.0
        )


def test_statistics_that_are_not_monotone_in_the_base_variable_are_refused():
    population = selection.population("normal_mean", bound=10.0, symmetric=True)
    with pytest.raises(DpmcError, match="`statistic` must be monotone in x"):
        order_draws.order_of(population, selection.statistic("max"), LAPLACE, 5, 1.0)
    with pytest.raises(DpmcError, match=r"`mechanism` must be laplace .*got 'gaussian'"):
        order_draws.order_of(
            POPULATION, selection.statistic("max"), selection.mechanism("gaussian"), 5, 1.0
        )
    with pytest.raises(DpmcError, match=r"`delta` must be in .*got None"):
        order_draws.order_of(POPULATION, selection.statistic("max"), SMOOTH, 5, 1.0)


def test_the_likelihood_of_a_mean_has_its_variance_over_the_records():
    """The sum of a normal mean of n records and normal noise, by SciPy."""
    log_likelihood = likelihoods.make_log_likelihood(
        likelihoods.log_gaussian,
        numba.njit(lambda theta: 2 * theta),
        numba.njit(lambda theta: theta),
    )
    released = likelihoods.NoisyMean(1.3, 0.4, 25.0)
    for theta in (0.5, 3.0):
        expected = stats.norm.logpdf(1.3, 2 * theta, math.sqrt(theta / 25 + 0.4**2))
        assert log_likelihood(released, theta) == pytest.approx(expected, rel=1e-12)
