"""The ledger records, refuses before it draws, and draws the noise that it records."""

import contextlib
import copy
import math
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
from scipy import stats

from dpmc.privacy import (
    GaussianBudget,
    Ledger,
    Releases,
    barker,
    events,
    gaussian,
    plan,
    sampled_gaussian,
)
from dpmc.privacy.budgets import Meter
from dpmc.privacy.clipped import BarkerRatio, Clip, asserted, row_sum
from dpmc.types import Budget, DpmcError

MASKED = np.ma.masked_array([1.5, 2.5], mask=[True, False])
# Two-sided tests at this level, on fresh noise from the operating system: about one
# run in a million fails by chance.
LEVEL = 1e-6


def variance_p_value(noise, sd):
    noise = np.ravel(noise)
    statistic = float(noise @ noise) / sd**2
    return 2 * min(stats.chi2.cdf(statistic, noise.size), stats.chi2.sf(statistic, noise.size))


def draw_releases(ledger, rng):
    return np.array([ledger.release(asserted(3.0, 0.2), 5.0, rng) for _ in range(20000)]) - 3.0


def draw_vectors(ledger, rng):
    value = np.full(20000, 3.0)
    return ledger.release(asserted(value, 0.2), 5.0, rng) - value


def draw_block(ledger, rng):
    return ledger.noise_block(10000, 2, Clip(0.1), 5.0, rng, batch_size=10, num_rows=1000)


BARKER = barker(2.0, 1.0, 50, 1000)


def draw_batch_releases(ledger, rng):
    noisy = [ledger.release(asserted(3.0, 0.2), 5.0, rng, batch=(10, 1000)) for _ in range(20000)]
    return np.array(noisy) - 3.0


def draw_barker(ledger, rng):
    """The variance of the batch differs from release to release; noise fills up what is left."""
    variances = np.tile([0.0, 0.3, 0.999, 1.0], 5000)
    noisy = [
        ledger.release_barker(BarkerRatio(3.0, variance, BARKER), rng) for variance in variances
    ]
    return (np.array(noisy) - 3.0) / np.sqrt(2.0 - variances)


class HalfNoise(Ledger):
    """Records what it should and draws half of it."""

    def release(self, clipped, *args, **kwargs):
        return clipped.value + 0.5 * (super().release(clipped, *args, **kwargs) - clipped.value)

    def release_barker(self, ratio, *args):
        return ratio.value + 0.5 * (super().release_barker(ratio, *args) - ratio.value)

    def noise_block(self, *args, **kwargs):
        return 0.5 * super().noise_block(*args, **kwargs)


class VarianceIgnored(Ledger):
    """Adds all the noise of the test, whatever the batch adds."""

    def release_barker(self, ratio, rng):
        return super().release_barker(ratio._replace(batch_variance=0.0), rng)


DRAWS = [
    draw_releases,
    draw_batch_releases,
    draw_vectors,
    draw_block,
    draw_barker,
]


@pytest.mark.parametrize("draw", DRAWS)
def test_noise_has_the_recorded_deviation(draw):
    noise = draw(Ledger(), np.random.default_rng())
    assert variance_p_value(noise, 0.2 * 5.0) > LEVEL
    assert stats.kstest(np.ravel(noise), "norm").pvalue > LEVEL


@pytest.mark.parametrize("draw", DRAWS)
def test_half_the_noise_is_found_out(draw):
    noise = draw(HalfNoise(), np.random.default_rng())
    assert variance_p_value(noise, 0.2 * 5.0) < LEVEL


def test_noise_that_ignores_the_variance_of_the_batch_is_found_out():
    noise = draw_barker(VarianceIgnored(), np.random.default_rng())
    assert variance_p_value(noise, 1.0) < LEVEL


