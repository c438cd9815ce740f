"""Noise on a grid: exact, and nothing but multiples of the grid comes out."""

import math
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from scipy import stats

from dpmc.privacy import Ledger, add_gaussian, add_laplace, barker, discrete, events
from dpmc.privacy.clipped import BarkerRatio, Clip, asserted
from dpmc.types import DpmcError

# Of each test on random numbers: at most one in a million correct runs fails.
LEVEL = 1e-6
BARKER = barker(2.0, 1.0, 50, 1000)


def gaussian_cdf(x):
    return mpmath.ncdf(x)


def laplace_cdf(x):
    return mpmath.exp(x) / 2 if x < 0 else 1 - mpmath.exp(-x) / 2


def probabilities(cdf, value, scale, integers):
    """Return the probability that value + noise rounds to each integer."""
    edges = [cdf((mpmath.mpf(k) - mpmath.mpf("0.5") - value) / scale) for k in integers]
    edges.append(cdf((mpmath.mpf(integers[-1]) + mpmath.mpf("0.5") - value) / scale))
    return np.array([float(b - a) for a, b in pairwise(edges)])


def p_value(drawn, expected, integers):
    """Chi-square test with tails pooled so that at least 20 draws are expected in each cell."""
    inside = expected * drawn.size >= 20
    kept = np.asarray(integers)[inside]
    counts = np.array([np.count_nonzero(drawn == k) for k in kept])
    rest = drawn.size - counts.sum()
    weights = np.append(expected[inside], 1 - expected[inside].sum()) * drawn.size
    cells = np.append(counts, rest)
    if weights[-1] < 5:
        cells, weights = (
            np.append(cells[:-2], cells[-2:].sum()),
            np.append(weights[:-2], weights[-2:].sum()),
        )
    statistic = float(((cells - weights) ** 2 / weights).sum())
    return float(stats.chi2.sf(statistic, len(cells) - 1))


def given(*words):
    """Return a generator whose first words are those given."""

    class Stub:
        def __init__(self):
            self.bit_generator = self
            self.left = list(words)[::-1]
            self.rest = np.random.default_rng(1)

        def random_raw(self, size=None):
            if size is None:
                return self.left.pop() if self.left else int(self.rest.integers(0, 2**63))
            return np.array([self.random_raw() for _ in range(size)], dtype=np.uint64)

    Stub.__name__ = "PCG64"
    return Stub()


CASES = [
    (add_gaussian, gaussian_cdf, 0.7, 0.0),
    (add_gaussian, gaussian_cdf, 2.5, 0.3),
    (add_gaussian, gaussian_cdf, 6.0, -4.49),
    (add_laplace, laplace_cdf, 0.7, 0.0),
    (add_laplace, laplace_cdf, 3.0, 0.3),
]


def draws(add, scale, value, size=200_000, rng=None):
    """Draw on a grid of 1; a Laplace scale is an inverse epsilon."""
    parameter = scale if add is add_gaussian else 1 / scale
    return add(np.full(size, value), 1.0, parameter, 1.0, rng)


@pytest.mark.parametrize(("add", "cdf", "scale", "value"), CASES)
def test_the_distribution_is_the_rounded_one(add, cdf, scale, value):
    integers = list(range(-60, 61))
    expected = probabilities(cdf, value, scale, integers)
    assert p_value(draws(add, scale, value), expected, integers) > LEVEL


@pytest.mark.parametrize(("add", "cdf", "scale", "value"), CASES)
def test_a_wrong_scale_is_found(add, cdf, scale, value):
    integers = list(range(-60, 61))
    expected = probabilities(cdf, value, scale, integers)
    assert p_value(draws(add, 1.05 * scale, value), expected, integers) < LEVEL


def test_biased_bits_are_found():
    integers = list(range(-60, 61))
    expected = probabilities(gaussian_cdf, 0.0, 2.5, integers)
    rng = np.random.default_rng()
    often = rng.integers(0, 2, 200_000, dtype=np.uint64) << np.uint64(60)
    words = rng.integers(0, 2**64, 200_000, dtype=np.uint64) | often
    drawn = add_gaussian(np.zeros(200_000), 1.0, 2.5, 1.0, given(*words.tolist()))
    assert p_value(drawn, expected, integers) < LEVEL


