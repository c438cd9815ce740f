from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

import dpmc
from dpmc.privacy.ledger import Ledger
from dpmc.rng import stream
from dpmc.statsel import lookup, mechanisms, moments, populations, releases, statistics
from dpmc.types import DpmcError
from dpmc_papers.data import population_rows

SETTINGS = {
    "normal_mean": {"bound": 10.0},
    "normal_variance": {"bound": 10.0},
    "uniform_width": {"bound": 10.0},
    "bernoulli": {},
}
THETAS = {
    "normal_mean": (0.7, 4.5),
    "normal_variance": (0.3, 2.0),
    "uniform_width": (0.4, 10.0),
    "bernoulli": (0.1, 0.6),
}
STATISTICS = ("pow_1", "pow_2", "pow_3", "abs_0.5", "abs_1", "abs_1.3", "median", "max")
ORDERED = ("median", "max")
MEANS = (
    ("normal_mean", "pow_1"),
    ("normal_mean", "pow_3"),
    ("normal_mean", "pow_5"),
    ("normal_variance", "abs_0.5"),
    ("normal_variance", "abs_1"),
    ("normal_variance", "abs_1.3"),
    ("normal_variance", "pow_2"),
    ("uniform_width", "abs_0.1"),
    ("uniform_width", "abs_0.5"),
    ("uniform_width", "pow_2"),
    ("bernoulli", "bit"),
)
# Of a sum of independent terms: a normal one exceeds it with probability 1e-6.
FAR = float(stats.norm.isf(0.5e-6))


def population(name):
    return lookup.population(name, **SETTINGS[name])


def ends(name, theta):
    return {
        "normal_mean": (theta - 12, theta + 12),
        "normal_variance": (-12 * math.sqrt(theta), 12 * math.sqrt(theta)),
        "uniform_width": (-theta, theta),
    }[name]


def expectation(made, theta, function):
    """E function(X) of records before clipping, by sums or by quadrature."""
    if made.name == "bernoulli":
        return sum(function(x) * math.exp(made.log_density(x, theta)) for x in (0.0, 1.0))
    # Nodes crowd at 0, where powers have no derivatives: x = end u^10.
    nodes, weights = np.polynomial.legendre.leggauss(300)
    u, weights = 0.5 * (nodes + 1), 0.5 * weights
    total = 0.0
    for end in ends(made.name, theta):
        x = end * u**10
        density = np.exp([made.log_density(point, theta) for point in x])
        total += float(np.sum(weights * abs(end) * 10 * u**9 * function(x) * density))
    return total


def slope(function, theta):
    h = 1e-4 * theta
    far, near = (function(theta + k * h) - function(theta - k * h) for k in (2, 1))
    return (8 * near - far) / (12 * h)


def test_every_population_statistic_and_mechanism_is_tested_here():
    assert set(SETTINGS) == set(populations.TABLE)
    assert set(statistics.TABLE) == {"abs_power", "maximum", "median", "power"}
    assert set(mechanisms.TABLE) == {*NOISES, "smooth_laplace"}
    assert all(lookup.mechanism(name).name == name for name in mechanisms.TABLE)


@pytest.mark.parametrize("name", SETTINGS)
def test_records_have_the_law_that_their_density_says(name):
    """Error rate 1e-6 for each of two thetas."""
    made = population(name)
    for theta in THETAS[name]:
        x = made.draw(theta, stream(5, "law", name, theta), 4000)
        assert expectation(made, theta, lambda x: 1.0 + 0.0 * x) == pytest.approx(1.0, rel=1e-9)
        if name == "bernoulli":
            assert set(x.tolist()) == {0.0, 1.0}
            assert stats.binomtest(int(x.sum()), x.size, theta).pvalue > 1e-6
            continue
        grid = np.linspace(*ends(name, theta), 2001)
        density = np.exp([made.log_density(point, theta) for point in grid])
        cdf = integrate.cumulative_simpson(density, x=grid, initial=0)
        assert stats.kstest(x, lambda v, g=grid, c=cdf: np.interp(v, g, c)).pvalue > 1e-6
        wrong = stats.kstest(1.3 * x, lambda v, g=grid, c=cdf: np.interp(v, g, c))
        assert wrong.pvalue < 1e-6 or name == "normal_mean"


@pytest.mark.parametrize("name", SETTINGS)
def test_records_do_not_decrease_with_their_base_variable(name):
    made = population(name)
    for theta in THETAS[name]:
        z = np.sort(made.draw_base(np.random.default_rng(0), 500))
        x = made.generate(theta, z)
        assert (np.diff(x) >= 0).all()
        np.testing.assert_array_equal(x, [made.generate(theta, v) for v in z])
        if made.odd:
            np.testing.assert_allclose(made.generate(theta, -z), -x, rtol=0, atol=0)


