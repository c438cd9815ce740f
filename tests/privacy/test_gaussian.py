"""The closed form for Gaussian releases: against mpmath, dp_accounting and bisection."""

import math

import mpmath
import pytest
from dp_accounting import GaussianDpEvent, NeighboringRelation
from dp_accounting.pld import PLDAccountant
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmc.privacy import accounting, events
from dpmc.privacy.accountants import gaussian, pld, rdp, zcdp
from dpmc.privacy.audit import audit
from dpmc.types import Budget, DpmcError

EPSILONS = (0.0, 1e-3, 1e-2, 0.1, 0.5, 1, 2, 4, 8, 15, 50, 200, 500, 700, 800)
MUS = tuple(10 ** (x / 2) for x in range(-18, 9))


def exact_log_delta(epsilon: float, mu: float) -> mpmath.mpf:
    with mpmath.workdps(60):
        epsilon, mu = mpmath.mpf(epsilon), mpmath.mpf(mu)
        s = mpmath.sqrt(2 * mu)

        def upper(x):
            return mpmath.erfc(x / mpmath.sqrt(2)) / 2

        return mpmath.log(
            upper((epsilon - mu) / s) - mpmath.exp(epsilon) * upper((epsilon + mu) / s)
        )


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_delta_agrees_with_mpmath_to_1e9(epsilon):
    checked = 0
    for mu in MUS:
        ours = gaussian.log_delta(epsilon, mu)
        if ours < -1e6:  # one rounding of mu already changes such a delta by 1e-9
            continue
        error = mpmath.expm1(mpmath.mpf(ours) - exact_log_delta(epsilon, mu))
        assert abs(error) < 1e-9, (epsilon, mu, ours)
        checked += 1
    assert checked >= 8


@given(
    ln_epsilon=st.floats(math.log(1e-3), math.log(800)),
    ln_delta=st.floats(math.log(1e-30), math.log(0.5)),
)
@settings(max_examples=200, deadline=None)
def test_inversion_is_a_root(ln_epsilon, ln_delta):
    epsilon = math.exp(ln_epsilon)
    mu = gaussian.affordable_mean_loss(epsilon, math.exp(ln_delta))
    assert gaussian.log_delta(epsilon, mu * (1 - 1e-9)) < ln_delta + 1e-9
    assert gaussian.log_delta(epsilon, mu * (1 + 1e-9)) > ln_delta - 1e-9


@pytest.mark.parametrize("multipliers", [((31.6, 1),), ((31.6, 1), (173.9, 26)), ((400.0, 3),)])
@pytest.mark.parametrize("initial", [(), ((173.9, 1),)])
@pytest.mark.parametrize("epsilon", [0.5, 2, 6, 15])
@pytest.mark.parametrize("num_chains", [1, 4])
def test_division_equals_bisection(multipliers, initial, epsilon, num_chains):
    releases = events.Releases(
        tuple((events.gaussian(z), n) for z, n in initial),
        tuple((events.gaussian(z), n) for z, n in multipliers),
    )
    budget = Budget(epsilon, 1e-6, "gaussian")
    low, high = 0, 10**9
    while high - low > 1:
        middle = (low + high) // 2
        spent = gaussian.delta(releases.counts(middle, num_chains), epsilon)
        low, high = (middle, high) if spent <= 1e-6 else (low, middle)
    assert accounting.max_iterations(releases, budget, num_chains) == low


def algorithm_2(epsilon, delta, mu):
    """Return the count of [raisa2021thesis, Algorithm 2], by its own formula for delta."""

    def adp(k):
        root = 2 * math.sqrt(k * mu)
        return 0.5 * (
            math.erfc((epsilon - k * mu) / root)
            - math.exp(epsilon) * math.erfc((epsilon + k * mu) / root)
        )

    rho = (math.sqrt(epsilon - math.log(delta)) - math.sqrt(-math.log(delta))) ** 2
    low = math.floor(rho / mu)
    high = max(low, 1)
    while adp(high) < delta:
        high *= 2
    while math.floor(high) - math.floor(low) > 1:
        new = (high + low) / 2
        low, high = (low, new) if adp(new) > delta else (new, high)
    return math.floor(high if adp(math.floor(high)) < delta else low)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1, 2, 4, 6, 15])
