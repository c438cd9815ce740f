from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pytest
from scipy import integrate, optimize

from dpmc.privacy import smooth_sensitivity as smooth_constants
from dpmc.statsel import lookup, smooth
from dpmc.statsel.smooth import smooth_sensitivity, smooth_sensitivity_average
from dpmc.types import DpmcError
from tests.reference.smooth_sensitivity import by_definition

GRID = np.linspace(0.0, 1.0, 6)
BETAS = (0.0, 0.05, 0.3, 1.0, 3.0)
SIZES = tuple((n, m) for n in range(1, 6) for m in range(1, n + 1))


@functools.cache
def data_sets(n):
    """All data sets of n records on a grid of 6 points, sorted, shape (6^n, n)."""
    indices = np.indices((6,) * n).reshape(n, -1)
    return np.ascontiguousarray(np.sort(GRID[indices], axis=0).T)


def widened(values, n):
    """The largest value among the neighbours of each data set, itself among them."""
    found = values
    for axis in range(n):
        along = values.max(axis=axis, keepdims=True)
        found = np.maximum(found, np.broadcast_to(along, values.shape))
    return found


def local_sensitivity(released, n):
    """How far one record moves what is released, for each data set, shape (6,) * n."""
    values = released.reshape((6,) * n)
    return np.maximum(widened(values, n) - values, values + widened(-values, n))


def brute_force(released, n, beta):
    """The smooth sensitivity by its definition, over all data sets of the grid."""
    local = local_sensitivity(released, n)
    best = local
    for k in range(1, n + 1):
        local = widened(local, n)
        best = np.maximum(best, math.exp(-k * beta) * local)
    return best.ravel()


def found(n, function, *arguments):
    return np.array([function(s, *arguments) for s in data_sets(n)])


def without_padding(s, rank, low, high, beta):
    """The formula of the thesis as it is printed, with ranks beyond 1 and n left out."""
    n = len(s)
    return max(
        math.exp(-k * beta) * (s[rank - 1 + t] - s[rank - 1 + t - k - 1])
        for k in range(n)
        for t in range(k + 2)
        if rank - 1 + t - k - 1 >= 0 and rank - 1 + t < n
    )


@pytest.mark.parametrize(("n", "rank"), SIZES)
def test_every_rank_agrees_with_brute_force(n, rank):
    released = data_sets(n)[:, rank - 1]
    for beta in BETAS:
        expected = brute_force(released, n, beta)
        got = found(n, smooth_sensitivity, rank, 0.0, 1.0, beta)
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize(("n", "rank"), [(n, m) for n, m in SIZES if m < n])
def test_the_mean_of_two_ranks_agrees_with_brute_force_and_has_its_own_formula(n, rank):
    released = data_sets(n)[:, rank - 1 : rank + 1].mean(axis=1)
    for beta in BETAS:
        expected = brute_force(released, n, beta)
        got = found(n, smooth_sensitivity_average, rank, 0.0, 1.0, beta)
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-13)
    single = found(n, smooth_sensitivity, rank, 0.0, 1.0, 0.3)
    assert np.abs(single - brute_force(released, n, 0.3)).max() > 0.05


def test_the_formula_without_padding_fails_against_brute_force():
    """The example {0, 0, 0, 0.2} of the maximum is among them: .8, not .2."""
    n = 4
    released = data_sets(n)[:, -1]
    expected = brute_force(released, n, 0.3)
    short = np.array([without_padding(s, n, 0.0, 1.0, 0.3) for s in data_sets(n)])
    assert np.abs(short - expected).max() > 0.5
    row = int(np.flatnonzero((data_sets(n) == [0, 0, 0, 0.2]).all(axis=1))[0])
    assert local_sensitivity(released, n).ravel()[row] == pytest.approx(0.8)
    assert short[row] == pytest.approx(0.2)


def changes(values, n):
    """The largest |log ratio| between neighbours."""
    logs = np.log(values.reshape((6,) * n))
    return max(
        float((logs.max(axis=axis) - logs.min(axis=axis)).max()) for axis in range(logs.ndim)
    )


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("beta", [0.05, 0.3, 1.0])
def test_it_is_smooth_and_not_below_the_local_sensitivity(beta, average):
    n, function = 5, smooth_sensitivity_average if average else smooth_sensitivity
    for rank in range(1, n if average else n + 1):
        s = data_sets(n)
        released = s[:, rank - 1 : rank + 1].mean(axis=1) if average else s[:, rank - 1]
        values = found(n, function, rank, 0.0, 1.0, beta)
        assert (values >= local_sensitivity(released, n).ravel() - 1e-13).all()
        assert changes(values, n) <= beta + 1e-12


