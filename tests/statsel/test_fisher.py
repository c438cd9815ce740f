"""Fisher information against independent quadrature, simulation and sums.

Every statistical assertion allows four standard errors, estimated from independent replicates
or by the functions themselves: each fails by chance with a probability below 1e-3 (Student's t
with 7 degrees of freedom and more), 6e-5 where there are many. Seeds are fixed.
"""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import binom, laplace, norm

from dpmc.statsel import laplace_clt, lookup, moments
from dpmc.statsel.fisher import information, monte_carlo, order_statistics, quadrature
from dpmc.statsel.fisher.monte_carlo import MonteCarloSizes
from dpmc.statsel.fisher.order_statistics import Simulation
from dpmc.statsel.order_draws import order_of
from dpmc.types import DpmcError

ROWS = 100
VARIANCE = lookup.population("normal_variance", bound=10.0)
MEAN = lookup.population("normal_mean", bound=10.0)
UNIFORM = lookup.population("uniform_width", bound=10.0)
BITS = lookup.population("bernoulli")
GAUSSIAN, LAPLACE = lookup.mechanism("gaussian"), lookup.mechanism("laplace")
INFINITE = math.inf


def of(population, text, mechanism, epsilon, theta, rows=ROWS):
    statistic = lookup.statistic(text)
    return information.information(population, statistic, mechanism, epsilon, rows, theta)


def squared_score(log_density, theta, low, high, points=()):
    """Integrate the squared score of a density, differentiated numerically by theta."""
    step = 1e-5 * theta

    def integrand(y):
        score = (log_density(y, theta + step) - log_density(y, theta - step)) / (2 * step)
        return score**2 * math.exp(log_density(y, theta))

    return quad(integrand, low, high, points=points or None, limit=400, epsabs=0, epsrel=1e-10)[0]


def distribution(population, text, theta):
    found = moments.of(population, lookup.statistic(text))
    return float(found.mean.py_func(theta)), float(found.variance.py_func(theta))


CASES = [
    (MEAN, "pow_1", 3.0, 1.0),
    (MEAN, "pow_3", 3.0, 1.0),
    (VARIANCE, "abs_1", 2.0, 1.0),
    (VARIANCE, "abs_0.5", 2.0, 5.0),
    (VARIANCE, "abs_2", 2.0, 5.0),
    (UNIFORM, "abs_0.1", 1.0, 1.0),
    (UNIFORM, "abs_2", 1.0, 20.0),
]


@pytest.mark.parametrize(("population", "text", "theta", "epsilon"), CASES)
@pytest.mark.parametrize("mechanism", [GAUSSIAN, LAPLACE], ids=["gaussian", "laplace"])
def test_means_have_the_integral_of_their_squared_score(
    population, text, theta, epsilon, mechanism
):
    width = lookup.statistic(text).sensitivity(population.support)
    scale = mechanism.scale(width, ROWS, epsilon)

    def log_density(y, at):
        mean, variance = distribution(population, text, at)
        sd = math.sqrt(variance / ROWS)
        if mechanism is GAUSSIAN:
            return norm.logpdf(y, mean, math.hypot(sd, scale))
        return laplace_clt.log_density(y, mean, sd, scale)

    mean, variance = distribution(population, text, theta)
    spread = math.sqrt(variance / ROWS) + scale
    ends = [mean + sign * spread * size for sign in (-1, 1) for size in (40, 4, 1)]
    expected = squared_score(log_density, theta, min(ends), max(ends), sorted(ends)[1:-1])
    assert of(population, text, mechanism, epsilon, theta) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("scale", [0.03, 0.4, 6.0])
def test_the_density_of_a_mean_with_laplace_noise_is_a_convolution(scale):
    mean, sd = 0.3, 0.7
    for y in (-4.0, 0.1, 0.3, 2.0, 9.0):
        ends = sorted({mean - 9 * sd, *(y + k * scale for k in (-20, -5, 0, 5, 20)), mean + 9 * sd})
        cells = [cell for cell in itertools.pairwise(ends) if cell[1] > mean - 9 * sd]
        value = sum(
            quad(lambda u: norm.pdf(u, mean, sd) * laplace.pdf(y - u, scale=scale), a, b)[0]  # noqa: B023
            for a, b in cells
        )
        assert laplace_clt.log_density(y, mean, sd, scale) == pytest.approx(
            math.log(value), abs=1e-7
        )


