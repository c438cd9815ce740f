from __future__ import annotations

import math
from dataclasses import replace

import mpmath
import numba
import numpy as np
import pytest
from scipy.stats import norm

from dpmc.ep.network import dp_sep
from dpmc.ep.network import engine as network_engine
from dpmc.ep.network import variants as network_variants
from dpmc.ep.network.engine import PriorFactors
from dpmc.ep.network.factor import rectify, tilted_gamma
from dpmc.ep.network.layout import Architecture
from dpmc.ep.network.scores import output_moments, rectified_moments, scores
from dpmc.ep.network.settings import NetworkSettings
from dpmc.ep.network.task import Task
from dpmc.numerics import simd
from dpmc.numerics.simd import load, store
from dpmc.privacy import events, schedules
from dpmc.privacy.audit import audit
from dpmc.privacy.ledger import Ledger
from dpmc.rng import stream
from dpmc.types import Budget, DpmcError
from tests.support import networks
from tests.support.ep_settings import network_settings
from tests.support.networks import Chain

# A factor is kept apart before it is included, and nothing is clipped, raised or noisy.
APART = {"precision_floor": "published", "noise_variance": 0.3}


@numba.njit
def by_eights(x, exp, log, ratio, cosine, sine):
    for k in range(0, x.size, 8):
        v = load(x, k)
        store(exp, k, simd.exponential(-1.0 * v))
        store(log, k, simd.logarithm(v))
        store(ratio, k, simd.mills(v))
        a, b = simd.circle(v * (0.5 / 700))
        store(cosine, k, a)
        store(sine, k, b)


def test_elementary_functions_are_those_of_mpmath():
    """Relative errors below 2e-15, absolute ones of the circle."""
    x = np.concatenate((np.geomspace(1e-15, 700, 120), np.linspace(0.01, 40, 80)))
    found = [np.empty(len(x)) for _ in range(5)]
    by_eights(x, *found)
    with mpmath.workdps(40):
        exact = [mpmath.mpf(v) for v in x]
        root = mpmath.sqrt(2)
        mills = [
            mpmath.sqrt(mpmath.pi / 2) * mpmath.exp(v * v / 2) * mpmath.erfc(v / root)
            for v in exact
        ]
        wanted = [mpmath.exp(-v) for v in exact], [mpmath.log(v) for v in exact], mills
        for values, right in zip(found, wanted, strict=False):
            errors = [abs(mpmath.mpf(a) / b - 1) for a, b in zip(values, right, strict=True)]
            assert max(errors) < 2e-15
        angles = [mpmath.pi * v / 700 for v in exact]
        for values, right in ((found[3], mpmath.cos), (found[4], mpmath.sin)):
            assert max(abs(a - right(b)) for a, b in zip(values, angles, strict=True)) < 2e-15


@numba.njit
def rectified_by_eights(mean, variance, out):
    for k in range(0, mean.size, 8):
        a, b, c, d, e = rectify(load(mean, k), load(variance, k))
        store(out[0], k, a)
        store(out[1], k, b)
        store(out[2], k, c)
        store(out[3], k, d)
        store(out[4], k, e)


def exact_moments(alpha):
    """Return mean and variance of max(0, N(alpha, 1)) with 80 digits."""
    with mpmath.workdps(80):
        a = mpmath.mpf(alpha)
        on = mpmath.erfc(-a / mpmath.sqrt(2)) / 2
        density = mpmath.exp(-a * a / 2) / mpmath.sqrt(2 * mpmath.pi)
        mean = a * on + density
        return mean, (a * a + 1) * on + a * density - mean**2


