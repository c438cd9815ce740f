"""The ledger records, refuses before it draws, and draws the noise that it records."""

import math
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

from dpmc.privacy import Ledger, Releases, events, gaussian, plan, sampled_gaussian
from dpmc.types import Budget, DpmcError

# Two-sided tests at this level, on fresh noise from the operating system: about one
# run in a million fails by chance.
LEVEL = 1e-6


def variance_p_value(noise, sd):
    noise = np.ravel(noise)
    statistic = float(noise @ noise) / sd**2
    return 2 * min(stats.chi2.cdf(statistic, noise.size), stats.chi2.sf(statistic, noise.size))


def draw_releases(ledger, rng):
    return np.array([ledger.release(3.0, 0.2, 5.0, rng) for _ in range(20000)]) - 3.0


def draw_vectors(ledger, rng):
    value = np.full(20000, 3.0)
    return ledger.release(value, 0.2, 5.0, rng) - value


def draw_block(ledger, rng):
    return ledger.noise_block(10000, 2, 0.2, 5.0, rng, batch_size=10, num_rows=1000)


def draw_scaled_block(ledger, rng):
    sensitivity = np.linspace(0.1, 2, 10000)
    block = ledger.noise_block(10000, 2, sensitivity, 5.0, rng)
    return 0.2 * block / sensitivity[:, None]


class HalfNoise(Ledger):
    """Records what it should and draws half of it."""

    def release(self, value, sensitivity, noise_multiplier, rng):
        return value + 0.5 * (super().release(value, sensitivity, noise_multiplier, rng) - value)

    def noise_block(self, *args, **kwargs):
        return 0.5 * super().noise_block(*args, **kwargs)


DRAWS = [draw_releases, draw_vectors, draw_block, draw_scaled_block]


@pytest.mark.parametrize("draw", DRAWS)
def test_noise_has_the_recorded_deviation(draw):
    noise = draw(Ledger(), np.random.default_rng())
    assert variance_p_value(noise, 0.2 * 5.0) > LEVEL
    assert stats.kstest(np.ravel(noise), "norm").pvalue > LEVEL


@pytest.mark.parametrize("draw", DRAWS)
def test_half_the_noise_is_found_out(draw):
    noise = draw(HalfNoise(), np.random.default_rng())
    assert variance_p_value(noise, 0.2 * 5.0) < LEVEL


def test_everything_is_recorded(rng):
    ledger = Ledger()
    ledger.release(1.0, 0.1, 5.0, rng)
    ledger.release(np.zeros(3), 0.1, 5.0, rng)
    ledger.release(1.0, 0.1, 7.0, rng)
    ledger.noise_block(10, 2, 1.0, 5.0, rng)
    ledger.noise_block(20, 2, 1.0, 5.0, rng, 10, 100)
    assert ledger.counts == {
        gaussian(5.0): 12,
        gaussian(7.0): 1,
        sampled_gaussian(5.0, 10, 100): 20,
    }
    assert ledger.records() == (
        ("gaussian(5.0)", 12),
        ("gaussian(7.0)", 1),
        ("sampled_gaussian(5.0, batch_size=10, num_rows=100)", 20),
    )


def test_records_can_be_read_back(rng):
    ledger = Ledger()
    ledger.release(1.0, 0.1, 0.17 * math.sqrt(1e5), rng)
    ledger.noise_block(20, 2, 1.0, 1 / 3, rng, 10, 100)
    assert events.parse(ledger.records()) == ledger.counts
    with pytest.raises(DpmcError, match=r"event: 'laplace\(1\)', allowed"):
        events.parse([("laplace(1)", 3)])
    with pytest.raises(DpmcError, match="count of"):
        events.parse([("gaussian(1.0)", -3)])


def test_no_sensitivity_no_noise_but_a_record(rng):
    ledger = Ledger()
    before = rng.bit_generator.state
    value = np.arange(3.0)
    assert ledger.release(1.25, 0.0, 5.0, rng) == 1.25
    assert ledger.release(value, 0.0, 5.0, rng) is value
    assert ledger.counts == {gaussian(5.0): 2}
    assert rng.bit_generator.state == before