def test_everything_is_recorded(rng):
    ledger = Ledger()
    ledger.release(asserted(1.0, 0.1), 5.0, rng)
    ledger.release(asserted(1.0, 0.1), 5.0, rng, batch=(10, 100))
    ledger.release(asserted(np.zeros(3), 0.1), 5.0, rng, batch=(20, 100))
    for event in (BARKER, BARKER, barker(2.0, 1.0, 51, 1000), BARKER):
        ledger.release_barker(BarkerRatio(1.0, 0.5, event), rng)
    ledger.release(asserted(np.zeros(3), 0.1), 5.0, rng)
    ledger.release(asserted(1.0, 0.1), 7.0, rng)
    ledger.noise_block(10, 2, Clip(0.5), 5.0, rng)
    ledger.noise_block(20, 2, Clip(0.5), 5.0, rng, 10, 100)
    assert ledger.counts == {
        gaussian(5.0): 12,
        gaussian(7.0): 1,
        sampled_gaussian(5.0, 10, 100): 21,
        sampled_gaussian(5.0, 20, 100): 1,
        BARKER: 3,
        barker(2.0, 1.0, 51, 1000): 1,
    }
    assert ledger.records() == (
        ("barker(2.0, clip_scale=1.0, batch_size=50, num_rows=1000)", 3),
        ("barker(2.0, clip_scale=1.0, batch_size=51, num_rows=1000)", 1),
        ("gaussian(5.0)", 12),
        ("gaussian(7.0)", 1),
        ("sampled_gaussian(5.0, batch_size=10, num_rows=100)", 21),
        ("sampled_gaussian(5.0, batch_size=20, num_rows=100)", 1),
    )


def test_records_can_be_read_back(rng):
    ledger = Ledger()
    ledger.release(asserted(1.0, 0.1), 0.17 * math.sqrt(1e5), rng)
    ledger.noise_block(20, 2, Clip(0.5), 1 / 3, rng, 10, 100)
    ledger.release_barker(BarkerRatio(0.0, 0.0, barker(0.3, 1 / 7, 10, 100)), rng)
    assert events.parse(ledger.records()) == ledger.counts
    with pytest.raises(
        DpmcError,
        match=r"an event must read gaussian\(...\), sampled_gaussian\(...\) or barker\(...\),",
    ):
        events.parse([("laplace(1)", 3)])
    with pytest.raises(DpmcError, match="count of"):
        events.parse([("gaussian(1.0)", -3)])


def test_no_sensitivity_no_noise_but_a_record(rng):
    ledger = Ledger()
    before = rng.bit_generator.state
    value = np.arange(3.0)
    assert ledger.release(asserted(1.25, 0.0), 5.0, rng) == 1.25
    assert ledger.release(asserted(value, 0.0), 5.0, rng) is value
    assert ledger.counts == {gaussian(5.0): 2}
    assert rng.bit_generator.state == before


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("sensitivity", [1.0, 0.0])
def test_what_is_not_finite_counts_as_zero(value, sensitivity, rng):
    """Noise hides no such number: the plain sum, which would be released otherwise, shows it."""
    ledger = Ledger()
    assert math.isfinite(ledger.release(asserted(value, sensitivity), 5.0, rng))
    noisy = ledger.release(asserted(np.array([1.0, value]), sensitivity), 5.0, rng)
    assert np.isfinite(noisy).all()
    assert not math.isfinite(value + sensitivity * 5.0 * rng.standard_normal())
    event = events.barker(2.0, 1.0, 10, 100)
    assert math.isfinite(ledger.release_barker(BarkerRatio(value, 0.5, event), rng))


@pytest.mark.parametrize(
    "value", [1j, np.array([1j]), np.float32(1), np.zeros(2, np.float32), "1", MASKED]
)
def test_values_of_other_numbers_are_refused(value, rng):
    """Of a complex or a masked one a part would stay without noise; no message has the value."""
    ledger = Ledger()
    for act in (
        lambda: asserted(value, 1.0),
        lambda: ledger.release(row_sum(value, 1.0), 5.0, rng),
    ):
        with pytest.raises(DpmcError, match=r"`value` must be a float or an array of float64, got"):
            act()
    assert ledger.counts == {}