@pytest.mark.parametrize("delta", [1e-4, 1e-6, 5e-7, 1e-9])
@pytest.mark.parametrize("tau", [0.02, 0.06, 0.1, 0.2, 0.6, 4.0])
def test_division_equals_the_bisection_of_the_thesis(epsilon, delta, tau):
    """Algorithm 2 and the closed form, for DP-penalty and for the gradients of DP-HMC."""
    z = tau * math.sqrt(1e5)
    for per_iteration in (((z, 1),), ((z, 1), (4 * z, 11))):
        releases = events.Releases((), tuple((events.gaussian(s), n) for s, n in per_iteration))
        mu = sum(n / (2 * s**2) for s, n in per_iteration)
        count = accounting.max_iterations(releases, Budget(epsilon, delta, "gaussian"), 1)
        assert count == algorithm_2(epsilon, delta, mu)


# Rows n, tau of DP-penalty, tau and tau_g of DP-HMC and L; counts at epsilon 1, 4 and 6 (circle:
# 0.5, 0.75 and 1) of DP-penalty, of DP-HMC with the gradient reused, and with fresh gradients.
THESIS = {
    "flat_2d": (100_000, 0.1, 0.1, 0.4, 10, (56, 702, 1431), (34, 431, 880), (33, 416, 848)),
    "flat_10d": (200_000, 0.1, 0.05, 0.2, 10, (104, 1331, 2725), (16, 204, 419), (15, 197, 403)),
    "tempered_2d": (
        *(100_000, 0.2, 0.2, 0.6, 10),
        *((224, 2808, 5724), (106, 1330, 2711), (100, 1263, 2576)),
    ),
    "tempered_10d": (
        *(200_000, 0.18, 0.08, 0.2, 10),
        *((340, 4313, 8830), (25, 327, 670), (24, 308, 631)),
    ),
    "gauss_30d": (200_000, 0.06, 0.05, 0.1, 5, (37, 479, 981), (11, 147, 302), (10, 133, 272)),
    "narrow_2d": (150_000, 0.2, 0.15, 0.25, 5, (323, 4081, 8341), (64, 819, 1675), (57, 726, 1484)),
    "corr_gauss": (200_000, 0.07, 0.05, 0.2, 8, (51, 652, 1335), (17, 221, 454), (16, 213, 436)),
    "circle": (
        *(100_000, 4, 0.6, 1.9, 40),
        *((24643, 52511, 89646), (111, 236, 404), (108, 232, 396)),
    ),
}


@pytest.mark.parametrize("problem", THESIS)
def test_counts_of_the_thesis(problem):
    n, tau, tau_ratio, tau_gradient, steps, penalty, reused, fresh = THESIS[problem]
    single, ratio, gradient = (
        events.gaussian(t * math.sqrt(n)) for t in (tau, tau_ratio, tau_gradient)
    )
    cases = (
        (events.Releases((), ((single, 1),)), penalty),
        (events.Releases(((gradient, 1),), ((ratio, 1), (gradient, steps))), reused),
        (events.Releases((), ((ratio, 1), (gradient, steps + 1))), fresh),
    )
    for index, epsilon in enumerate((0.5, 0.75, 1) if problem == "circle" else (1, 4, 6)):
        budget = Budget(epsilon, 0.1 / n, "gaussian")
        for releases, counts in cases:
            assert accounting.max_iterations(releases, budget, 1) == counts[index]


