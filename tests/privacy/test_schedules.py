"""Accounting of DP-SEP: published noise, what it is worth, what a budget takes, what is refused."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, NeighboringRelation, PoissonSampledDpEvent
from dp_accounting.pld import PLDAccountant
from dp_accounting.pld.pld_pmf import create_pmf_pessimistic_connect_dots_fixed_gap

from dpmc.privacy import events, noise_calibration
from dpmc.privacy.accountants import _renyi
from dpmc.privacy.accountants.gaussian import log_delta
from dpmc.privacy.noise_calibration import calibrate
from dpmc.privacy.published_noise import autodp_published, autodp_published_epsilon
from dpmc.privacy.schedules import (
    Schedule,
    combined_multiplier,
    counts,
    delta_at,
    epsilon_at,
    epsilon_of_blocks,
)
from dpmc.types import DpmcError
from tests.reference import connect_dots

DELTA = 1e-5
ROWS = {
    "wine": 1439,
    "kin8nm": 7372,
    "power": 8611,
    "naval": 10740,
    "protein": 41157,
    "year": 463715,
}
# Of the public code for networks: (1, 1e-5), 40 passes, k = 2 T N.
PUBLISHED = {
    "wine": 2.43982,
    "kin8nm": 1.2213,
    "power": 1.1277,
    "naval": 1.03878,
    "protein": 0.83925,
    "year": 0.72041,
}
# Of the public code for the mixture, 100 passes: means at 4/5 of the budget, covariances at 1/5.
MIXTURE = {1: (4.133295, 8130.859), 5: (0.972398, 3.474868), 50: (0.449414, 0.631581)}
# What it is worth for four blocks, were rows drawn independently and the noise added. Coarser
# grids give 0.808, 1.571, 1.961, 2.591, 4.542, which are upper bounds too.
WORTH = {"wine": 0.7508, "kin8nm": 1.497, "power": 1.905, "naval": 2.553, "protein": 4.505}
# Reference values of a numerical composition, to 1 %.
NUMERICAL = {
    "wine": 1.037,
    "kin8nm": 0.694,
    "power": 0.674,
    "naval": 0.647,
    "protein": 0.536,
    "year": 0.4406,
}
# Of half a million rows, with one each.
LONG = ("year",)
NUMERICAL_MIXTURE = {1: 1.593, 5: 0.699, 50: 0.394}


def network(name, order="independent"):
    return Schedule(ROWS[name], 40, order)


def mixture(order="independent"):
    return Schedule(1000, 100, order)


@lru_cache
def attained(noise_multiplier, schedule, delta=DELTA):
    """Return an epsilon that is reached: all other rows at one extreme, in one direction."""
    accountant = PLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE, 1e-4)
    event = PoissonSampledDpEvent(1 / schedule.num_rows, GaussianDpEvent(noise_multiplier))
    accountant.compose(event, schedule.num_rows * schedule.num_passes)
    return accountant.get_epsilon(delta)


# What the public code of the paper did


@pytest.mark.parametrize("name", ROWS)
def test_published_noise_of_networks_comes_out(name):
    n = ROWS[name]
    assert autodp_published(1, DELTA, n, 80 * n) == pytest.approx(PUBLISHED[name], rel=1e-5)


@pytest.mark.parametrize("epsilon", MIXTURE)
def test_published_noise_of_the_mixture_comes_out(epsilon):
    """Also 8130.86, where the bound with sampling cannot get below that without."""
    ours = [autodp_published(f * epsilon, f * DELTA, 1000, 100_000) for f in (0.8, 0.2)]
    np.testing.assert_allclose(ours, MIXTURE[epsilon], rtol=2e-6)


def test_published_accountant_is_above_a_direct_evaluation_of_neither_bound():
    """At integer orders by hand, and at the real orders that the bound without sampling allows."""
    sigma, n, k = 8130.859, 1000, 100_000
    order = np.arange(2, 400)
    by_order = k * order / (2 * sigma**2) + math.log(1 / 2e-6) / (order - 1)
    ours = autodp_published_epsilon(sigma, 2e-6, n, k)
    assert by_order.min() * (1 - 1e-4) < ours <= by_order.min()
    assert ours == pytest.approx(0.2, rel=1e-5)
    whole = _renyi.orders(256) / (2 * 0.5**2)
    sampled = _renyi.amplified(1 / n, whole) * k + math.log(1e5) / (_renyi.orders(256) - 1)
    assert autodp_published_epsilon(0.5, DELTA, n, k) == pytest.approx(sampled.min(), rel=1e-12)


def test_published_noise_is_loose_for_what_it_covers():
    """One vector and independent draws would need less than half of it for `wine`."""
    n = ROWS["wine"]
    assert autodp_published(1, DELTA, n, 40 * n) == pytest.approx(1.7869, rel=1e-4)
    assert autodp_published(1, DELTA, n, 40 * n) > 1.6 * NUMERICAL["wine"]


# What that noise is worth


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("wine", 34.8),
        ("kin8nm", 97.0),
        ("power", 109.9),
        ("naval", 125.2),
        ("protein", 177.0),
        ("year", 228.1),
    ],
)
def test_permuted_passes_with_the_published_noise_are_hardly_private(name, expected):
    ours = epsilon_of_blocks((PUBLISHED[name],) * 4, network(name, "permutation"), DELTA)
    assert ours == pytest.approx(expected, abs=0.051)


@pytest.mark.parametrize(("epsilon", "expected"), [(1, 12.67), (5, 101.7), (50, 488.5)])
def test_mixture_runs_are_hardly_private(epsilon, expected):
    ours = epsilon_of_blocks(MIXTURE[epsilon], mixture("cyclic"), DELTA)
    assert ours == pytest.approx(expected, rel=5e-4)
    shift = math.sqrt(100 * sum(sigma**-2 for sigma in MIXTURE[epsilon]))
    assert math.exp(log_delta(ours, shift**2 / 2)) == pytest.approx(DELTA, rel=1e-4)


@pytest.mark.parametrize(("name", "expected"), WORTH.items())
def test_independent_draws_with_the_published_noise(name, expected):
    sigma, steps = combined_multiplier((PUBLISHED[name],) * 4), 40 * ROWS[name]
    ours = connect_dots.epsilon(sigma, ROWS[name], steps, DELTA)
    assert ours == pytest.approx(expected, rel=2e-3)


def test_what_is_drawn_independently_is_worth_by_the_accountant_of_runs():
    sigmas = (PUBLISHED["wine"],) * 4
    ours = epsilon_of_blocks(sigmas, network("wine"), DELTA)
    assert ours == pytest.approx(WORTH["wine"], rel=5e-3)


# Noise for a budget


@pytest.mark.parametrize(
    ("schedule", "epsilon", "sigma"),
    [
        *(
            pytest.param(network(name), 1, sigma, marks=pytest.mark.slow if name in LONG else ())
            for name, sigma in NUMERICAL.items()
        ),
        *((mixture(), epsilon, sigma) for epsilon, sigma in NUMERICAL_MIXTURE.items()),
    ],
)
def test_numerical_noise(schedule, epsilon, sigma):
    steps = schedule.num_rows * schedule.num_passes
    low, high = (
        connect_dots.delta(f * sigma, schedule.num_rows, steps, epsilon, DELTA)
        for f in (1.01, 0.99)
    )
    assert low < DELTA < high


@pytest.mark.parametrize("order", ["permutation", "cyclic"])
def test_noise_without_amplification(order):
    assert calibrate(network("year", order), 1, DELTA).noise_multiplier == 23.6
    found = [calibrate(mixture(order), epsilon, DELTA).noise_multiplier for epsilon in (1, 5, 50)]
    assert found == [37.31, 8.919, 1.498]


@pytest.mark.parametrize(
    ("schedule", "epsilon", "expected"),
    [
        (mixture(), 50, 0.394),
        (mixture(), 1, 1.593),
        (Schedule(300, 3), 1, None),
        (Schedule(5, 1), 20, None),
    ],
)
def test_calibration_keeps_the_budget_by_the_last_digit(schedule, epsilon, expected):
    """And by the other numerical accountant too, to its half per cent."""
    found = calibrate(schedule, epsilon, DELTA, outside=("a choice",))
    sigma = found.noise_multiplier
    unit = 10.0 ** (math.floor(math.log10(sigma)) - 3)
    assert expected is None or sigma == pytest.approx(expected, rel=0.01)
    assert sigma / unit == pytest.approx(round(sigma / unit), abs=1e-9)
    assert delta_at(schedule, sigma, epsilon) <= DELTA < delta_at(schedule, sigma - unit, epsilon)
    assert found.guarantee.epsilon == epsilon
    assert found.guarantee.accountant == "subsampled"
    assert found.guarantee.outside == ("a choice",)
    rows, steps = schedule.num_rows, schedule.num_rows * schedule.num_passes
    assert connect_dots.epsilon(sigma, rows, steps, DELTA) < 1.01 * epsilon
    # A tenth less noise is found out.
    assert connect_dots.epsilon(0.9 * sigma, rows, steps, DELTA) > 1.01 * epsilon


def test_guarantee_of_a_cycle_is_that_of_its_passes():
    found = calibrate(mixture("cyclic"), 1, DELTA).guarantee
    assert (found.accountant, found.neighbours, found.delta) == ("gaussian", "replace", DELTA)
    assert 0.999 < found.epsilon <= 1


def test_a_budget_is_calibrated_once_in_a_process():
    noise_calibration._calibrated.cache_clear()
    for outside in (("a",), ("b",)):
        assert calibrate(Schedule(5, 1), 20, DELTA, outside=outside).guarantee.outside == outside
    assert noise_calibration._calibrated.cache_info().misses == 1


# The numerical composition


def test_masses_are_those_of_dp_accounting():
    """Which differences the profile at negative losses too, where there are digits enough."""
    sigma, fraction, gap, m = 1.3, 0.2, 0.05, 60
    loss = gap * np.arange(m + 1)
    above = connect_dots.profile(sigma, fraction, loss)
    below = -np.expm1(-loss[:0:-1]) + np.exp(-loss[:0:-1]) * above[:0:-1]
    deltas = np.concatenate([below, above])
    theirs = create_pmf_pessimistic_connect_dots_fixed_gap(gap, -m, m, deltas).to_dense_pmf()
    *ours, infinite = connect_dots.masses(sigma, fraction, gap, m)
    np.testing.assert_allclose(ours[1:], theirs._probs[1:], atol=1e-12)
    # Their lowest point takes all that is below it; ours takes what symmetry says.
    assert abs(ours[0] - theirs._probs[0]) < 1e-6
    assert infinite == theirs._infinity_mass == above[-1]
    assert sum(ours) + infinite == pytest.approx(1, abs=1e-14)


def test_profile_without_sampling_is_that_of_the_gaussian_release():
    loss = np.array([0.0, 0.3, 2.0, 6.0])
    expected = [math.exp(log_delta(epsilon, 1 / (2 * 0.8**2))) for epsilon in loss]
    np.testing.assert_allclose(connect_dots.profile(0.8, 1.0, loss), expected, rtol=1e-9)


@pytest.mark.parametrize("epsilon", [1, 50])
def test_two_numerical_accountants_agree(epsilon):
    """They share no line; the grid of this one may raise epsilon by half a per cent."""
    sigma = NUMERICAL_MIXTURE[epsilon]
    ours = connect_dots.epsilon(sigma, 1000, 100_000, DELTA)
    low, high = (delta_at(mixture(), sigma, ours * f) for f in (1 / 1.005, 1.0001))
    assert high < DELTA < low


# Upper bounds, and what is none


def test_the_accountant_bounds_what_is_attained():
    """It puts more than delta above an epsilon that is reached at delta."""
    schedule = Schedule(1000, 10)
    reached = attained(0.6, schedule)
    assert reached > 0.5
    assert delta_at(schedule, 0.6, reached) > DELTA


def test_blocks_composed_outside_of_the_sampling_fall_below_what_is_attained():
    """Four blocks of one row: one vector, or four times as many releases as if on their own."""
    schedule = Schedule(1000, 10)
    reached = attained(combined_multiplier((0.8,) * 4), schedule)
    assert delta_at(Schedule(1000, 40), 0.8, 0.7 * reached) < DELTA
    combined = combined_multiplier((0.8,) * 4)
    assert delta_at(schedule, combined, reached) > DELTA


def test_sampling_claimed_for_a_permutation_falls_below_what_is_attained():
    """One row in each pass: the composition of T Gaussian releases is attained exactly."""
    sigma = NUMERICAL_MIXTURE[1]
    claimed = epsilon_at(mixture(), sigma, DELTA)
    attained_delta = math.exp(log_delta(claimed, 100 / (2 * sigma**2)))
    assert attained_delta > 0.9
    exact = epsilon_at(mixture("permutation"), sigma, DELTA)
    assert math.exp(log_delta(exact, 100 / (2 * sigma**2))) <= DELTA


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (Schedule(2000, 50), "the fraction is halved"),
        (Schedule(1000, 50), "steps are left out"),
        (Schedule(1000, 200), "blocks are counted as steps"),
    ],
)
def test_a_wrong_fraction_or_count_is_found_out(broken, why):
    wrong = epsilon_at(broken, NUMERICAL_MIXTURE[1], DELTA)
    assert abs(wrong - 1) > 0.1, why


def test_combined_multiplier():
    assert combined_multiplier((3.0,) * 9) == pytest.approx(1.0)
    assert combined_multiplier((3.0, 4.0)) == pytest.approx(2.4)
    assert combined_multiplier((0.7, 1e6)) == pytest.approx(0.7)


def test_counts_are_what_a_ledger_holds():
    assert counts(mixture(), 2.0) == {events.sampled_gaussian(2.0, 1, 1000): 100_000}
    for order in ("permutation", "cyclic"):
        assert counts(mixture(order), 2.0) == {events.gaussian(2.0): 100}


# Bad input


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_rows": 1}, "`num_rows` must be an integer of at least 2, got 1"),
        ({"num_passes": 0}, "`num_passes` must be an integer of at least 1, got 0"),
        (
            {"order": "shuffled"},
            "`order` must be one of 'independent', 'permutation', 'cyclic', got 'shuffled'",
        ),
    ],
)
def test_runs_that_nothing_is_proved_of_are_refused(changes, message):
    with pytest.raises(DpmcError, match=message) as caught:
        Schedule(**{"num_rows": 100, "num_passes": 2, **changes})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: epsilon_of_blocks((0.0,), Schedule(9, 2), DELTA),
            "`noise_multipliers` must be positive and finite, got 0.0",
        ),
        (
            lambda: epsilon_of_blocks((1.0,), Schedule(9, 2), 1.0),
            r"`delta` must be in \(0, 1\), got 1.0",
        ),
        (
            lambda: calibrate(Schedule(9, 2), math.inf, DELTA),
            "`epsilon` must be positive and finite, got inf",
        ),
        (
            lambda: combined_multiplier(()),
            "`noise_multipliers` must have at least one entry, got none",
        ),
        (
            lambda: combined_multiplier((1.0, -1.0)),
            "`noise_multipliers` must be positive and finite, got -1.0",
        ),
        (
            lambda: autodp_published(0.0, DELTA, 9, 2),
            "`epsilon` must be positive and finite, got 0.0",
        ),
        (
            lambda: autodp_published_epsilon(1.0, DELTA, 1, 2),
            "`num_rows` must be an integer of at least 2, got 1",
        ),
    ],
)
def test_bad_values_are_refused_in_one_line(call, message):
    with pytest.raises(DpmcError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