def test_numbers_of_32_bits_draw_no_noise(rng):
    ledger = Ledger()
    ledger.release(asserted(0.0, 1.0), 5.0, rng)  # whose tally a float32 multiplier would find
    for act in (
        lambda: ledger.release(asserted(0.0, 1.0), np.float32(5), rng),
        lambda: ledger.noise_block(1, 1, Clip(0.5), np.float32(5), rng),
        lambda: asserted(0.0, np.float32(5)),
    ):
        with pytest.raises(DpmcError, match="must be a float, got float32"):
            act()
    assert ledger.counts == {gaussian(5.0): 1}


def test_a_value_whose_noise_vanishes_counts_as_zero(rng):
    for value in (-3.0, np.full(2, -3.0)):
        released = Ledger().release(asserted(value, 1e-200), 1e-100, rng)
        assert not np.any(released)
        assert not np.signbit(released).any()


def test_a_ledger_covers_one_relation_of_neighbours(rng):
    ledger = Ledger()
    ledger.release(asserted(0.0, 1.0, "add_remove"), 5.0, rng)
    with pytest.raises(DpmcError, match="`neighbours` must be 'add_remove' as of all that the"):
        ledger.release(asserted(0.0, 1.0), 5.0, rng)
    with pytest.raises(DpmcError, match="`neighbours` must be 'replace' as of all that the ledger"):
        Ledger({gaussian(5.0): 1}).release(asserted(0.0, 1.0, "add_remove"), 5.0, rng)
    assert ledger.counts == {gaussian(5.0): 1}


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_ledger_is_neither_copied_nor_pickled(again):
    """What is left of its budget would be spent twice."""
    for ledger in (Ledger(GaussianBudget(1.0)), Ledger({gaussian(5.0): 1})):
        with pytest.raises(DpmcError, match="a Ledger must be passed on as it is"):
            again(ledger)


def test_releases_beyond_the_plan_are_refused_before_the_draw(rng):
    releases = Releases(
        ((gaussian(50.0), 1),), ((gaussian(20.0), 1), (sampled_gaussian(3.0, 5, 100), 2))
    )
    made = plan(releases, Budget(4, 1e-5, "subsampled"), 2)
    ledger = Ledger(made)
    number = 2 * made.num_iterations
    for _ in range(number):
        ledger.release(asserted(0.0, 1.0), 20.0, rng)
    ledger.noise_block(2 * number - 1, 1, Clip(0.5), 3.0, rng, 5, 100)
    state, counts = rng.bit_generator.state, ledger.counts
    with pytest.raises(
        DpmcError,
        match=rf"gaussian\(20.0\) must be at most {number} by the plan, got {number + 1} in",
    ):
        ledger.release(asserted(0.0, 1.0), 20.0, rng)
    with pytest.raises(DpmcError, match=f"at most {2 * number} by the plan"):
        ledger.noise_block(2, 1, Clip(0.5), 3.0, rng, 5, 100)
    with pytest.raises(
        DpmcError, match=r"gaussian\(21.0\) must be at most 0 by the plan, got 1 in all"
    ):
        ledger.release(asserted(0.0, 1.0), 21.0, rng)
    with pytest.raises(DpmcError, match="at most 0 by the plan"):
        ledger.noise_block(1, 1, Clip(0.5), 3.0, rng, 6, 100)
    assert rng.bit_generator.state == state
    assert ledger.counts == counts
    ledger.noise_block(1, 1, Clip(0.5), 3.0, rng, 5, 100)
    ledger.release(asserted(np.zeros(2), 1.0), 50.0, rng)
    assert ledger.counts == {**made.counts, gaussian(50.0): 1}


