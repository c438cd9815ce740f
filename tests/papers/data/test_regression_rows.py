from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dpmc.rng import stream
from dpmc_papers.data import regression_rows
from dpmc_papers.data.regression_rows import Params


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_rows_have_the_law_that_they_claim(dim):
    """Error rate 1e-6 for each of four samples: standardised, they are normal."""
    params = Params(20_000, dim, 2.0, draw=3)
    dataset = regression_rows.generate(params, stream(1, "regression", dim))
    truth = regression_rows.truth(params)
    features, target = dataset.x[:, :dim], dataset.x[:, dim]
    precision = np.linalg.inv(truth.feature_covariance)
    distance = np.einsum("ij,jk,ik->i", features, precision, features)
    residual = (target - features @ dataset.truth) / np.sqrt(2.0)
    assert stats.kstest(distance, stats.chi2(dim).cdf).pvalue > 1e-6
    assert stats.kstest(residual, "norm").pvalue > 1e-6
    white = features @ np.linalg.cholesky(precision)
    assert stats.kstest(white[:, 0], "norm").pvalue > 1e-6
    assert stats.kstest(residual * np.sign(features[:, -1]), "norm").pvalue > 1e-6


@pytest.mark.parametrize("dim", [1, 3])
def test_what_generates_the_rows_has_the_law_that_it_claims(dim):
    """Error rate 1e-6 for each of four samples.

    The inverse of Sigma_x is Wishart(d + 1, scale^-1), with chi-square diagonal entries of
    d + 1 degrees of freedom; those of Sigma_x are inverse chi-square of 2.
    """
    drawn = [regression_rows.truth(Params(1, dim, draw=k)) for k in range(2000)]
    ratios = [(t.scale / t.feature_covariance)[-1, -1] for t in drawn]
    assert stats.kstest(ratios, stats.chi2(2).cdf).pvalue > 1e-6
    inverse = [
        np.linalg.inv(t.feature_covariance)[0, 0] / np.linalg.inv(t.scale)[0, 0] for t in drawn
    ]
    assert stats.kstest(inverse, stats.chi2(dim + 1).cdf).pvalue > 1e-6
    corner = [t.scale[0, 0] for t in drawn]
    assert stats.kstest(corner, stats.chi2(dim).cdf).pvalue > 1e-6
    coefficients = np.array([t.coefficients for t in drawn]).ravel()
    assert stats.kstest(coefficients, "norm").pvalue > 1e-6


def test_size_noise_and_stream_leave_what_generates_the_rows_as_it_is():
    one, two = Params(10, 3, 1.0, draw=4), Params(500, 3, 9.0, draw=4)
    for a, b in zip(regression_rows.truth(one), regression_rows.truth(two), strict=True):
        np.testing.assert_array_equal(a, b)
    other = regression_rows.truth(Params(10, 3, draw=5))
    assert not np.allclose(other.coefficients, regression_rows.truth(one).coefficients)
    factor = other.feature_factor
    np.testing.assert_allclose(factor @ factor.T, other.feature_covariance, rtol=1e-12)


def test_bounds_are_the_largest_rows_and_said_to_be_data():
    dataset = regression_rows.generate(Params(300, 4), stream(2, "bounds"))
    assert dataset.x.shape == (300, 5)
    largest = np.linalg.norm(dataset.x[:, :4], axis=1).max()
    assert dataset.bounds["x_norm"] == pytest.approx(largest, rel=1e-14)
    assert dataset.bounds["y_abs"] == np.abs(dataset.x[:, 4]).max()
    assert dataset.facts["num_train"] == 300
    assert dataset.bounds_source == "data"
    assert all(isinstance(value, float) for value in dataset.bounds.values())
