"""Posteriors by quadrature: against closed forms, other integrals and simulation."""

from __future__ import annotations

import itertools
import math

import numba
import numpy as np
import pytest
from scipy import integrate, stats

import dpmc.statsel as selection
from dpmc.statsel import targets
from dpmc.statsel.order_draws import Order
from dpmc.statsel.posterior import order_proposal, quadrature
from dpmc.statsel.targets import ThetaPrior
from dpmc.types import DpmcError

VARIANCE = selection.population("normal_variance", bound=10.0)


def test_panels_integrate_distributions_of_any_width():
    for mean, sd in ((0.3, 1e-4), (2.0, 0.1), (5.0, 1.0)):
        found = quadrature.integrate(lambda t, m=mean, s=sd: -0.5 * ((t - m) / s) ** 2, 0.0, 10.0)
        distribution = stats.truncnorm((0 - mean) / sd, (10 - mean) / sd, mean, sd)
        assert found.mean == pytest.approx(distribution.mean(), rel=1e-10)
        assert found.sd == pytest.approx(distribution.std(), rel=1e-8)
        np.testing.assert_allclose(found.density, distribution.pdf(found.theta), atol=1e-7 / sd)
    found = quadrature.integrate(lambda t: -t / 0.05, 0.0, 1000.0)
    assert (found.mean, found.sd) == pytest.approx((0.05, 0.05), rel=1e-8)


def test_quantiles_of_a_posterior_are_those_of_its_distribution():
    found = quadrature.integrate(lambda t: -0.5 * ((t - 5) / 0.3) ** 2, 0.0, 10.0)
    ends = stats.norm(5, 0.3).ppf(quadrature.TAILS)
    assert (found.low, found.high) == pytest.approx(tuple(ends), abs=0.01 * 0.3)


def test_wide_gaps_are_weighted_by_how_often_they_occur():
    """Of 16,384 data sets of a middle, a lowest and a highest rank: weights have mean 1, and the
    uniform of the rank and the gaps have their means, within 5 standard errors."""
    for rank in (1, 8, 15):
        order = Order(0, 15, rank, 0, (-1.0, 1.0), -1.0, 1.0, 0.1, 1.0, math.nan)
        rng = np.random.default_rng(rank)
        sets = order_proposal.draw(order, 2**14, 16, np.uint64(1), rng)
        weights, gaps = np.exp(sets.log_weights), sets.exponentials.near
        columns = [np.ones(2**14), sets.centres[:, 0] / (rank / 16)]
        columns += [gap for gap in gaps.T if not np.isnan(gap).any()]
        for column in columns:
            terms = weights * column
            assert abs(terms.mean() - 1) < 5 * terms.std() / math.sqrt(terms.size)
        assert sets.centres.sum(axis=1) == pytest.approx(1)
        # Without weights they would be off.
        assert np.nanmean(gaps) > 1.1


def test_an_infinite_prior_is_followed_as_far_as_there_is_mass():
    population = selection.population("normal_mean", bound=10.0)
    density = numba.njit(lambda theta: -theta)
    low, high = quadrature.finite_interval(lambda t: -t, 0.0, math.inf)
    assert low == 0
    assert 30 < high < 200
    low, high = quadrature.finite_interval(lambda t: -0.5 * (t - 50) ** 2, -math.inf, math.inf)
    assert low < 40
    assert high > 60
    prior = ThetaPrior(0.0, 10.0, density)
    target = targets.target(
        population,
        selection.statistic("pow_1"),
        selection.mechanism("gaussian"),
        3.0,
        100,
        1.0,
        prior,
    )
    # A normal likelihood of variance 0.01 + 0.1^2, tilted by exp(-theta).
    found = quadrature.quadrature(target)
    assert found.mean == pytest.approx(3 - 0.02, rel=1e-9)
    assert found.sd == pytest.approx(math.sqrt(0.02), rel=1e-8)


@pytest.mark.parametrize(
    ("slope", "message"),
    [(-0.5, "improper"), (-1.0, "improper"), (-2.5, "no variance"), (-1.5, "no variance")],
)
def test_heavy_tails_are_refused(slope, message):
    """theta^-1/2 is the tail of |x| under a flat prior, theta^-1 that of x^2."""
    with pytest.raises(DpmcError, match=message):
        quadrature.finite_interval(lambda t: slope * np.log1p(t), 0.0, math.inf)


@pytest.mark.parametrize("statistic", ["abs_1", "abs_2"])
@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_a_flat_prior_without_end_is_improper(statistic, mechanism):
    with pytest.raises(DpmcError, match="`prior` must be bounded or have a proper density"):
        selection.reference(
            selection.release(
                VARIANCE, selection.statistic(statistic), selection.mechanism(mechanism),
                [1.0, 2.0], 1.0, np.random.default_rng(1),
            ),
            prior=(0.0, math.inf),
        )  # fmt: skip


