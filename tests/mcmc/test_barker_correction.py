from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpmc.mcmc.barker_correction import LOGISTIC_VARIANCE, Correction, correction
from dpmc.rng import stream
from dpmc.types import DpmcError
from tests.support.barker_errors import cdf_error, odds_error

# The mixture of a hundred Gaussians that the public code of DP-Barker uses at C = 2.
PUBLISHED_CDF_ERROR, PUBLISHED_ODDS_ERROR = 2.4e-3, 0.0122


def test_default_beats_the_published_mixture_on_both_counts():
    ours = correction(2.0)
    assert cdf_error(ours) < PUBLISHED_CDF_ERROR * 0.6
    assert odds_error(ours) < PUBLISHED_ODDS_ERROR * 0.6
    assert cdf_error(ours) == pytest.approx(1.35e-3, rel=0.01)
    assert odds_error(ours) == pytest.approx(6.4e-3, rel=0.01)


def test_errors_grow_with_the_noise_and_are_large_without_a_correction():
    errors = [odds_error(correction(c)) for c in (1.0, 1.5, 2.0, 3.0)]
    assert errors == sorted(errors)
    assert errors[0] < 1e-6
    assert odds_error(correction(0.25)) < 3e-6
    none = Correction(2.0, np.zeros(1), np.ones(1))
    assert odds_error(none) > 1
    assert cdf_error(none) > 0.03


def test_atoms_are_a_distribution():
    ours = correction(2.0)
    assert (ours.atoms >= 0).all()
    assert (np.diff(ours.atoms) > 0).all()
    assert (ours.weights > 0).all()
    assert ours.weights.sum() == pytest.approx(1)
    # What the variances of noise and correction add up to.
    assert 2.0 + ours.weights @ ours.atoms**2 == pytest.approx(LOGISTIC_VARIANCE, rel=0.02)


def test_tail_is_that_of_noise_plus_drawn_correction():
    """Error rate 1e-6 by a Kolmogorov-Smirnov test; without the correction it fails."""
    ours, rng = correction(2.0), stream(1, "barker", "tail")
    noise = math.sqrt(2.0) * rng.standard_normal(40_000)
    total = noise + np.array([ours.draw(rng) for _ in noise])
    assert stats.kstest(total, lambda x: 1 - ours.tail(x)).pvalue > 1e-6
    assert stats.kstest(noise, lambda x: 1 - ours.tail(x)).pvalue < 1e-6


def test_atoms_are_drawn_by_weight_with_either_sign():
    """Error rate 1e-6 by a chi-square test of all signed atoms."""
    ours, rng = correction(2.0), stream(2, "barker", "atoms")
    drawn = np.array([ours.draw(rng) for _ in range(100_000)])
    values = np.concatenate([-ours.atoms[::-1], ours.atoms])
    expected = np.concatenate([ours.weights[::-1], ours.weights]) / 2 * drawn.size
    counts = np.array([np.sum(drawn == value) for value in values])
    kept = (expected > 5) & (values != 0)
    assert kept.sum() > 4
    other = drawn.size - counts[kept].sum(), drawn.size - expected[kept].sum()
    statistic = np.sum((counts - expected)[kept] ** 2 / expected[kept])
    statistic += (other[0] - other[1]) ** 2 / max(other[1], 1.0)
    assert stats.chi2(kept.sum()).sf(statistic) > 1e-6


def test_a_correction_is_worked_out_once():
    assert correction(2.0) is correction(2.0)
    assert correction(2.0) is not correction(1.5)


@pytest.mark.parametrize("value", [0.0, -1.0, LOGISTIC_VARIANCE, 4.0, math.nan, math.inf, "2"])
def test_a_variance_without_a_correction_is_refused(value):
    with pytest.raises(
        DpmcError,
        match=r"`noise_variance` must be positive and below pi\^2/3 = 3.2899, the variance",
    ):
        correction(value)


@pytest.mark.parametrize(("noise_variance", "error"), [(1.0, 1e-6), (1.5, 1e-3), (2.0, 6.5e-3)])
def test_noise_of_that_variance_and_correction_are_logistic_together(noise_variance, error):
    """By normal tails of SciPy: the log-odds of acceptance are the log-ratio, to that error.

    Noise of 5 % more or less variance misses it by far.
    """
    ours, x = correction(noise_variance), np.linspace(0, 8, 400)

    def error_with(variance: float) -> float:
        sd = math.sqrt(variance)
        tail = sum(
            weight / 2 * (stats.norm.sf(x - atom, scale=sd) + stats.norm.sf(x + atom, scale=sd))
            for atom, weight in zip(ours.atoms, ours.weights, strict=True)
        )
        return float(np.abs(np.log1p(-tail) - np.log(tail) - x).max())

    assert error_with(noise_variance) < error
    assert error_with(1.05 * noise_variance) > 2 * error
    assert error_with(0.95 * noise_variance) > 2 * error
