"""The Barker test: its worst case by brute force, its composition, and the published bound."""

import itertools
import math

import numpy as np
import pytest
from dp_accounting.pld import pld_pmf
from scipy.special import ndtr
from scipy.stats import norm

from dpmc.privacy import Releases, accounting, barker, events, gaussian, plan, sampled_gaussian
from dpmc.privacy.accountants import (
    _renyi,
    barker_pld,
    barker_rdp,
    barker_rdp_published,
)
from dpmc.privacy.accountants._barker import BarkerBatch, renyi
from dpmc.privacy.accountants._composition import compose
from dpmc.privacy.accountants._pairs import profile
from dpmc.privacy.audit import audit
from dpmc.types import Budget, DpmcError

SMALL = barker(2.0, 1.0, 1300, 100_000)
LARGE = barker(2.0, 1.0, 2600, 200_000)


class VarianceIgnored(BarkerBatch):
    """A pair that lets a row change the mean of a release and not its variance."""

    change = 0.0


def count_of(event, epsilon, name, delta=1e-6):
    return accounting.max_iterations(Releases((), ((event, 1),)), Budget(epsilon, delta, name), 1)


# The worst case of one release


def test_one_row_moves_mean_and_variance_by_no_more_than_the_event_says():
    """Five numbers in [-kappa, kappa], one substituted; both changes are attained."""
    kappa, b = 0.7, 5
    event = barker(2.0, kappa, b, 50)
    values = (-kappa, -0.5 * kappa, 0.1 * kappa, kappa)
    means, variances = [], []
    for others in itertools.combinations_with_replacement(values, b - 1):
        for old, new in itertools.permutations(values, 2):
            before, after = np.array([old, *others]), np.array([new, *others])
            means.append(abs(after.sum() - before.sum()) / math.sqrt(b))
            variances.append(abs(after.var() - before.var()))
            assert 0 <= before.var() <= kappa**2
    assert max(means) == pytest.approx(event.mean_change, rel=1e-12)
    assert max(variances) == pytest.approx(event.variance_change, rel=1e-12)


def divergence(shift, of_p, of_q, gamma):
    """Return the divergence of N(shift, of_p) from N(0, of_q), from the roots of the loss."""
    a, b = 1 / of_q - 1 / of_p, 2 * shift / of_p
    c = -(shift**2) / of_p + math.log(of_q / of_p) - 2 * np.log(gamma)
    if abs(a) < 1e-12:
        return ndtr((c / b + shift) / of_p**0.5) - gamma * ndtr(c / b / of_q**0.5)
    square = b**2 - 4 * a * c
    half = np.sqrt(np.maximum(square, 0)) / (2 * abs(a))
    low, high = -b / (2 * a) - half, -b / (2 * a) + half

    def mass(mean, variance):
        below, above = (low - mean) / variance**0.5, (mean - high) / variance**0.5
        if a > 0:
            return ndtr(below) + ndtr(above)
        return np.where(square > 0, ndtr(-below) - ndtr(above), 0)

    return mass(shift, of_p) - gamma * mass(0, of_q)


SETTINGS = [(2, 1, 1300), (2, 1, 10), (2, 1, 2), (2, 1.4, 5), (1, 0.5, 100), (3, 1.7, 3)]


@pytest.mark.parametrize(("noise_variance", "clip_scale", "batch_size"), SETTINGS)
def test_profile_is_the_largest_over_every_change_of_mean_and_variance(
    noise_variance, clip_scale, batch_size
):
    rng = np.random.default_rng(5)
    event = barker(noise_variance, clip_scale, batch_size, batch_size)
    pair, v, d = BarkerBatch(event), event.least_variance, event.variance_change
    loss = np.concatenate([[0.0], np.geomspace(1e-5, min(pair.reach(), 30.0), 60)])
    found = np.zeros_like(loss)
    for _ in range(300):
        one, change = v + rng.uniform() * clip_scale**2, d * rng.choice([0, 1, rng.uniform()])
        other = one + change
        if rng.uniform() < 0.5:
            one, other = v, v + change
        if other <= noise_variance:
            shift = event.mean_change * rng.choice([1, rng.uniform(0.1, 1)])
            for of_p, of_q in ((one, other), (other, one)):
                found = np.maximum(found, divergence(shift, of_p, of_q, np.exp(loss)))
    ours = profile(pair, loss)
    np.testing.assert_allclose(ours, found, rtol=1e-9, atol=1e-14)
    assert (profile(VarianceIgnored(event), loss) < 0.99 * ours).any()