PAPER = {
    ("banana", "dp_penalty"): (((0.17, 1),), (580, 2028, 4136, 6778, 9871, 13348, 19180)),
    ("banana", "dp_hmc"): (((0.1, 1), (0.55, 26)), (108, 377, 769, 1261, 1836, 2483, 3569)),
    ("gauss", "dp_penalty"): (((0.05, 1),), (50, 175, 357, 586, 853, 1154, 1659)),
    ("gauss", "dp_hmc"): (((0.1, 1), (0.25, 13)), (65, 227, 464, 761, 1108, 1499, 2154)),
}
PAPER_REUSED = {
    "banana": (((0.55, 1),), ((0.1, 1), (0.55, 25)), (110, 384, 783, 1284, 1870, 2528, 3633)),
    "gauss": (((0.25, 1),), ((0.1, 1), (0.25, 12)), (68, 240, 490, 803, 1169, 1581, 2272)),
}


def released(taus):
    return tuple((events.gaussian(tau * math.sqrt(1e5)), n) for tau, n in taus)


@pytest.mark.parametrize("setting", PAPER)
def test_counts_of_the_paper(setting):
    taus, expected = PAPER[setting]
    releases = events.Releases((), released(taus))
    for epsilon, count in zip((2, 4, 6, 8, 10, 12, 15), expected, strict=True):
        budget = Budget(epsilon, 1e-6, "gaussian")
        assert accounting.max_iterations(releases, budget, 1) == count
        assert accounting.max_iterations(releases, budget, 4) == count // 4


@pytest.mark.parametrize("problem", PAPER_REUSED)
def test_counts_with_the_gradient_reused(problem):
    initial, taus, expected = PAPER_REUSED[problem]
    releases = events.Releases(released(initial), released(taus))
    for epsilon, count in zip((2, 4, 6, 8, 10, 12, 15), expected, strict=True):
        assert accounting.max_iterations(releases, Budget(epsilon, 1e-6, "gaussian"), 1) == count


@pytest.mark.parametrize(("noise_multiplier", "count"), [(30.0, 700), (5.0, 30), (1.0, 1)])
def test_three_ways_to_the_same_delta(noise_multiplier, count):
    counts = {events.gaussian(noise_multiplier): count}
    mu = gaussian.mean_loss(counts)
    theirs = PLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE)
    theirs.compose(GaussianDpEvent(noise_multiplier), count)
    for epsilon in (0.5, 2.0):
        exact = float(mpmath.exp(exact_log_delta(epsilon, mu)))
        assert gaussian.delta(counts, epsilon) == pytest.approx(exact, rel=1e-9)
        assert theirs.get_delta(epsilon) == pytest.approx(exact, rel=1e-3, abs=1e-14)
        assert pld.delta(counts, epsilon) == pytest.approx(exact, rel=1e-3, abs=1e-14)
        assert pld.delta(counts, epsilon) >= exact * (1 - 1e-9)


def test_zcdp_epsilon_inverts_delta():
    counts = {events.gaussian(31.6): 100}
    epsilon = zcdp.epsilon(counts, 1e-6)
    assert zcdp.delta(counts, epsilon) == pytest.approx(1e-6, rel=1e-9)
    assert zcdp.delta(counts, 1e-3) == 1.0
    assert zcdp.delta({}, 1.0) == 0.0


@pytest.mark.parametrize("count", [1, 7, 400])
def test_the_audit_composes_releases_from_all_rows(count):
    """By an accountant of its own: dp_accounting on a grid, against the closed form."""
    counts = {events.gaussian(20.0): count, events.gaussian(35.0): count}
    exact = gaussian.epsilon(counts, 1e-6)
    assert audit(counts, 1e-6).epsilon == pytest.approx(exact, rel=2e-3)
    once = gaussian.epsilon(dict.fromkeys(counts, 1), 1e-6)
    assert (once < 0.9 * exact) == (count > 1)


def test_differencing_in_log_space_would_not_do():
    """The usual stable form loses the digits that cancel at small mu."""
    from scipy.special import log_ndtr

    epsilon, mu = 0.1, 1e-7
    s = math.sqrt(2 * mu)
    la = log_ndtr((mu - epsilon) / s)
    lb = epsilon + log_ndtr((-mu - epsilon) / s)
    usual = la + math.log1p(-math.exp(lb - la))
    exact = exact_log_delta(epsilon, mu)
    assert abs(mpmath.expm1(mpmath.mpf(usual) - exact)) > 1e-9
    assert abs(mpmath.expm1(mpmath.mpf(gaussian.log_delta(epsilon, mu)) - exact)) < 1e-9


