"""Discrepancies of two samples against brute force and closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpmc.diagnostics import mmd
from dpmc.diagnostics.mmd import Reference, collapse, cross_width, squared_mmd, within_width
from tests.reference.mmd import brute_force


def squared_mmd_of_normals(mean, sd_x, sd_y, width, dim):
    """Between N(mean * 1, sd_x^2 I) and N(0, sd_y^2 I): Gaussian integrals."""

    def expected(shift, variance):
        total = width**2 + variance
        return (width**2 / total) ** (dim / 2) * math.exp(-dim * shift**2 / (2 * total))

    within = expected(0, 2 * sd_x**2) + expected(0, 2 * sd_y**2)
    return within - 2 * expected(mean, sd_x**2 + sd_y**2)


@pytest.mark.parametrize(("n", "m", "dim"), [(2, 2, 1), (65, 30, 2), (600, 1100, 3), (513, 64, 10)])
def test_blocked_sums_equal_brute_force(n, m, dim):
    rng = np.random.default_rng(n)
    x, y = rng.normal(0.4, 1.3, (n, dim)), rng.normal(size=(m, dim))
    widths = np.array([0.05, 0.7, 3.0])
    expected = [brute_force(x, y, width) for width in widths]
    np.testing.assert_allclose(squared_mmd(x, y, widths), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("rows", [1, 7, 64, 4096])
def test_block_size_does_not_matter(rows, monkeypatch):
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(300, 4)), rng.normal(size=(150, 4))
    expected = squared_mmd(x, y, np.array([1.0]))
    monkeypatch.setattr(mmd, "ROWS", rows)
    monkeypatch.setattr(mmd, "COLUMNS", 3 * rows)
    np.testing.assert_allclose(squared_mmd(x, y, np.array([1.0])), expected, rtol=0, atol=1e-13)


def test_far_away_samples_keep_their_digits():
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(50, 2)), rng.normal(size=(60, 2))
    shift = np.array([1e5, -1e5])
    near, far = squared_mmd(x, y, np.ones(1)), squared_mmd(x + shift, y + shift, np.ones(1))
    np.testing.assert_allclose(far, near, atol=1e-9)


def test_agrees_with_the_closed_form_between_normals():
    """Error rate 1e-6: the mean of 200 estimates lies within 5 of its standard errors."""
    rng = np.random.default_rng(5)
    mean, sd_x, sd_y, width, dim = 0.3, 1.2, 1.0, 1.5, 3
    estimates = [
        squared_mmd(rng.normal(mean, sd_x, (80, dim)), rng.normal(0, sd_y, (60, dim)), [width])[0]
        for _ in range(200)
    ]
    expected = squared_mmd_of_normals(mean, sd_x, sd_y, width, dim)
    error = np.std(estimates, ddof=1) / math.sqrt(200)
    assert abs(np.mean(estimates) - expected) < 5 * error
    # The plus sign that the thesis prints, or the biased estimate, would not pass.
    biased = expected + (1 - squared_mmd_of_normals(0, sd_x, 0, width, dim) / 2) / 80
    assert abs(np.mean(estimates) - biased) > 5 * error


def test_collapsed_repeats_change_nothing():
    rng = np.random.default_rng(6)
    proposals = rng.normal(size=(400, 3, 2))
    accepted = rng.random((400, 3)) < 0.2
    draws = proposals.copy()
    for i in range(1, 400):
        draws[i] = np.where(accepted[i, :, None], proposals[i], draws[i - 1])
    points, weights = collapse(draws)
    assert len(points) == accepted[1:].sum() + 3
    assert weights.sum() == 1200
    union = draws.transpose(1, 0, 2).reshape(-1, 2)
    np.testing.assert_array_equal(np.repeat(points, weights.astype(int), axis=0), union)
    y = rng.normal(size=(100, 2))
    widths = np.array([0.8])
    weighted = squared_mmd(points, y, widths, weights)
    np.testing.assert_allclose(weighted, squared_mmd(union, y, widths), rtol=1e-11)
    # Dropping the weights is another sample.
    assert abs(weighted[0] - squared_mmd(points, y, widths)[0]) > 1e-5


def test_collapse_keeps_equal_states_of_two_chains_apart():
    draws = np.zeros((5, 2, 1))
    points, weights = collapse(draws)
    np.testing.assert_array_equal(points, np.zeros((2, 1)))
    np.testing.assert_array_equal(weights, [5, 5])


def test_widths():
    rng = np.random.default_rng(7)
    y = rng.normal(size=(300, 2))
    distances = [np.linalg.norm(a - b) for i, a in enumerate(y) for b in y[:i]]
    assert within_width(y) == pytest.approx(np.median(distances), rel=1e-12)
    assert within_width(np.tile(y, (10, 1)), most=300) == pytest.approx(within_width(y), rel=0.2)
    far = np.array([[100.0, 0.0]])
    assert cross_width(y, y + far, np.random.default_rng(0)) == pytest.approx(100, abs=1)


def test_width_draws_points_in_proportion_to_their_weights():
    """Error rate below 1e-9: 500 draws, share 0.9 expected, 0.8 is over seven sd away."""
    x = np.array([[0.0], [10.0]])
    width = cross_width(x, np.zeros((1, 1)), np.random.default_rng(1), np.array([1.0, 9.0]))
    assert width == 10.0
    ends = [np.median(np.abs(x[:1])), np.median(np.abs(x[1:]))]
    assert (
        cross_width(x, np.zeros((1, 1)), np.random.default_rng(1), np.array([9.0, 1.0])) == ends[0]
    )


def test_tail_metrics_see_a_missing_and_a_heavy_tail():
    rng = np.random.default_rng(14)

    def banana(size, scale=1.0):
        first = scale * rng.normal(size=size)
        return np.column_stack([first, rng.normal(size=size) - 5 * first**2])

    reference = Reference.of(banana(2000))
    assert (reference.component, reference.sign) == (1, -1.0)
    narrow, wide = banana(4000, 0.6), banana(4000, 1.4)
    for points, low, high in ((narrow, 0.0, 0.04), (wide, 0.06, 1.0)):
        row = mmd.discrepancies(points, np.ones(4000), reference, rng)
        assert low <= row["tail_fraction"] <= high
        assert (row["variance_ratio"] < 1) == (high < 0.05)


def test_whitened_discrepancy_sees_a_wrong_small_direction():
    """The isotropic kernel hides an error along a short axis (sd 0.01 of 1)."""
    rng = np.random.default_rng(15)
    scale = np.array([1.0, 0.01])
    reference = Reference.of(rng.normal(size=(1000, 2)) * scale)
    wrong = rng.normal(size=(1000, 2)) * scale * np.array([1.0, 6.0])
    row = mmd.discrepancies(wrong, np.ones(1000), reference, rng)
    assert row["mmd_white"] > 0.3
    assert row["mmd_fixed"] < 0.1