def test_the_information_of_a_mean_with_laplace_noise_goes_over_to_its_limits():
    assert laplace_clt.unit_information(INFINITE) == (1.0, 0.5)
    below, above = (laplace_clt.unit_information(k) for k in (1999.9, 2000.1))
    assert below == pytest.approx(above, rel=3e-7)
    # Much noise: that of the location of a Laplace distribution, k^2.
    assert laplace_clt.unit_information(1e-3)[0] == pytest.approx(1e-6, rel=2e-3)
    many = laplace_clt.information(np.ones((2, 3)), 1.0, [[1.0], [2.0]], 0.5)
    assert many.shape == (2, 3)
    assert many[1, 0] > many[0, 0]


def test_reference_values_are_those_recomputed():
    assert [of(VARIANCE, "abs_1", GAUSSIAN, e, 2.0) for e in (1.0, INFINITE)] == pytest.approx(
        [4.63063, 11.07461], rel=1e-6
    )
    assert of(VARIANCE, "abs_2", GAUSSIAN, 1.0, 2.0) == pytest.approx(0.92867, rel=1e-5)
    values = [of(UNIFORM, f"abs_{a}", GAUSSIAN, 1.0, 1.0) for a in (0.1, 0.5, 1, 2)]
    assert values == pytest.approx([36.35, 71.49, 23.09, 0.4441], rel=1e-4)
    for text, known in (
        ("abs_1", [0.072375, 3.35768, 9.96531, 10.9981]),
        ("abs_2", [0.00969, 0.737505, 6.63158, 12.2056]),
    ):
        found = [of(VARIANCE, text, LAPLACE, e, 2.0) for e in (0.1, 1.0, 5.0, 20.0)]
        assert found == pytest.approx(known, rel=2e-5)


def test_the_best_statistic_changes_with_theta():
    """Figure 4.1 at theta 5.769; Figure 4.3: |x|^.5 is best up to 2.89 only, x^2 from 5.35 on."""

    def lead(population, first, second):
        def at(theta):
            return of(population, first, GAUSSIAN, 1.0, theta) - of(
                population, second, GAUSSIAN, 1.0, theta
            )

        return at

    assert brentq(lead(MEAN, "pow_3", "pow_1"), 3, 8) == pytest.approx(5.7694, abs=1e-4)
    names = [f"abs_{a}" for a in (0.1, 0.5, 1, 2)]
    best = {
        theta: max(names, key=lambda name: of(UNIFORM, name, GAUSSIAN, 1.0, theta))
        for theta in (2.88, 2.90, 5.34, 5.36, 9.9)
    }
    assert list(best.values()) == ["abs_0.5", "abs_1", "abs_1", "abs_2", "abs_2"]


def test_the_central_limit_theorem_overstates_a_square_without_noise():
    """13 where the sum of squares has n / (2 theta^2) = 12.5: its third moment is left out."""
    assert of(VARIANCE, "abs_2", GAUSSIAN, INFINITE, 2.0) == pytest.approx(13.0)
    exact = quadrature.per_record(VARIANCE, lookup.statistic("abs_2"), 2.0, ROWS, 0.0, "gaussian")
    assert exact == pytest.approx(ROWS / (2 * 2.0**2))


# Bits.


