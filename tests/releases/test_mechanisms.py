"""Densities of mechanisms: they add up to 1, and are those of the distributions of SciPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpmc import mechanisms

SUMS = np.array([[-3.0], [0.0], [7.0]])
GRID = np.arange(-400, 401.0)


def of(mechanism, values):
    """Densities of single values for each sum, shape (values, sums)."""
    return np.exp([mechanism.log_density(np.array([v]), SUMS)[:, 0] for v in values])


@pytest.mark.parametrize(
    ("mechanism", "law"),
    [
        (mechanisms.gaussian(2.5), stats.norm(0, 2.5).pdf),
        (mechanisms.laplace(2.5), stats.laplace(0, 2.5).pdf),
        (mechanisms.geometric(2.5), stats.dlaplace(1 / 2.5).pmf),
    ],
)
def test_without_a_clamp_they_are_those_of_scipy(mechanism, law) -> None:
    values = np.array([-9.0, -1.0, 0.0, 2.0, 30.0])
    expected = law(values[:, None] - SUMS[:, 0])
    np.testing.assert_allclose(of(mechanism, values), expected, rtol=1e-10)


def test_a_discrete_gaussian_is_its_weights() -> None:
    weights = np.exp(-0.5 * (GRID / 1.3) ** 2)
    found = of(mechanisms.discrete_gaussian(1.3), GRID)
    np.testing.assert_allclose(found[:, 1], weights / weights.sum(), rtol=1e-10)


@pytest.mark.parametrize("make", [mechanisms.geometric, mechanisms.discrete_gaussian])
def test_integers_between_clamps_have_a_probability_of_one(make) -> None:
    for clamp in ((-2, 5), (0, math.inf), (-math.inf, 3)):
        inside = GRID[(clamp[0] <= GRID) & (clamp[1] >= GRID)]
        found = of(make(2.5, clamp=clamp), inside)
        np.testing.assert_allclose(found.sum(axis=0), 1, rtol=1e-9)
        free = of(make(2.5), inside[(inside > clamp[0]) & (inside < clamp[1])])
        np.testing.assert_allclose(found[1 if inside[0] > -400 else 0 :][: len(free)], free)


@pytest.mark.parametrize("make", [mechanisms.gaussian, mechanisms.laplace])
def test_rounded_values_between_clamps_have_a_probability_of_one(make) -> None:
    """Ends of the clamp need not be on the grid, or are by decimal arithmetic alone."""
    for clamp, rounded, values in (
        ((0, 5), 0.5, np.arange(11) * 0.5),
        ((0.2, 4.9), 0.5, [0.2, *np.arange(1, 10) / 2, 4.9]),
        ((0.3, 0.7), 0.1, [0.3, 0.4, 0.5, 0.6, 0.7]),
    ):
        found = of(make(2.5, clamp=clamp, rounded=rounded), values)
        np.testing.assert_allclose(found.sum(axis=0), 1, rtol=1e-9)


def test_a_clamped_value_is_all_beyond_it() -> None:
    found = of(mechanisms.laplace(2.0, clamp=(0, 4)), [0.0, 4.0])
    np.testing.assert_allclose(found[0], stats.laplace(SUMS[:, 0], 2.0).cdf(0))
    np.testing.assert_allclose(found[1], stats.laplace(SUMS[:, 0], 2.0).sf(4))


def test_far_tails_keep_their_digits() -> None:
    one = mechanisms.gaussian(1.0, rounded=1.0)
    found = one.log_density(np.array([30.0]), np.array([[0.0]]))[0, 0]
    assert found == pytest.approx(stats.norm.logsf(29.5), abs=1e-6)


def test_a_wide_discrete_gaussian_goes_on_as_a_narrower_one(monkeypatch) -> None:
    wide = mechanisms.discrete_gaussian([2e4, 2e4], clamp=(-3e4, 7e5))
    values = np.array([-3e4, 12345.0])
    far = np.array([[0.0, 0.0], [2e4, -5e4]])
    found = wide.log_density(values, far), wide.variance()
    monkeypatch.setattr(mechanisms, "WIDE", 1e6)
    added_up = wide.log_density(values, far), wide.variance()
    np.testing.assert_allclose(found[0], added_up[0], rtol=1e-8)
    np.testing.assert_allclose(found[1], added_up[1], rtol=1e-12)


def test_no_scale_is_too_large() -> None:
    density = mechanisms.discrete_gaussian(1e12).log_density(np.zeros(1), np.zeros(1))
    np.testing.assert_allclose(density, -np.log(1e12 * np.sqrt(2 * np.pi)))


def test_a_scale_for_each_entry() -> None:
    value, sums = np.array([3.0, 0.0, 8.0]), np.array([[1.0, 2.0, 9.0]])
    for make in (mechanisms.laplace, mechanisms.geometric, mechanisms.discrete_gaussian):
        together = make([1.0, 2.0, 5.0], clamp=(0, 8)).log_density(value, sums)
        apart = [
            make(s, clamp=(0, 8)).log_density(value[[k]], sums[:, [k]])[0, 0]
            for k, s in enumerate((1.0, 2.0, 5.0))
        ]
        np.testing.assert_allclose(together[0], apart)


@pytest.mark.parametrize(
    ("mechanism", "law"),
    [
        (mechanisms.geometric(2.5), stats.dlaplace(1 / 2.5)),
        (mechanisms.laplace(2.5), stats.laplace(0, 2.5)),
    ],
)
def test_variances_are_those_of_scipy(mechanism, law) -> None:
    assert mechanism.variance() == pytest.approx(law.var())
