"""Batches without replacement: the profile by brute force, its composition, and the traps."""

import itertools
import math

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, NeighboringRelation, PoissonSampledDpEvent
from dp_accounting.pld import PLDAccountant
from scipy.stats import norm

from dpmc.privacy import accounting, events
from dpmc.privacy.accountants import gaussian, poisson_pair, rdp, subsampled
from dpmc.privacy.accountants._composition import compose
from dpmc.privacy.accountants._pairs import PoissonSubstitution, WithoutReplacement, profile
from dpmc.privacy.audit import audit
from dpmc.types import Budget

SGLD_BANANA = 1000 / (2 * 0.2 * math.sqrt(1e5))
SGLD_GAUSS = 1000 / (2 * 15 * math.sqrt(0.008 * 1e5))
SGNHT_GAUSS = 1000 * math.sqrt(2 * 30) / (2 * 12 * math.sqrt(0.2 * 1e5))
SETTINGS = {
    "banana": (SGLD_BANANA, 3728896, 1036032),  # DP-SGLD and DP-SGNHT alike
    "gauss_sgld": (SGLD_GAUSS, 39856, 21464),
    "gauss_sgnht": (SGNHT_GAUSS, 235008, 86048),
}


def batch_density(rows, batch_size, z, x):
    batches = list(itertools.combinations(rows, batch_size))
    return sum(norm.pdf(x, sum(batch), z) for batch in batches) / len(batches)


def divergence(p, q, epsilon, x):
    return np.trapezoid(np.maximum(p - math.exp(epsilon) * q, 0), x)


def one_direction(z, count):
    """Compose the mixture against its centre, and the centre against it, each on its own."""
    accountant = PLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE, 1e-4)
    accountant.compose(PoissonSampledDpEvent(0.01, GaussianDpEvent(z)), count)
    return accountant


@pytest.mark.parametrize("z", [0.5, 1.0, 3.0])
def test_profile_is_the_worst_case_over_all_batches(z):
    """Five rows in [0, 1], batches of two, the first row substituted: 81 surroundings."""
    x = np.linspace(-9 * z, 3 + 9 * z, 60001)
    pair = WithoutReplacement(z, 2 / 5)
    epsilons = (0.0, 0.05, 0.3, 0.8)
    worst = np.zeros((2, len(epsilons)))
    for others in itertools.combinations_with_replacement((0.0, 0.5, 1.0), 4):
        p = batch_density((1.0, *others), 2, z, x)
        q = batch_density((0.0, *others), 2, z, x)
        for i, epsilon in enumerate(epsilons):
            worst[0, i] = max(worst[0, i], divergence(p, q, epsilon, x))
            worst[1, i] = max(worst[1, i], divergence(q, p, epsilon, x))
    expected = profile(pair, np.array(epsilons))
    np.testing.assert_allclose(worst[0], expected, atol=1e-7)
    np.testing.assert_allclose(worst[1], expected, atol=1e-7)


@pytest.mark.parametrize("fraction", [1e-4, 0.01, 0.4, 1.0])
@pytest.mark.parametrize("z", [0.3, 1.0, 8.0])
def test_profile_is_that_of_the_amplification_theorem(z, fraction):
    for epsilon in (0.0, 1e-4, 0.1, 1.0, 3.0):
        base = math.log1p(math.expm1(epsilon) / fraction)
        expected = fraction * math.exp(gaussian.log_delta(base, 1 / (2 * z**2)))
        ours = float(profile(WithoutReplacement(z, fraction), np.array([epsilon]))[0])
        assert ours == pytest.approx(expected, rel=1e-6, abs=1e-14)


@pytest.mark.parametrize("fraction", [0.01, 0.3])
@pytest.mark.parametrize("z", [0.5, 1.2, 8.0])
def test_authors_pair_dominates_in_substitution_units(z, fraction):
    loss = np.concatenate([[0.0], np.geomspace(1e-6, 5, 400)])
    authors = profile(PoissonSubstitution(z, fraction), loss)
    valid = profile(WithoutReplacement(z, fraction), loss)
    assert (authors >= valid - 1e-15).all()


