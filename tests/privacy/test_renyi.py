"""Rényi bounds at integer orders: the theorem of the thesis, the rule of its code, Figure 6.1."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from dpmc.privacy import Releases, accounting, gaussian, sampled_gaussian
from dpmc.privacy.accountants import _renyi, rdp, rdp_integer, rdp_truncated, subsampled
from dpmc.privacy.accountants import gaussian as tight
from dpmc.types import Budget

ROWS, DELTA = 100_000, 1e-6


def minibatch(variance, batch_size=1000, num_rows=ROWS):
    event = sampled_gaussian(math.sqrt(variance), batch_size, num_rows)
    return Releases((), ((event, 1),))


def attained(order, z, fraction):
    """Return the divergence of the mixture from its centre: all other rows at one extreme."""
    x = np.linspace(-15, 25, 40001)
    centre = norm.pdf(x, 0, z)
    ratio = 1 - fraction + fraction * np.exp((x - 0.5) / z**2)
    return math.log(np.trapezoid(centre * ratio**order, x)) / (order - 1)


@pytest.mark.parametrize("variance", [0.7, 0.9, 2.0])
@pytest.mark.parametrize("order", [2, 3, 8, 20])
def test_the_theorem_bounds_what_is_attained(variance, order):
    z, event = math.sqrt(variance), minibatch(variance).per_iteration[0][0]
    assert rdp_integer._curve(event)[order - 2] > attained(order, z, 0.01) > 0


def test_the_sum_without_its_last_term_lies_below_what_is_attained():
    event = minibatch(0.7).per_iteration[0][0]
    assert attained(8, math.sqrt(0.7), 0.01) == pytest.approx(0.462, abs=5e-4)
    assert rdp_integer._curve(event)[6] == pytest.approx(0.559, abs=5e-4)
    assert rdp_truncated._curve(event)[6] == pytest.approx(0.151, abs=5e-4)
    assert not rdp_truncated.UPPER_BOUND


def test_the_sum_by_hand():
    q, curve = 0.1, np.array([0.3, 0.5, 0.9])
    second = 6 * q**2 * min(4 * math.expm1(0.3), 2 * math.exp(0.3))
    third = 2 * 4 * q**3 * math.exp(2 * 0.5)
    fourth = 2 * q**4 * math.exp(3 * 0.9)
    ours = _renyi.amplified(q, curve)
    assert ours[2] == pytest.approx(math.log(1 + second + third + fourth) / 3, rel=1e-12)
    dropped = _renyi.amplified(q, curve, drop_last=True)
    assert dropped[2] == pytest.approx(math.log(1 + second + third) / 3, rel=1e-12)
    assert dropped[0] == pytest.approx(ours[0], rel=1e-12)  # its only term


def test_releases_from_all_rows_cost_what_they_do_elsewhere():
    counts = {gaussian(31.6): 200, gaussian(100.0): 2000}
    exact = tight.epsilon(counts, DELTA)
    for accountant in (rdp_integer, rdp_truncated):
        assert exact < accountant.epsilon(counts, DELTA) < 1.3 * exact


def test_bounds_are_in_order():
    """The tight bound, dp_accounting's Rényi bound, and the one of the thesis."""
    counts = {minibatch(0.9).per_iteration[0][0]: 500}
    numbers = [module.epsilon(counts, DELTA) for module in (subsampled, rdp, rdp_integer)]
    assert numbers == sorted(numbers)


@pytest.mark.parametrize("initial", [(), ((gaussian(20.0), 3),)])
@pytest.mark.parametrize("epsilon", [0.5, 3.0, 10.0])
@pytest.mark.parametrize("num_chains", [1, 4])
def test_division_at_every_order_equals_a_search(initial, epsilon, num_chains):
    per_iteration = (*minibatch(1.4).per_iteration, (gaussian(60.0), 2))
    releases, budget = Releases(initial, per_iteration), Budget(epsilon, DELTA, "rdp_integer")
    searched = accounting.search(rdp_integer.delta, releases, budget, num_chains)
    assert rdp_integer.max_iterations(releases, budget, num_chains) == searched