def test_moments_of_rectified_units_are_exact_far_into_the_tails():
    alpha = np.linspace(-30, 30, 48)
    sd = np.geomspace(0.01, 100, 48)
    out = np.empty((5, 48))
    rectified_by_eights(alpha * sd, sd**2, out)
    plain = rectified_moments(alpha * sd, sd**2)
    for k, a in enumerate(alpha):
        mean, variance = exact_moments(a)
        for found in (out[:2, k], (plain[0][k], plain[1][k])):
            assert abs(found[0] / (mean * sd[k]) - 1) < 1e-10
            assert abs(found[1] / (variance * sd[k] ** 2) - 1) < 1e-9
    on, slope, _, _ = networks.rectified_slopes(alpha * sd, sd**2)
    np.testing.assert_allclose(out[3], on, rtol=2e-13)
    np.testing.assert_allclose(out[2], 1 - on, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(out[4], slope, rtol=1e-12)


def test_units_that_are_always_off_or_on_are_finite():
    mean = np.array([-1e9, -1e4, -100.0, -40.0, 40.0, 100.0, 1e4, 1e9])
    out = np.empty((5, 8))
    rectified_by_eights(mean, np.ones(8), out)
    assert np.isfinite(out).all()
    np.testing.assert_allclose(out[0], np.maximum(mean, 0), atol=1e-200)
    np.testing.assert_allclose(out[1], mean > 0, atol=1e-200)


def recovered(chain):
    """Return the derivatives that compiled code used, from the factor that it kept."""
    mean, variance = chain.layers("mean"), chain.layers("variance")
    found = []
    for k in range(2):
        shift, precision = chain.layers("factor_shift")[k], chain.layers("factor_precision")[k]
        kappa = precision / (1 + variance[k] * precision)
        by_mean = shift * (1 - variance[k] * kappa) - mean[k] * kappa
        found.append((by_mean, (by_mean**2 - kappa) / 2))
    return (found[0][0], found[1][0]), (found[0][1], found[1][1])


@pytest.mark.parametrize(("hidden", "inputs"), [(1, 1), (7, 3), (8, 2), (12, 5)])
def test_gradients_are_finite_differences_of_the_evidence(hidden, inputs):
    params = network_settings("adf", hidden, **APART)
    x, y = networks.rows(1, inputs, seed=hidden)
    chain = Chain(params, inputs, 50, seed=inputs).move(x, y + 0.5)
    assert chain.arrays.counts[1] == 0
    mean, variance = chain.layers("mean"), chain.layers("variance")
    found = recovered(chain)
    step = 1e-3
    for weights, derivatives in ((mean, found[0]), (variance, found[1])):
        for layer in range(2):
            for place in np.ndindex(weights[layer].shape):
                weight = weights[layer][place]
                values = []
                for k in (-2, -1, 1, 2):
                    weights[layer][place] = weight + k * step
                    values.append(networks.log_evidence(mean, variance, x[0], y[0] + 0.5, 0.3))
                weights[layer][place] = weight
                slope = (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * step)
                assert abs(derivatives[layer][place] - slope) < 1e-9


@pytest.mark.parametrize(("hidden", "inputs"), [(7, 1), (50, 4), (100, 9)])
def test_a_factor_is_the_quotient_of_tilted_and_cavity(hidden, inputs):
    params = network_settings("sep", hidden, **APART)
    x, y = networks.rows(1, inputs, seed=3)
    chain = Chain(params, inputs, 30, seed=4).move(x, y)
    mean, variance = chain.layers("mean"), chain.layers("variance")
    by_mean, by_var = networks.gradients(mean, variance, x[0], y[0], 0.3)
    for k in range(2):
        new_mean, new_variance = networks.tilted(mean[k], variance[k], by_mean[k], by_var[k])
        precision = 1 / new_variance - 1 / variance[k]
        shift = new_mean / new_variance - mean[k] / variance[k]
        np.testing.assert_allclose(chain.layers("factor_precision")[k], precision, atol=1e-12)
        np.testing.assert_allclose(chain.layers("factor_shift")[k], shift, atol=1e-12)
    assert chain.arrays.counts.tolist() == [1, 0, 0, 0, 0, 0]


def test_lanes_without_a_unit_never_change():
    params = network_settings(
        "dp_sep", 5, clip="joint", clip_bound=1.0, noise_multiplier=2.0, step=0.5
    )
    x, y = networks.rows(40, 3)
    chain = Chain(params, 3, 40).move(x, y)
    empty = np.setdiff1d(np.arange(chain.layout.size), chain.layout.places())
    assert len(empty) == 14
    assert (chain.arrays.shift[empty] == 0).all()
    assert (chain.arrays.precision[empty] == 1).all()


def test_layers_are_packed_and_unpacked():
    layout = Architecture(13, 3)
    first, second = np.random.default_rng(0).standard_normal((2, 13, 4))[0], np.arange(14.0)
    flat = layout.pack(first, second, -1.0)
    assert flat.shape == (layout.size,)
    found = layout.unpack(flat)
    assert np.array_equal(found[0], first)
    assert np.array_equal(found[1], second)
    assert np.array_equal(flat[layout.places()], np.append(first.ravel(), second))
    assert len(layout.places()) == 13 * 4 + 14


def test_sep_of_endless_data_is_adf():
    x, y = networks.rows(20, 3)
    states = []
    for method, num_rows in (("adf", 20), ("sep", 10**17)):
        chain = Chain(network_settings(method, 9), 3, num_rows)
        states.append(chain.move(x, y).state())
    np.testing.assert_allclose(states[0], states[1], rtol=1e-11, atol=1e-12)
    other = Chain(network_settings("sep", 9), 3, 20).move(x, y).state()
    assert np.abs(other - states[0]).max() > 1e-3


def test_a_whole_step_of_sep_arrives_at_the_tilted_law():
    x, y = networks.rows(1, 3)
    chain = Chain(network_settings("sep", 9, noise_variance=0.3), 3, 25).move(x, y)
    mean, variance = chain.layers("mean"), chain.layers("variance")
    by_mean, by_var = networks.gradients(mean, variance, x[0], y[0], 0.3)
    for k in range(2):
        new_mean, new_variance = networks.tilted(mean[k], variance[k], by_mean[k], by_var[k])
        np.testing.assert_allclose(chain.layers("precision")[k], 1 / new_variance, rtol=1e-12)
        shift = new_mean / new_variance
        np.testing.assert_allclose(chain.layers("shift")[k], shift, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("learned", [True, False])
def test_private_sep_without_noise_and_clip_is_sep(learned):
    x, y = networks.rows(60, 4)
    law = {} if learned else {"noise_variance": 0.2}
    plain = network_settings("sep", 10, step=0.3, **law)
    private = network_settings("dp_sep", 10, step=0.3, precision_floor="none", **law)
    loose = replace(private, clip="joint", clip_bound=1e9)
    states = [Chain(params, 4, 60).move(x, y).state() for params in (plain, private, loose)]
    np.testing.assert_allclose(states[0], states[1], rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(states[0], states[2], rtol=1e-11, atol=1e-12)
    tight = Chain(replace(private, clip="joint", clip_bound=0.1), 4, 60).move(x, y).state()
    assert np.abs(tight - states[0]).max() > 1e-2


def test_sites_of_ep_add_up_to_what_q_has_gained():
    x, y = networks.rows(30, 3)
    chain = Chain(network_settings("ep", 6), 3, 30)
    before = chain.state()
    size = chain.layout.size
    chain.move(x, y).move(x, y, np.arange(30)[::-1].copy())
    a, places = chain.arrays, chain.layout.places()
    shift = a.site_shift.reshape(30, size).sum(axis=0)[places]
    precision = a.site_precision.reshape(30, size).sum(axis=0)[places]
    gained = chain.state() - before
    assert np.abs(gained).max() > 1
    np.testing.assert_allclose(gained[: len(places)], shift, atol=1e-11)
    np.testing.assert_allclose(gained[len(places) : -2], precision, atol=1e-11)
    np.testing.assert_allclose(gained[-2:], a.site_gamma.sum(axis=0), atol=1e-11)


def test_a_site_of_ep_moves_by_the_damping_towards_the_factor():
    """The second visit of a row: cavity without its site, then 0.4 of the way."""
    x, y = networks.rows(1, 2)
    chain = Chain(network_settings("ep", 4, noise_variance=0.3), 2, 1).move(x, y)
    first = [layer.copy() for layer in chain.layers("site_precision")]
    chain.move(x, y)
    mean, variance = chain.layers("mean"), chain.layers("variance")
    by_mean, by_var = networks.gradients(mean, variance, x[0], y[0], 0.3)
    for k in range(2):
        _, new_variance = networks.tilted(mean[k], variance[k], by_mean[k], by_var[k])
        factor = 1 / new_variance - 1 / variance[k]
        wanted = 0.6 * first[k] + 0.4 * factor
        np.testing.assert_allclose(chain.layers("site_precision")[k], wanted, atol=1e-12)


@pytest.mark.parametrize("method", ["sep", "dp_sep"])
def test_weights_without_a_valid_factor_are_left_alone_and_counted(method):
    x, y = networks.rows(1, 3)
    chain = Chain(network_settings(method, 6, precision_floor="none", noise_variance=0.3), 3, 10**9)
    place = chain.layout.places()[5]
    chain.arrays.precision[place] = 1e25  # the cavity has no variance to speak of
    before = chain.state()
    chain.move(x, y)
    after = chain.state()
    assert (
        dict(zip(network_engine.COUNTS, chain.arrays.counts, strict=True))["invalid_weights"] == 1
    )
    assert after[5] == pytest.approx(before[5], rel=1e-12)
    assert chain.arrays.precision[place] == 1e25
    assert np.sum(after != before) > 40


@pytest.mark.parametrize("method", ["sep", "dp_sep"])
def test_a_step_without_a_finite_prediction_changes_nothing_but_is_counted(method):
    x, y = networks.rows(1, 3)
    chain = Chain(network_settings(method, 6, precision_floor="none"), 3, 10**9)
    chain.arrays.precision[chain.layout.places()] = -1.0
    before = chain.state()
    chain.move(x, y)
    np.testing.assert_allclose(chain.state(), before, rtol=1e-12)
    counts = dict(zip(network_engine.COUNTS, chain.arrays.counts, strict=True))
    assert (counts["broken_steps"], counts["invalid_noise"]) == (1, 1)


def test_no_precision_is_left_below_the_floor():
    x, y = networks.rows(50, 3)
    params = network_settings("dp_sep", 8, clip="joint", clip_bound=1.0, noise_multiplier=3.0)
    for rule, low in (("prior", 5 / 6), ("published", 0.0), ("none", -math.inf)):
        chain = Chain(replace(params, precision_floor=rule), 3, 50, spread_out=0.0).move(x, y)
        precision = chain.arrays.precision[chain.layout.places()]
        assert precision.min() >= low
        raised = dict(zip(network_engine.COUNTS, chain.arrays.counts, strict=True))["raised"]
        assert (raised > 0) == (rule != "none")
        if rule == "published":
            assert (precision == 1e-4).any()
        if rule == "none":
            assert precision.min() < 0
        assert np.isfinite(chain.state()).all()


def test_the_learned_noise_precision_keeps_at_least_what_its_prior_has():
    x, y = networks.rows(50, 3)
    params = network_settings("dp_sep", 8, clip="joint", clip_bound=5.0, noise_multiplier=3.0)
    chain = Chain(params, 3, 50)
    seen = []
    for n in range(50):
        chain.move(x, y, [n])
        seen.append(chain.arrays.gamma.copy())
    assert (np.array(seen) >= 6.0).all()
    assert len(np.unique(np.array(seen)[:, 0])) > 10


def change_of_a_step(params, num_rows=40, seed=1):
    """Return what a step adds beyond s times the retraction, layer by layer, without noise."""
    x, y = networks.rows(1, 3, seed)
    chain = Chain(params, 3, num_rows, seed=seed)
    before = chain.state()
    chain.move(x, y + 5.0)
    prior = np.zeros_like(before)
    places = chain.layout.places()
    prior[len(places) : -2] = chain.arrays.prior[places]
    prior[-2:] = chain.settings.shape, chain.settings.rate
    step = params.step
    change = (chain.state() - before) / step + (before - prior) / num_rows
    first = chain.layout.hidden * (chain.layout.inputs + 1)
    weights = len(places)
    ends = np.cumsum([first, weights - first, first, weights - first])
    return np.split(change, ends)


@pytest.mark.parametrize("learned", [True, False])
def test_clipped_factors_have_the_norm_asked_for(learned):
    law = {} if learned else {"noise_variance": 0.2}
    whole = change_of_a_step(network_settings("sep", 9, step=0.5, **law))
    norms = np.array([np.linalg.norm(block) for block in whole])
    bound = float(np.median(norms[norms > 0]))
    joint = change_of_a_step(
        network_settings("sep", 9, step=0.5, clip="joint", clip_bound=bound, **law)
    )
    assert np.linalg.norm(np.concatenate(joint)) == pytest.approx(bound, rel=1e-9)
    for a, b in zip(joint, whole, strict=True):
        np.testing.assert_allclose(a, b * bound / np.linalg.norm(norms), atol=1e-11)
    blocks = change_of_a_step(
        network_settings("sep", 9, step=0.5, clip="per_block", clip_bound=bound, **law)
    )
    found = np.array([np.linalg.norm(block) for block in blocks])
    np.testing.assert_allclose(found, np.minimum(norms, bound), rtol=1e-9, atol=1e-11)
    assert (norms > bound).any()


def test_sensitivities_count_the_blocks():
    params = network_settings(
        "dp_sep", 5, step=0.5, clip="joint", clip_bound=3.0, noise_multiplier=2.0
    )
    assert params.sensitivity == 3.0
    assert params.noise_sd(100) == 6.0
    blocks = replace(params, clip="per_block")
    assert blocks.sensitivity == pytest.approx(3.0 * math.sqrt(5))
    assert replace(blocks, noise_variance=1.0).sensitivity == pytest.approx(6.0)
    assert replace(blocks, noise_rule="published").noise_sd(100) == pytest.approx(0.12)
    assert network_settings("sep", 5).sensitivity == math.inf


def published_update(mean, variance, prior, shape, rate):
    """Refine the prior of one weight with the formulas as printed; return all that is new."""
    cavity = 1 / variance - prior[0]
    cavity_shift = mean / variance - prior[1]
    v_c, m_c = 1 / cavity, cavity_shift / cavity
    a_c, b_c = shape - prior[2], rate + prior[3]
    v, v1, v2 = v_c + b_c / (a_c - 1), v_c + b_c / a_c, v_c + b_c / (a_c + 1)
    z, z1, z2 = (-0.5 * math.log(u) - 0.5 * m_c**2 / u for u in (v, v1, v2))
    g_m, g_v = -m_c / v, -0.5 / v + 0.5 * m_c**2 / v**2
    m_new, v_new = m_c + v_c * g_m, v_c - v_c**2 * (g_m**2 - 2 * g_v)
    a_new = 1 / (math.exp(z2 - 2 * z1 + z) * (a_c + 1) / a_c - 1)
    b_new = 1 / (math.exp(z2 - z1) * (a_c + 1) / b_c - math.exp(z1 - z) * a_c / b_c)
    factor = (1 / v_new - cavity, m_new / v_new - cavity_shift, a_new - a_c, b_c - b_new)
    return m_new, v_new, factor, a_new, b_new


def test_the_prior_is_refined_as_published():
    x, y = networks.rows(40, 3)
    chain = Chain(network_settings("sep", 6), 3, 40).move(x, y)
    arrays, places = chain.arrays, chain.layout.places()
    factors = PriorFactors(chain.layout, 6.0, 6.0)
    shape, rate = 6.0, 6.0
    prior = [(arrays.prior[k], 0.0, 0.0, 0.0) for k in places]
    for _ in range(2):
        means = arrays.shift[places] / arrays.precision[places]
        variances = 1 / arrays.precision[places]
        for j in range(len(places)):
            if 1 / variances[j] - prior[j][0] > 1e-6:
                means[j], variances[j], prior[j], shape, rate = published_update(
                    means[j], variances[j], prior[j], shape, rate
                )
        factors.refine(arrays)
        np.testing.assert_allclose(1 / arrays.precision[places], variances, rtol=1e-9)
        np.testing.assert_allclose(arrays.shift[places], means / variances, atol=1e-9)
        np.testing.assert_allclose(arrays.prior[places], [p[0] for p in prior], rtol=1e-8)
        assert np.abs([p[1] for p in prior]).max() < 1e-9
        assert factors.gamma == pytest.approx((shape, rate), rel=1e-9)
    assert abs(shape - 6.0) > 0.1


def test_factors_of_a_precision_are_those_of_the_printed_formulas():
    """With 60 digits; shapes of a million lose no more than those of six."""
    for a, b, variance, squared in (
        (6.0, 6.0, 0.3, 2.0),
        (3e3, 2e2, 0.01, 1e-4),
        (1e6, 7e5, 0.2, 9),
    ):
        with mpmath.workdps(60):
            values = [mpmath.mpf(v) for v in (a, b, variance, squared)]
            p, q, u, r = values
            z, z1, z2 = (
                -(mpmath.log(d) + r / d) / 2 for d in (u + q / (p - 1), u + q / p, u + q / (p + 1))
            )
            new_a = 1 / (mpmath.exp(z2 - 2 * z1 + z) * (p + 1) / p - 1)
            new_b = 1 / (mpmath.exp(z2 - z1) * (p + 1) / q - mpmath.exp(z1 - z) * p / q)
            wanted = float(new_a - p), float(new_b - q)
        factor_a, factor_b, valid = tilted_gamma(a, b, variance, squared)
        assert valid
        assert (factor_a, factor_b) == pytest.approx(wanted, rel=1e-13 * a, abs=1e-13 * a)
    assert not tilted_gamma(0.5, 6.0, 0.3, 2.0)[2]
    assert not tilted_gamma(6.0, math.nan, 0.3, 2.0)[2]


def test_a_fit_learns_and_predicts_with_an_honest_variance():
    x, y = networks.rows(1200, 3)
    fit = network_engine.fit(
        x[:900],
        y[:900],
        network_settings("sep", 20, 10, refine_prior=True),
        np.random.default_rng(2),
    )
    assert fit.status == "complete"
    assert (fit.num_passes, fit.counters["steps"], fit.releases) == (10, 9000, ())
    mean, variance = fit.predict(x[900:])
    assert np.sqrt(np.mean((mean - y[900:]) ** 2)) < 0.25
    total = variance + fit.noise_variance
    assert 0.25 < np.mean((mean - y[900:]) ** 2 / total) < 2
    found = scores(mean, variance, fit.noise_variance, 5 + 2 * y[900:], 5.0, 2.0)
    assert found.rmse == pytest.approx(2 * np.sqrt(np.mean((mean - y[900:]) ** 2)))
    own = -0.5 * np.log(2 * np.pi * 4 * total) - (mean - y[900:]) ** 2 / (2 * total)
    assert found.log_likelihood == pytest.approx(np.mean(own))
    shape, rate = fit.noise_gamma
    assert fit.noise_variance == pytest.approx(rate / (shape - 1))


def test_predictions_of_many_rows_are_those_of_each():
    layout = Architecture(6, 3)
    rng = np.random.default_rng(0)
    means = tuple(rng.standard_normal(shape) for shape in layout.shapes)
    variances = tuple(rng.uniform(0.1, 2, shape) for shape in layout.shapes)
    x = rng.standard_normal((5000, 3))
    mean, variance = output_moments(x, means, variances)
    for n in (0, 17, 4999):
        out, out_variance, _, _ = networks.forward(means, variances, x[n])
        assert (mean[n], variance[n]) == pytest.approx((out, out_variance), rel=1e-12)
    weights = [
        rng.normal(m, np.sqrt(v), (40_000, *m.shape)) for m, v in zip(means, variances, strict=True)
    ]
    z = np.append(x[17], 1.0)
    units = np.maximum(weights[0] @ z / 2, 0)
    units = np.column_stack((units, np.ones(40_000)))
    drawn = np.sum(units * weights[1], axis=1) / math.sqrt(7)
    # Six standard errors: an error rate below 1e-8.
    assert abs(drawn.mean() - mean[17]) < 6 * math.sqrt(variance[17] / 40_000)
    assert drawn.var() == pytest.approx(variance[17], rel=6 * math.sqrt(8 / 40_000))
    assert output_moments(x[:0], means, variances)[0].shape == (0,)


def test_published_private_runs_are_clipped_ones_with_other_permutations():
    x, y = networks.rows(50, 3)
    fits = {}
    for row in ("sep_clipped", "dp_sep"):
        for passes in (1, 2):
            params = network_variants.fixed_prior(6, passes, (20.0, 8.0))
            params = replace(params, wasted_draws=row == "dp_sep")
            fits[row, passes] = network_engine.fit(x, y, params, np.random.default_rng(3))
    one, two = (
        np.abs(fits["dp_sep", n].means[0] - fits["sep_clipped", n].means[0]).max() for n in (1, 2)
    )
    assert one == 0.0
    assert two > 1e-6
    assert all(fit.releases == () and fit.counters["clipped"] == 0 for fit in fits.values())


def test_the_first_q_of_the_published_clipped_runs_has_blocks_of_norm_one():
    params = network_variants.fixed_prior(50, 40, (550.883042, 288.7679997))
    assert params.noise_variance == pytest.approx(288.7679997 / 549.883042)
    chain = Chain(params, 11, 1439, spread_out=0.0)
    for name in ("shift", "precision", "prior"):
        for layer in chain.layers(name):
            assert np.linalg.norm(layer) == pytest.approx(1.0)
    assert chain.layers("prior")[0][0, 0] == pytest.approx(1 / math.sqrt(600))


def test_named_variants_say_what_they_are():
    intended = network_variants.intended(50, 40, (550.9, 288.8), 2.44)
    assert intended.noise_sd(1439) == pytest.approx(2 / 1439 * 2.44)
    private = network_variants.private(50, 40, 0.1, 1.5, 0.25)
    assert (private.order, private.clip, private.floor) == ("independent", "joint", "prior")
    assert private.noise_sd(1439) == pytest.approx(2 / 40 * 0.1 * 1.5)


@pytest.mark.parametrize("order", ["independent", "permutation"])
def test_noisy_runs_say_what_they_release(order):
    x, y = networks.rows(50, 3)
    params = replace(network_variants.private(6, 2, 0.1, 1.5, 0.25), order=order)
    fit = network_engine.fit(x, y, params, np.random.default_rng(3))
    if order == "independent":
        assert fit.releases == (("sampled_gaussian(1.5, batch_size=1, num_rows=50)", 100),)
    else:
        assert fit.releases == (("gaussian(1.5)", 2),)


@pytest.mark.parametrize("order", ["independent", "permutation"])
def test_noisy_steps_beyond_the_plan_are_refused_before_they_are_made(order):
    x, y = networks.rows(50, 3)
    params = replace(network_variants.private(6, 2, 0.1, 1.5, 0.25), order=order)
    schedule = schedules.Schedule(50, 2, order)
    allowed = schedules.counts(schedule, 1.5)
    made = network_engine.fit(x, y, params, np.random.default_rng(3), ledger=Ledger(allowed))
    assert events.parse(made.releases) == allowed
    with pytest.raises(DpmcError, match=r"at most (2|100) by the plan, got (3|150)"):
        network_engine.fit(
            x, y, replace(params, num_passes=3), np.random.default_rng(3), ledger=Ledger(allowed)
        )
    other = replace(params, noise_multiplier=1.4)
    with pytest.raises(DpmcError, match="plan"):
        network_engine.fit(x, y, other, np.random.default_rng(3), ledger=Ledger(allowed))


def test_the_method_keeps_what_an_independent_audit_of_its_releases_proves():
    x, y = networks.rows(200, 3)
    params = dp_sep.Params(num_passes=2)
    found = dp_sep.fit(x, y, Task("rows", 6), params, Budget(2.0, 1e-5, "rdp"), stream(5, "audit"))
    told = found.predictor.releases
    assert audit(events.parse(told), 1e-5).epsilon <= found.guarantee.epsilon <= 2.0
    # Releases with less noise are not within the budget.
    multiplier = next(iter(events.parse(told))).event.noise_multiplier
    weak = events.sampled_gaussian(0.7 * multiplier, 1, 200)
    assert audit({weak: 400}, 1e-5).epsilon > 2.0


def test_noise_of_all_steps_is_the_sum_of_what_is_left_of_each():
    params = network_variants.private(6, 3, 0.1, 1.5, 0.25, step=0.4)
    variance = 0.0
    for _ in range(3 * 20):
        variance = (1 - 0.4 / 20) ** 2 * variance + params.noise_sd(20) ** 2
    assert params.noise_of_steps(20) == pytest.approx(math.sqrt(variance), rel=1e-12)


def test_the_prior_of_the_method_goes_with_the_noise():
    """With a fiftieth of its precision the fit is far worse."""
    x, y = networks.rows(400, 3)
    errors = {}
    for scale in (0.02, 1.0):
        params = dp_sep.Params(num_passes=20, prior_scale=scale)
        found = dp_sep.fit(
            x[:300], y[:300], Task("rows", 20), params, Budget(1.0, 1e-5, "rdp"), stream(4, "prior")
        )
        mean, _ = found.predictor.predict(x[300:])
        errors[scale] = np.sqrt(np.mean((mean - y[300:]) ** 2)) / np.std(y[300:])
    assert errors[1.0] < 1.2 < 2 * errors[1.0] < errors[0.02]


def test_noise_of_the_public_code_is_worth_what_it_is():
    x, y = networks.rows(50, 3)
    params = network_variants.intended(6, 1, (20.0, 8.0), 2.0)
    fit = network_engine.fit(x, y, params, np.random.default_rng(3))
    # Four blocks and a step of 1, against one block and a step of 1 / 50.
    ((text, _),) = fit.releases
    (event,) = events.parse([(text, 1)])
    assert event.noise_multiplier == pytest.approx(2.0 / 50 / 2)


def test_runs_that_break_say_why_and_return_the_last_proper_law():
    x, y = networks.rows(40, 3)
    params = network_settings(
        *("dp_sep", 6, 3),
        clip="joint",
        clip_bound=1.0,
        noise_multiplier=10.0,
        precision_floor="none",
    )
    fit = network_engine.fit(x, y, params, np.random.default_rng(1))
    assert fit.status.startswith("stopped in pass 1: the precision of ")
    assert fit.num_passes == 0
    np.testing.assert_allclose(1 / fit.variances[0], 5 / 6)
    assert np.isfinite(fit.predict(x)[0]).all()


def test_private_runs_with_ten_times_the_noise_stay_finite():
    x, y = networks.rows(60, 3)
    for seed in range(10):
        params = network_variants.private(6, 2, 0.5, 15.0, None)
        fit = network_engine.fit(x, y, params, np.random.default_rng(seed))
        assert fit.status == "complete"
        mean, variance = fit.predict(x)
        assert np.isfinite(mean).all()
        assert (variance > 0).all()
        assert fit.noise_variance > 0


def test_the_same_generator_gives_the_same_fit():
    x, y = networks.rows(50, 3)
    params = network_variants.private(6, 2, 0.5, 1.0, None)
    one, two, other = (
        network_engine.fit(x, y, params, np.random.default_rng(s)) for s in (5, 5, 6)
    )
    assert np.array_equal(one.means[0], two.means[0])
    assert not np.array_equal(one.means[0], other.means[0])


def test_memory_of_sep_does_not_grow_with_the_rows():
    layout, rng = Architecture(50, 4), np.random.default_rng(0)
    sizes = [
        sum(
            array.nbytes
            for array in network_engine.first_arrays(layout, network_settings("sep"), n, rng)
        )
        for n in (10, 10**9)
    ]
    assert sizes[0] == sizes[1] < 200_000
    ep = sum(
        array.nbytes
        for array in network_engine.first_arrays(layout, network_settings("ep"), 1000, rng)
    )
    assert ep - sizes[0] == pytest.approx(layout.site_bytes(1000), rel=0.01)


def test_sites_that_do_not_fit_are_refused_before_they_are_made(monkeypatch):
    x, y = networks.rows(1000, 4)
    monkeypatch.setattr(network_engine, "available_bytes", lambda: 5e6)
    monkeypatch.setattr(network_engine, "first_arrays", None)
    message = r"^method 'ep' needs 0\.00502 GiB for its sites, and this machine has 0\.00466 GiB"
    with pytest.raises(DpmcError, match=message):
        network_engine.fit(x, y, network_settings("ep"), np.random.default_rng(0))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hidden": 0}, r"hidden.*\b0\b"),
        ({"sites": "none", "step": 0.5}, r"^`step` must be 1 with sites='none', got 0\.5$"),
        ({"noise_rule": "own"}, r"noise_rule.*'own'"),
        ({"precision_floor": "zero"}, r"precision_floor.*'zero'"),
        ({"noise_variance": 0.0}, r"noise_variance.*0\.0"),
    ],
)
def test_bad_settings_of_a_network_are_refused(settings, message):
    with pytest.raises(DpmcError, match=message):
        NetworkSettings(**settings)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (
            np.ones(3),
            np.ones(3),
            r"^`x` must have at least one row and one column, got shape \(3,\)$",
        ),
        (np.ones((0, 2)), np.ones(0), r"^`x` must have at least one row .*, got shape \(0, 2\)$"),
        (np.ones((3, 2)), np.ones(4), r"^`y` must have shape \(3,\), got \(4,\)$"),
    ],
)
def test_bad_rows_are_refused(x, y, message):
    with pytest.raises(DpmcError, match=message):
        network_engine.fit(x, y, network_settings("sep", 3), np.random.default_rng(0))