@pytest.mark.parametrize(("theta", "epsilon"), [(0.3, 1.0), (0.1, 0.5), (0.5, 4.0)])
def test_bits_have_the_information_of_their_distributions(theta, epsilon):
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    share, slope = theta * keep + (1 - theta) * (1 - keep), 2 * keep - 1
    summed = ROWS * (slope**2 / share + slope**2 / (1 - share))
    assert information.randomised_response(theta, ROWS, epsilon) == pytest.approx(summed)
    for function, noise in (
        (information.noisy_bits, ROWS**-0.5 / epsilon),
        (information.noisy_mean, 1 / (ROWS * epsilon)),
    ):

        def log_density(y, at, noise=noise):
            return norm.logpdf(y, at, math.sqrt(at * (1 - at) / ROWS + noise**2))

        spread = math.hypot(math.sqrt(theta * (1 - theta) / ROWS), noise)
        ends = theta - 12 * spread, theta + 12 * spread
        expected = squared_score(log_density, theta, *ends, points=[theta])
        assert function(theta, ROWS, epsilon) == pytest.approx(expected, rel=1e-7)
        printed = function(theta, ROWS, epsilon, "published")
        if theta == 0.5:  # the second term is zero
            assert printed == pytest.approx(expected, rel=1e-7)
        else:
            assert printed > expected * (1 + 1e-4)


def test_the_second_term_as_printed_is_wrong():
    assert information.noisy_mean(0.1, ROWS, 0.5) == pytest.approx(788.166, rel=1e-6)
    assert information.noisy_mean(0.1, ROWS, 0.5, "published") == pytest.approx(807.101, rel=1e-6)
    values = [f(0.3, ROWS, 1.0) for f in (information.randomised_response, information.noisy_bits)]
    assert values == pytest.approx([88.4429, 82.6993], rel=1e-6)
    assert information.noisy_mean(0.3, ROWS, 1.0) == pytest.approx(456.1983, rel=2e-7)


def test_a_noisy_count_is_summed_exactly():
    """By a sum over counts and a finer integral over y, made here."""
    theta, epsilon, rows = 0.3, 1.0, 30

    def density(y, at):
        k = np.arange(rows + 1)
        return np.sum(binom.pmf(k, rows, at) * norm.pdf(y, k, 1 / epsilon))

    def integrand(y, h=1e-5):
        slope = (density(y, theta + h) - density(y, theta - h)) / (2 * h)
        return slope**2 / density(y, theta)

    expected = quad(integrand, -8, rows + 8, points=[5, 9, 13], epsrel=1e-7, limit=200)[0]
    assert quadrature.noisy_count(theta, rows, epsilon) == pytest.approx(expected, rel=1e-6)
    found = [quadrature.noisy_count(*a) for a in ((0.3, ROWS, 1.0), (0.1, ROWS, 0.5))]
    assert found == pytest.approx([454.549, 771.08], rel=1e-5)
    # The normal approximation has more than there is, and without noise there is n / t (1 - t).
    assert information.noisy_mean(0.1, ROWS, 0.5) > found[1] * 1.02
    limit = ROWS / (0.3 * 0.7)
    assert quadrature.noisy_count(0.3, ROWS, 50.0) == pytest.approx(limit, rel=1e-6)


def test_at_equal_privacy_randomised_response_loses_below_epsilon_two():
    """Its trade-off function touches that of mu-GDP, so that no smaller mu would do."""
    for epsilon in (0.2, 1.0, 3.0):
        mu, flip = information.matched(epsilon), 1 / (1 + math.exp(epsilon))
        at = np.linspace(1e-4, 1 - 1e-4, 999)
        response = np.maximum(1 - math.exp(epsilon) * at, math.exp(-epsilon) * (1 - at))
        gaussian = norm.cdf(norm.isf(at) - mu)
        assert (response >= gaussian - 1e-12).all()
        assert norm.cdf(norm.isf(flip) - mu) == pytest.approx(flip)
        assert (response < norm.cdf(norm.isf(at) - 0.99 * mu)).any()

    def lead(epsilon):
        first = information.randomised_response(0.3, ROWS, epsilon)
        return float(first - information.noisy_bits(0.3, ROWS, information.matched(epsilon)))

    assert brentq(lead, 0.5, 5) == pytest.approx(2.0, abs=0.06)
    # At equal numbers it is the other way about.
    assert information.randomised_response(0.3, ROWS, 1.0) > information.noisy_bits(0.3, ROWS, 1.0)


# Records with noise of their own.