def test_the_divergence_may_fall_and_then_rise_with_the_change_of_variance():
    """So neither end of the range of the change can be left out."""
    event = barker(2.0, 1.0, 10, 10)
    m, t = event.mean_change, event.variance_change
    for gamma, rises in ((1.0, False), (math.e**2, True)):
        along = [divergence(m, 1 + share * t, 1.0, gamma) for share in np.linspace(0, 1, 50)]
        signs = np.sign(np.diff(along))
        assert (np.diff(signs) >= 0).all()
        assert (along[-1] > along[0]) == rises


def batch_density(rows, event, x, halved=1.0):
    batches = list(itertools.combinations(rows, event.batch_size))
    density = np.zeros_like(x)
    for batch in batches:
        variance = event.noise_variance - np.var(batch)
        mean = sum(batch) / math.sqrt(event.batch_size)
        density += norm.pdf(x, mean, math.sqrt(halved * variance)) / len(batches)
    return density


def worst_case(event, losses, halved=1.0):
    """Return the largest divergence over neighbours with rows at -kappa, 0 and kappa."""
    x = np.linspace(-12, 12, 3001)
    values = (-event.clip_scale, 0.0, event.clip_scale)
    worst = np.zeros(len(losses))
    for others in itertools.combinations_with_replacement(values, event.num_rows - 1):
        for old, new in itertools.combinations(values, 2):
            p, q = (batch_density((row, *others), event, x, halved) for row in (old, new))
            for first, second in ((p, q), (q, p)):
                parts = [np.maximum(first - math.exp(loss) * second, 0) for loss in losses]
                worst = np.maximum(worst, [np.trapezoid(part, x) for part in parts])
    return worst


@pytest.mark.parametrize("num_rows", [2, 5])
@pytest.mark.parametrize("noise_variance", [1.3, 2.0])
def test_profile_bounds_all_neighbours_over_all_batches(noise_variance, num_rows):
    event = barker(noise_variance, 1.0, 2, num_rows)
    losses = (0.0, 0.05, 0.2, 0.5, 1.0, 1.5)
    ours = profile(BarkerBatch(event), np.array(losses))
    assert (worst_case(event, losses) <= ours + 1e-6).all()


def test_half_the_noise_is_found_out():
    event, losses = barker(2.0, 1.0, 2, 5), (0.0, 0.05, 0.2)
    ours = profile(BarkerBatch(event), np.array(losses))
    assert (worst_case(event, losses, halved=0.5) > ours + 1e-2).all()


def test_profile_is_attained_and_lies_above_one_that_ignores_the_variance():
    """Two rows, both in the batch: from opposite ends to the same, mean and variance change."""
    event, losses = barker(2.0, 1.0, 2, 2), (1.0, 1.5)
    worst = worst_case(event, losses)
    np.testing.assert_allclose(worst, profile(BarkerBatch(event), np.array(losses)), atol=1e-5)
    assert (worst > profile(VarianceIgnored(event), np.array(losses)) + 1e-2).all()


@pytest.mark.parametrize(("noise_variance", "clip_scale", "batch_size"), SETTINGS)
def test_pair_is_one(noise_variance, clip_scale, batch_size):
    """Two falling tails, P above Q by the loss at least, no more than all mass above 0."""
    pair = BarkerBatch(barker(noise_variance, clip_scale, batch_size, 20 * batch_size))
    loss = np.linspace(0, min(pair.reach(), 600.0), 20001)
    upper, lower = pair.tails(loss)
    of_p, of_q = -np.diff(upper), -np.diff(lower)
    assert upper[0] + lower[0] <= 1 + 1e-12
    assert (of_q >= -1e-15).all()
    assert (of_p >= np.exp(loss[:-1]) * of_q - 1e-13).all()
    assert (of_p <= np.exp(loss[1:]) * of_q + 1e-13).all()


# Rényi divergence


def test_renyi_divergence_is_the_largest_by_quadrature():
    event = barker(2.0, 1.0, 40, 1000)
    x = np.linspace(-30, 30, 6001)
    v, d, m = event.least_variance, event.variance_change, event.mean_change
    for order in (2, 3, 5, 8):
        largest = 0.0
        for low in (v, v + 0.3, v + 1 - d):
            for ends in ((low, low), (low, low + d), (low + d, low), (low, low + 0.4 * d)):
                log_p, log_q = norm.logpdf(x, m, ends[0] ** 0.5), norm.logpdf(x, 0, ends[1] ** 0.5)
                moment = np.trapezoid(np.exp(order * log_p - (order - 1) * log_q), x)
                largest = max(largest, math.log(moment) / (order - 1))
        assert renyi(event, np.array([float(order)]))[0] == pytest.approx(largest, rel=1e-9)