@pytest.mark.parametrize("name", SETTINGS)
def test_the_score_is_the_derivative_of_the_log_density(name):
    made = population(name)
    if name == "uniform_width":
        assert made.score is None
        assert made.log_density(0.41, 0.4) == -math.inf
        return
    for theta in THETAS[name]:
        for x in (0.0, 1.0) if name == "bernoulli" else (-1.3, 0.2, 4.0):
            expected = slope(lambda t, x=x: made.log_density(x, t), theta)
            assert made.score(x, theta) == pytest.approx(expected, rel=1e-7, abs=1e-7)


@pytest.mark.parametrize(("name", "text"), MEANS)
def test_moments_agree_with_quadrature(name, text):
    made, statistic = population(name), lookup.statistic(text)
    closed_forms = moments.of(made, statistic)
    for theta in THETAS[name]:
        mean = expectation(made, theta, statistic.transform)
        square = expectation(made, theta, lambda x: statistic.transform(x) ** 2)
        assert closed_forms.mean(theta) == pytest.approx(mean, rel=1e-7)
        assert closed_forms.variance(theta) == pytest.approx(square - mean**2, rel=1e-6)
        assert closed_forms.d_mean(theta) == pytest.approx(
            slope(closed_forms.mean, theta), rel=1e-7
        )
        expected = slope(closed_forms.variance, theta)
        assert closed_forms.d_variance(theta) == pytest.approx(expected, rel=1e-7, abs=1e-8)


@pytest.mark.parametrize(("name", "text"), MEANS)
def test_moments_agree_with_clipped_records(name, text):
    """Error rate 1e-6 for each mean and variance; clipping is not to be seen at these bounds."""
    made, statistic = population(name), lookup.statistic(text)
    closed_forms = moments.of(made, statistic)
    theta = THETAS[name][0] if name == "normal_mean" else THETAS[name][1]
    made = lookup.population(name, bound=10.0, symmetric=True) if name == "normal_mean" else made
    x = made.draw(theta, stream(6, "moments", name, text), 40_000)
    s = statistic.transform(np.clip(x, *made.support))
    mean, variance = closed_forms.mean(theta), closed_forms.variance(theta)
    assert abs(s.mean() - mean) < FAR * math.sqrt(variance / s.size)
    squares = (s - mean) ** 2
    assert abs(squares.mean() - variance) < FAR * squares.std() / math.sqrt(s.size)
    assert abs(s.mean() - 1.2 * mean) > FAR * math.sqrt(variance / s.size)


def test_moments_of_the_thesis_are_those_of_its_examples():
    t = 1.7
    cubic = moments.of(population("normal_mean"), lookup.statistic("pow_3"))
    assert cubic.mean(t) == pytest.approx(t**3 + 3 * t)
    assert cubic.variance(t) == pytest.approx(9 * t**4 + 36 * t**2 + 15)
    width = moments.of(population("uniform_width"), lookup.statistic("abs_0.5"))
    assert width.mean(t) == pytest.approx(math.sqrt(t) / 1.5)
    assert width.variance(t) == pytest.approx(0.25 * t / (2.25 * 2))


def released(statistic, support, x):
    made = lookup.population("normal_mean", bound=support[1], symmetric=support[0] < 0)
    assert made.support == support
    exact = releases.before_noise(made, statistic, lookup.mechanism("gaussian"), x, 1.0)
    return exact.value


@pytest.mark.parametrize("support", [(0.0, 2.0), (-2.0, 2.0)])
@pytest.mark.parametrize("text", STATISTICS)
def test_no_record_moves_a_statistic_further_than_its_sensitivity(text, support):
    """A search over data sets with records at the ends, at 0, within and far outside."""
    statistic = lookup.statistic(text)
    rng, n, worst = np.random.default_rng(7), 5, 0.0
    levels = np.array([support[0], 0.0, support[1], 1e6, -1e6])
    for _ in range(400):
        x = np.where(rng.random(n) < 0.5, rng.choice(levels, n), rng.uniform(*support, n))
        x = np.full(n, rng.choice(levels)) if rng.random() < 0.5 else x
        other = x.copy()
        other[rng.integers(n)] = rng.choice(levels)
        worst = max(
            worst, abs(released(statistic, support, x) - released(statistic, support, other))
        )
    sensitivity = statistic.sensitivity(support) / (1 if text in ORDERED else n)
    assert worst == pytest.approx(sensitivity, rel=1e-12)