@pytest.mark.parametrize("fraction", [0.01, 0.3])
@pytest.mark.parametrize("s", [0.5, 2.0, 8.0])
def test_authors_pair_is_the_integral_of_its_densities(s, fraction):
    x = np.linspace(-12 * s - 1, 12 * s + 1, 400001)
    centre = (1 - fraction) * norm.pdf(x, 0, s)
    p, q = (centre + fraction * norm.pdf(x, side, s) for side in (1, -1))
    for epsilon in (0.0, 0.01, 0.2, 1.0):
        ours = float(profile(PoissonSubstitution(s, fraction), np.array([epsilon]))[0])
        assert ours == pytest.approx(divergence(p, q, epsilon, x), rel=1e-5, abs=1e-9)


@pytest.mark.parametrize(
    ("sigma", "count", "epsilon", "authors", "realisable"),
    [(1, 1, 1, 2.96e-9, 2.74e-4), (1, 1000, 4, 4.1e-9, 5.7e-2), (4, 10**4, 2, 9.4e-6, 3.4e-5)],
)
def test_pair_in_removal_units_is_no_upper_bound(sigma, count, epsilon, authors, realisable):
    """Noise over the removal sensitivity, half of which is our multiplier: the trap.

    What is realisable: all other rows at one extreme, so that every release tells
    the mixture from its centre in the same direction.
    """
    trapped = compose([(PoissonSubstitution(sigma, 0.01), count)], epsilon)
    attained = one_direction(sigma / 2, count).get_delta(epsilon)
    assert trapped == pytest.approx(authors, rel=0.02)
    assert attained == pytest.approx(realisable, rel=0.02)
    assert trapped < 0.5 * attained
    counts = {events.sampled_gaussian(sigma / 2, 10, 1000): count}
    assert attained <= subsampled.delta(counts, epsilon) * (1 + 1e-3)
    assert attained <= poisson_pair.delta(counts, epsilon) * (1 + 1e-3)


@pytest.mark.parametrize(
    ("name", "epsilon", "valid", "authors"),
    [
        ("banana", 2, 112944, 31376),
        ("banana", 8, 1317888, 366144),
        ("gauss_sgld", 2, 1168, 635),
        ("gauss_sgld", 8, 14056, 7574),
        ("gauss_sgnht", 2, 7111, 2604),
        ("gauss_sgnht", 8, 83040, 30412),
    ],
)
def test_counts_of_the_paper(name, epsilon, valid, authors):
    releases = events.Releases((), ((events.sampled_gaussian(SETTINGS[name][0], 1000, 100000), 1),))
    ours = accounting.max_iterations(releases, Budget(epsilon, 1e-6, "subsampled"), 1)
    theirs = accounting.max_iterations(releases, Budget(epsilon, 1e-6, "poisson_pair"), 1)
    assert 0.9999 * valid <= ours <= 1.004 * valid
    assert theirs == pytest.approx(authors, rel=3e-3)


@pytest.mark.parametrize(
    ("variance", "epsilon", "valid", "authors"),
    [(0.7, 1, 4, 3), (0.7, 4, 1130, 828), (0.9, 1, 48, 39), (0.9, 6, 4158, 2680)],
)
def test_counts_of_minibatch_penalty(variance, epsilon, valid, authors):
    """Strong noise per batch, few releases: the loss has a heavy tail."""
    event = events.sampled_gaussian(math.sqrt(variance), 1000, 100000)
    releases = events.Releases((), ((event, 1),))
    for name, count in (("subsampled", valid), ("poisson_pair", authors)):
        ours = accounting.max_iterations(releases, Budget(epsilon, 1e-6, name), 1)
        assert ours == pytest.approx(count, rel=1e-3, abs=1)