def test_epsilon_to_the_beta_as_printed_is_not_attained_and_e_to_the_beta_is():
    """Definition 7 prints epsilon^beta, below 1 for epsilon < 1: no data set may then vary."""
    values = found(5, smooth_sensitivity, 3, 0.0, 1.0, 0.3)
    printed = 0.3 * math.log(0.8)
    assert changes(values, 5) == pytest.approx(0.3)
    assert changes(values, 5) > printed
    assert changes(found(5, without_padding, 3, 0.0, 1.0, 0.3) + 1e-300, 5) > 0.3 + 1e-6


def test_the_search_that_ends_early_agrees_with_the_double_loop():
    rng = np.random.default_rng(1)
    for _ in range(150):
        n = int(rng.integers(1, 60))
        s = np.sort(np.round(rng.random(n), int(rng.integers(1, 8))))
        beta, rank = float(10 ** rng.uniform(-3, 0.5)), int(rng.integers(1, n + 1))
        low, high = -float(rng.random()), 1 + float(rng.exponential(3))
        reference = by_definition(s, rank, low, high, beta)
        assert smooth_sensitivity(s, rank, low, high, beta) == pytest.approx(reference, rel=1e-12)
        halved = smooth._divided(s, rank, rank, low, high, beta, 1.0)
        assert halved == pytest.approx(reference, rel=1e-12)
        if rank < n:
            reference = by_definition(s, rank, low, high, beta, average=True)
            got = smooth_sensitivity_average(s, rank, low, high, beta)
            assert got == pytest.approx(reference, rel=1e-12)
            halved = smooth._divided(s, rank, rank + 1, low, high, beta, 0.5)
            assert halved == pytest.approx(reference, rel=1e-12)


def test_many_records_and_a_small_beta_take_no_quadratic_time():
    """The double loop would take some minutes here, and the halved search of ranks does not."""
    s = np.sort(np.random.default_rng(2).random(400))
    got = smooth_sensitivity(s, 200, 0.0, 1.0, 1e-3)
    assert got == pytest.approx(by_definition(s, 200, 0.0, 1.0, 1e-3), rel=1e-12)
    many = np.sort(np.random.default_rng(2).random(300_000))
    value = smooth_sensitivity(many, 150_000, 0.0, 1.0, 1e-5)
    # Of evenly spread records, k / n exp(-beta k) is largest at k = 1 / beta.
    assert value == pytest.approx(math.exp(-1) / (300_000 * 1e-5), rel=0.02)