def absolute_density(y, theta, scale):
    """Return the density of |X| + Lap(scale), X ~ N(0, theta), in closed form."""
    sd = math.sqrt(theta)
    k = sd / scale
    common = math.exp(k * k / 2) / scale
    if y < 0:
        return common * math.exp(y / scale) * norm.cdf(-k)
    below = math.exp(-y / scale) * (norm.cdf(y / sd - k) - norm.cdf(-k))
    return common * (below + math.exp(y / scale) * norm.cdf(-y / sd - k))


@pytest.mark.parametrize("epsilon", [1.0, 5.0, 20.0])
def test_absolute_values_with_laplace_noise_agree_with_their_closed_density(epsilon):
    scale, theta = 10 / epsilon, 2.0

    def log_density(y, at):
        return math.log(absolute_density(y, at, scale))

    cells = [(-30 * scale, 0), (0, 2), (2, 6), (6, 10)]
    expected = ROWS * sum(squared_score(log_density, theta, *cell) for cell in cells)
    density = absolute_density(10.0, theta, scale)
    h = 1e-5
    slope = (
        absolute_density(10.0, theta + h, scale) - absolute_density(10.0, theta - h, scale)
    ) / (2 * h)
    expected += ROWS * scale * slope**2 / density  # beyond 10 all falls by the same exponential
    found = of(VARIANCE, "abs_1", lookup.mechanism("per_record_laplace"), epsilon, theta)
    assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize(
    ("population", "text", "theta"),
    [(VARIANCE, "abs_2", 2.0), (VARIANCE, "abs_0.5", 30.0), (MEAN, "pow_3", 9.5)],
)
def test_two_routes_to_the_information_of_a_record_agree(population, text, theta, noise):
    """By the score of the record, and along s at a fixed latent number; many records are clipped.

    A wrong score would show: that of another theta does.
    """
    statistic = lookup.statistic(text)
    width = statistic.sensitivity(population.support)
    for epsilon in (1.0, 20.0):
        args = (population, statistic, theta, ROWS, width / epsilon, noise)
        along = dataclasses.replace(population, score=None)
        one, other = (quadrature.per_record(each, *args[1:]) for each in (population, along))
        assert one == pytest.approx(other, rel=1e-8)
        wrong = dataclasses.replace(
            population, score=lambda x, at, right=population.score: right.py_func(x, 1.01 * at)
        )
        broken = quadrature.per_record(wrong, *args[1:])
        assert broken != pytest.approx(other, rel=1e-3)


def test_widths_of_uniform_records_follow_their_density():
    """d p / d theta = (g(y - theta) - p) / theta of |X| + V, X uniform, in closed form."""
    theta, scale = 3.0, 2.0

    def parts(y):
        g = laplace.pdf(y - theta, scale=scale)
        tail = laplace.cdf if y < theta else laplace.sf  # differences of small numbers are exact
        p = abs(tail(y, scale=scale) - tail(y - theta, scale=scale)) / theta
        return ((g - p) / theta) ** 2 / p

    cells = [(-40 * scale, 0), (0, theta), (theta, theta + 40 * scale)]
    expected = ROWS * sum(quad(parts, *cell, epsrel=1e-10, limit=200)[0] for cell in cells)
    found = quadrature.per_record(UNIFORM, lookup.statistic("abs_1"), theta, ROWS, scale, "laplace")
    assert found == pytest.approx(expected, rel=1e-6)


def test_noisy_bits_tell_more_than_their_mean():
    mechanism = lookup.mechanism("per_record_gaussian")
    found = of(BITS, "bit", mechanism, 1.0, 0.3)

    def integrand(y):
        off, on = norm.pdf(y), norm.pdf(y - 1)
        return (on - off) ** 2 / (0.3 * on + 0.7 * off)

    assert found == pytest.approx(ROWS * quad(integrand, -12, 13)[0], rel=1e-8)
    assert found > 1.05 * information.noisy_bits(0.3, ROWS, 1.0)


# Order statistics.