def published_divergence(batch_size, orders):
    rest = batch_size - 5 * orders
    logarithm = np.log(2 * batch_size / rest) / (2 * (orders - 1))
    return 5 / (2 * batch_size) + logarithm + 2 * orders / rest


@pytest.mark.parametrize("batch_size", [16, 100, 1300, 10**5])
def test_published_divergence_is_a_bound_at_a_noise_variance_of_two(batch_size):
    orders = np.arange(2.0, math.ceil(batch_size / 5))
    for clip_scale in (0.5, 1.0):
        exact = renyi(barker(2.0, clip_scale, batch_size, 10**6), orders)
        assert (published_divergence(batch_size, orders) > exact).all()


def test_published_divergence_is_false_for_less_noise_and_loose_for_this_much():
    order = np.array([10.0])
    bound = published_divergence(1300, order)
    assert bound == pytest.approx(0.0586, rel=1e-3)
    assert renyi(barker(2.0, 1.0, 1300, 10**5), order) < 0.3 * bound
    # Attained: a batch with half of its rows at either end, whose variance is kappa^2, and
    # one of them substituted by its opposite.
    b, c = 1300, 1.02
    old = np.repeat([-1.0, 1.0], b // 2)
    new = np.append(old[1:], 1.0)
    ends = c - new.var(), c - old.var()
    shift = (new.sum() - old.sum()) / math.sqrt(b)
    for p, q in (ends, ends[::-1]):
        rest = q - 9 * (p - q)
        spread = 0.5 * math.log(q / p) + math.log(q / rest) / 18
        assert spread + 10 * shift**2 / (2 * rest) > 10 * bound[0]


# Counts

PUBLISHED = {SMALL: (106, 433, 964, 1687, 2583, 3640), LARGE: (102, 417, 935, 1632, 2509, 3536)}
TIGHT = {
    SMALL: (929, 7162, 23098, 51126, 94320, 155325),
    LARGE: (872, 7010, 23145, 53193, 100108, 172998),
}
BOX = {SMALL: {1: 98384, 4: 1232640, 6: 2512896}, LARGE: {1: 189184, 4: 2399488}}


@pytest.mark.parametrize("event", [SMALL, LARGE])
def test_counts_of_the_thesis_by_its_theorem(event):
    """And by the exact divergence with the conversion of the thesis, and with the better one."""
    delta = 0.1 / event.num_rows
    exact = _renyi.RenyiAccountant(barker_rdp.ORDERS, barker_rdp._curve)
    for epsilon, published, tight in zip(range(1, 7), PUBLISHED[event], TIGHT[event], strict=True):
        releases, budget = Releases((), ((event, 1),)), Budget(epsilon, delta, "barker_rdp")
        assert count_of(event, epsilon, "barker_rdp_published", delta) == published
        assert exact.max_iterations(releases, budget, 1) == tight
        assert count_of(event, epsilon, "barker_rdp", delta) > 1.3 * tight


@pytest.mark.parametrize("event", [SMALL, LARGE])
def test_counts_by_composition_are_hundreds_of_times_those_of_the_thesis(event):
    """The reference counts are of a coarser grid, whose loss has a larger variance."""
    delta = 0.1 / event.num_rows
    for epsilon, reference in BOX[event].items():
        ours = count_of(event, epsilon, "barker_pld", delta)
        assert 0.999 * reference <= ours <= 1.005 * reference
        assert ours > 600 * PUBLISHED[event][epsilon - 1]


def test_count_of_the_central_limit():
    """The loss of a million releases is Gaussian, and no count exceeds what it allows by much.

    Its mean is the sum of the means; with the variance ignored that is half of
    ``ln(1 + q^2 (exp(m^2) - 1))`` at every release, to the first order.
    """
    m = SMALL.mean_change / math.sqrt(SMALL.least_variance)
    mean_loss = math.log1p(SMALL.fraction**2 * math.expm1(m**2)) / 2
    limit = accounting.load("gaussian").affordable_mean_loss(4, 1e-6) / mean_loss
    assert 0.85 * limit < count_of(SMALL, 4, "barker_pld") < limit


# Composition


@pytest.mark.parametrize(
    ("event", "count"),
    [
        (SMALL, 1687),
        (SMALL, 1_232_640),
        (barker(2.0, 1.0, 20, 2000), 3000),
        (barker(1.0, 0.5, 200, 1000), 100),
        (barker(3.0, 1.5, 3, 300), 20),
        (barker(2.0, 1.0, 1, 200), 5),
    ],
)
def test_agrees_with_the_audit_and_stays_below_renyi(event, count):
    counts = {event: count}
    delta = 0.1 / event.num_rows
    ours = barker_pld.epsilon(counts, delta)
    assert ours == pytest.approx(audit(counts, delta).epsilon, rel=2e-3)
    assert ours < barker_rdp.epsilon(counts, delta)


@pytest.mark.parametrize("broken", [barker(4.0 / 3, 2.0 / 3, 20, 2000), "variance ignored"])
def test_the_audit_finds_a_broken_pair_out(broken):
    """Twice the clip of what is accounted for, or a batch variance that costs nothing."""
    event, count = barker(2.0, 1.0, 20, 2000), 3000
    audited = audit({event: count}, 5e-5).epsilon
    pair = VarianceIgnored(event) if isinstance(broken, str) else BarkerBatch(broken)
    assert compose([(BarkerBatch(event), count)], audited) == pytest.approx(5e-5, rel=0.03)
    assert compose([(pair, count)], audited) < 0.5 * 5e-5


def test_rare_and_large_losses_do_not_wrap_around():
    """In a window of eight tilted deviations delta would be seven times as large."""
    counts = {barker(2.0, 1.0, 20, 20_000): 300}
    assert barker_pld.delta(counts, audit(counts, 1e-6).epsilon) == pytest.approx(1e-6, rel=0.03)


def one_direction(event, count, epsilon):
    """Return delta where the wider of two laws is told from the narrower, each time the same."""
    m = event.mean_change / math.sqrt(event.least_variance)
    t = event.variance_change / event.least_variance
    x, spacing = np.linspace(-25, 25, 10001), 5e-4
    q = norm.pdf(x)
    p = (1 - event.fraction) * q + event.fraction * norm.pdf(x, m, math.sqrt(1 + t))
    last = math.ceil(BarkerBatch(event).reach() / spacing)
    grid = np.exp(spacing * np.arange(-last, last + 1))
    deltas = [(x[1] - x[0]) * np.maximum(p - gamma * q, 0).sum() for gamma in grid]
    deltas = np.maximum.accumulate(np.clip(deltas, 0, 1)[::-1])[::-1]
    one = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(spacing, -last, last, deltas)
    return one.self_compose(count).get_delta_for_epsilon(epsilon)


def test_one_direction_alone_is_too_optimistic():
    event = barker(2.0, 1.0, 100, 10_000)
    both = barker_pld.delta({event: 50_000}, 2.0)
    assert 1e-7 < one_direction(event, 50_000, 2.0) < 0.3 * both


def test_stands_beside_gaussian_releases():
    counts = {SMALL: 20_000, gaussian(40.0): 3, sampled_gaussian(2.0, 1300, 100_000): 50}
    audited = audit(counts, 1e-6).epsilon
    ours = barker_pld.delta(counts, audited)
    assert ours == pytest.approx(1e-6, rel=0.03)
    for left_out in counts:
        rest = {event: n for event, n in counts.items() if event != left_out}
        assert barker_pld.delta(rest, audited) < 0.9 * ours
    assert barker_rdp.epsilon(counts, 1e-6) > audited


# Plans


def test_the_guarantee_of_the_published_count_is_computed():
    made = plan(Releases((), ((SMALL, 1),)), Budget(4, 1e-6, "barker_rdp_published"))
    assert made.num_iterations == 1687
    assert made.guarantee.accountant == "barker_pld"
    assert made.guarantee.epsilon == pytest.approx(audit(made.counts, 1e-6).epsilon, rel=1e-3)
    assert made.guarantee.epsilon < 0.12


@pytest.mark.parametrize(
    "event",
    [
        barker(1.9, 1.0, 1300, 100_000),
        barker(2.0, 1.1, 1300, 100_000),
        barker(2.0, 1.0, 10, 100_000),
        gaussian(3.0),
    ],
)
def test_the_published_bound_refuses_what_it_does_not_prove(event):
    with pytest.raises(
        DpmcError, match=r"accountant barker_rdp_published covers .* only, got"
    ) as caught:
        barker_rdp_published.delta({event: 1}, 1.0)
    assert "\n" not in str(caught.value)
    assert events.text(event) in str(caught.value)


# Events


def test_event_reads_back():
    event = barker(2, 1, 1300, 100_000)
    line = "barker(2.0, clip_scale=1.0, batch_size=1300, num_rows=100000)"
    assert events.text(event) == line
    assert events.parse([(line, 3), (line, 4)]) == {event: 7}
    odd = barker(0.1 + 0.2, 1 / 3, 7, 8)
    assert events.parse([(events.text(odd), 1)]) == {odd: 1}


def test_counts_by_the_better_conversion():
    counts = [count_of(SMALL, epsilon, "barker_rdp") for epsilon in (1, 4, 6)]
    assert counts == [1741, 73475, 211952]
