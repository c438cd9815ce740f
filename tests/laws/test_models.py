"""What every model must satisfy, over the whole registry."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dpmc import registry
from dpmc.posterior import Posterior
from dpmc.rng import stream
from dpmc.types import Model
from tests.conftest import banana_model, gaussian_model, rows

MODELS = {
    "gaussian_mean": lambda tempering: gaussian_model(3, tempering),
    "banana": lambda tempering: banana_model(3, tempering),
}


def test_every_registered_model_is_tested_here():
    assert set(MODELS) == set(registry.names("model"))


def log_density(posterior: Posterior, theta: np.ndarray) -> float:
    """Return the log-posterior up to a constant, from ratios to a fixed point."""
    ratio, _ = posterior.sums.ratio(np.zeros(posterior.dim), theta, np.inf)
    return posterior.tempering * ratio + posterior.log_prior(theta)


@pytest.mark.parametrize("tempering", [1.0, 0.1])
@pytest.mark.parametrize("name", MODELS)
def test_gradients_are_finite_differences(name, tempering):
    posterior = Posterior(MODELS[name](tempering), rows("laws", 50, 3))
    rng = stream(0, "differences", name)
    for _ in range(5):
        theta, h = rng.standard_normal(3), 1e-5
        total, clipped = posterior.sums.gradient(theta, np.inf)
        gradient = posterior.tempering * total + posterior.log_prior_gradient(theta)
        numeric = [
            (log_density(posterior, theta + h * e) - log_density(posterior, theta - h * e))
            / (2 * h)
            for e in np.eye(3)
        ]
        np.testing.assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-5)
        assert clipped == 0


def weights(model: Model, tempering: float) -> tuple[np.ndarray, np.ndarray]:
    """Return exact draws and their self-normalised weights under the row functions."""
    dataset = rows("laws", 50, 3)
    posterior = Posterior(model, dataset)
    draws = model.reference(dataset, 4000, stream(1, "reference", model.name))
    return draws, np.array([log_density(posterior, theta) for theta in draws])


@pytest.mark.parametrize("tempering", [1.0, 0.1])
@pytest.mark.parametrize("name", MODELS)
def test_reference_draws_have_the_density_of_the_row_functions(name, tempering):
    """Importance weights between exact draws and a Gaussian in straight coordinates are flat.

    The exact sampler claims a density; where the row functions and the prior mean the
    same, log-posterior minus log of that density is constant, to rounding.
    """
    model = MODELS[name](tempering)
    draws, logs = weights(model, tempering)
    straight = draws.copy()
    if name == "banana":
        straight[:, 1] += 1.5 * (draws[:, 0] + 0.1) ** 2 + 0.2
    dataset = rows("laws", 50, 3)
    n = tempering * dataset.num_rows
    if name == "banana":
        tau = 1 / np.array([2.0, 0.5, 1.5])
        variance = 1 / (n * tau + 1 / 3.0)
        mean, covariance = n * tau * dataset.x.mean(0) * variance, np.diag(variance)
    else:
        precision = np.linalg.inv(0.5 * np.eye(3) + 0.5)
        covariance = np.linalg.inv(n * precision + np.eye(3) / 4.0)
        mean = covariance @ (n * precision @ dataset.x.mean(0) + 0.3 / 4.0)
    claimed = stats.multivariate_normal(mean, covariance)
    difference = logs - claimed.logpdf(straight)
    assert np.ptp(difference) < 1e-8
    # Error rate 1e-6: Mahalanobis distances of the draws are chi-square with 3 degrees.
    distance = np.einsum("ij,jk,ik->i", straight - mean, np.linalg.inv(covariance), straight - mean)
    assert stats.kstest(distance, stats.chi2(3).cdf).pvalue > 1e-6