def largest_information(theta, rows, scale):
    """Integrate the distribution of the largest of |X_i|, X_i ~ N(0, theta), with Laplace noise."""
    s = np.linspace(1e-9, 8 * math.sqrt(theta), 1601)
    y = np.linspace(-25 * scale, s[-1] + 25 * scale, 1201)
    noise = laplace.pdf(y[:, None] - s, scale=scale)

    def density(at):
        root = math.sqrt(at)
        share = 2 * norm.cdf(s / root) - 1
        weights = rows * share ** (rows - 1) * 2 * norm.pdf(s / root) / root
        return np.trapezoid(noise * weights, s, axis=1)

    h = 1e-4
    slope = (density(theta + h) - density(theta - h)) / (2 * h)
    return float(np.trapezoid(slope**2 / density(theta), y))


def plain_square(statistic, order, theta, rng, simulation):
    """Broken: the square of the slope of all data sets, biased upwards by its variance."""
    found = order_statistics.simulate(VARIANCE, statistic, order, theta, simulation, rng)
    y, weights = order_statistics._places(found)
    density, slope = np.empty((2, simulation.num_groups, y.size))
    order_statistics.average(y, found.value, found.scale, found.width, density, slope)
    return np.sum(weights * slope.mean(axis=0) ** 2 / density.mean(axis=0))


def test_an_order_statistic_with_plain_noise_agrees_with_its_law():
    """Twelve independent simulations of few data sets; the plain square misses by far."""
    theta, rows = 2.0, 5
    statistic = lookup.statistic("max")
    order = order_of(VARIANCE, statistic, LAPLACE, rows, 50.0)
    assert order.scale == pytest.approx(0.2)
    expected = largest_information(theta, rows, 0.2)
    runs = [
        order_statistics.information(
            VARIANCE, statistic, order, theta, np.random.default_rng(k), Simulation(800, 8)
        )
        for k in range(12)
    ]
    squares = [
        plain_square(statistic, order, theta, np.random.default_rng(k), Simulation(800, 8))
        for k in range(12)
    ]
    value, _ = np.mean(runs, axis=0)
    error = np.std([run.value for run in runs], ddof=1) / math.sqrt(12)
    assert error < 0.015 * expected
    assert abs(value - expected) < 4 * error + 1e-3 * expected
    spread = np.std(squares, ddof=1) / math.sqrt(12)
    assert np.mean(squares) - expected > 4 * spread + 1e-3 * expected
    # The jackknife estimates the spread of a run, within a factor that 12 runs leave open.
    assert 0.5 < np.mean([run.se for run in runs]) / (error * math.sqrt(12)) < 2


def test_two_halves_are_the_product_of_two_groups_and_tell_no_error():
    statistic = lookup.statistic("max")
    order = order_of(VARIANCE, statistic, LAPLACE, 5, 50.0)
    rng = np.random.default_rng(1)
    found = order_statistics.information(VARIANCE, statistic, order, 2.0, rng, Simulation(800, 2))
    assert math.isnan(found.se)
    density, slope = np.array([[1.0], [3.0]]), np.array([[2.0], [5.0]])
    assert order_statistics._combined(density, slope, np.ones(1)).value == pytest.approx(10 / 2)


def data_set_score(y, latent, normalised):
    """Return the product of two halves of Algorithm 7, or without the scale in its weights."""
    products = 1.0
    for half in np.split(np.arange(latent.score.size), 2):
        location, scale, score = (part[0, half] for part in latent)
        weights = np.exp(-np.abs(y[:, None] - location) / scale)
        if normalised:
            weights /= scale
        products = products * (weights @ score) / weights.sum(axis=1)
    return products