def exact_integer(word, value, scale, tail):
    """Return what a word rounds to, by 60 digits, or None if more bits are needed."""
    with mpmath.workdps(60):
        sign, first = (1 if word & 1 else -1), word >> 1
        if first == 0:
            return None
        ends = [
            int(mpmath.nint(value + sign * scale * tail.exact(mpmath.mpf(k) / 2**63)))
            for k in (first, first + 1)
        ]
    return ends[0] if ends[0] == ends[1] else None


@pytest.mark.parametrize("add", [add_gaussian, add_laplace])
@pytest.mark.parametrize("scale", [1.5, 1.5 * 2**24, 2.0**33 / 3])
def test_each_word_leads_to_the_integer_of_the_exact_quantile(add, scale):
    tail = discrete._GAUSSIAN if add is add_gaussian else discrete._LAPLACE
    rng = np.random.default_rng(5)
    words = [int(w) for w in rng.integers(0, 2**63, 60)]
    words += [w >> int(s) for w, s in zip(words, rng.integers(0, 50, 60), strict=True)]
    words += [2**64 - 1, 2**64 - 2, 2**63, 2**63 + 1]
    compared = 0
    for word in words:
        expected = exact_integer(word, 0.25, scale, tail)
        if expected is not None:
            compared += 1
            assert discrete._rounded_one(0.25, scale, tail, given(word)) == expected
            assert discrete._rounded(np.array([0.25]), scale, tail, given(word))[0] == expected
            assert discrete._refined(0.25, scale, word, tail, given()) == expected
    assert compared > 60


@pytest.mark.parametrize("tail", [discrete._GAUSSIAN, discrete._LAPLACE])
def test_a_sum_at_the_edge_of_an_integer_is_refined(tail, monkeypatch):
    """Words are chosen so that float64 cannot tell on which side of a half the sum lies."""
    refined = []
    original = discrete._refined

    def spy(*args):
        refined.append(args)
        return original(*args)

    monkeypatch.setattr(discrete, "_refined", spy)
    word = (3 << 60) | 1
    size = float(tail.quantile(((word >> 1) + 0.5) * 2.0**-63))
    scale = 2.0**24
    offset = math.floor(scale * size) + 0.5 - scale * size
    discrete._rounded_one(offset, scale, tail, given(word))
    assert len(refined) == 1
    discrete._rounded_one(0.0, 1.0, tail, given(word))
    assert len(refined) == 1


def test_quantiles_are_as_exact_as_is_relied_on():
    rng = np.random.default_rng(2)
    uniform = np.concatenate(
        [rng.random(300), 2.0 ** -rng.uniform(1, 62, 300), 1 - 2.0**-40 * rng.random(50)]
    )
    with mpmath.workdps(50):
        for tail in (discrete._GAUSSIAN, discrete._LAPLACE):
            for u, size in zip(uniform, tail.quantile(uniform), strict=True):
                error = abs(tail.exact(mpmath.mpf(float(u))) - mpmath.mpf(float(size)))
                assert error < 2.0**-47 * (1 + size)


@pytest.mark.parametrize("add", [add_gaussian, add_laplace])
@pytest.mark.parametrize("value", [0.0, 1e-300, -1e-300, 1 / 3, -12345.678, 1e17, -1e300])
def test_what_comes_out_is_an_integer_times_a_power_of_two(add, value):
    step = discrete.grid_of(math.nextafter(0.2 * (1 + discrete.SLACK) * 0.5, 1))
    for parameter in (0.5, 2.0):
        step = min(step, discrete.grid_of(0.2 * 0.5))
        vector = add(np.full(50, value), 0.2, parameter)
        numbers = [add(value, 0.2, parameter), *vector.tolist()]
        for number in numbers:
            steps = number / step
            assert steps == round(steps)
            assert abs(steps) < 2**60
            assert not (number == 0 and math.copysign(1, number) < 0)


def test_floating_point_noise_is_no_multiple_of_the_grid():
    step = discrete.grid_of(0.1)
    noisy = 1 / 3 + 0.1 * np.random.default_rng().standard_normal(50)
    assert (noisy / step != np.rint(noisy / step)).sum() > 40


