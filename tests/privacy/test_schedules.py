"""Accounting of DP-SEP: published noise, what it is worth, what a budget takes, what is refused."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, NeighboringRelation, PoissonSampledDpEvent
from dp_accounting.pld import PLDAccountant
from dp_accounting.pld.pld_pmf import create_pmf_pessimistic_connect_dots_fixed_gap

from dpmc.privacy import connect_dots, events, noise_calibration
from dpmc.privacy.accountants.gaussian import log_delta
from dpmc.privacy.noise_calibration import calibrate
from dpmc.privacy.published_noise import autodp_published
from dpmc.privacy.schedules import (
    SAMPLED,
    Schedule,
    combined_multiplier,
    counts,
    delta_at,
    epsilon_at,
    epsilon_of_blocks,
    guarantee,
    sensitivity,
)
from dpmc.types import DpmcError

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
RENYI = {
    "wine": 1.518,
    "kin8nm": 0.8522,
    "power": 0.837,
    "naval": 0.8181,
    "protein": 0.7113,
    "year": 0.6323,
}
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
    accountant.compose(event, schedule.num_steps)
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


def test_published_noise_is_loose_for_what_it_covers():
    """One vector and independent draws would need less than half of it for `wine`."""
    n = ROWS["wine"]
    assert autodp_published(1, DELTA, n, 40 * n) == pytest.approx(1.7869, rel=1e-4)
    assert autodp_published(1, DELTA, n, 40 * n) > 1.1 * RENYI["wine"] > 1.1 * NUMERICAL["wine"]


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
    ours = epsilon_of_blocks((PUBLISHED[name],) * 4, network(name), DELTA)
    assert ours == pytest.approx(expected, rel=2e-3)


def test_what_is_drawn_independently_is_worth_by_another_accountant():
    sigma = combined_multiplier((PUBLISHED["wine"],) * 4)
    low, high = (
        delta_at("subsampled", network("wine"), sigma, f * WORTH["wine"], DELTA)
        for f in (0.995, 1.005)
    )
    assert high < DELTA < low


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
    assert delta_at("connect_dots", schedule, 1.01 * sigma, epsilon, DELTA) < DELTA
    assert delta_at("connect_dots", schedule, 0.99 * sigma, epsilon, DELTA) > DELTA


@pytest.mark.parametrize(
    ("accountant", "schedule", "epsilon", "expected", "tolerance"),
    [
        ("rdp", network("wine"), 1, 1.518, 1e-12),
        ("connect_dots", network("wine"), 1, 1.037, 0.01),
        ("subsampled", mixture(), 50, 0.394, 0.01),
    ],
)
def test_calibration_keeps_the_budget_by_the_last_digit(
    accountant, schedule, epsilon, expected, tolerance
):
    found = calibrate(schedule, epsilon, DELTA, accountant, outside=("a choice",))
    sigma = found.noise_multiplier
    unit = 10.0 ** (math.floor(math.log10(sigma)) - 3)
    assert sigma == pytest.approx(expected, rel=tolerance)
    assert sigma / unit == pytest.approx(round(sigma / unit), abs=1e-9)
    assert delta_at(accountant, schedule, sigma, epsilon, DELTA) <= DELTA
    assert delta_at(accountant, schedule, sigma - unit, epsilon, DELTA) > DELTA
    assert 0.99 * epsilon < found.guarantee.epsilon <= epsilon
    assert found.guarantee.accountant == accountant
    assert found.guarantee.outside == ("a choice",)


@pytest.mark.parametrize("quick_rows", [0, 60_000])
def test_the_default_takes_the_least_noise_wherever_the_search_begins(monkeypatch, quick_rows):
    """And keeps the budget by the other numerical accountant too, to its half per cent."""
    monkeypatch.setattr(noise_calibration, "_QUICK_ROWS", quick_rows)
    noise_calibration._calibrated.cache_clear()
    for schedule, epsilon in ((mixture(), 1), (Schedule(300, 3), 1), (Schedule(5, 1), 20)):
        found = calibrate(schedule, epsilon, DELTA)
        sigma = found.noise_multiplier
        unit = 10.0 ** (math.floor(math.log10(sigma)) - 3)
        assert found.guarantee.accountant == "subsampled"
        assert found.guarantee.epsilon == epsilon
        assert delta_at("subsampled", schedule, sigma, epsilon, DELTA) <= DELTA
        assert delta_at("subsampled", schedule, sigma - unit, epsilon, DELTA) > DELTA
        assert epsilon_at("connect_dots", schedule, sigma, DELTA) < 1.01 * epsilon
        assert sigma < 0.9 * calibrate(schedule, epsilon, DELTA, "rdp").noise_multiplier
        # A tenth less noise is found out.
        assert epsilon_at("connect_dots", schedule, 0.9 * sigma, DELTA) > 1.01 * epsilon


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


@pytest.mark.parametrize("epsilon", [1, 50])
def test_two_numerical_accountants_agree(epsilon):
    """They share no line; the grid of this one may raise epsilon by half a per cent."""
    sigma = NUMERICAL_MIXTURE[epsilon]
    ours = connect_dots.epsilon(sigma, 1000, 100_000, DELTA)
    low, high = (
        delta_at("subsampled", mixture(), sigma, ours * f, DELTA) for f in (1 / 1.005, 1.0001)
    )
    assert high < DELTA < low


def test_a_grid_that_does_not_settle_is_refused(monkeypatch):
    monkeypatch.setattr(connect_dots, "TOLERANCE", 1e-9)
    monkeypatch.setattr(connect_dots, "_MAX_HALVINGS", 1)
    with pytest.raises(
        DpmcError, match="accountant connect_dots: halving the grid must move epsilon by at most"
    ):
        connect_dots.epsilon(0.394, 1000, 100_000, DELTA)


# Upper bounds, and what is none


@pytest.mark.parametrize("accountant", SAMPLED)
def test_accountants_bound_what_is_attained(accountant):
    """They put more than delta above an epsilon that is reached at delta."""
    schedule = Schedule(1000, 10)
    reached = attained(0.6, schedule)
    assert reached > 0.5
    assert delta_at(accountant, schedule, 0.6, reached, DELTA) > DELTA


def test_blocks_composed_outside_of_the_sampling_fall_below_what_is_attained():
    """Four blocks of one row: one vector, or four times as many releases as if on their own."""
    schedule = Schedule(1000, 10)
    reached = attained(combined_multiplier((0.8,) * 4), schedule)
    assert delta_at("subsampled", Schedule(1000, 40), 0.8, 0.7 * reached, DELTA) < DELTA
    combined = combined_multiplier((0.8,) * 4)
    assert delta_at("subsampled", schedule, combined, reached, DELTA) > DELTA


def test_sampling_claimed_for_a_permutation_falls_below_what_is_attained():
    """One row in each pass: the composition of T Gaussian releases is attained exactly."""
    sigma = RENYI["wine"]
    claimed = epsilon_at("rdp", network("wine"), sigma, DELTA)
    attained_delta = math.exp(log_delta(claimed, 40 / (2 * sigma**2)))
    assert attained_delta > 0.9
    exact = epsilon_at("gaussian", network("wine", "permutation"), sigma, DELTA)
    assert math.exp(log_delta(exact, 40 / (2 * sigma**2))) <= DELTA


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (Schedule(2 * 1439, 40), "the fraction is halved"),
        (Schedule(1439, 20), "steps are left out"),
        (Schedule(1439, 80), "blocks are counted as steps"),
    ],
)
def test_a_wrong_fraction_or_count_is_found_out(broken, why):
    sigma = RENYI["wine"]
    wrong = epsilon_at("rdp", broken, sigma, DELTA)
    assert abs(wrong - 1) > 0.1, why


def test_noise_relative_to_one_block_is_found_out():
    """Noise for the sensitivity of one of four blocks has half of the multiplier."""
    good = sensitivity(1.0, 0.1, "per_block", 4)
    assert good == 2 * sensitivity(1.0, 0.1)
    ours = epsilon_of_blocks((RENYI["wine"],) * 4, network("wine"), DELTA, accountant="rdp")
    assert ours == epsilon_at("rdp", network("wine"), RENYI["wine"] / 2, DELTA)
    assert ours > 2


def test_sensitivity_is_attained_by_opposite_factors():
    rng = np.random.default_rng(1)
    factor = rng.standard_normal(7)
    factor *= 0.3 / np.linalg.norm(factor)
    assert np.linalg.norm(0.02 * factor + 0.02 * factor) == pytest.approx(sensitivity(0.02, 0.3))
    blocks = np.eye(4) * 0.3  # each block at its own bound
    moved = np.linalg.norm(0.02 * blocks + 0.02 * blocks)
    assert moved == pytest.approx(sensitivity(0.02, 0.3, "per_block", 4))


def test_counts_are_what_a_ledger_holds():
    assert counts(mixture(), 2.0) == {events.sampled_gaussian(2.0, 1, 1000): 100_000}
    for order in ("permutation", "cyclic"):
        assert counts(mixture(order), 2.0) == {events.gaussian(2.0): 100}


# Bad input


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: guarantee(Schedule(9, 2), 1.0, DELTA, "gaussian"), "with order 'independent', w"),
        (lambda: guarantee(Schedule(9, 2), 1.0, DELTA, "zcdp"), "`accountant` must be one of 'sub"),
        (lambda: guarantee(Schedule(9, 2), 0.0, DELTA), "`noise_multiplier` must be positive and"),
        (lambda: calibrate(Schedule(9, 2), 0.01, DELTA, "rdp"), "`epsilon` must be what accountan"),
        (lambda: sensitivity(1.0, math.inf), "`clip_bound` must be positive and finite, got inf"),
        (lambda: sensitivity(1.0, 1.0, "layer"), "`clip` must be 'joint' or 'per_block', got"),
        (lambda: combined_multiplier(()), "`noise_multipliers` must have at least one entry"),
    ],
)
def test_bad_values_are_refused(call, message):
    with pytest.raises(DpmcError, match=message):
        call()


def test_noise_that_is_never_added_is_worth_nothing():
    assert epsilon_of_blocks((2.43982,) * 4, network("wine"), DELTA, noise_added=False) == math.inf


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_rows": 1}, "`num_rows` must be an integer of at least 2, got 1"),
        ({"num_passes": 0}, "`num_passes` must be an integer of at least 1, got 0"),
        (
            {"order": "shuffled"},
            "`order` must be one of 'independent', 'permutation', 'cyclic', got 'shuffled'",
        ),
        (
            {"neighbours": "add_remove"},
            "`neighbours` must be 'replace', since the number of rows is in the factor",
        ),
        (
            {"blocks": "separate"},
            "`blocks` must be 'together', since the blocks of a step come from the same",
        ),
        (
            {"noise_precision": "unaccounted"},
            "`noise_precision` must be 'public' or 'released', since what is learned of",
        ),
    ],
)
def test_runs_that_nothing_is_proved_of_are_refused(changes, message):
    with pytest.raises(DpmcError, match=message) as caught:
        Schedule(**{"num_rows": 100, "num_passes": 2, **changes})
    assert "\n" not in str(caught.value)