def test_the_hockey_stick_agrees_with_direct_integration():
    """Adaptive quadrature on pieces without kinks, to 1e-9."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        epsilon, shift = rng.uniform(0, 3), rng.choice([0.0, rng.uniform(0, 2)])
        scale, other = rng.uniform(0.2, 1, 2)

        def gap(x, epsilon=epsilon, shift=shift, scale=scale, other=other):
            p = np.exp(-np.abs(x) / scale) / (2 * scale)
            return p - np.exp(epsilon - np.abs(x - shift) / other) / (2 * other)

        nodes = np.linspace(-50, 50, 20_001)
        before = np.flatnonzero(gap(nodes[:-1]) * gap(nodes[1:]) < 0)
        crossings = [optimize.brentq(gap, nodes[i], nodes[i + 1]) for i in before]
        ends = sorted({-50.0, 50.0, 0.0, float(shift), *crossings})
        total = sum(
            integrate.quad(lambda x, gap=gap: max(gap(x), 0.0), a, b, limit=200)[0]
            for a, b in itertools.pairwise(ends)
        )
        got = smooth_constants.hockey_stick(epsilon, shift, scale, other)
        assert got == pytest.approx(total, abs=1e-9)


@pytest.mark.parametrize(
    ("epsilon", "expected"), [(5.0, 7.668289e-06), (10.0, 4.539483e-05), (0.5, None)]
)
def test_constants_that_give_epsilon_and_delta_are_accepted(epsilon, expected):
    alpha, beta = smooth_constants.constants(epsilon, 1e-4)
    least = smooth_constants.check(epsilon, 1e-4, alpha, beta)
    assert 0 < least <= 1e-4
    if expected is not None:
        assert least == pytest.approx(expected, rel=1e-6)


def test_constants_that_do_not_are_refused():
    """The usual ones, at epsilon 20, where the published proof does not reach."""
    alpha, beta = smooth_constants.constants(20.0, 1e-4)
    message = "delta of at most 0.0001 at epsilon 20, got 0.000578 with 10 and 1.00975"
    with pytest.raises(DpmcError, match=message):
        smooth_constants.check(20.0, 1e-4, alpha, beta)
    mechanism = lookup.mechanism("smooth_laplace")
    with pytest.raises(DpmcError, match=r"at epsilon 20, got 0\.000578"):
        mechanism.guarantee(20.0, 1e-4)
    with pytest.raises(DpmcError, match=r"at epsilon 20, got 0\.000578"):
        mechanism.constants(20.0, 1e-4)
    with pytest.raises(DpmcError, match=r"at epsilon 5, got 0\.777"):
        lookup.mechanism("smooth_laplace", alpha=8.0).constants(5.0, 1e-4)
    with pytest.raises(DpmcError, match=r"delta.*0.0"):
        mechanism.constants(5.0, 0.0)


def test_the_worst_pair_of_data_sets_keeps_the_guarantee():
    """Over all neighbours on the grid: what is released, its scale, and their hockey stick."""
    n, rank, epsilon, delta = 3, 2, 2.0, 0.05
    alpha, beta = lookup.mechanism("smooth_laplace").constants(epsilon, delta)

    def worst(values):
        released = data_sets(n)[:, rank - 1].reshape((6,) * n)
        scales = values.reshape((6,) * n) / alpha
        return max(
            smooth_constants.hockey_stick(
                epsilon, abs(released[a] - released[b]), scales[a], scales[b]
            )
            for a in itertools.product(range(6), repeat=n)
            for axis in range(n)
            for level in range(6)
            if (b := (*a[:axis], level, *a[axis + 1 :])) != a
        )

    good = found(n, smooth_sensitivity, rank, 0.0, 1.0, beta)
    assert worst(good) <= smooth_constants.delta_of(epsilon, alpha, beta) <= delta
    local = np.maximum(local_sensitivity(data_sets(n)[:, rank - 1], n).ravel(), 1e-3)
    assert worst(local) > delta  # noise by the local sensitivity alone


def test_statistics_give_their_rank_and_their_range():
    s = np.array([3.0, 0.5, 1.0, 0.2])
    support = (-10.0, 10.0)
    median, average = lookup.statistic("median"), lookup.statistic("median", average=True)
    assert smooth.released(s, median) == 0.5
    assert smooth.released(s, average) == 0.75
    assert smooth.released(s[:3], average) == 1.0
    assert smooth.released(s, lookup.statistic("max")) == 3.0
    ordered = np.sort(s)
    expected = by_definition(ordered, 2, 0.0, 10.0, 0.3)
    assert smooth.of(s, median, support, 0.3) == pytest.approx(expected, rel=1e-12)
    expected = by_definition(ordered, 2, 0.0, 10.0, 0.3, average=True)
    assert smooth.of(s, average, support, 0.3) == pytest.approx(expected, rel=1e-12)
    expected = by_definition(np.sort(s[:3]), 2, 0.0, 10.0, 0.3)
    assert smooth.of(s[:3], average, support, 0.3) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([11.0], "median", 0.3), r"`s` must be .* from 0 to 10 in a row, got shape \(1,\)"),
        (([], "median", 0.3), r"`s` must be .* from 0 to 10 in a row, got shape \(0,\)"),
        (([1.0], "abs_1", 0.3), r"`statistic` must be an order statistic, got '\|x\|'"),
        (([1.0], "max", -1.0), "`beta` must be finite and >= 0, got -1.0"),
    ],
)
def test_what_has_no_smooth_sensitivity_is_refused(arguments, message):
    s, name, beta = arguments
    with pytest.raises(DpmcError, match=message):
        smooth.of(np.array(s), lookup.statistic(name), (-10.0, 10.0), beta)


def test_no_smaller_shift_and_no_other_ratio_is_worse():
    for epsilon, delta in ((1.0, 1e-4), (5.0, 1e-4), (20.0, 1e-4)):
        alpha, beta = smooth_constants.constants(epsilon, delta)
        worst = smooth_constants.delta_of(epsilon, alpha, beta)
        rng = np.random.default_rng(4)
        for log_ratio, share in zip(rng.uniform(-beta, beta, 400), rng.random(400), strict=True):
            ratio = math.exp(log_ratio)
            shift = share * min(1.0, ratio)
            loss = smooth_constants.hockey_stick(epsilon, shift, 1 / alpha, ratio / alpha)
            assert loss <= worst * (1 + 1e-9)