def test_values_are_clamped_and_not_a_number_counts_as_zero():
    step = discrete.grid_of(3.0 * (1 + discrete.SLACK))
    far = 2.0**52 * step
    for value, centre in ((math.inf, far), (-math.inf, -far), (1e300, far), (math.nan, 0.0)):
        assert abs(add_gaussian(value, 1.0, 3.0) - centre) < 40
        assert (abs(add_gaussian(np.full(3, value), 1.0, 3.0) - centre) < 40).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: add_gaussian(1.0, -1.0, 1.0),
            "`sensitivity` must be finite and at least 0, got -1.0",
        ),
        (
            lambda: add_gaussian(1.0, 1.0, 0.0),
            "`noise_multiplier` must be positive and finite, got 0.0",
        ),
        (
            lambda: add_gaussian(1.0, 1.0, math.nan),
            "`noise_multiplier` must be positive and finite, got nan",
        ),
        (lambda: add_laplace(1.0, 1.0, math.inf), "`epsilon` must be positive and finite, got inf"),
        (lambda: add_gaussian(1 + 1j, 1.0, 1.0), "must be a float or an array of float64, got c"),
        (lambda: add_laplace(np.float32(1), 1.0, 1.0), "or an array of float64, got float32"),
        (lambda: add_laplace(["a"], 1.0, 1.0), "or an array of float64, got list"),
        (lambda: add_gaussian(10**400, 1.0, 1.0), "or an array of float64, got int"),
        (lambda: add_gaussian(1.0, 10**400, 1.0), "`sensitivity` must be finite"),
        (lambda: add_gaussian(1.0, 1.0, "1"), "`noise_multiplier` must be positive and finite"),
        (lambda: add_gaussian(1.0, 1.0, 1.0, 0.3), "`grid` must be a power of two, got 0.3"),
        (
            lambda: add_gaussian(1.0, 1.0, 1.0, 2.0**-40),
            "`grid` must be at least 1.46e-11, with noise of a positive and finite",
        ),
        (
            lambda: add_gaussian(1.0, 1e308, 1e308),
            "`noise_std` must be positive and finite, got inf",
        ),
    ],
)
def test_what_is_not_allowed_is_refused(call, message):
    with pytest.raises(DpmcError, match=message):
        call()


def acceptance(value, noise_std, grid=None):
    """Return E min(1, exp(value + N - noise_std**2 / 2)), the sum rounded to a grid if given."""
    if grid is None:
        x = np.linspace(-12, 12, 20_001)
        log_ratio = value + noise_std * x - noise_std**2 / 2
        return float(np.trapezoid(np.minimum(1, np.exp(log_ratio)) * stats.norm.pdf(x), x))
    last = math.ceil((abs(value) + 12 * noise_std) / grid) + 1
    steps = np.arange(-last, last + 1)
    weight = np.diff(stats.norm.cdf((np.append(steps, last + 1) - 0.5) * grid, value, noise_std))
    return float(weight @ np.minimum(1, np.exp(steps * grid - noise_std**2 / 2)))


def test_the_grid_moves_an_acceptance_within_its_bound():
    """At a grid far too coarse; a bound of half the size would not hold."""
    shares = []
    for noise_std in (0.02, 0.3, 1.0):
        for grid in (0.5 * noise_std, 2 * noise_std, 16 * noise_std):
            bound = discrete.acceptance_error(noise_std, grid=grid)
            moved = max(
                abs(acceptance(v, noise_std, grid) - acceptance(v, noise_std))
                for v in np.linspace(-3 * grid, 2 * grid, 41)
            )
            assert moved <= bound + 1e-7
            shares.append(moved / bound)
    assert max(shares) > 0.5


def test_the_default_grid_is_out_of_sight_of_an_acceptance():
    assert discrete.acceptance_error(2.0) < 2.0**-23
    assert discrete.acceptance_error(2.0, tempering=0.1) == pytest.approx(
        0.1 * discrete.acceptance_error(2.0)
    )


def test_a_ledger_draws_and_records_discrete_noise():
    ledger, rng = Ledger(noise="discrete"), np.random.default_rng()
    step = discrete.grid_of(0.2 * (1 + discrete.SLACK) * 5.0)
    scalars = [ledger.release(asserted(1 / 3, 0.2), 5.0, rng) for _ in range(2000)]
    vector = ledger.release(asserted(np.full(2000, 1 / 3), 0.2), 5.0, rng, (10, 100))
    for drawn in (np.array(scalars), vector):
        assert (drawn / step == np.rint(drawn / step)).all()
        statistic = float(((drawn - 1 / 3) ** 2).sum())
        assert 2 * min(stats.chi2.cdf(statistic, 2000), stats.chi2.sf(statistic, 2000)) > LEVEL
    assert dict(ledger.records()) == {
        "gaussian(5.0)": 2000,
        "sampled_gaussian(5.0, batch_size=10, num_rows=100)": 1,
    }