def test_values_are_left_alone(rng):
    value = np.zeros(4)
    noisy = Ledger().release(value, 1.0, 5.0, rng)
    assert not value.any()
    assert noisy.shape == (4,)


def test_releases_beyond_the_plan_are_refused_before_the_draw(rng):
    releases = Releases(
        ((gaussian(50.0), 1),), ((gaussian(20.0), 1), (sampled_gaussian(3.0, 5, 100), 2))
    )
    made = plan(releases, Budget(4, 1e-5, "subsampled"), 2)
    ledger = Ledger(made)
    number = 2 * made.num_iterations
    for _ in range(number):
        ledger.release(0.0, 1.0, 20.0, rng)
    ledger.noise_block(2 * number - 1, 1, 1.0, 3.0, rng, 5, 100)
    state, counts = rng.bit_generator.state, ledger.counts
    with pytest.raises(
        DpmcError, match=rf"gaussian\(20.0\): {number + 1} in all, allowed {number}"
    ):
        ledger.release(0.0, 1.0, 20.0, rng)
    with pytest.raises(DpmcError, match=rf"allowed {2 * number} by the plan"):
        ledger.noise_block(2, 1, 1.0, 3.0, rng, 5, 100)
    with pytest.raises(DpmcError, match=r"gaussian\(21.0\): 1 in all, allowed 0"):
        ledger.release(0.0, 1.0, 21.0, rng)
    with pytest.raises(DpmcError, match="allowed 0"):
        ledger.noise_block(1, 1, 1.0, 3.0, rng, 6, 100)
    assert rng.bit_generator.state == state
    assert ledger.counts == counts
    ledger.noise_block(1, 1, 1.0, 3.0, rng, 5, 100)
    ledger.release(np.zeros(2), 1.0, 50.0, rng)
    assert ledger.counts == {**made.counts, gaussian(50.0): 1}


@pytest.mark.parametrize("noise_multiplier", [0.0, -1.0, math.nan, math.inf])
def test_noise_multiplier_is_checked(noise_multiplier, rng):
    for act in (
        lambda: gaussian(noise_multiplier),
        lambda: sampled_gaussian(noise_multiplier, 1, 10),
        lambda: Ledger().release(1.0, 1.0, noise_multiplier, rng),
        lambda: Ledger().noise_block(3, 1, 1.0, noise_multiplier, rng),
    ):
        with pytest.raises(DpmcError, match=r"noise_multiplier: .*, allowed a finite number > 0"):
            act()


@pytest.mark.parametrize("sensitivity", [-1.0, math.nan, math.inf])
def test_sensitivity_is_checked(sensitivity, rng):
    ledger = Ledger()
    with pytest.raises(DpmcError, match=r"sensitivity: .*, allowed a finite number >= 0"):
        ledger.release(1.0, sensitivity, 1.0, rng)
    with pytest.raises(DpmcError, match=r"sensitivity: .*, allowed finite numbers >= 0"):
        ledger.noise_block(2, 1, np.array([1.0, sensitivity]), 1.0, rng)
    assert ledger.counts == {}


@pytest.mark.parametrize(("batch_size", "num_rows"), [(0, 10), (11, 10), (None, 10), (3, None)])
def test_batches_are_checked(batch_size, num_rows, rng):
    with pytest.raises(DpmcError, match="batch_size"):
        Ledger().noise_block(2, 1, 1.0, 1.0, rng, batch_size, num_rows)


def test_shapes_are_checked(rng):
    with pytest.raises(DpmcError, match="noise_block: shape"):
        Ledger().noise_block(-1, 1, 1.0, 1.0, rng)
    assert Ledger().noise_block(0, 3, 1.0, 1.0, rng).shape == (0, 3)


def test_releases_are_checked():
    with pytest.raises(DpmcError, match="per_iteration"):
        Releases(((gaussian(1.0), 1),), ((gaussian(2.0), 0),))
    with pytest.raises(DpmcError, match=r"count of gaussian\(1.0\): -1"):
        Releases(((gaussian(1.0), -1),), ((gaussian(2.0), 1),))


def test_import_leaves_dp_accounting_for_later():
    """It takes seconds to import; reading a configuration should not wait for it."""
    code = "import sys, dpmc.privacy; sys.exit('dp_accounting' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
