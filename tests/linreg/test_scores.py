"""Scores against brute force and closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpmc.diagnostics import mmd
from dpmc.linreg import scores
from dpmc.rng import stream


def brute_force(x, y, kernel):
    def off_diagonal(a):
        values = [kernel(p, q) for i, p in enumerate(a) for k, q in enumerate(a) if i != k]
        return np.mean(values)

    return off_diagonal(x) + off_diagonal(y) - 2 * np.mean([kernel(p, q) for p in x for q in y])


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_both_kernels_equal_brute_force_on_samples_of_any_size(dim):
    rng = stream(41, "brute", dim)
    x, y = 0.3 * rng.standard_normal((7, dim)), 0.4 * rng.standard_normal((11, dim)) + 0.2

    def gaussian(p, q):
        return stats.multivariate_normal(p, 0.1 * np.eye(dim)).pdf(q)

    def printed(p, q):
        return math.exp(-(p @ p + q @ q) / 2) / (2 * math.pi)

    assert mmd.gaussian_mmd(x, y) == pytest.approx(brute_force(x, y, gaussian), rel=1e-11)
    assert mmd.rank_one_mmd(x, y) == pytest.approx(brute_force(x, y, printed), rel=1e-11)


def gaussian_mmd_of_normals(mean, variance, h):
    """Between N(0, 1) and N(mean, variance): the kernel is a normal density."""

    def expected(shift, total):
        return stats.norm(scale=math.sqrt(total + h)).pdf(shift)

    return expected(0, 2) + expected(0, 2 * variance) - 2 * expected(mean, 1 + variance)


def test_the_printed_kernel_cannot_tell_two_laws_apart_that_the_other_does():
    """Within five standard errors of the closed forms; N(0, 1) against N(0.831, 0.01)."""
    rng, runs = stream(42, "rank one"), 40
    values = np.array(
        [
            [mmd.rank_one_mmd(x, y), mmd.gaussian_mmd(x, y)]
            for x, y in (
                (rng.standard_normal((500, 1)), 0.831 + 0.1 * rng.standard_normal((500, 1)))
                for _ in range(runs)
            )
        ]
    )
    means = [1 / math.sqrt(2), math.exp(-(0.831**2) / (2 * 1.01)) / math.sqrt(1.01)]
    printed = (means[0] - means[1]) ** 2 / (2 * math.pi)
    assert printed < 1e-6
    expected = np.array([printed, gaussian_mmd_of_normals(0.831, 0.01, 0.1)])
    assert expected[1] > 0.1
    errors = values.std(0, ddof=1) / math.sqrt(runs)
    assert (np.abs(values.mean(0) - expected) < 5 * errors).all()
    assert (errors < [1e-3, 5e-2]).all()


def test_a_posterior_is_compared_by_all_three_kernels():
    rng = stream(43, "posterior")
    draws, reference = rng.standard_normal((100, 2)), rng.standard_normal((400, 2)) + 1.0
    row = mmd.posterior_mmd(draws, reference)
    assert row["mmd_squared"] == mmd.gaussian_mmd(draws, reference)
    assert row["mmd_squared_printed"] == mmd.rank_one_mmd(draws, reference)
    pairs = reference[:, None] - reference[None]
    distances = np.linalg.norm(pairs[np.triu_indices(400, 1)], axis=1)
    width = np.median(distances)
    expected = brute_force(
        draws[:20], reference[:30], lambda p, q: math.exp(-((p - q) @ (p - q)) / (2 * width**2))
    )
    fewer = mmd.squared_mmd(draws[:20], reference[:30], np.array([width]))[0]
    assert fewer == pytest.approx(expected, rel=1e-10)
    whole = mmd.squared_mmd(draws, reference, np.array([width]))[0]
    assert row["mmd_squared_median"] == pytest.approx(whole, rel=1e-12)


def test_predictions_of_the_mean_are_scored_on_rows():
    x, y = np.array([[1.0, 2.0], [0.0, 1.0], [3.0, 0.0]]), np.array([4.0, 1.0, 2.0])
    theta = np.array([1.0, 2.0])
    assert scores.prediction_error(theta, x, y) == pytest.approx((1 + 1 + 1) / 3)


def test_the_loss_over_draws_adds_the_spread_of_the_posterior():
    rng = stream(44, "losses")
    truth, covariance = np.array([1.0, -1.0, 0.5]), np.diag([1.0, 2.0, 3.0]) + 0.3
    draws = truth + 0.1 + 0.2 * rng.standard_normal((1000, 3))
    mean = draws.mean(0)
    errors = scores.coefficient_errors(mean, truth, covariance, draws)
    assert errors["estimation"] == pytest.approx(np.mean((mean - truth) ** 2))
    assert errors["prediction"] == pytest.approx((mean - truth) @ covariance @ (mean - truth))
    spread = np.trace(covariance @ np.cov(draws.T, ddof=0))
    assert errors["prediction_over_draws"] == pytest.approx(errors["prediction"] + spread)
    without = scores.coefficient_errors(mean, truth, covariance)
    assert math.isnan(without.pop("prediction_over_draws"))
    assert without == {name: errors[name] for name in without}
