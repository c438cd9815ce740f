"""Chain diagnostics against ArviZ, an independent implementation, and their hard cases."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

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


def test_the_worst_component_counts():
    fast, slow = chains(500, 4, 2), np.cumsum(chains(500, 4, 1), axis=0)
    both = convergence.bulk_ess(np.concatenate([fast, slow], axis=2))
    assert both == convergence.bulk_ess(slow) < convergence.bulk_ess(fast)


def test_what_a_chain_cannot_tell():
    assert math.isnan(convergence.bulk_ess(np.zeros((3, 4, 1))))
    assert math.isnan(convergence.bulk_ess(np.full((10, 4, 1), np.inf)))
    assert math.isnan(convergence.bulk_ess(np.zeros((10, 4, 1))))
