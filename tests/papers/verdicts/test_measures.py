"""Measures of a sample, on numbers small enough to work out by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpmc.diagnostics.autocorrelation import geyer, sokal
from dpmc.diagnostics.convergence import bulk_ess
from dpmc.diagnostics.mmd import Reference, discrepancies
from dpmc.rng import stream
from dpmc_papers.verdicts.bootstrap import measured


def reference() -> Reference:
    """Return a sample with unequal, correlated components, the first one skewed."""
    rng = stream(41, "measures")
    z = rng.standard_normal((400, 2))
    skewed = rng.exponential(size=400)
    return Reference.of(np.column_stack([3 * skewed, 0.1 * z[:, 0] + 0.05 * skewed]))


def test_whitened_draws_are_uncorrelated_with_variance_one():
    found = reference()
    np.testing.assert_allclose(np.cov(found.white, rowvar=False), np.eye(2), atol=1e-10)
    np.testing.assert_allclose(found.draws @ found.whitener, found.white)
    # The lower factor, not transposed, leaves them correlated.
    other = found.draws @ found.whitener.T
    assert np.abs(np.cov(other, rowvar=False) - np.eye(2)).max() > 0.1


def test_draws_that_repeat_count_as_often_as_they_do():
    """Every number is the same for repeated rows and for rows with weights."""
    known, rng = reference(), stream(42, "measures")
    points, weights = known.draws[:50] + 0.3, rng.integers(1, 9, 50).astype(float)
    repeated = np.repeat(points, weights.astype(int), axis=0)
    with_weights = discrepancies(points, weights, known, stream(43, "width"))
    plain = discrepancies(repeated, np.ones(len(repeated)), known, stream(43, "width"))
    assert with_weights == pytest.approx(plain, rel=1e-9)
    assert plain["mean_error"] == pytest.approx(
        np.linalg.norm(repeated.mean(axis=0) - known.draws.mean(axis=0))
    )
    unweighted = discrepancies(points, np.ones(50), known, stream(43, "width"))
    for name, value in unweighted.items():
        assert abs(value / plain[name] - 1) > 1e-6, name


def test_the_effective_size_is_that_of_the_slowest_component():
    """A component that repeats each value ten times has a tenth of the draws or so."""
    rng = stream(44, "measures")
    fast = rng.standard_normal((2000, 4))
    slow = np.repeat(rng.standard_normal((200, 4)), 10, axis=0)
    alone = bulk_ess(slow[:, :, None])
    assert alone < 0.3 * bulk_ess(fast[:, :, None])
    for pair in ((fast, slow), (slow, fast)):
        assert bulk_ess(np.stack(pair, axis=2)) == alone


def test_sums_of_correlations_end_where_their_rule_says():
    """Geyer's at the first pair that is not positive; Sokal's at five times the sum up to it."""
    rho = np.array([1.0, 0.5, 0.2, 0.1, -0.3, -0.3, 0.2, 0.2])
    assert geyer(rho) == pytest.approx(2 * (1.5 + 0.3) - 1)
    rising = np.array([1.0, 0.1, 0.3, 0.2, 0.6, 0.3, -0.1, -0.1])
    assert geyer(rising) == pytest.approx(2 * (1.1 + 0.5 + 0.5) - 1)
    flat = np.concatenate([[1.0, 0.5], np.zeros(10), [0.4]])
    assert sokal(flat) == pytest.approx(2.0)


@pytest.mark.parametrize("number", [2, 5, 40])
def test_standard_errors_of_few_runs_are_not_too_small(number):
    """Resamples of n runs vary by a factor (n - 1) / n less than means of n new ones."""
    rows = pd.DataFrame({"replicate": range(number)})
    estimates = np.array([0.0, 1.0, 2.0, 4.0])
    found = measured("here", estimates, rows)
    plain = np.std(estimates[1:], ddof=1)
    assert (found.estimate, found.runs) == (0.0, number)
    assert found.se == pytest.approx(plain * np.sqrt(number / (number - 1)))