def test_what_a_compiled_loop_draws_itself_is_recorded_before_and_bound_by_the_plan(rng):
    event = sampled_gaussian(3.0, 1, 40)
    ledger = Ledger({event: 5, gaussian(2.0): 1})
    ledger.record(event, 3)
    before = ledger.counts
    with pytest.raises(
        DpmcError,
        match="at most 5 by the plan, got 6 in all",
    ):
        ledger.record(event, 3)
    with pytest.raises(DpmcError, match="at most 0 by the plan"):
        ledger.record(gaussian(1.0), 1)
    with pytest.raises(DpmcError, match="`num_releases` must be an integer of at least 0, got -1"):
        ledger.record(event, -1)
    with pytest.raises(DpmcError, match="`num_releases` must be an integer of at least 0, got 1"):
        ledger.record(event, 1.5)
    assert ledger.counts == before == {event: 3}
    ledger.record(event, 2)
    ledger.release(asserted(0.0, 1.0), 2.0, rng)
    assert ledger.records(before) == (
        ("gaussian(2.0)", 1),
        ("sampled_gaussian(3.0, batch_size=1, num_rows=40)", 2),
    )


@pytest.mark.parametrize("batch_variance", [-1e-12, 1 + 1e-8, math.nan, math.inf])
def test_the_variance_of_a_batch_is_checked_before_the_draw(batch_variance, rng):
    ledger, state = Ledger(), rng.bit_generator.state
    with pytest.raises(
        DpmcError, match=r"`batch_variance` must be from 0 to clip_scale\*\*2 = 1.0, got"
    ):
        ledger.release_barker(BarkerRatio(0.0, batch_variance, BARKER), rng)
    assert ledger.counts == {}
    assert rng.bit_generator.state == state


def test_rounding_of_the_largest_variance_takes_no_noise_away():
    """A hair more than kappa^2 is taken for kappa^2."""
    event = barker(1 + 1e-6, 1.0, 50, 1000)
    one, other = (
        Ledger().release_barker(BarkerRatio(0.0, variance, event), np.random.default_rng(1))
        for variance in (1.0, 1 + 5e-10)
    )
    assert one == other != 0.0


def test_no_two_threads_are_charged_at_once(monkeypatch):
    """One that is being charged waits a second for another: with a lock none comes."""
    both, met, charge = threading.Barrier(2), [], Meter.charge

    def waiting(self, *given):
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(timeout=1.0)
            met.append(1)
        charge(self, *given)

    monkeypatch.setattr(Meter, "charge", waiting)
    ledger, value = Ledger(GaussianBudget(1.0)), asserted(0.0, 1.0)
    given = value, 10.0, np.random.default_rng()
    threads = [threading.Thread(target=ledger.release, args=given) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert met == []
    assert ledger.counts == {gaussian(10.0): 2}


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda L, rng: L.release(1.0, 5.0, rng), "`clipped` must be a value that carries its"),
        (lambda L, rng: L.release(asserted(1.0, -1.0), 1.0, rng), "`sensitivity` must be finite"),
        (lambda L, rng: L.noise_block(2, 1, Clip(math.inf), 1.0, rng), "`sensitivity` must be "),
        (lambda L, rng: L.release(asserted(1.0, 1.0), math.nan, rng), "`noise_multiplier` must"),
        (lambda L, rng: L.noise_block(3, 1, Clip(0.5), 0.0, rng), "`noise_multiplier` must be "),
        (lambda L, rng: L.release(asserted(1.0, 1.0), 10**400, rng), "an integer beyond all fl"),
        (lambda L, rng: L.release(asserted(1.0, 1.0), 1.0, rng, batch=(11, 10)), "batch_size"),
        (lambda L, rng: L.noise_block(2, 1, Clip(0.5), 1.0, rng, None, 10), "batch_size"),
        (lambda L, rng: L.noise_block(-1, 1, Clip(0.5), 1.0, rng), "`num_releases` and `dim` must"),
        (lambda L, rng: asserted(1.0, 1.0, "x"), "`neighbours` must be one of replace, add_remove"),
        (lambda L, rng: L.release_barker(BarkerRatio(0.1, 1.2345, BARKER), rng), "got another"),
        (lambda L, rng: Ledger("gaussian(1.0)"), "`plan` must be a Plan, a mapping"),
        (lambda L, rng: Releases(((gaussian(1.0), -1),), ()), "must be at least 0, got -1"),
    ],
)
def test_what_is_no_release_is_refused_before_the_draw(act, message, rng):
    ledger, state = Ledger(), rng.bit_generator.state
    with pytest.raises(DpmcError, match=message) as caught:
        act(ledger, rng)
    assert "1.2345" not in str(caught.value)
    assert ledger.counts == {}
    assert rng.bit_generator.state == state