def test_smooth_noise_agrees_with_algorithm_7_with_many_particles():
    """Ten replicates; without the scale of the noise in its weights Algorithm 7 is far off.

    delta = 0.3 makes the scale differ much between data sets.
    """
    theta, rows = 2.0, 7
    statistic, mechanism = lookup.statistic("median"), lookup.mechanism("smooth_laplace")
    order = order_of(VARIANCE, statistic, mechanism, rows, 5.0, 0.3)
    exact = order_statistics.information(
        VARIANCE, statistic, order, theta, np.random.default_rng(0), Simulation(16_000)
    )
    sampler = monte_carlo.of_data(VARIANCE, statistic, order, theta)

    def replicate(k):
        sizes = MonteCarloSizes(1500, 8000, "halves", shared=True)
        found, _ = monte_carlo.estimate(sampler, sizes, np.random.default_rng(k))
        rng = np.random.default_rng(k)
        latent, hidden = sampler.draw(rng, (1, 8000)), sampler.draw(rng, (400, 1))
        y = (hidden.location + rng.laplace(size=(400, 1)) * hidden.scale)[:, 0]
        return found, *(data_set_score(y, latent, kind).mean() for kind in (True, False))

    runs = np.array([replicate(k) for k in range(10)])
    errors = np.hypot(runs.std(axis=0, ddof=1) / math.sqrt(10), exact.se)
    gaps = np.abs(runs.mean(axis=0) - exact.value) / errors
    assert errors[0] < 0.03 * exact.value
    assert (gaps[:2] < 4).all()
    assert gaps[2] > 4


def test_order_statistics_of_many_scales_change_with_theta_as_they_must():
    """Without clipping everything is a matter of units: F(4 theta) = F(theta) / 16."""
    wide = [lookup.population("normal_variance", bound=b) for b in (10.0, 20.0)]
    mechanism, statistic = lookup.mechanism("smooth_laplace"), lookup.statistic("max")
    one, other = (
        information.information(p, statistic, mechanism, 5.0, 20, theta, 1e-4, Simulation(3200))
        for p, theta in zip(wide, (1.0, 4.0), strict=True)
    )
    assert one == pytest.approx(16 * other, rel=1e-9)


# Algorithms 6 and 8.


def algorithm_6(epsilon, inner, estimator="squared", outer=20_000):
    closed_forms = moments.of(VARIANCE, lookup.statistic("abs_1"))
    sampler = monte_carlo.of_mean(closed_forms, 2.0, ROWS, 10 / (ROWS * epsilon))
    rng = np.random.default_rng(inner)
    return monte_carlo.estimate(sampler, MonteCarloSizes(outer, inner, estimator), rng)


def test_algorithm_6_is_biased_both_ways_with_few_particles():
    """8.47 for 9.97 at epsilon 5, 3.50 for 3.36 at epsilon 1, with 20 particles."""
    low, low_se = algorithm_6(5.0, 20)
    assert low == pytest.approx(8.47, abs=4 * math.hypot(low_se, 0.08))
    assert low < 9.96531 - 8 * low_se
    high, high_se = algorithm_6(1.0, 20)
    assert high > 3.35768 + 4 * high_se


def test_two_halves_leave_the_bias_of_the_weights():
    """Free of the variance of the score, Algorithm 6 stays low with 20 particles."""
    value, se = algorithm_6(1.0, 20, "halves", 100_000)
    assert value < 3.35768 - 4 * se


@pytest.mark.parametrize("epsilon", [1.0, 5.0])
def test_algorithm_6_agrees_with_many_particles(epsilon):
    value, se = algorithm_6(epsilon, 2000, "halves", 4000)
    assert abs(value - of(VARIANCE, "abs_1", LAPLACE, epsilon, 2.0)) < 4 * se


def test_algorithm_8_agrees_with_quadrature():
    statistic = lookup.statistic("abs_1")
    sampler = monte_carlo.of_record(VARIANCE, statistic, 2.0, 2.0)
    rng = np.random.default_rng(1)
    value, se = monte_carlo.estimate(sampler, MonteCarloSizes(4000, 2000, "halves"), rng)
    exact = of(VARIANCE, "abs_1", lookup.mechanism("per_record_laplace"), 5.0, 2.0)
    assert abs(ROWS * value - exact) < 4 * ROWS * se
    with pytest.raises(DpmcError, match="`population` must have a score, got 'uniform_width'"):
        monte_carlo.of_record(UNIFORM, statistic, 2.0, 2.0)
