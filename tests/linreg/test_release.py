"""What the nodes release: the noise that was asked for, and the guarantee that it has."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from dpmc.linreg.release import guarantees, release
from dpmc.linreg.release_terms import DATA_BOUNDS, EXACT_COUNTS, guarantee
from dpmc.linreg.sensitivity import s_sensitivity, statistics_sensitivity, z_sensitivity
from dpmc.linreg.types import NodeStatistics, NoisyStatistics
from dpmc.privacy.events import gaussian
from dpmc.privacy.gaussian_noise import analytic_multiplier, true_delta, true_epsilon
from dpmc.privacy.ledger import Ledger
from dpmc.privacy.published_noise import published_multiplier
from dpmc.rng import stream
from dpmc.types import DpmcError, Guarantee

DELTA = 1 / 7655
# Of each test on fresh noise from the operating system: the chance that it fails when it
# should not. There are four.
LEVEL = 1e-6


def node_statistics(x, y, num_nodes, bounds=(1.0, 1.0)):
    nodes = [(a, b) for a, b in zip(np.split(x, num_nodes), np.split(y, num_nodes), strict=True)]
    return NodeStatistics(
        num_rows=np.array([len(b) for _, b in nodes]),
        s=np.stack([a.T @ a for a, _ in nodes]),
        z=np.stack([a.T @ b for a, b in nodes]),
        u=np.array([b @ b for _, b in nodes]),
        bounds=bounds,
    )


def bounded_rows(num_rows, dim, x_bound=1.0, y_bound=1.0):
    rng = stream(7, "tests", "release", num_rows, dim)
    x = rng.standard_normal((num_rows, dim))
    x *= x_bound / np.linalg.norm(x, axis=1, keepdims=True) * rng.uniform(0, 1, (num_rows, 1))
    return x, rng.uniform(-y_bound, y_bound, num_rows)


def statistics_of(num_nodes=3, dim=2, bounds=(1.0, 1.0), num_rows=60):
    return node_statistics(*bounded_rows(num_rows, dim, *bounds), num_nodes, bounds)


def made(exact=None, epsilon=1.0, rng=None, **settings):
    exact, rng = exact or statistics_of(), rng or np.random.default_rng()
    return release(exact, 1.0, 1.0, epsilon, DELTA, rng, **settings)


def entries(noisy, exact, with_u=True):
    """Return the noise on each released entry, in standard deviations."""
    i, j = np.triu_indices(noisy.dim)
    parts = [(noisy.s - exact.s)[:, i, j] / noisy.s_sd, (noisy.z - exact.z) / noisy.z_sd]
    if with_u:
        parts.append((noisy.u - exact.u)[:, None] / noisy.u_sd)
    return np.concatenate(parts, axis=1)


def looks_standard(noise):
    """Whether entries have mean 0, variance 1, a normal law, and no correlation."""
    size, flat = noise.size, noise.ravel()
    chi2 = stats.chi2(size)
    p_values = [
        2 * min(chi2.cdf(flat @ flat), chi2.sf(flat @ flat)),
        2 * stats.norm.sf(abs(flat.sum()) / math.sqrt(size)),
        stats.kstest(flat, "norm").pvalue,
    ]
    pairs = combinations(noise.T, 2)
    p_values += [stats.pearsonr(one, other).pvalue for one, other in pairs]
    return min(p_values) * len(p_values) > LEVEL


NODES = 3000


def many_nodes(dim=2):
    """Many nodes of one row: one release draws the noise of them all."""
    return statistics_of(NODES, dim, num_rows=NODES)


class HalfNoise(Ledger):
    """Records what it should and draws half of it."""

    def release(self, clipped, *args, **kwargs):
        return clipped.value + 0.5 * (super().release(clipped, *args, **kwargs) - clipped.value)


class OneNoise(Ledger):
    """The same noise on every entry."""

    def release(self, clipped, *args, **kwargs):
        noise = super().release(clipped, *args, **kwargs) - clipped.value
        return clipped.value + noise[..., :1]


@pytest.mark.parametrize(
    "settings",
    [
        {"with_u": True},
        {"neighbours": "add_remove"},
        {"calibration": "published"},
        {"split": "separate"},
    ],
)
def test_noise_is_what_the_release_says_and_independent(settings):
    """Half the noise, or one draw for all entries of a node, is found out."""
    exact, rng = many_nodes(), np.random.default_rng()
    for ledger, sound in ((Ledger, True), (HalfNoise, False), (OneNoise, False)):
        ledgers = [ledger() for _ in range(NODES)]
        noisy = release(exact, 1.0, 1.0, 1.0, DELTA, rng, ledgers=ledgers, **settings)
        noise = entries(noisy, exact, settings.get("with_u", False))
        assert looks_standard(noise) == sound, ledger


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize("with_u", [False, True])
@pytest.mark.parametrize("dim", [1, 2, 5])
def test_a_joint_release_has_one_deviation_for_all_entries(neighbours, with_u, dim):
    exact = statistics_of(3, dim, (1.3, 0.4))
    ledgers = [Ledger() for _ in range(3)]
    terms = exact, 1.3, 0.4, 0.7, 1e-4, np.random.default_rng()
    noisy = release(*terms, neighbours=neighbours, with_u=with_u, ledgers=ledgers)
    sigma = analytic_multiplier(0.7, 1e-4)
    sd = sigma * statistics_sensitivity(1.3, 0.4, dim, neighbours, with_u)
    assert noisy.s_sd == pytest.approx(sd, rel=1e-12)
    assert noisy.z_sd == noisy.s_sd
    assert (noisy.u is not None) == with_u
    assert math.isnan(noisy.u_sd) == (not with_u)
    assert noisy.s.shape == (3, dim, dim)
    assert noisy.z.shape == (3, dim)
    np.testing.assert_array_equal(noisy.s, np.swapaxes(noisy.s, 1, 2))
    np.testing.assert_array_equal(noisy.num_rows, [20, 20, 20])
    assert all(ledger.counts == {gaussian(sigma): 1} for ledger in ledgers)


def test_the_vector_has_each_entry_once_and_the_statistics_stay_as_they_are():
    """With hardly any noise, the release is the statistics."""
    exact = statistics_of(4, 3)
    before = exact.s.copy(), exact.z.copy(), exact.u.copy()
    for split, with_u in (("joint", True), ("joint", False), ("separate", False)):
        noisy = release(
            exact, 1.0, 1.0, 9e3, 0.3, np.random.default_rng(), split=split, with_u=with_u
        )
        scale = 20 * max(noisy.s_sd, noisy.z_sd)
        assert scale < 0.5
        np.testing.assert_allclose(noisy.s, exact.s, atol=scale)
        np.testing.assert_allclose(noisy.z, exact.z, atol=scale)
        assert not with_u or np.allclose(noisy.u, exact.u, atol=scale)
    for old, new in zip(before, (exact.s, exact.z, exact.u), strict=True):
        np.testing.assert_array_equal(old, new)


def test_releases_repeat_with_their_stream_and_nodes_have_noise_of_their_own():
    exact = statistics_of()
    first, again, other = (
        release(exact, 1.0, 1.0, 1.0, DELTA, stream(7, "tests", "noise", k)) for k in (0, 0, 1)
    )
    np.testing.assert_array_equal(first.s, again.s)
    assert (first.s != other.s).all()
    noise = entries(first, exact, with_u=False)
    assert len(np.unique(noise)) == noise.size


# --- guarantees


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize("with_u", [False, True])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_analytic_noise_has_exactly_the_budget_as_its_guarantee(neighbours, with_u, epsilon):
    noisy = made(epsilon=epsilon, neighbours=neighbours, with_u=with_u)
    assert epsilon * (1 - 1e-9) <= noisy.guarantee.epsilon <= epsilon
    assert noisy.guarantee.delta == DELTA
    assert noisy.guarantee.neighbours == neighbours
    assert noisy.guarantee.accountant == "gaussian"


def test_the_worst_pair_of_rows_tells_sound_noise_from_unsound():
    """The exact delta of two releases whose rows are as far apart as can be."""

    def worst_delta(noisy):
        # Of the derivation: cosine Y^2 / 2, components exchanged, targets opposite.
        angle = math.asin(0.3**2 / 2) / 2
        x = np.array([math.cos(angle), math.sin(angle)])
        i, j = np.triu_indices(2)
        moved_s = (np.outer(x, x) - np.outer(x[::-1], x[::-1]))[i, j] / noisy.s_sd
        moved_z = 0.3 * (x + x[::-1]) / noisy.z_sd
        return true_delta(1 / math.hypot(*moved_s, *moved_z), 1.0)

    def noisy(**settings):
        exact = statistics_of(bounds=(1.0, 0.3))
        return release(exact, 1.0, 0.3, 1.0, DELTA, np.random.default_rng(), **settings)

    assert worst_delta(noisy()) == pytest.approx(DELTA, rel=1e-9)
    assert worst_delta(noisy()) <= DELTA
    assert worst_delta(noisy(split="separate")) < DELTA
    assert worst_delta(noisy(neighbours="add_remove")) > 10 * DELTA
    assert worst_delta(noisy(calibration="published")) > 200 * DELTA
    for settings in ({"neighbours": "add_remove"}, {"calibration": "published"}):
        found = noisy(**settings)
        told = guarantees(found)["replace"].epsilon
        assert told > 1.4
        shift = float(found.extra["shift_replace"])
        assert true_delta(1 / shift, told) == pytest.approx(DELTA, rel=1e-5)


def test_the_guarantee_of_the_published_noise_is_far_from_its_budget():
    noisy = made(neighbours="add_remove", calibration="published", bounds_source="data")
    sigma = published_multiplier(1.0, DELTA)
    assert noisy.guarantee.epsilon == pytest.approx(true_epsilon(sigma, DELTA))
    assert noisy.guarantee.epsilon == pytest.approx(2.34, abs=0.005)
    assert noisy.guarantee.outside == (DATA_BOUNDS, EXACT_COUNTS)
    both = guarantees(noisy)
    assert list(both) == ["add_remove", "replace"]
    assert both["add_remove"] == noisy.guarantee
    assert both["replace"].epsilon == pytest.approx(true_epsilon(sigma / 1.5, DELTA))
    assert both["replace"].outside == (DATA_BOUNDS,)


def test_guarantees_do_not_depend_on_the_number_of_nodes():
    """A row changes one node: the releases of the others are as they were."""
    assert len({made(statistics_of(num)).guarantee for num in (1, 3, 10)}) == 1


# --- errors


@pytest.mark.parametrize("bounds", [(0.5, 1.0), (1.0, 0.4), (0.6, 0.5)])
def test_bounds_that_the_rows_were_not_clipped_to_are_refused(bounds):
    x, y = np.ones((60, 1)), np.ones(60)
    with pytest.raises(DpmcError, match="`x_bound`, `y_bound` must be at least 1, 1, which the"):
        release(node_statistics(x, y, 3), *bounds, 1.0, DELTA, np.random.default_rng())
    assert release(node_statistics(x, y, 3), 1.0, 1.0, 1.0, DELTA, np.random.default_rng())


def test_noise_for_a_replaced_row_is_more_than_enough_for_one_that_is_added():
    noisy = made()
    both = guarantees(noisy)
    assert both["replace"] == noisy.guarantee
    assert noisy.guarantee.outside == ()
    sigma = 1.5 * analytic_multiplier(1.0, DELTA)
    assert both["add_remove"].epsilon == pytest.approx(true_epsilon(sigma, DELTA))
    assert both["add_remove"].outside == (EXACT_COUNTS,)


def test_two_releases_at_half_the_budget_never_need_less_noise_than_one():
    """Why the rule of the public code keeps the joint release wherever noise is analytic."""
    for epsilon in (0.01, 0.3, 1, 5, 20, 200):
        for delta in (1e-12, 1e-5, 0.1):
            half, whole = (analytic_multiplier(epsilon / k, delta / k) for k in (2, 1))
            assert half >= math.sqrt(2) * whole
    for bounds in ((1.0, 0.01), (1.0, 1.0), (1.0, 3.0)):
        for relation in ("replace", "add_remove"):
            parts = s_sensitivity(bounds[0], 3, relation), z_sensitivity(*bounds, relation)
            joint = statistics_sensitivity(*bounds, 3, relation)
            assert math.hypot(*parts) >= joint * (1 - 1e-12)


@pytest.mark.parametrize("calibration", ["analytic", "published"])
def test_the_best_split_is_the_joint_release(calibration):
    terms = {"calibration": calibration, "neighbours": "add_remove"}
    joint, best, separate = (
        made(rng=stream(7, "tests", "split"), split=split, **terms)
        for split in ("joint", "best", "separate")
    )
    np.testing.assert_array_equal(joint.s, best.s)
    assert separate.s_sd**2 + separate.z_sd**2 > 2 * joint.s_sd**2
    assert separate.guarantee.epsilon < joint.guarantee.epsilon


def test_the_best_split_takes_the_smaller_sum_of_variances(monkeypatch):
    """With noise that falls in the number of parts, which no calibration does."""
    monkeypatch.setattr(
        "dpmc.linreg.release_terms.gaussian_noise.multiplier",
        lambda name, epsilon, delta: 2 + epsilon,
    )
    ledgers = [Ledger() for _ in range(3)]
    rng = np.random.default_rng()
    exact = statistics_of(bounds=(1.0, 0.1))
    noisy = release(exact, 1.0, 0.1, 6.0, DELTA, rng, split="best", ledgers=ledgers)
    assert noisy.s_sd == pytest.approx(5 * math.sqrt(2))
    assert noisy.z_sd == pytest.approx(5 * 0.2)
    assert all(ledger.counts == {gaussian(5.0): 2} for ledger in ledgers)


def test_a_release_that_does_not_say_what_a_row_moves_has_one_guarantee_only():
    noisy = NoisyStatistics(
        np.array([1]), np.eye(1)[None], np.ones((1, 1)), None, 1.0, 1.0, 1.0, Guarantee(1.0, 0.1)
    )
    with pytest.raises(DpmcError, match="`extra` must have 'shift_replace', as releases of"):
        guarantees(noisy)


def test_a_nominal_epsilon_that_does_not_hold_is_not_returned():
    sigma = analytic_multiplier(1.0, 1e-5)
    assert guarantee(1 / sigma, 1e-5, "replace", "public", nominal=1.0).epsilon == 1.0
    assert guarantee(1.001 / sigma, 1e-5, "replace", "public", nominal=1.0).epsilon > 1.0009


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"epsilon": 0}, r"epsilon.*0"),
        ({"epsilon": math.inf}, r"epsilon.*inf"),
        ({"delta": 0}, r"delta.*0"),
        ({"delta": 1.5}, r"delta.*1\.5"),
        ({"x_bound": 0.0}, r"x_bound.*0\.0"),
        ({"y_bound": -1.0}, r"y_bound.*\-1\.0"),
        ({"neighbours": "substitute"}, r"neighbours.*'substitute'"),
        ({"calibration": "code"}, r"calibration.*'code'"),
        ({"split": "both"}, r"split.*'both'"),
        ({"split": "separate", "with_u": True}, r"split.*'separate'"),
        ({"bounds_source": "file"}, r"bounds_source.*'file'"),
        ({"ledgers": [Ledger()]}, "`ledgers` must be one for each of 3 nodes, got 1"),
    ],
)
def test_arguments_that_are_refused_before_any_noise_is_drawn(changed, message):
    rng = np.random.default_rng()
    before = rng.bit_generator.state
    given = {"x_bound": 1.0, "y_bound": 1.0, "epsilon": 1.0, "delta": DELTA, "rng": rng, **changed}
    with pytest.raises(DpmcError, match=message):
        release(statistics_of(), **given)
    assert rng.bit_generator.state == before