def test_a_value_without_a_sensitivity_is_refused(rng):
    with pytest.raises(DpmcError, match="`clipped` must be a value that carries its sensitivity"):
        Ledger().release(1.0, 5.0, rng)


def test_values_are_left_alone(rng):
    value = np.zeros(4)
    noisy = Ledger().release(asserted(value, 1.0), 5.0, rng)
    assert not value.any()
    assert noisy.shape == (4,)


def test_batch_releases_beyond_the_plan_are_refused_before_the_draw(rng):
    releases = Releases((), ((BARKER, 1), (sampled_gaussian(3.0, 50, 1000), 2)))
    made = plan(releases, Budget(4, 1e-5, "barker_pld"), max_iterations=3)
    ledger = Ledger(made)
    for _ in range(3):
        ledger.release_barker(BarkerRatio(0.0, 1.0, BARKER), rng)
        ledger.release(asserted(0.0, 1.0), 3.0, rng, batch=(50, 1000))
    state, counts = rng.bit_generator.state, ledger.counts
    with pytest.raises(
        DpmcError,
        match=r"barker\(2.0, .*\) must be at most 3 by the plan, got 4 in all",
    ):
        ledger.release_barker(BarkerRatio(0.0, 1.0, BARKER), rng)
    with pytest.raises(
        DpmcError, match=r"num_rows=1000\) must be at most 0 by the plan, got 1 in all"
    ):
        ledger.release_barker(BarkerRatio(0.0, 0.1, barker(2.0, 0.9, 50, 1000)), rng)
    with pytest.raises(
        DpmcError, match=r"gaussian\(3.0\) must be at most 0 by the plan, got 1 in all"
    ):
        ledger.release(asserted(0.0, 1.0), 3.0, rng)
    with pytest.raises(DpmcError, match="at most 0 by the plan"):
        ledger.release(asserted(0.0, 1.0), 3.0, rng, batch=(51, 1000))
    assert rng.bit_generator.state == state
    assert ledger.counts == counts


@pytest.mark.parametrize("noise_multiplier", [0.0, -1.0, math.nan, math.inf])
def test_noise_multiplier_is_checked(noise_multiplier, rng):
    for act in (
        lambda: gaussian(noise_multiplier),
        lambda: sampled_gaussian(noise_multiplier, 1, 10),
        lambda: Ledger().release(asserted(1.0, 1.0), noise_multiplier, rng),
        lambda: Ledger().release(asserted(1.0, 1.0), noise_multiplier, rng, batch=(1, 10)),
        lambda: Ledger().noise_block(3, 1, Clip(0.5), noise_multiplier, rng),
    ):
        with pytest.raises(
            DpmcError, match=r"`noise_multiplier` must be positive and finite, got .*"
        ):
            act()