def test_a_sensitivity_of_one_side_is_exceeded_on_two():
    """A^a for odd a is right on [0, A] alone [alparslan2023thesis, example 3]."""
    cubic = lookup.statistic("pow_3")
    assert cubic.sensitivity((0.0, 2.0)) == 8.0
    low, high = (released(cubic, (-2.0, 2.0), np.array([x, 0.0])) for x in (-2.0, 2.0))
    assert 2 * (high - low) == pytest.approx(16.0) == cubic.sensitivity((-2.0, 2.0))


NOISES = {
    "gaussian": ("abs_1", 0.1, stats.norm),
    "laplace": ("abs_1", 0.1, stats.laplace),
    "per_record_gaussian": ("abs_1", 5.0, stats.norm),
    "per_record_laplace": ("abs_1", 5.0, stats.laplace),
    "randomised_response": ("bit", None, None),
}


@pytest.mark.parametrize("name", [name for name in NOISES if name != "randomised_response"])
def test_noise_has_its_stated_distribution_and_scale(name):
    """Error rate 1e-6 for the distribution; noise of half the scale fails."""
    text, scale, distribution = NOISES[name]
    made, mechanism = population("normal_variance"), lookup.mechanism(name)
    statistic, x = lookup.statistic(text), np.linspace(-12, 12, 50)
    rng, noise = stream(8, "noise", name), []
    exact = releases.before_noise(made, statistic, mechanism, x, 2.0)
    for _ in range(20 if mechanism.per_record else 1000):
        found = releases.release(made, statistic, mechanism, x, 2.0, rng)
        noise.append(np.asarray(found.y) - exact.value)
    assert found.scale == exact.scale == mechanism.scale(10.0, 50, 2.0) == pytest.approx(scale)
    assert found.n == 50
    standard = np.ravel(noise) / scale
    assert stats.kstest(standard, distribution.cdf).pvalue > 1e-6
    assert stats.kstest(2 * standard, distribution.cdf).pvalue < 1e-6
    for v in (-0.3, 0.0, 1.2):
        expected = distribution.logpdf(v, scale=scale)
        assert mechanism.log_density(v, scale) == pytest.approx(expected, rel=1e-12)


def test_bits_are_kept_with_their_probability():
    """Error rate 1e-6 for each kind of bit."""
    made, mechanism = population("bernoulli"), lookup.mechanism("randomised_response")
    x = np.repeat([0.0, 1.0], 4000)
    found = releases.release(made, lookup.statistic("bit"), mechanism, x, 1.0, stream(9, "bits"))
    keep = math.e / (1 + math.e)
    assert found.scale == pytest.approx(keep)
    for half in (slice(0, 4000), slice(4000, 8000)):
        kept = int((found.y[half] == x[half]).sum())
        assert stats.binomtest(kept, 4000, keep).pvalue > 1e-6
        assert stats.binomtest(kept, 4000, 1 - keep).pvalue < 1e-6
    assert mechanism.log_density(0.0, keep) == pytest.approx(math.log(keep))
    assert mechanism.log_density(1.0, keep) == pytest.approx(math.log(1 - keep))
    # The worst ratio of probabilities of one answer is exactly e^epsilon.
    assert math.log(keep / (1 - keep)) == pytest.approx(mechanism.guarantee(1.0).epsilon)


@pytest.mark.parametrize("mu", [0.3, 1.0, 5.0])
def test_gaussian_guarantees_agree_with_dp_accounting(mu):
    from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss

    loss = GaussianPrivacyLoss(1 / mu)
    for name in ("gaussian", "per_record_gaussian"):
        mechanism = lookup.mechanism(name)
        found = mechanism.guarantee(mu)
        assert found.epsilon == mu
        assert found.delta == pytest.approx(loss.get_delta_for_epsilon(mu), rel=1e-6)
        tight = mechanism.guarantee(mu, 1e-5)
        assert loss.get_delta_for_epsilon(tight.epsilon) <= 1e-5
        assert loss.get_delta_for_epsilon(tight.epsilon * (1 - 1e-5)) > 1e-5
        # mu-GDP is not (mu, 1e-5)-DP.
        assert loss.get_delta_for_epsilon(mu) > 1e-5
    assert round(lookup.mechanism("gaussian").guarantee(1.0).delta, 3) == 0.127


