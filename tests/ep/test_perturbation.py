"""Theorem 4.1 of the paper: its bound, the corrected one, and what noise really does.

Simulated probabilities are compared with bounds at 4 standard errors (3e-5 for each pair), and
simulated means with reference values, themselves simulated, at 4 standard errors of the
difference: about 1e-3 for all tests together.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpmc.ep.perturbation.bounds import (
    corrected_bound,
    outside_bound,
    published_bound,
    second_order,
    table,
)
from dpmc.ep.perturbation.noise import Perturbation, example_covariance, simulate, simulate_natural

NUM_DRAWS = 20_000
# dim, sigma_2, tau, A; mean divergence of 200,000 draws, that of second order, P(KL >= 0.1),
# published bound times a, corrected bound times a; sigma_1 = 0.05, Sigma as in `example`.
CASES = [
    (2, 0.02, 0.7, 1.3, 0.00344, 0.00343, 0.0, 0.267, 0.168),
    (2, 0.08, 0.3, 1.6, 0.0133, 0.0121, 0.0049, 1.82, 1.37),
    (3, 0.08, 0.3, 1.6, 0.0236, 0.0213, 0.0116, 3.26, 2.35),
    (4, 0.08, 0.3, 1.6, 0.0379, 0.0336, 0.0280, 4.95, 3.39),
    (5, 0.08, 0.3, 1.6, 0.0561, 0.0490, 0.0724, 6.86, 4.61),
]


def example(dim=3, sd=0.08, low=0.3, high=1.6, mean_sd=0.05, seed=11):
    """In two dimensions along the diagonals, as the second order of the reference tells."""
    covariance = example_covariance(dim, np.random.default_rng(seed))
    if dim == 2:
        covariance = np.array([[1.1, 0.5], [0.5, 1.1]])
    return Perturbation(covariance, mean_sd, sd, low, high)


def basis(dim):
    """Return the symmetric matrices that the entries on and above the diagonal multiply."""
    found = []
    for i in range(dim):
        for j in range(i, dim):
            s = np.zeros((dim, dim))
            s[i, j] = s[j, i] = 1
            found.append(s)
    return found


def divergence(mean_q, covariance_q, mean_p, covariance_p):
    shift = mean_p - mean_q
    return 0.5 * (
        np.trace(np.linalg.solve(covariance_p, covariance_q))
        - len(shift)
        + shift @ np.linalg.solve(covariance_p, shift)
        + np.linalg.slogdet(covariance_p)[1]
        - np.linalg.slogdet(covariance_q)[1]
    )


@pytest.mark.parametrize(
    ("dim", "sd", "low", "high", "_m", "_s", "_p", "published", "corrected"), CASES
)
def test_bounds_at_reference_values(dim, sd, low, high, _m, _s, _p, published, corrected):
    """The corrected one depends on the directions of Sigma, which the reference drew."""
    p = example(dim, sd, low, high)
    assert 0.1 * published_bound(p, 0.1) == pytest.approx(published, rel=3e-3)
    outside = 1 - simulate(p, NUM_DRAWS, np.random.default_rng(1)).inside.mean()
    assert 0.1 * corrected_bound(p, 0.1, outside) == pytest.approx(corrected, rel=0.06)
    assert corrected_bound(p, 0.1, outside) < published_bound(p, 0.1)


@pytest.mark.parametrize(
    ("dim", "sd", "low", "high", "mean", "second", "probability", "_b", "_c"), CASES
)
def test_simulated_divergences_at_reference_values(
    dim, sd, low, high, mean, second, probability, _b, _c
):
    """In units of the second order, which takes most of the directions of Sigma out."""
    p = example(dim, sd, low, high)
    assert second_order(p) == pytest.approx(second, rel=0.1)
    found = simulate(p, NUM_DRAWS, np.random.default_rng(2))
    inside = found.values[found.inside] / second_order(p)
    error = 4 * inside.std() / math.sqrt(len(inside))
    assert abs(inside.mean() - mean / second) < error + 0.01
    error = 4 * math.sqrt(max(probability, 1e-4) * 1.1 / NUM_DRAWS)
    assert abs(np.mean(found.values >= 0.1) - probability) < error + 0.2 * probability


def test_small_noise_is_of_second_order():
    """And the published bound does not vanish with it."""
    p = example(4, 0.005, 0.8, 1.2, mean_sd=0.01)
    values = simulate(p, NUM_DRAWS, np.random.default_rng(3)).values
    error = 4 * values.std() / math.sqrt(NUM_DRAWS)
    assert abs(values.mean() - second_order(p)) < error + 0.01 * second_order(p)
    tiny = example(4, 1e-9, 0.8, 1.2, mean_sd=1e-9)
    left = 4 / 2 * (1 - 0.8) * (1.2 - 1) / (1.2 * 0.8)
    assert published_bound(tiny, 1.0) == pytest.approx(left, rel=1e-6)
    assert corrected_bound(tiny, 1.0) == pytest.approx(left, rel=1e-6)
    assert second_order(tiny) < 1e-16


def test_second_order_is_the_mean_over_the_basis():
    p = example(3)
    expected = sum(np.trace(np.linalg.matrix_power(p.precision @ s, 2)) for s in basis(3))
    ours = second_order(p)
    assert ours == pytest.approx(0.25 * 0.08**2 * expected + 0.5 * 0.05**2 * p.trace, rel=1e-12)


def test_matrix_variances_are_the_sums_over_the_basis():
    p = example(4, 0.2)
    plain = [p.covariance_sd * p.precision @ s for s in basis(4)]
    symmetric = [p.covariance_sd * p.inverse_root @ s @ p.inverse_root for s in basis(4)]
    assert np.linalg.norm(sum(b @ b.T for b in plain), 2) == pytest.approx(p.published_variance)
    assert np.linalg.norm(sum(b.T @ b for b in plain), 2) < p.published_variance
    assert np.linalg.norm(sum(y @ y for y in symmetric), 2) == pytest.approx(p.variance)
    assert sum(np.trace(y) ** 2 for y in symmetric) == pytest.approx(p.trace_variance)
    assert p.variance < p.published_variance


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_step_five_of_the_proof(dim):
    """With the d of the usual bound in place of d + 1 it would be violated at d = 1."""
    p = example(dim, 0.2)
    noise = np.random.default_rng(4).standard_normal((NUM_DRAWS, len(basis(dim))))
    y = p.covariance_sd * p.inverse_root @ np.tensordot(noise, basis(dim), 1) @ p.inverse_root
    below = np.maximum(0, -np.linalg.eigvalsh(y)[:, 0])
    error = 4 * below.std() / math.sqrt(NUM_DRAWS)
    assert below.mean() - error < math.sqrt(2 * p.variance * math.log(dim + 1))
    if dim == 1:
        assert below.mean() - error > math.sqrt(2 * p.variance * math.log(dim))


@pytest.mark.parametrize("sd", [0.02, 0.1, 0.2])
@pytest.mark.parametrize(("low", "high"), [(0.3, 1.6), (0.8, 1.2), (0.95, 1.02)])
def test_the_event_fails_no_more_often_than_bounded(sd, low, high):
    p = example(3, sd, low, high)
    rate = 1 - simulate(p, NUM_DRAWS, np.random.default_rng(5)).inside.mean()
    assert rate - 4 * math.sqrt(rate * (1 - rate) / NUM_DRAWS) <= outside_bound(p) <= 1


@pytest.mark.parametrize("sd", [0.02, 0.1, 0.3, 0.6])
@pytest.mark.parametrize(("low", "high"), [(0.3, 1.6), (0.9, 1.1), (0.02, 4.0)])
def test_the_corrected_bound_holds(sd, low, high):
    p = example(3, sd, low, high)
    found = table(p, [0.02, 0.1, 0.5, 2, 20, 1e4], NUM_DRAWS, np.random.default_rng(6))
    surely = found["probability"] - 4 * found["probability_se"]
    assert (surely <= found["corrected_bound"]).all()
    assert (surely <= found["simulated_bound"]).all()


def test_bounds_that_leave_the_failure_of_the_event_out_are_violated():
    """The published one, and the corrected one without the probability that the event fails."""
    p = example(3, 0.3, 0.3, 1.6)
    row = table(p, [1e3], NUM_DRAWS, np.random.default_rng(7)).iloc[0]
    surely = row["probability"] - 4 * row["probability_se"]
    assert surely > 2 * row["published_bound"]
    assert surely > 2 * corrected_bound(p, 1e3, outside=0.0)
    assert surely <= row["corrected_bound"]


def test_simulated_divergences_are_those_of_the_formula():
    p = example(3, 0.1)
    values, inside = simulate(p, 4, np.random.default_rng(8))
    rng = np.random.default_rng(8)
    shifts = 0.05 * rng.standard_normal((4, 3))
    entries = 0.1 * rng.standard_normal((4, 6))
    for value, within, shift, entry in zip(values, inside, shifts, entries, strict=True):
        noise = sum(e * s for e, s in zip(entry, basis(3), strict=True))
        expected = divergence(np.zeros(3), p.covariance, shift, p.covariance + noise)
        assert value == pytest.approx(expected, rel=1e-10)
        smallest = np.linalg.eigvals(p.precision @ noise).real.min() + 1
        assert within == (0.3 < smallest < 1.6)


def test_a_covariance_that_is_none_is_infinitely_far():
    values, inside = simulate(example(2, 3.0), 200, np.random.default_rng(9))
    assert 50 < np.isinf(values).sum() < 200
    assert not inside[np.isinf(values)].any()
    assert (values >= 0).all()


def test_noise_on_natural_parameters():
    """By inversion of the noisy precision."""
    covariance, mean, sd = example(3).covariance / 30, np.array([0.5, -1.0, 2.0]), 0.8
    values = simulate_natural(covariance, mean, sd, 5, np.random.default_rng(10))
    rng = np.random.default_rng(10)
    entries, shifts = sd * rng.standard_normal((5, 6)), sd * rng.standard_normal((5, 3))
    precision = np.linalg.inv(covariance)
    for value, entry, shift in zip(values, entries, shifts, strict=True):
        scaled = (s if np.trace(s) else s / math.sqrt(2) for s in basis(3))
        noisy = precision + sum(e * s for e, s in zip(entry, scaled, strict=True))
        moved = np.linalg.solve(noisy, precision @ mean + shift)
        expected = divergence(mean, covariance, moved, np.linalg.inv(noisy))
        assert value == pytest.approx(expected, rel=1e-8)
    # A precision far below the noise does not survive it.
    wide = simulate_natural(100 * np.eye(2), np.zeros(2), 1.0, 50, np.random.default_rng(1))
    assert np.isinf(wide).any()


def test_table_has_the_truth_beside_the_bounds():
    p = example(2)
    found = table(p, [0.02, 0.1], 500, np.random.default_rng(12))
    values = simulate(p, 500, np.random.default_rng(12)).values
    assert found["threshold"].tolist() == [0.02, 0.1]
    assert found["probability"].tolist() == [np.mean(values >= a) for a in (0.02, 0.1)]
    assert found["second_order"].tolist() == [second_order(p) / 0.02, second_order(p) / 0.1]
    assert found["published_bound"].tolist() == [published_bound(p, a) for a in (0.02, 0.1)]
