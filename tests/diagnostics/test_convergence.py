"""Chain diagnostics against ArviZ, an independent implementation, and their hard cases."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy import stats

from dpmc.diagnostics import convergence


@pytest.fixture(scope="module")
def arviz():
    """The package, which takes a while to import: not for those who only list tests."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import arviz as package
    return package


def chains(num, count, seed):
    """Return autocorrelated chains with different means, some of them rounded: shape (k, m, 1)."""
    rng = np.random.default_rng(seed)
    factor = rng.choice([-0.9, -0.3, 0.0, 0.5, 0.95, 0.999])
    draws = rng.normal(size=(num, count, 1))
    for k in range(1, num):
        draws[k] += factor * draws[k - 1]
    draws += rng.choice([0.0, 0.5, 5.0]) * np.arange(count)[:, None]
    return np.round(draws) if seed % 3 == 0 else draws


@pytest.mark.parametrize("num", [4, 5, 6, 7, 8, 9, 11, 57, 200, 1001])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_effective_size_is_that_of_arviz(arviz, num, count):
    for seed in range(12):
        draws = chains(num, count, seed)
        if np.ptp(draws) == 0:
            continue
        expected = float(arviz.ess(draws[:, :, 0].T, method="bulk"))
        assert convergence.bulk_ess(draws) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("num", [20, 57, 1000])
def test_diagnoses_are_those_of_arviz(arviz, num):
    for seed in range(12):
        draws = chains(num, 3, seed)
        found = convergence.diagnose([draws[:, chain] for chain in range(3)])
        by_chain = draws[:, :, 0].T
        assert found == pytest.approx(
            {
                "rhat": float(arviz.rhat(by_chain)),
                "ess_bulk": float(arviz.ess(by_chain, method="bulk")),
                "ess_tail": float(arviz.ess(by_chain, method="tail")),
            },
            rel=1e-10,
        )


def kinds():
    """Yield chains of many kinds, shape (k, m), with what they are called."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=(1000, 4))
    yield "well mixed", a
    yield "a chain ten times too narrow", a * [0.1, 1, 1, 1]
    yield "two chains three times too wide", a * [3, 3, 1, 1]
    yield "a chain a deviation off", a + np.array([0, 1, 0, 0])
    yield "all widen half way", a * np.repeat([0.2, 1.0], 500)[:, None]
    yield "all drift", a + np.linspace(0, 2, 1000)[:, None]
    yield "one chain stands still", a * [0, 1, 1, 1]
    yield "heavy tails", rng.standard_cauchy((1000, 4)) + np.array([3, 0, 0, 0])
    yield "skew", np.exp(3 * a)
    yield "two values", (a > 1.5).astype(float)
    yield "two values, as often", np.tile([0.0, 1.0], 500)[:, None] * np.ones(3)
    yield "five values", np.floor(rng.uniform(0, 5, (500, 4)))
    yield "two modes", a + 20 * (rng.random((1000, 4)) < 0.5)
    yield "a chain in another mode", a + np.array([20, 0, 0, 0])
    yield "repeated draws", np.repeat(a[:100], 10, axis=0)
    yield "tiny", 1e-300 * a
    yield "huge", 1e300 * a
    yield "far from zero", 1e15 + np.round(8 * a)
    yield "two chains", a[:, :2]
    yield "many chains", rng.normal(size=(50, 40))
    for num in (4, 5, 6, 7, 8, 9, 11):
        yield f"{num} draws", a[:num]


KINDS = dict(kinds())


@pytest.mark.parametrize("kind", KINDS)
def test_rhat_is_that_of_arviz(arviz, kind):
    draws = KINDS[kind]
    expected = float(arviz.rhat(draws.T, method="rank"))
    assert convergence.split_rhat(draws[:, :, None]) == pytest.approx(expected, rel=1e-6)


def test_rhat_of_one_chain_is_that_of_its_halves(arviz):
    walk = np.cumsum(chains(1000, 1, 1), axis=0)
    halves = walk.reshape(2, 500)
    either = (halves, np.abs(halves - np.median(halves)))
    scores = [stats.norm.ppf((stats.rankdata(v, axis=None) - 3 / 8) / 1000.25) for v in either]
    expected = [float(arviz.rhat(v.reshape(2, 500), method="identity")) for v in scores]
    assert convergence.split_rhat(walk) == pytest.approx(max(expected), rel=1e-6)
    assert max(expected) > 1.05


def test_rhat_of_chains_that_stand_still():
    assert math.isnan(convergence.split_rhat(np.zeros((10, 2, 1))))
    apart = np.broadcast_to(np.arange(4.0)[None, :, None], (100, 4, 1))
    assert convergence.split_rhat(apart) == math.inf
    assert convergence.split_rhat(apart[:, :2]) == math.inf


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 0.0])
def test_a_component_without_rhat_is_not_left_out(value):
    """All of it, or, where it is not finite, one draw of it."""
    draws = np.random.default_rng(0).normal(size=(200, 3, 2))
    assert convergence.split_rhat(draws) < 1.05
    one, every = draws.copy(), draws.copy()
    one[5, 0, 1] = every[:, :, 1] = value
    assert math.isnan(convergence.split_rhat(every))
    assert math.isnan(convergence.split_rhat(one)) == (value != 0)


def test_the_worst_component_counts():
    fast, slow = chains(500, 4, 2), np.cumsum(chains(500, 4, 1), axis=0)
    both = convergence.bulk_ess(np.concatenate([fast, slow], axis=2))
    assert both == convergence.bulk_ess(slow) < convergence.bulk_ess(fast)