@pytest.mark.parametrize(
    ("population", "statistic", "mechanism"),
    [
        (VARIANCE, "abs_1", "per_record_laplace"),
        (VARIANCE, "abs_2", "per_record_gaussian"),
        (
            selection.population("normal_mean", bound=4.0, symmetric=True),
            "pow_1",
            "per_record_laplace",
        ),
        (selection.population("uniform_width", bound=3.0), "abs_0.5", "per_record_laplace"),
    ],
)
def test_records_are_integrated_over_what_was_released(population, statistic, mechanism):
    """Against adaptive integrals over the base variable, to 5e-5, all records together:
    the midpoint rule meets a kink of Laplace noise and, at 0, of roots."""
    made, chosen = selection.mechanism(mechanism), selection.statistic(statistic)
    y, theta = np.array([-7.0, 0.2, 1.4, 30.0, 0.9]), np.array([0.4, 1.7])
    target = targets.target(population, chosen, made, y, 5, 6.0, (0.0, 2.5))
    found = quadrature.likelihood(target)(theta)
    distribution = stats.norm() if population.base == "normal" else stats.uniform(-1, 2)
    end = 8.5 if population.base == "normal" else 1.0

    def density(z, value, at):
        x = np.clip(population.generate(at, z), *population.support)
        noise = made.log_density(value - float(chosen.transform(x)), target.scale)
        return distribution.pdf(z) * math.exp(noise)

    grid = np.linspace(-end, end, 60)
    for at, got in zip(theta, found, strict=True):
        truth = sum(
            math.log(
                sum(
                    integrate.quad(density, a, b, (value, at))[0]
                    for a, b in itertools.pairwise(grid)
                )
            )
            for value in y
        )
        assert got == pytest.approx(truth, abs=5e-5)


def test_bits_are_summed_over():
    population, bit = selection.population("bernoulli"), selection.statistic("bit")
    made = selection.mechanism("randomised_response")
    y = np.array([1.0, 0.0, 1.0, 1.0])
    target = targets.target(population, bit, made, y, 4, 1.0, (0.0, 1.0))
    keep, theta = math.exp(1) / (1 + math.exp(1)), np.array([0.2, 0.7])
    one = keep * theta + (1 - keep) * (1 - theta)
    np.testing.assert_allclose(
        quadrature.likelihood(target)(theta), 3 * np.log(one) + np.log(1 - one), rtol=1e-12
    )


def test_an_order_statistic_is_integrated_over_its_law():
    """Constant noise: against an adaptive integral over the uniform of the rank."""
    chosen, made = selection.statistic("max"), selection.mechanism("laplace")
    target = targets.target(VARIANCE, chosen, made, 2.3, 5, 50.0, (0.0, 10.0))
    for theta in (0.5, 3.0):

        def density(u, theta=theta):
            s = min(math.sqrt(theta) * stats.norm.ppf((1 + u) / 2), 10.0)
            return 5 * u**4 * math.exp(-abs(2.3 - s) / 0.2) / 0.4

        kink = 2 * stats.norm.cdf(2.3 / math.sqrt(theta)) - 1
        truth = math.log(integrate.quad(density, 0, kink)[0] + integrate.quad(density, kink, 1)[0])
        found = quadrature.likelihood(target)(np.array([theta]))[0]
        assert found == pytest.approx(truth, abs=1e-5)


def test_smooth_sensitivity_is_averaged_over():
    """Against 20,000 data sets drawn in full: densities within 5 standard errors."""
    chosen, made = selection.statistic("median"), selection.mechanism("smooth_laplace")
    target = targets.target(VARIANCE, chosen, made, 0.95, 30, 5.0, (0.0, 20.0), 1e-4)
    alpha, beta = made.constants(5.0, 1e-4)
    from dpmc.statsel import smooth

    rng = np.random.default_rng(6)
    s = np.sort(np.minimum(math.sqrt(2.0) * np.abs(rng.standard_normal((20_000, 30))), 10.0))
    scale = np.array([smooth.smooth_sensitivity(row, 15, 0.0, 10.0, beta) for row in s]) / alpha
    density = np.exp(-np.abs(0.95 - s[:, 14]) / scale) / (2 * scale)
    error = density.std() / math.sqrt(density.size)
    found = math.exp(quadrature.likelihood(target)(np.array([2.0]))[0])
    assert abs(found - density.mean()) < 5 * error
    # A scale twice too large is detected.
    wide = np.exp(-np.abs(0.95 - s[:, 14]) / (2 * scale)) / (4 * scale)
    assert abs(found - wide.mean()) > 10 * error


@pytest.mark.parametrize("statistic", ["median", "max"])
def test_a_likelihood_does_not_depend_on_what_was_asked_before(statistic):
    """Every rank has a draw of its own: what is asked about early takes none from later."""
    chosen, made = selection.statistic(statistic), selection.mechanism("smooth_laplace")
    thetas = np.array([0.1, 2.0, 7.0, 15.0])
    found = []
    for turned in (thetas, thetas[::-1]):
        quadrature.order_table._table.cache_clear()
        of = [
            quadrature.likelihood(
                targets.target(VARIANCE, chosen, made, y, 30, 5.0, (0.0, 20.0), 1e-4)
            )
            for y in (0.95, 4.0)
        ]
        each = [one(turned) for one in (of if turned is thetas else of[::-1])]
        found.append(each if turned is thetas else [values[::-1] for values in each[::-1]])
    assert np.array_equal(found[0], found[1])
