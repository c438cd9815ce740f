"""Expectation propagation on mixtures: factors, clips, repairs, methods, replayed runs."""

from __future__ import annotations

import math
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest

from dpmc.ep.mixture import published as mixture_published
from dpmc.ep.mixture.engine import fit
from dpmc.ep.mixture.factor import factor
from dpmc.ep.mixture.loops import COUNTERS, REPAIRED, MixtureLoopSettings, shared_pass
from dpmc.ep.mixture.model import MixtureModel
from dpmc.ep.mixture.published import PublishedSettings
from dpmc.ep.mixture.scores import published_scores
from dpmc.ep.mixture.states import (
    JOINT,
    NO_CLIP,
    PER_BLOCK,
    MixtureScratch,
    MixtureState,
    MixtureTarget,
    add_noise,
)
from dpmc.ep.mixture.states import clip as clip_state
from dpmc.numerics.small_matrices import raise_eigenvalues
from dpmc.privacy import events
from dpmc.privacy.clipped import asserted
from dpmc.privacy.ledger import Ledger
from dpmc.privacy.published_noise import autodp_published
from dpmc.rng import stream
from dpmc.types import DpmcError
from dpmc_papers.data import mixture_rows
from tests.support.ep_settings import mixture_settings, svec
from tests.support.printed_mixture import NUTS_MEANS, NUTS_UPPER_TRIANGLES


def definite(rng, num, dim, scale=1.0):
    roots = rng.standard_normal((num, dim, dim + 1))
    return scale * (roots @ np.swapaxes(roots, 1, 2) + 0.1 * np.eye(dim))


def a_model(num=3, dim=2, sigma_x=0.7, name="model"):
    rng = stream(41, name, num, dim)
    weights = rng.uniform(1, 3, num)
    return MixtureModel(
        weights / weights.sum(),
        sigma_x,
        rng.standard_normal((num, dim)),
        definite(rng, num, dim, 0.3),
    )


def some_rows(num_rows=40, dim=2, name="rows"):
    rng = stream(42, name, num_rows, dim)
    return 1.5 * rng.standard_normal((num_rows, dim)) + rng.integers(0, 2, (num_rows, 1))


def textbook(row, model, h, precision):
    """Return tilted means and covariances, and chances of the components, by covariances."""
    covariances = np.linalg.inv(precision)
    means = np.einsum("jik,jk->ji", covariances, h)
    eye = np.eye(model.dim)
    spread = covariances + model.sigma_x**2 * eye
    errors = row - means
    solved = np.linalg.solve(spread, errors[..., None])[..., 0]
    scores = np.log(model.weights) - np.einsum("jd,jd->j", errors, solved) / 2
    scores -= np.linalg.slogdet(spread)[1] / 2
    r = np.exp(scores - scores.max())
    r /= r.sum()
    gain = covariances @ np.linalg.inv(spread)
    u = np.einsum("jik,jk->ji", gain, errors)
    new = covariances - r[:, None, None] * gain @ covariances
    new += (r * (1 - r))[:, None, None] * u[:, :, None] * u[:, None, :]
    return means + r[:, None] * u, new, r


def prior_state(model):
    return model.prior_h(), model.prior_precision


def one_step(row, model, settings, state=None, noise=None):
    """Make one step of SEP from a state; return the state after it and the counters."""
    state = MixtureState.zeros(model.num_components, model.dim) if state is None else state
    moved = MixtureState(state.h.copy(), state.precision.copy())
    counters = np.zeros(len(COUNTERS), dtype=np.int64)
    noise = np.zeros((0, 1)) if noise is None else noise[None]
    scratch = MixtureScratch.of(model.num_components, model.dim)
    first = np.zeros(1, dtype=np.int64)
    args = (np.array([row]), first, noise, np.zeros(1), MixtureTarget.of(model), settings)
    assert shared_pass(*args, moved, counters, scratch) == 1
    return moved, counters


# --- the factor of a row