def whole(tau):
    return gaussian(tau * math.sqrt(ROWS))


PENALTY = Releases((), ((whole(0.1), 1),))
HMC = Releases(((whole(0.4), 1),), ((whole(0.1), 1), (whole(0.4), 10)))
FRESH = Releases((), ((whole(0.1), 1), (whole(0.4), 11)))
FIGURE = {  # the curves of raisa2021thesis, Figure 6.1, at epsilon 1 to 6
    "penalty, zcdp": (PENALTY, "zcdp", (35, 134, 294, 508, 770, 1079)),
    "penalty, tight": (PENALTY, "gaussian", (55, 201, 419, 701, 1041, 1431)),
    "hmc, zcdp": (HMC, "zcdp", (21, 82, 181, 312, 474, 664)),
    "hmc, tight": (HMC, "gaussian", (34, 123, 258, 432, 640, 880)),
    "hmc, fresh, zcdp": (FRESH, "zcdp", (20, 79, 174, 301, 456, 639)),
    "hmc, fresh, tight": (FRESH, "gaussian", (33, 118, 248, 416, 616, 848)),
    "minibatch, rdp": (minibatch(0.9), "rdp_truncated", (0, 22, 289, 650, 1065, 1542)),
    "minibatch, final, rdp": (minibatch(0.7), "rdp_truncated", (0, 0, 72, 329, 602, 991)),
    "minibatch": (minibatch(0.9), "poisson_pair", (40, None, 747, 1287, None, 2680)),
    "minibatch, final": (minibatch(0.7), "poisson_pair", (4, None, 438, 828, None, 1817)),
}


@pytest.mark.parametrize("curve", FIGURE)
def test_figure_6_1_to_the_integer(curve):
    """Read off a line through 50 points from 0.5 to 6, of which 1 to 5 are none."""
    releases, name, drawn = FIGURE[curve]
    grid = np.linspace(0.5, 6, 50)
    for epsilon, expected in zip(range(1, 7), drawn, strict=True):
        if expected is None:
            continue
        first = min(int(np.searchsorted(grid, epsilon)), len(grid) - 1) - 1
        ends = grid[first : first + 2]
        counts = [
            accounting.max_iterations(releases, Budget(float(end), DELTA, name), 1) for end in ends
        ]
        assert round(float(np.interp(epsilon, ends, counts))) == expected


MINIBATCH = {  # (tau, b, n, epsilon): counts by the public code and by the valid bound
    (0.7, 1000, 100_000, 6): (1817, 2523),
    (0.9, 1000, 100_000, 2): (324, 480),
    (0.8, 1200, 200_000, 4): (2869, 4197),
    (1.6, 1000, 200_000, 6): (20552, 40048),
}


@pytest.mark.parametrize("setting", MINIBATCH)
def test_counts_of_the_thesis_for_minibatch_penalty(setting):
    """To the integer below ten thousand; the reference counts beyond are stepped."""
    variance, batch_size, num_rows, epsilon = setting
    releases = minibatch(variance, batch_size, num_rows)
    for name, expected in zip(("poisson_pair", "subsampled"), MINIBATCH[setting], strict=True):
        budget = Budget(epsilon, 0.1 / num_rows, name)
        slack = 0 if expected < 5000 else 3e-4 * expected
        assert abs(accounting.max_iterations(releases, budget, 1) - expected) <= slack


@pytest.mark.parametrize(
    ("variance", "correct"), [(0.9, (0, 5, 262, 638, 1062, 1537)), (0.7, (0, 0, 52, 272, 583, 961))]
)
def test_figure_6_1_with_the_whole_sum(variance, correct):
    """And where the two differ, the rule of the code promises more than its budget holds."""
    for epsilon, expected in zip(range(1, 7), correct, strict=True):
        budget = Budget(epsilon, DELTA, "rdp_integer")
        assert accounting.max_iterations(minibatch(variance), budget, 1) == expected
    released = {minibatch(variance).per_iteration[0][0]: FIGURE["minibatch, rdp"][2][1]}
    assert rdp_integer.epsilon(released, DELTA) > 2
