"""A ledger with a Gaussian budget lets nothing through that is beyond it."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpmc.privacy import GaussianBudget, Ledger, audit, barker, gaussian, plan
from dpmc.privacy.accountants.gaussian import log_delta
from dpmc.privacy.budgets import ROUNDING, Meter
from dpmc.privacy.clipped import BarkerRatio, Clip, asserted
from dpmc.types import Budget, DpmcError

# Of the test of the trade-off: at most one in a million correct runs fails.
LEVEL = 1e-6
RUNS = 20_000


def exact_cost(counts):
    return sum(
        (count / Fraction(event.noise_multiplier) ** 2 for event, count in counts.items()),
        Fraction(0),
    )


@settings(max_examples=200, deadline=None)
@given(
    st.floats(1e-3, 10),
    st.lists(st.tuples(st.floats(0.05, 1e4), st.integers(1, 3)), min_size=1, max_size=30),
)
def test_the_exact_sum_never_exceeds_the_budget(mu, wanted):
    """And what is refused would exceed it, but for 2**-150 of rounding."""
    ledger, rng = Ledger(GaussianBudget(mu)), np.random.default_rng(0)
    for multiplier, times in wanted:
        before, state = ledger.counts, rng.bit_generator.state
        try:
            ledger.noise_block(times, 1, Clip(0.5), multiplier, rng)
        except DpmcError:
            more = exact_cost(before) + times / Fraction(multiplier) ** 2
            assert more > Fraction(mu) ** 2 - Fraction(1, 2**150)
            assert (ledger.counts, rng.bit_generator.state) == (before, state)
        spent = exact_cost(ledger.counts)
        assert spent <= Fraction(mu) ** 2
        assert Fraction(ledger.spent) >= spent
        assert Fraction(ledger.remaining) <= Fraction(mu) ** 2 - spent


def test_equal_releases_use_the_budget_to_the_last():
    ledger, rng = Ledger(GaussianBudget(1.0)), np.random.default_rng()
    for _ in range(100):
        ledger.release(asserted(0.0, 1.0), 10.0, rng)
    assert ledger.remaining == 0
    assert ledger.least_multiplier() == math.inf
    with pytest.raises(DpmcError, match="the sum of 1 / z"):
        ledger.release(asserted(0.0, 1.0), 1e7, rng)
    assert ledger.records() == (("gaussian(10.0)", 100),)


def test_equal_shares_are_not_refused_for_rounding(rng):
    budget = GaussianBudget.of(1.0, 1e-6)
    for number in (2, 3, 5, 7, 50, 130, 199):
        ledger, multiplier = Ledger(budget), math.sqrt(number) / budget.mu
        for _ in range(number):
            ledger.release(asserted(0.0, 1.0), multiplier, rng)
        assert 0 <= ledger.remaining < 1e-15
        allowed = Fraction(budget.mu) ** 2 * (1 + ROUNDING)
        assert exact_cost(ledger.counts) <= allowed
        # What is quoted counts with as much.
        assert exact_cost(budget.worst()) >= allowed
        with pytest.raises(
            DpmcError, match=r"at most 0\.05\d{14,} by the budget, got 0\.05\d{14,}"
        ):
            ledger.release(asserted(0.0, 1.0), 1e6, rng)


@pytest.mark.parametrize("multiplier", [1e-320, 1e-200, 1e200])
def test_multipliers_whose_squares_are_no_numbers_are_refused_in_one_line(multiplier, rng):
    for ledger in (Ledger(), Ledger(GaussianBudget(1.0))):
        with pytest.raises(DpmcError, match="`noise_multiplier` must be from 1e-150 to 1e"):
            ledger.release(asserted(0.0, 1.0), multiplier, rng)
    with pytest.raises(DpmcError, match="the sum of 1 / z"):
        Ledger(GaussianBudget(1.0)).release(asserted(0.0, 1.0), 1e-150, rng)


def test_the_least_multiplier_is_allowed_and_a_smaller_one_is_not():
    ledger, rng = Ledger(GaussianBudget(0.7)), np.random.default_rng()
    ledger.release(asserted(0.0, 1.0), 3.3, rng)
    least = ledger.least_multiplier()
    with pytest.raises(DpmcError, match="by the budget"):
        ledger.release(asserted(0.0, 1.0), least * (1 - 1e-12), rng)
    ledger.release(asserted(0.0, 1.0), least, rng)
    assert 0 <= ledger.remaining < 1e-14


def test_only_gaussian_releases_from_all_rows_are_covered():
    ledger, rng = Ledger(GaussianBudget(1.0)), np.random.default_rng()
    with pytest.raises(DpmcError, match="Gaussian releases from all rows only"):
        ledger.release(asserted(0.0, 1.0), 5.0, rng, batch=(10, 100))
    with pytest.raises(DpmcError, match="Gaussian releases from all rows only"):
        ledger.release_barker(BarkerRatio(0.0, 0.5, barker(2.0, 1.0, 50, 1000)), rng)
    assert ledger.counts == {}
    assert ledger.spent == 0


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-6), (8.0, 1e-3)])
def test_a_budget_is_the_largest_that_keeps_epsilon_and_delta(epsilon, delta):
    budget = GaussianBudget.of(epsilon, delta)
    assert log_delta(epsilon, budget.mu**2 / 2) <= math.log(delta)
    assert log_delta(epsilon, (budget.mu * (1 + 1e-9)) ** 2 / 2) > math.log(delta)
    guarantee = budget.guarantee(delta)
    assert epsilon * (1 - 1e-6) < guarantee.epsilon <= epsilon * (1 + 1e-6)
    (event,) = budget.worst()
    assert Fraction(event.noise_multiplier) * Fraction(budget.mu) <= 1


def test_a_ledger_without_a_budget_has_nothing_to_spend():
    with pytest.raises(DpmcError, match="`plan` of the ledger must be a GaussianBudget"):
        _ = Ledger().remaining


def test_what_a_joint_guarantee_counts_does_not_depend_on_what_was_spent():
    rng = np.random.default_rng()
    ledger = Ledger(GaussianBudget(0.5))
    ledger.release(asserted(0.0, 1.0), 50.0, rng)
    assert ledger.committed == GaussianBudget(0.5).worst()
    ((event, count),) = ledger.committed.items()
    assert (event.noise_multiplier, count) == (pytest.approx(2.0, rel=1e-15), 1)
    counted = Ledger({gaussian(5.0): 3})
    counted.release(asserted(0.0, 1.0), 5.0, rng)
    assert counted.committed == {gaussian(5.0): 3}
    free = Ledger()
    free.release(asserted(0.0, 1.0), 5.0, rng)
    assert free.committed == {gaussian(5.0): 1}


class Forgetful(Meter):
    """Charges every second release only."""

    def charge(self, event, before, number):
        self.seen = not getattr(self, "seen", False)
        if self.seen:
            super().charge(event, before, number)


class Unsquared(Meter):
    """Compares the sum of 1 / z^2 with mu."""

    def __init__(self, budget):
        super().__init__(GaussianBudget(math.sqrt(budget.mu)))


def adversary(row, mu, rng, meter=None):
    """Return the log-likelihood ratio of all that is released of a row, which is 0 or 1.

    What looks like the other row so far is followed by dear releases, and what does not by
    cheap ones; at the end all that is left is spent, if it is enough for anything.
    """
    ledger = Ledger(GaussianBudget(mu))
    if meter is not None:
        ledger._meter = meter(ledger.budget)
    ratio, least = 0.0, 1 / mu
    for _ in range(6):
        multiplier = least * (1.5 if ratio > 0 else 4.0 + abs(ratio))
        try:
            y = ledger.release(asserted(float(row), 1.0), multiplier, rng)
        except DpmcError:
            break
        ratio += (y - 0.5) / multiplier**2
    if ledger.least_multiplier() < 100 * least:
        multiplier = ledger.least_multiplier()
        ratio += (ledger.release(asserted(float(row), 1.0), multiplier, rng) - 0.5) / multiplier**2
    return ratio


def proved_mu(mu, meter=None):
    """Return a lower bound on mu of Gaussian differential privacy, at confidence 1 - LEVEL."""
    rng = np.random.default_rng()
    ratios = [np.array([adversary(row, mu, rng, meter) for _ in range(RUNS)]) for row in (0, 1)]
    thresholds = np.linspace(-mu, mu, 9) * mu / 2
    level = LEVEL / (2 * len(thresholds))
    bounds = []
    for threshold in thresholds:
        false, true = (int(np.count_nonzero(ratio > threshold)) for ratio in ratios)
        largest = stats.beta.ppf(1 - level, false + 1, RUNS - false)
        smallest = stats.beta.ppf(level, true, RUNS - true + 1)
        bounds.append(stats.norm.ppf(smallest) - stats.norm.ppf(largest))
    return max(bounds)


def test_an_adversary_who_spends_more_after_lucky_outputs_gains_nothing():
    bound = proved_mu(0.5)
    assert 0.35 < bound <= 0.5


@pytest.mark.parametrize("meter", [Forgetful, Unsquared])
def test_a_broken_filter_is_found_by_the_adversary(meter):
    assert proved_mu(0.5, meter) > 0.5


@pytest.mark.parametrize("mu", [0.0, -1.0, 1e-320, math.inf, math.nan, 10**400, "1"])
def test_a_budget_is_a_positive_number(mu):
    with pytest.raises(DpmcError, match="`mu` must be from 1e-150 to"):
        GaussianBudget(mu)


def test_many_multipliers_are_audited_as_the_release_that_they_come_to():
    ledger, rng = Ledger(GaussianBudget.of(1.0, 1e-6)), np.random.default_rng(3)
    for _ in range(2000):
        ledger.release(asserted(0.0, 1.0), 200 + 50 * rng.random(), rng)
    ledger.release(asserted(0.0, 1.0), ledger.least_multiplier(), rng)
    assert len(ledger.counts) == 2001
    epsilon = audit.audit(ledger.counts, 1e-6).epsilon
    assert 1 - 1e-6 < epsilon < 1.01


def test_a_plan_still_refuses_what_it_does_not_hold():
    from dpmc.privacy import Releases

    bought = plan(Releases((), ((gaussian(20.0), 1),)), Budget(1.0, 1e-6, "gaussian"))
    ledger, rng = Ledger(bought), np.random.default_rng()
    for _ in range(bought.num_iterations):
        ledger.release(asserted(0.0, 1.0), 20.0, rng)
    with pytest.raises(DpmcError, match="by the plan"):
        ledger.release(asserted(0.0, 1.0), 20.0, rng)


@pytest.mark.parametrize("mu", [1e-150, 1e-100, 1e-9, 1e-7])
def test_a_small_budget_has_a_guarantee(mu):
    """At epsilon 0 its delta is mu / sqrt(2 pi), the difference of two numbers near one half."""
    assert GaussianBudget(mu).guarantee(1e-6).epsilon == 0
    found = math.exp(log_delta(0.0, mu**2 / 2)) if mu > 1e-140 else None
    assert found is None or found == pytest.approx(mu / math.sqrt(2 * math.pi), rel=1e-9)