@pytest.mark.parametrize(("num", "dim"), [(1, 1), (2, 3), (4, 4), (3, 1)])
def test_a_factor_is_what_the_tilted_moments_add_to_the_cavity(num, dim):
    model = a_model(num, dim)
    for k in range(20):
        rng = stream(43, "cavity", num, dim, k)
        precision = definite(rng, num, dim)
        h = np.einsum("jik,jk->ji", precision, rng.standard_normal((num, dim)))
        row = 2 * rng.standard_normal(dim)
        found, r = factor(row, model, h, precision)
        means, covariances, expected = textbook(row, model, h, precision)
        np.testing.assert_allclose(r, expected, rtol=1e-10, atol=1e-300)
        assert r.sum() == pytest.approx(1, abs=1e-14)
        tilted = np.linalg.inv(covariances)
        np.testing.assert_allclose(precision + found.precision, tilted, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(
            h + found.h, np.einsum("jik,jk->ji", tilted, means), rtol=1e-8, atol=1e-8
        )
        np.testing.assert_array_equal(found.precision, np.swapaxes(found.precision, 1, 2))


def test_a_single_component_has_the_factor_of_a_kalman_update():
    model = a_model(1, 3)
    rng = stream(44, "kalman")
    for row in (rng.standard_normal(3), 1e4 * rng.standard_normal(3)):
        found, r = factor(row, model, *prior_state(model))
        assert r[0] == 1
        np.testing.assert_allclose(found.h[0], row / 0.49, rtol=1e-12)
        np.testing.assert_allclose(found.precision[0], np.eye(3) / 0.49, rtol=1e-12)


def test_a_factor_keeps_its_accuracy_however_small_it_is():
    """Beside a precision of about 1: the difference of two inverses would have no digit."""
    model = MixtureModel.isotropic(0.5, [[0.0], [9.0]], 2.0)
    row = np.array([-1.0])
    found, r = factor(row, model, *prior_state(model))
    with mpmath.workdps(60):
        v, s = mpmath.mpf(1) / 2, mpmath.mpf(3) / 4
        score = [mpmath.exp(-((-1 - m) ** 2) / (2 * s)) for m in (0, 9)]
        share = score[1] / (score[0] + score[1])
        u = v / s * (-1 - 9)
        variance = v - share * v * v / s + share * (1 - share) * u * u
        precision = 1 / variance - 1 / v
        h = (9 + share * u) / variance - 9 / v
    assert float(share) < 1e-25
    assert r[1] == pytest.approx(float(share), rel=1e-12)
    assert found.precision[1, 0, 0] == pytest.approx(float(precision), rel=1e-12)
    assert found.h[1, 0] == pytest.approx(float(h), rel=1e-12)


# --- clip, noise and repair


def test_the_vector_of_a_state_has_its_norm_and_noise_is_added_to_it():
    rng = stream(45, "svec")
    state = MixtureState(rng.standard_normal((3, 2)), definite(rng, 3, 2))
    before = svec(*state)
    norm = math.sqrt(np.sum(state.h**2) + np.sum(state.precision**2))
    assert np.linalg.norm(before) == pytest.approx(norm, rel=1e-14)
    noise = rng.standard_normal(before.size)
    assert noise.size == a_model(3, 2).num_coordinates == 15
    add_noise(noise, state)
    np.testing.assert_allclose(svec(*state) - before, noise, rtol=1e-13, atol=1e-13)
    np.testing.assert_array_equal(state.precision, np.swapaxes(state.precision, 1, 2))


@pytest.mark.parametrize("bound", [0.1, 3.0, 1e3])
def test_a_clip_bounds_one_vector_or_its_two_parts(bound):
    for mode in (NO_CLIP, JOINT, PER_BLOCK):
        rng = stream(46, "clip")
        state = MixtureState(5 * rng.standard_normal((3, 2)), definite(rng, 3, 2))
        old = MixtureState(state.h.copy(), state.precision.copy())
        clipped = clip_state(mode, bound, state)
        norms = {
            NO_CLIP: [],
            JOINT: [np.linalg.norm(svec(*state))],
            PER_BLOCK: [np.linalg.norm(part) for part in state],
        }[mode]
        assert all(norm <= bound * (1 + 1e-14) for norm in norms)
        assert clipped == (mode != NO_CLIP and bound < 1e3)
        if not clipped:
            np.testing.assert_array_equal(svec(*state), svec(*old))
        if mode == JOINT:  # the direction stays
            ratio = svec(*state) / svec(*old)
            np.testing.assert_allclose(ratio, ratio[0], rtol=1e-12)


def test_a_state_of_zeros_is_not_clipped():
    state = MixtureState.zeros(2, 2)
    assert not clip_state(JOINT, 1.0, state)
    assert not clip_state(PER_BLOCK, 1.0, state)
    assert not svec(*state).any()


@pytest.mark.parametrize("dim", [1, 2, 4, 7])
@pytest.mark.parametrize(("threshold", "floor"), [(0.0, 0.0), (0.0, 1e-4), (0.7, 0.7)])
def test_eigenvalues_up_to_a_threshold_are_raised_and_no_others(dim, threshold, floor):
    for k in range(10):
        rng = stream(47, "eigenvalues", dim, k)
        square = rng.standard_normal((dim, dim))
        matrix = square + square.T
        values, vectors = np.linalg.eigh(matrix)
        raised = matrix.copy()
        room = np.zeros((2, dim, dim))
        found = raise_eigenvalues(raised, threshold, floor, *room)
        assert found == (values[0] <= threshold)
        expected = (vectors * np.where(values > threshold, values, floor)) @ vectors.T
        np.testing.assert_allclose(raised, expected, atol=1e-13)
        np.testing.assert_array_equal(raised, raised.T)
        if not found:
            np.testing.assert_array_equal(raised, matrix)


# --- steps


def test_a_full_step_of_sep_puts_the_tilted_moments_in_place_of_the_state():
    model = a_model()
    rng = stream(48, "state")
    state = MixtureState(rng.standard_normal((3, 2)), definite(rng, 3, 2))
    h = model.prior_h() + 0.9 * state.h
    precision = model.prior_precision + 0.9 * state.precision
    row = np.array([0.3, -1.2])
    means, covariances, _ = textbook(row, model, h, precision)
    moved, _ = one_step(
        row, model, MixtureLoopSettings(1.0, 0.1, NO_CLIP, math.inf, True, 0.0), state
    )
    tilted = np.linalg.inv(covariances)
    np.testing.assert_allclose(model.prior_precision + moved.precision, tilted, rtol=1e-11)
    np.testing.assert_allclose(
        model.prior_h() + moved.h, np.einsum("jik,jk->ji", tilted, means), rtol=1e-10, atol=1e-12
    )


def test_adf_is_sep_of_infinitely_many_rows():
    model, row = a_model(), np.array([0.3, -1.2])
    state = MixtureState(np.ones((3, 2)), np.tile(np.eye(2), (3, 1, 1)))
    adf, _ = one_step(
        row, model, MixtureLoopSettings(1.0, 0.0, NO_CLIP, math.inf, True, 0.0), state
    )
    for num_rows, tolerance in ((1e3, 1e-2), (1e9, 1e-8)):
        sep, _ = one_step(
            row, model, MixtureLoopSettings(1.0, 1 / num_rows, NO_CLIP, math.inf, True, 0.0), state
        )
        np.testing.assert_allclose(svec(*sep), svec(*adf), rtol=tolerance, atol=tolerance)


def test_a_row_without_a_factor_changes_nothing_but_gets_its_noise():
    model = a_model()
    state = MixtureState(np.ones((3, 2)), np.tile(np.eye(2), (3, 1, 1)))
    settings = MixtureLoopSettings(0.5, 0.1, JOINT, 100.0, False, 0.0)
    row = np.array([1e200, 0.0])
    same, counters = one_step(row, model, settings, state)
    assert counters.tolist() == [0, 1, 0, 0]
    np.testing.assert_allclose(svec(*same), svec(*state), rtol=1e-15)
    noise = 0.1 * stream(49, "noise").standard_normal(model.num_coordinates)
    noisy, _ = one_step(row, model, settings, state, noise)
    np.testing.assert_allclose(svec(*noisy), svec(*state) + noise, rtol=1e-14)


def test_a_repair_keeps_every_precision_at_or_above_that_of_the_prior():
    model, rng = a_model(), stream(50, "repair")
    for floor in (0.0, 1e-4):
        settings = MixtureLoopSettings(0.5, 0.1, JOINT, 1.0, False, floor)
        for _ in range(20):
            noise = 50 * rng.standard_normal(model.num_coordinates)
            moved, counters = one_step(np.zeros(2), model, settings, noise=noise)
            assert np.linalg.eigvalsh(moved.precision).min() > floor - 1e-11
            assert counters[REPAIRED] <= 3


# --- methods on a mixture of one, where the posterior is known


@pytest.mark.parametrize("invalid", ["skip", "no_change"])
@pytest.mark.parametrize("method", ["adf", "ep"])
def test_one_pass_of_adf_and_ep_is_exact_for_one_component(method, invalid):
    model, rows = a_model(1, 3), some_rows(30, 3)
    found = fit(
        rows,
        model,
        mixture_settings(method, 1, 1.0, invalid=invalid, order="cyclic"),
        stream(0, ""),
    )
    precision = model.prior_precision[0] + 30 / 0.49 * np.eye(3)
    mean = np.linalg.solve(precision, model.prior_h()[0] + rows.sum(axis=0) / 0.49)
    np.testing.assert_allclose(found.precision[0], precision, rtol=1e-12)
    np.testing.assert_allclose(found.means[0], mean, rtol=1e-12)
    np.testing.assert_allclose(found.covariances[0], np.linalg.inv(precision), rtol=1e-12)
    assert found.counters == {"steps": 30, "skipped": 0, "invalid": 0, "clipped": 0, "repaired": 0}
    assert found.status == "complete"
    assert found.releases == ()


def test_ep_of_many_passes_stays_exact_where_adf_counts_rows_twice():
    model, rows = a_model(1, 2), some_rows(10)
    exact = model.prior_precision[0] + 10 / 0.49 * np.eye(2)
    ep = fit(
        rows, model, mixture_settings("ep", 3, 1.0, order="permutation"), stream(0, "")
    ).precision[0]
    adf = fit(
        rows, model, mixture_settings("adf", 3, 1.0, order="permutation"), stream(0, "")
    ).precision[0]
    np.testing.assert_allclose(ep, exact, rtol=1e-12)
    np.testing.assert_allclose(adf - exact, 2 * 10 / 0.49 * np.eye(2), rtol=1e-10, atol=1e-10)


def test_sep_includes_the_share_of_the_rows_that_its_step_and_passes_allow():
    """1 - (1 - s / N)^K: less than a tenth of the evidence with s = 1 / N and T = 0.1 N."""
    model, rows = a_model(1, 2), some_rows(20)
    for step, passes in ((0.05, 2), (0.5, 4), (1.0, 100)):
        share = 1 - (1 - step / 20) ** (20 * passes)
        found = fit(rows, model, mixture_settings("sep", passes, step), stream(0, "share"))
        evidence = found.precision[0] - model.prior_precision[0]
        np.testing.assert_allclose(evidence, share * 20 / 0.49 * np.eye(2), rtol=1e-10, atol=1e-12)
        debiased = fit(
            rows, model, mixture_settings("sep", passes, step, debias=True), stream(0, "share")
        )
        np.testing.assert_allclose(
            debiased.precision[0] - model.prior_precision[0], 20 / 0.49 * np.eye(2), atol=1e-9
        )


# --- settings that must not matter, and those that must


def test_a_clip_that_never_binds_and_noise_that_is_nothing_leave_sep_as_it_is():
    model, rows = a_model(), some_rows()
    plain = fit(rows, model, mixture_settings("sep", 5, 0.2), stream(1, "same"))
    wide = {"clip": "joint", "clip_bound": 1e6}
    clipped = fit(rows, model, mixture_settings("sep", 5, 0.2, **wide), stream(1, "same"))
    private = fit(
        rows,
        model,
        mixture_settings("dp_sep", 5, 0.2, noise_multiplier=1e-18, **wide),
        stream(1, "same"),
    )
    np.testing.assert_array_equal(plain.precision, clipped.precision)
    assert clipped.counters["clipped"] == 0
    np.testing.assert_allclose(plain.precision, private.precision, rtol=1e-7)
    np.testing.assert_allclose(plain.means, private.means, rtol=1e-6, atol=1e-8)


def test_clips_bound_what_rows_can_do():
    """Without noise all evidence is at most that of N factors of norm C."""
    model, rows = a_model(), some_rows()
    for clip, largest in (("joint", 1.0), ("per_block", math.sqrt(2))):
        found = fit(rows, model, mixture_settings("sep", 20, 1.0, clip, 0.1), stream(4, clip))
        evidence = found.h - model.prior_h(), found.precision - model.prior_precision
        assert np.linalg.norm(svec(*evidence)) <= 40 * 0.1 * largest * (1 + 1e-12)
        assert found.counters["clipped"] > 400


def test_a_clipped_prior_is_that_of_the_public_code():
    model = MixtureModel.isotropic(0.5, 10 * np.ones((2, 2)), 2.0)
    params = mixture_settings("sep", 1, 1e-9, "per_block", 1.0, clip_prior=True)
    found = fit(np.zeros((1, 2)), model, params, stream(5, "prior"))
    np.testing.assert_allclose(found.precision, np.tile(np.eye(2) / 2, (2, 1, 1)), atol=1e-8)
    np.testing.assert_allclose(found.h, np.full((2, 2), 0.5), atol=1e-8)


def test_steps_without_a_density_are_skipped_or_repaired():
    model = MixtureModel.isotropic(0.3, [[-3.0], [3.0]], 1.0)
    rows = np.array([[0.02], [-0.03], [0.01]])  # between both: their factors have a negative part
    skipped = fit(
        rows, model, mixture_settings("sep", 1, 1.0, invalid="skip", order="cyclic"), stream(6, "")
    )
    repaired = fit(rows, model, mixture_settings("sep", 1, 1.0, order="cyclic"), stream(6, ""))
    assert skipped.counters["skipped"] > 0 == skipped.counters["repaired"]
    assert repaired.counters["repaired"] > 0 == repaired.counters["skipped"]
    assert (repaired.precision >= 1 - 1e-12).all()


def test_a_run_that_leaves_the_finite_numbers_says_so_and_keeps_the_state_before():
    model = a_model()
    params = mixture_settings("dp_sep", 2, 0.5, "joint", 1e300, 1e150)
    with np.errstate(all="ignore"):
        found = fit(some_rows(), model, params, stream(7, "overflow"))
    assert found.status == "stopped: step 1 leaves the finite numbers"
    assert found.counters["steps"] == 0
    np.testing.assert_allclose(found.means, model.prior_means, rtol=1e-12)


# --- what a run releases


@pytest.mark.parametrize(
    ("order", "event", "count"),
    [
        ("independent", "sampled_gaussian(1.5, batch_size=1, num_rows=40)", 120),
        ("permutation", "gaussian(1.5)", 3),
        ("cyclic", "gaussian(1.5)", 3),
    ],
)
def test_a_private_run_tells_its_releases_and_their_plan_binds(order, event, count):
    params = mixture_settings("dp_sep", 3, 0.1, "joint", 1.0, 1.5, order)
    ledger = Ledger()
    ledger.release(asserted(0.0, 1.0), 1.5, np.random.default_rng())
    found = fit(some_rows(), a_model(), params, stream(8, order), ledger=ledger)
    assert found.releases == ((event, count),)

    plan = SimpleNamespace(counts=events.parse([(event, count - 1)]))
    with pytest.raises(DpmcError, match=f"at most {count - 1} by the plan, got {count}"):
        fit(some_rows(), a_model(), params, stream(8, order), ledger=Ledger(plan))


def test_the_sensitivity_of_two_clipped_parts_is_that_of_both():
    one = mixture_settings("dp_sep", 1, 0.1, "joint", 3.0, 1.0).sensitivity
    assert one == pytest.approx(0.6)
    assert mixture_settings("dp_sep", 1, 0.1, "per_block", 3.0, 1.0).sensitivity == one * math.sqrt(
        2
    )
    assert mixture_settings("sep", 1, 0.1).sensitivity == math.inf


# --- the public code, normal by normal


def published(model, h_multiplier, precision_multiplier, seed=0, passes=100):
    params = PublishedSettings(passes, 1e-3, 1.0, h_multiplier, precision_multiplier)
    made = mixture_rows.parts(
        mixture_rows.generate(mixture_rows.Params(source="authors"), stream(0, "unused"))
    )
    rng = mixture_published.legacy_stream(model, seed)
    return mixture_published.fit(made.rows, model, params, rng), rng


def test_a_row_of_table_1_is_reproduced_to_the_digits():
    """DP-SEP at epsilon = 50 [vinaroz2022dpsep, table 1]."""
    model = MixtureModel.isotropic(0.5, mixture_rows.prior_means(), 0.1)
    found, _ = published(model, 0.449414, 0.631581)
    truth = np.array(NUTS_MEANS), symmetric(NUTS_UPPER_TRIANGLES)
    scores = published_scores(truth, (found.means, found.covariances))
    assert scores["f"] == pytest.approx(0.5650, abs=5e-5)
    assert scores["kl_proxy"] == pytest.approx(516.87, abs=0.01)
    assert found.releases == (("gaussian(0.449414)", 100), ("gaussian(0.631581)", 100))
    assert found.counters["skipped"] > 0


@pytest.mark.parametrize(
    ("epsilon", "f", "kl_proxy"), [(5, 1.4873, 909.0191), (5.5, 1.6237, 955.0533)]
)
def test_the_row_of_epsilon_5_was_run_at_5_5(epsilon, f, kl_proxy):
    """Table 1 prints 1.6237 and 955.0533, cut off after four digits."""
    model = MixtureModel.isotropic(0.5, mixture_rows.prior_means(), 0.1)
    multipliers = [
        autodp_published(share * epsilon, share * 1e-5, 1000, 100_000) for share in (0.8, 0.2)
    ]
    found, _ = published(model, *multipliers)
    truth = np.array(NUTS_MEANS), symmetric(NUTS_UPPER_TRIANGLES)
    scores = published_scores(truth, (found.means, found.covariances))
    assert math.floor(scores["f"] * 1e4) == round(f * 1e4)
    assert math.floor(scores["kl_proxy"] * 1e4) == round(kl_proxy * 1e4)


def symmetric(upper):
    out, at = np.zeros((4, 4, 4)), np.triu_indices(4)
    out[:, at[0], at[1]] = out[:, at[1], at[0]] = upper
    return out


# --- predictions


# --- errors


@pytest.mark.parametrize("step", [0.5, 1.0])
def test_damped_sites_reach_the_posterior_and_stay_there(step):
    """Each site moves by `step` of the way: after k passes 1 - (1 - step)^k of it is there."""
    model, rows = a_model(1, 2), some_rows(10)
    exact = 10 / 0.49 * np.eye(2)
    for passes in (1, 2, 40):
        found = fit(
            rows, model, mixture_settings("ep", passes, step, order="cyclic"), stream(0, "")
        )
        gained = found.precision[0] - model.prior_precision[0]
        share = 1 - math.pow(1 - step, passes)
        np.testing.assert_allclose(gained, share * exact, rtol=1e-9, atol=1e-9)