def test_the_grid_of_the_barker_test_does_not_show_the_variance_of_the_batch():
    ledger, rng = Ledger(noise="discrete"), np.random.default_rng()
    step = discrete.grid_of(math.sqrt(BARKER.least_variance))
    for variance in (0.0, 0.3, 1.0):
        drawn = np.array(
            [ledger.release_barker(BarkerRatio(0.1, variance, BARKER), rng) for _ in range(3000)]
        )
        assert (drawn / step == np.rint(drawn / step)).all()
        assert (drawn / step % 2 == 1).any()
        statistic = float(((drawn - 0.1) ** 2).sum()) / (2.0 - variance)
        assert 2 * min(stats.chi2.cdf(statistic, 3000), stats.chi2.sf(statistic, 3000)) > LEVEL


def test_blocks_are_drawn_on_the_grid_that_the_loop_rounds_to():
    ledger, rng = Ledger(noise="discrete"), np.random.default_rng()
    grid = ledger.grid(Clip(0.1), 5.0)
    noise = ledger.noise_block(3000, 4, Clip(0.1), 5.0, rng, 10, 100, grid)
    assert (noise / grid == np.rint(noise / grid)).all()
    statistic = float((noise**2).sum()) / (discrete.on_grid(0.2, grid, 4) * 5.0) ** 2
    assert 2 * min(stats.chi2.cdf(statistic, 12000), stats.chi2.sf(statistic, 12000)) > LEVEL
    assert Ledger().grid(Clip(0.1), 5.0) == 0


def test_loops_that_do_not_round_are_refused():
    ledger, rng = Ledger(noise="discrete"), np.random.default_rng()
    with pytest.raises(
        DpmcError, match="`noise` must be 'continuous' for this method, got 'discrete'"
    ):
        ledger.noise_block(3, 4, Clip(0.1), 5.0, rng)
    with pytest.raises(
        DpmcError, match="`noise` must be 'continuous' for this method, got 'discrete'"
    ):
        ledger.record(BARKER, 1)
    assert ledger.records() == ()


def test_numbers_one_at_a_time_have_the_same_distribution():
    integers = list(range(-60, 61))
    expected = probabilities(gaussian_cdf, 0.3, 2.5, integers)
    drawn = np.array([add_gaussian(0.3, 1.0, 2.5, 1.0) for _ in range(20_000)])
    assert p_value(drawn, expected, integers) > LEVEL


def test_the_first_word_may_be_zero():
    drawn = discrete._rounded_one(0.0, 2.0**24, discrete._GAUSSIAN, given(1, 12345))
    assert 8.5 * 2**24 < drawn < 15 * 2**24


def test_shapes_are_kept_and_a_constant_is_not_rounded():
    assert isinstance(add_gaussian(1.0, 1.0, 1.0), float)
    assert add_gaussian(np.zeros((3, 2)), 1.0, 1.0).shape == (3, 2)
    assert add_laplace(np.zeros(0), 1.0, 1.0).shape == (0,)
    assert add_gaussian(1 / 3, 0.0, 1.0) == 1 / 3


def test_no_variance_of_a_batch_is_refused_by_the_grid_of_the_barker_test():
    """At the largest clip; the grid for less noise has no room for that of a quiet batch."""
    ledger, rng = Ledger(noise="discrete"), np.random.default_rng()
    for noise_variance in (0.3, 1.0, 2.0, 3.2):
        most = math.sqrt(noise_variance * (1 - events.LEAST_NOISE))
        event = events.barker(noise_variance, most, 10, 100)
        for variance in (0.0, 0.5 * most**2, most**2):
            assert math.isfinite(ledger.release_barker(BarkerRatio(0.1, variance, event), rng))
        with pytest.raises(DpmcError, match="`clip_scale` must be positive and at most"):
            events.barker(noise_variance, math.nextafter(most, 9.0), 10, 100)
    step = discrete.grid_of(math.sqrt(2.0 * 1e-8))
    with pytest.raises(DpmcError, match="`grid` must be at least"):
        discrete.add_gaussian(0.1, math.sqrt(2.0), 1.0, step, rng)


def test_an_unknown_noise_is_refused():
    with pytest.raises(
        DpmcError, match="`noise` must be 'continuous' or 'discrete', got 'snapped'"
    ):
        Ledger(noise="snapped")