@pytest.mark.parametrize("sensitivity", [-1.0, math.nan, math.inf])
def test_sensitivity_is_checked(sensitivity, rng):
    ledger = Ledger()
    with pytest.raises(DpmcError, match="`sensitivity` must be finite and at least 0, got"):
        ledger.release(asserted(1.0, sensitivity), 1.0, rng)
    with pytest.raises(DpmcError, match="`sensitivity` must be finite and at least 0, got"):
        ledger.noise_block(2, 1, Clip(sensitivity / 2), 1.0, rng)
    assert ledger.counts == {}


@pytest.mark.parametrize(("batch_size", "num_rows"), [(0, 10), (11, 10), (None, 10), (3, None)])
def test_batches_are_checked(batch_size, num_rows, rng):
    with pytest.raises(DpmcError, match="batch_size"):
        Ledger().noise_block(2, 1, Clip(0.5), 1.0, rng, batch_size, num_rows)
    if batch_size is not None and num_rows is not None:
        with pytest.raises(DpmcError, match="batch_size"):
            Ledger().release(asserted(1.0, 1.0), 1.0, rng, batch=(batch_size, num_rows))


def test_shapes_are_checked(rng):
    with pytest.raises(DpmcError, match="`num_releases` and `dim` must be at least 0 and 1"):
        Ledger().noise_block(-1, 1, Clip(0.5), 1.0, rng)
    assert Ledger().noise_block(0, 3, Clip(0.5), 1.0, rng).shape == (0, 3)


def test_releases_are_checked():
    with pytest.raises(DpmcError, match="per_iteration"):
        Releases(((gaussian(1.0), 1),), ((gaussian(2.0), 0),))
    with pytest.raises(DpmcError, match=r"count of gaussian\(1.0\) must be at least 0, got -1"):
        Releases(((gaussian(1.0), -1),), ((gaussian(2.0), 1),))


@pytest.mark.parametrize("plan", [GaussianBudget(1.0), {gaussian(10.0): 100}])
@pytest.mark.parametrize("noise", ["continuous", "discrete"])
def test_threads_that_share_a_ledger_spend_its_budget_once(plan, noise):
    """Without a lock eight of them made up to ten times as many releases as there may be."""
    made = []

    def spend(ledger):
        rng, value = np.random.default_rng(), asserted(0.0, 1.0)
        for _ in range(100):
            try:
                ledger.release(value, 10.0, rng)
            except DpmcError:
                continue
            made.append(1)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(5):
            ledger = Ledger(plan, noise)
            threads = [threading.Thread(target=spend, args=(ledger,)) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert ledger.counts == {gaussian(10.0): 100}
    finally:
        sys.setswitchinterval(interval)
    assert len(made) == 500


@pytest.mark.parametrize("plan", [3, "gaussian(1.0)", [(gaussian(1.0), 1)]])
def test_what_is_no_plan_is_refused(plan):
    with pytest.raises(DpmcError, match="`plan` must be a Plan, a mapping"):
        Ledger(plan)


@pytest.mark.parametrize(
    "release",
    [
        lambda rng: asserted(10**400, 1.0),
        lambda rng: asserted(1.0, 10**400),
        lambda rng: Ledger().release(asserted(1.0, 1.0), 10**400, rng),
    ],
)
def test_integers_beyond_all_floats_are_refused_in_one_line(release, rng):
    with pytest.raises(DpmcError, match="must be a float, got an integer beyond all floats"):
        release(rng)


def test_an_error_does_not_tell_the_variance_of_a_batch(rng):
    with pytest.raises(DpmcError, match="got another") as caught:
        Ledger().release_barker(BarkerRatio(0.1, 1.2345, BARKER), rng)
    assert "1.2345" not in str(caught.value)


def test_a_relation_that_there_is_not_is_refused():
    with pytest.raises(DpmcError, match="`neighbours` must be one of replace, add_remove, got 'x'"):
        asserted(1.0, 1.0, "x")


def test_import_leaves_dp_accounting_for_later():
    """It takes seconds to import; reading a configuration should not wait for it."""
    code = "import sys, dpmc.privacy; sys.exit('dp_accounting' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