@pytest.mark.parametrize(
    ("epsilon", "mu", "delta"),
    [
        (1, 0.02, 1.754633331896e-08),
        (4, 0.3, 1.168883778243e-07),
        (15, 3.0, 1.539764984997e-07),
        (50, 20.0, 5.856103782058e-07),
        (800, 700.0, 0.003483542049227),
    ],
)
def test_delta_at_reference_values(epsilon, mu, delta):
    event = events.gaussian(math.sqrt(1 / (2 * mu)))
    assert gaussian.delta({event: 1}, epsilon) == pytest.approx(delta, rel=1e-11)


@pytest.mark.parametrize(
    ("epsilon", "mu", "log10"),
    [(2, 0.001, -438.910551), (20, 0.02, -2172.229826), (720, 650.0, -1.610688)],
)
def test_log_delta_at_reference_values(epsilon, mu, log10):
    assert gaussian.log_delta(epsilon, mu) / math.log(10) == pytest.approx(log10, abs=1e-6)


@pytest.mark.parametrize(
    ("epsilon", "mu"),
    [(0.5, 0.007701), (1, 0.028014), (2, 0.100502), (4, 0.351004), (8, 1.172815), (15, 3.318428)],
)
def test_affordable_mean_loss_at_reference_values(epsilon, mu):
    assert gaussian.affordable_mean_loss(epsilon, 1e-6) == pytest.approx(mu, abs=6e-7)


def test_degenerate_losses():
    assert gaussian.log_delta(1.0, 0.0) == -math.inf
    assert gaussian.log_delta(1.0, math.inf) == 0.0
    assert gaussian.delta({}, 1.0) == 0.0
    assert gaussian.epsilon({}, 1e-6) == 0.0


def test_replace_one_of_dp_accounting_counts_the_sensitivity_twice():
    """Why our multipliers go in as adding or removing a row."""
    theirs = PLDAccountant(NeighboringRelation.REPLACE_ONE)
    theirs.compose(GaussianDpEvent(10.0), 1)
    assert theirs.get_delta(0.2) == pytest.approx(
        gaussian.delta({events.gaussian(5.0): 1}, 0.2), rel=1e-3
    )


def test_looser_accountants_are_looser():
    counts = {events.gaussian(31.6): 200, events.gaussian(100.0): 2000}
    tight = gaussian.epsilon(counts, 1e-6)
    assert tight < rdp.epsilon(counts, 1e-6) < 1.15 * tight
    assert tight < zcdp.epsilon(counts, 1e-6) < 1.5 * tight
    for epsilon in (1.0, 2.0, 4.0):
        tight = gaussian.delta(counts, epsilon)
        assert tight <= rdp.delta(counts, epsilon)
        assert tight <= zcdp.delta(counts, epsilon)


@pytest.mark.parametrize(
    ("epsilon", "tight_over_zcdp"), [(0.5, 1.73), (1, 1.60), (4, 1.38), (15, 1.22)]
)
def test_zcdp_counts_relative_to_tight_ones(epsilon, tight_over_zcdp):
    releases = events.Releases((), ((events.gaussian(1000.0), 1),))
    counts = [
        accounting.max_iterations(releases, Budget(epsilon, 1e-6, name), 1)
        for name in ("gaussian", "zcdp")
    ]
    assert counts[0] / counts[1] == pytest.approx(tight_over_zcdp, abs=0.005)


@pytest.mark.parametrize("name", ["gaussian", "zcdp", "pld"])
def test_batches_are_refused_by_name(name):
    counts = {events.sampled_gaussian(5.0, 10, 1000): 3}
    with pytest.raises(DpmcError, match=r"accountant .* only, got sampled_gaussian\(5\.0, batch"):
        accounting.load(name).delta(counts, 1.0)
