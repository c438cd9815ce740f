"""Noise multipliers: the analytic one against other code, the published one against itself."""

from __future__ import annotations

import math

import pytest
from dp_accounting import GaussianDpEvent
from dp_accounting.pld import PLDAccountant
from scipy.special import ndtr

from dpmc.privacy import events
from dpmc.privacy.accountants import gaussian
from dpmc.privacy.budgets import GaussianBudget
from dpmc.privacy.gaussian_noise import analytic_multiplier, multiplier, true_delta, true_epsilon
from dpmc.privacy.published_noise import published_multiplier
from dpmc.privacy.schedules import Schedule, epsilon_of_blocks
from dpmc.statsel.mechanisms import gaussian_guarantee
from dpmc.types import DpmcError

GRID = [(e, d) for e in (0.01, 0.1, 1 / 3, 1, 5, 10, 50) for d in (1e-12, 1e-5, 1 / 7655, 0.1)]


def delta_by_its_formula(sigma, epsilon):
    """Theorem 8 of [Balle and Wang 2018], which the accountant has in another form."""
    low, high = (sign / (2 * sigma) - epsilon * sigma for sign in (1, -1))
    return ndtr(low) - math.exp(epsilon) * ndtr(high)


@pytest.mark.parametrize(("epsilon", "delta"), GRID)
def test_analytic_multiplier_is_enough_and_no_more(epsilon, delta):
    sigma = analytic_multiplier(epsilon, delta)
    assert true_delta(sigma, epsilon) <= delta
    assert true_delta(sigma * (1 - 1e-9), epsilon) > delta
    assert delta_by_its_formula(sigma, epsilon) == pytest.approx(delta, rel=1e-6, abs=1e-14)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-5), (1, 1 / 7655), (4, 1e-5)])
def test_dp_accounting_agrees_and_finds_a_smaller_multiplier_out(epsilon, delta):
    def theirs(sigma):
        accountant = PLDAccountant()
        accountant.compose(GaussianDpEvent(sigma))
        return accountant.get_delta(epsilon)

    sigma = analytic_multiplier(epsilon, delta)
    assert theirs(sigma) == pytest.approx(delta, rel=1e-3)
    assert theirs(0.99 * sigma) > 1.02 * delta
    assert theirs(published_multiplier(epsilon, delta)) > 1.2 * delta


@pytest.mark.parametrize(("epsilon", "delta"), GRID)
def test_true_epsilon_inverts_the_analytic_multiplier(epsilon, delta):
    found = true_epsilon(analytic_multiplier(epsilon, delta), delta)
    assert epsilon * (1 - 1e-9) <= found <= epsilon * (1 + 2e-7)


def test_true_epsilon_of_little_noise_is_infinite_and_of_much_zero():
    assert true_epsilon(1e-3, 1e-6) > 5e5
    assert math.isinf(true_epsilon(1e-9, 1e-6))
    assert true_epsilon(1e9, 1e-6) == 0.0


@pytest.mark.parametrize(
    ("epsilon", "delta", "expected", "ratio"),
    [
        (1, 1 / 7655, 1.48656, 0.477),
        (1 / 3, 1 / 7655 / 3, 2.669, 0.293),
        (0.1, 1e-5, 5.0435, 0.164),
        (10, 1e-5, 0.44144, 0.883),
    ],
)
def test_published_multiplier_is_too_small(epsilon, delta, expected, ratio):
    sigma = published_multiplier(epsilon, delta)
    assert sigma == pytest.approx(expected, rel=5e-5)
    assert sigma / analytic_multiplier(epsilon, delta) == pytest.approx(ratio, abs=6e-4)
    assert true_delta(sigma, epsilon) > delta


def test_what_the_published_noise_is_worth():
    """At epsilon 1 of the real data: delta 246 times too large, or an epsilon of 2.34."""
    sigma = published_multiplier(1, 1 / 7655)
    assert true_delta(sigma, 1) == pytest.approx(0.0322, abs=2e-4)
    assert true_epsilon(sigma, 1 / 7655) == pytest.approx(2.34, abs=0.005)


def test_multipliers_by_name():
    assert multiplier("analytic", 1, 1e-5) == analytic_multiplier(1, 1e-5)
    assert multiplier("published", 1, 1e-5) == published_multiplier(1, 1e-5)
    with pytest.raises(
        DpmcError, match="`calibration` must be 'analytic' or 'published', got 'exact'"
    ):
        multiplier("exact", 1, 1e-5)


@pytest.mark.parametrize("sigma", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("delta", [1e-3, 1 / 7655, 1e-8])
def test_there_is_one_epsilon_of_a_release(sigma, delta):
    """To the last bit, since 1 / sigma is exact for these."""
    expected = true_epsilon(sigma, delta)
    assert gaussian.epsilon({events.gaussian(sigma): 1}, delta) == expected
    assert gaussian_guarantee(1 / sigma, delta).epsilon == expected
    # A budget reckons with the rounding of equal shares of it.
    budget = GaussianBudget(1 / sigma).guarantee(delta).epsilon
    assert expected <= budget <= expected * (1 + 1e-13)
    one_pass = Schedule(100, 1, order="cyclic")
    assert epsilon_of_blocks([sigma], one_pass, delta) == expected