@pytest.mark.parametrize(
    ("z", "count", "epsilon"),
    [(2.0, 1, 1.0), (50.0, 1000, 4.0), (100.0, 3511, 4.0), (1e3, 8_000_000, 15.0), (1.0, 700, 450)],
)
def test_composition_of_whole_releases_is_the_closed_form_from_above(z, count, epsilon):
    """Not below the truth, and not above that of one more release in ten thousand."""
    mu = gaussian.mean_loss({events.gaussian(z): count})
    ours = math.log(compose([(WithoutReplacement(z, 1.0), count)], epsilon))
    assert ours >= gaussian.log_delta(epsilon, mu) - 1e-9
    assert ours <= gaussian.log_delta(epsilon, mu * (1 + 1e-4))


def test_composition_of_a_few_is_the_convolution_from_above():
    """Two releases, by quadrature over the losses of the first."""
    z, fraction, epsilon = 0.8, 0.2, 0.4
    pair = WithoutReplacement(z, fraction)
    loss = np.linspace(0, pair.reach(), 200001)
    upper, lower = pair.tails(loss)
    middle, of_p, of_q = (loss[1:] + loss[:-1]) / 2, -np.diff(upper), -np.diff(lower)

    def signed_profile(x):
        mirrored = 1 - np.exp(x) + np.exp(x) * profile(pair, np.maximum(-x, 0))
        return np.where(x >= 0, profile(pair, np.maximum(x, 0)), mirrored)

    atom = 1 - upper[0] - lower[0]
    expected = (
        of_p @ signed_profile(epsilon - middle)
        + of_q @ signed_profile(epsilon + middle)
        + atom * signed_profile(np.array(epsilon))
    )
    assert expected * (1 - 1e-6) <= compose([(pair, 2)], epsilon) <= expected * 1.001


@pytest.mark.parametrize("name", ["gauss_sgld", "gauss_sgnht"])
def test_one_direction_alone_is_too_optimistic(name):
    """Neighbours have no order, so an adaptive adversary may turn the pair at every step."""
    z = SETTINGS[name][0]
    count = {"gauss_sgld": 62280, "gauss_sgnht": 312608}[name]
    one_way = one_direction(z, count).get_delta(15)
    both = subsampled.delta({events.sampled_gaussian(z, 1000, 100000): count}, 15)
    assert one_way == pytest.approx(1e-6, rel=0.03)
    assert both > 10 * one_way


@pytest.mark.parametrize(
    ("z", "batch_size", "count"),
    [(SGLD_GAUSS, 1000, 39000), (SGLD_BANANA, 1000, 110000), (0.7, 100, 2000), (3.0, 20000, 50)],
)
def test_agrees_with_the_audit_and_stays_below_rdp(z, batch_size, count):
    counts = {events.sampled_gaussian(z, batch_size, 100000): count}
    ours = subsampled.epsilon(counts, 1e-6)
    assert ours == pytest.approx(audit(counts, 1e-6).epsilon, rel=1e-3)
    assert ours < rdp.epsilon(counts, 1e-6)
    assert ours < poisson_pair.epsilon(counts, 1e-6)


def test_mixed_with_whole_releases():
    counts = {events.sampled_gaussian(1.2, 1000, 100000): 1000, events.gaussian(30.0): 500}
    ours = subsampled.epsilon(counts, 1e-6)
    assert ours == pytest.approx(audit(counts, 1e-6).epsilon, rel=1e-3)
    assert ours > max(subsampled.epsilon({event: n}, 1e-6) for event, n in counts.items())


def test_grows_with_the_count_and_falls_with_epsilon():
    event = events.sampled_gaussian(1.5, 500, 10000)
    by_count = [subsampled.delta({event: count}, 2.0) for count in (1, 10, 100, 1000, 10000)]
    by_epsilon = [subsampled.delta({event: 100}, epsilon) for epsilon in (0, 0.1, 0.5, 2, 5)]
    assert by_count == sorted(by_count)
    assert by_epsilon == sorted(by_epsilon, reverse=True)