def test_predictions_need_the_features_of_the_fit():
    x, y = networks.rows(5, 2)
    fit = network_engine.fit(x, y, network_settings("sep", 3, 1), np.random.default_rng(0))
    with pytest.raises(DpmcError, match=r"^`x` must have shape \(m, 2\), got \(5, 1\)$"):
        fit.predict(x[:, :1])
    with pytest.raises(
        DpmcError, match=r"^`y` must have shape \(5,\) and at least one target, got shape \(4,\)$"
    ):
        scores(*fit.predict(x), fit.noise_variance, y[:4], 0.0, 1.0)


@pytest.mark.parametrize("noise", [(1.0, 2.0), (math.inf, 2.0)])
def test_constants_of_the_noise_have_to_make_a_variance(noise):
    with pytest.raises(
        DpmcError, match=r"^the shape of `noise` must be a finite number > 1, got (1\.0|inf)$"
    ):
        network_variants.fixed_prior(5, 40, noise)


def test_scores_are_those_of_normal_predictions():
    """Mean log-density of the targets on their own scale, noise of the targets included."""
    mean, variance = np.array([0.3, -1.0, 2.0]), np.array([0.4, 0.1, 1.5])
    y = np.array([5.0, 2.5, 11.0])
    found = scores(mean, variance, 0.7, y, 5.0, 2.0)
    sd = 2.0 * np.sqrt(variance + 0.7)
    assert found.log_likelihood == pytest.approx(norm.logpdf(y, 5.0 + 2.0 * mean, sd).mean())
    assert found.rmse == pytest.approx(np.sqrt(np.mean((y - 5.0 - 2.0 * mean) ** 2)))