@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_laplace_guarantees_agree_with_dp_accounting(epsilon):
    from dp_accounting.pld.privacy_loss_mechanism import LaplacePrivacyLoss

    loss = LaplacePrivacyLoss(1 / epsilon)
    for name in ("laplace", "per_record_laplace"):
        found = lookup.mechanism(name).guarantee(epsilon)
        assert (found.epsilon, found.delta) == (epsilon, 0.0)
        assert loss.get_delta_for_epsilon(found.epsilon) == pytest.approx(0.0, abs=1e-15)
        assert loss.get_delta_for_epsilon(0.99 * found.epsilon) > 1e-4


def test_the_printed_laplace_density_is_none():
    """Definition 8 of the thesis lacks |x| and epsilon: what it prints does not integrate to 1."""
    mechanism, scale = lookup.mechanism("laplace"), 0.4
    total = 2 * integrate.quad(lambda v: math.exp(mechanism.log_density(v, scale)), 0, 40)[0]
    assert total == pytest.approx(1.0)
    epsilon, sensitivity = 5.0, 2.0
    printed = integrate.quad(
        lambda v: math.exp(-v * epsilon / sensitivity) / (2 * sensitivity), 0, 40
    )[0]
    assert 2 * printed == pytest.approx(1 / epsilon)


def test_records_beyond_the_support_are_clipped_and_counted():
    made, mean = population("normal_variance"), lookup.statistic("abs_1")
    exact = releases.before_noise(made, mean, lookup.mechanism("laplace"), [1e9, -11, 3.0, 10], 1.0)
    assert exact.value == pytest.approx((10 + 10 + 3 + 10) / 4)
    assert exact.num_clipped == 2


def test_noise_by_smooth_sensitivity_has_its_scale():
    """Error rate 1e-6; the scale is private and not released."""
    made, mechanism = population("normal_variance"), lookup.mechanism("smooth_laplace")
    statistic, x = lookup.statistic("median"), np.linspace(-3, 3, 41)
    alpha, beta = mechanism.constants(5.0, 1e-4)
    exact = releases.before_noise(made, statistic, mechanism, x, 5.0, 1e-4)
    expected = dpmc.statsel.smooth.of(np.abs(x), statistic, made.support, beta) / alpha
    assert exact.scale == pytest.approx(expected)
    rng = stream(10, "smooth")
    found = [
        releases.release(made, statistic, mechanism, x, 5.0, rng, delta=1e-4) for _ in range(300)
    ]
    assert all(math.isnan(one.scale) for one in found)
    noise = (np.array([one.y for one in found]) - exact.value) / exact.scale
    assert stats.kstest(noise, "laplace").pvalue > 1e-6
    assert found[0].guarantee.epsilon == 5.0
    assert found[0].guarantee.delta == pytest.approx(7.668289e-06, rel=1e-6)


def test_a_gaussian_release_goes_through_a_ledger_and_no_other_does():
    made, mean, ledger = population("normal_variance"), lookup.statistic("abs_1"), Ledger()
    rng = np.random.default_rng(0)
    releases.release(made, mean, lookup.mechanism("gaussian"), [1.0], 2.0, rng, ledger=ledger)
    assert ledger.records() == (("gaussian(0.5)", 1),)
    with pytest.raises(
        DpmcError, match="`ledger` must be None unless the noise is Gaussian, got one with laplace"
    ):
        releases.release(made, mean, lookup.mechanism("laplace"), [1.0], 2.0, rng, ledger=ledger)


def release(text="abs_1", name="laplace", x=(1.0, 2.0), epsilon=1.0, delta=None, of=None):
    made = population("normal_variance") if of is None else population(of)
    rng = np.random.default_rng(0)
    statistic, mechanism = lookup.statistic(text), lookup.mechanism(name)
    return releases.release(made, statistic, mechanism, x, epsilon, rng, delta=delta)


def test_rows_are_records_of_the_population_with_public_bounds():
    """Error rate 1e-6."""
    params = population_rows.Params("normal_variance", 2.0, 3000, 10.0)
    dataset = population_rows.generate(params, stream(11, "rows"))
    assert dataset.x.shape == (3000, 1)
    assert stats.kstest(dataset.x[:, 0] / math.sqrt(2.0), "norm").pvalue > 1e-6
    assert dataset.bounds == {"low": -10.0, "high": 10.0}
    assert dataset.bounds_source == "public"
    assert dataset.truth.tolist() == [2.0]
    one = population_rows.records(params, 2.0, 50, 3)
    np.testing.assert_allclose(population_rows.records(params, 8.0, 50, 3), 2 * one)
    assert not np.allclose(population_rows.records(params, 2.0, 50, 4), one)
    np.testing.assert_array_equal(population_rows.records(params, 2.0, 50, 3), one)
