"""What every model must satisfy, over the whole registry."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, stats

from dpmc import registry
from dpmc.mcmc.posterior import Posterior
from dpmc.models import circle, linear, logistic, mixture, poisson, student_t
from dpmc.rng import stream
from dpmc.types import Dataset, Model
from tests.support.posteriors import banana_model, gaussian_model, rows


def radii(num_rows: int) -> Dataset:
    return Dataset("radii", 1.5 + 0.5 * rows("radii", num_rows, 1).x)


def regression(module, response: np.ndarray) -> tuple[Model, Dataset]:
    """Return a regression on two features with a prior that matters, and its rows."""
    features = rows("laws", 50, 3).x[:, :2]
    data = Dataset("regression", np.column_stack([features, response]))
    return module.build(module.Params(2, prior_sd=2.0)), data


RESPONSES = {
    "linear": (linear, rows("responses", 50, 1).x[:, 0]),
    "logistic": (logistic, (rows("responses", 50, 1).x[:, 0] > 0).astype(float)),
    "poisson": (poisson, np.floor(np.exp(rows("responses", 50, 1).x[:, 0]))),
    "student_t": (student_t, 3 * rows("responses", 50, 1).x[:, 0]),
}
REGRESSIONS = {name: regression(*what) for name, what in RESPONSES.items()}


COMPONENTS = mixture.Params([[-1.0, 0.0], [1.0, 0.5], [0.0, 2.0]], 0.7, [0.5, 0.2, 0.3])
MIXTURE = mixture.build(COMPONENTS)
SAMPLE = Dataset("mixture", rows("laws", 50, 3).x[:, :2])
MODELS = {"gaussian_mean": gaussian_model, "banana": banana_model}


def ring(tempering: float = 1.0) -> Model:
    return circle.build(circle.Params(0.04, tempering))


def columns(module) -> int:
    return np.shape(module.EXAMPLE_ROWS)[1]


def log_density(posterior: Posterior, theta: np.ndarray) -> float:
    """Return the log-posterior up to a constant, from ratios to a fixed point."""
    ratio, _ = posterior.sums.ratio(np.zeros(posterior.dim), theta, np.inf)
    return posterior.tempering * ratio + posterior.log_prior(theta)


@pytest.mark.parametrize("tempering", [1.0, 0.1])
@pytest.mark.parametrize("name", registry.names("model"))
def test_gradients_are_finite_differences(name, tempering):
    module = registry.load("model", name)
    model = replace(module.build(module.EXAMPLE), tempering=tempering)
    posterior = Posterior(
        model, Dataset(name, np.resize(module.EXAMPLE_ROWS, (50, columns(module))))
    )
    dim = posterior.dim
    rng = stream(0, "differences", name)
    for _ in range(5):
        theta, h = rng.standard_normal(dim), 1e-5
        total, clipped = posterior.sums.gradient(theta, np.inf)
        gradient = posterior.tempering * total + posterior.log_prior_gradient(theta)
        numeric = [
            (log_density(posterior, theta + h * e) - log_density(posterior, theta - h * e))
            / (2 * h)
            for e in np.eye(dim)
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
    model = MODELS[name](3, tempering)
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


def circle_law(posterior: Posterior) -> tuple[np.ndarray, np.ndarray]:
    """Return radii and the probability of less, by quadrature of the row functions.

    The density of theta does not depend on its angle; a ring of radius t has length 2 pi t.
    """
    grid = np.linspace(0, 6, 4001)
    logs = np.array([log_density(posterior, np.array([t, 0.0])) for t in grid])
    density = grid * np.exp(logs - logs.max())
    below = integrate.cumulative_simpson(density, x=grid, initial=0)
    assert density[-1] < 1e-12 * density.max()
    return grid, below / below[-1]


# Of two rows the law is cut off at the origin: beyond it were 6 % of the normal law.
@pytest.mark.parametrize(("num_rows", "tempering"), [(400, 1.0), (400, 0.1), (2, 1.0)])
def test_circle_draws_are_those_of_quadrature(num_rows, tempering):
    """Error rate 2e-6 for each case: Kolmogorov-Smirnov of radius and angle."""
    model, dataset = ring(tempering), radii(num_rows)
    posterior = Posterior(model, dataset)
    grid, below = circle_law(posterior)
    draws = model.reference(dataset, 20_000, stream(2, "circle", num_rows, tempering))
    radius, angle = np.hypot(*draws.T), np.arctan2(*draws.T)
    assert stats.kstest(radius, lambda t: np.interp(t, grid, below)).pvalue > 1e-6
    assert stats.kstest(angle, stats.uniform(-np.pi, 2 * np.pi).cdf).pvalue > 1e-6
    if num_rows == 2:
        # Laws that are wrong: folded at the origin in place of cut off, and without the ring.
        mean, sd = np.mean(dataset.x**2), 1 / np.sqrt(2 * 0.04 * num_rows)
        assert stats.norm.cdf(0, mean, sd) > 0.06
        folded = np.sqrt(abs(mean + sd * stream(3, "folded").standard_normal(20_000)))
        assert stats.kstest(folded, lambda t: np.interp(t, grid, below)).pvalue < 1e-6
        flat = np.cumsum(np.gradient(below) / np.maximum(grid, grid[1]))
        assert stats.kstest(radius, lambda t: np.interp(t, grid, flat / flat[-1])).pvalue < 1e-6


def test_circle_ratios_are_those_of_its_formula():
    """Up to rounding, of the terms -a (s - w)^2 [raisa2021thesis, 5.3]."""
    posterior = Posterior(ring(), radii(50))
    theta, new = np.array([0.4, -1.1]), np.array([-0.2, 1.7])
    w = radii(50).x[:, 0] ** 2
    ratios = -0.04 * ((new @ new - w) ** 2 - (theta @ theta - w) ** 2)
    for bound in (0.05, np.inf):
        total, clipped = posterior.sums.ratio(theta, new, bound)
        assert total == pytest.approx(np.clip(ratios, -bound, bound).sum(), rel=1e-12)
        assert clipped == np.count_nonzero(abs(ratios) > bound)
    assert clipped == 0


LAWS = {
    "linear": lambda theta, x, y: stats.norm(theta[0] + x @ theta[1:3], np.exp(theta[3])).logpdf(y),
    "logistic": lambda theta, x, y: stats.bernoulli(
        1 / (1 + np.exp(-theta[0] - x @ theta[1:]))
    ).logpmf(y),
    "poisson": lambda theta, x, y: stats.poisson(np.exp(theta[0] + x @ theta[1:])).logpmf(y),
    "student_t": lambda theta, x, y: stats.t(4, theta[0] + x @ theta[1:3], np.exp(theta[3])).logpdf(
        y
    ),
}


@pytest.mark.parametrize("name", LAWS)
def test_ratios_of_regressions_are_those_of_scipy(name):
    model, data = REGRESSIONS[name]
    posterior = Posterior(model, data)
    x, y = data.x[:, :2], data.x[:, 2]
    rng = stream(4, "laws", name)
    for _ in range(3):
        old, new = 0.5 * rng.standard_normal((2, model.dim))
        expected = LAWS[name](new, x, y).sum() - LAWS[name](old, x, y).sum()
        assert posterior.sums.ratio(old, new, np.inf)[0] == pytest.approx(expected, rel=1e-9)


def test_ratios_of_a_mixture_are_those_of_scipy():
    x = SAMPLE.x
    posterior = Posterior(MIXTURE, SAMPLE)

    def log_likelihood(theta):
        parts = [
            weight * stats.multivariate_normal(mean, 0.49 * np.eye(2)).pdf(x)
            for weight, mean in zip(COMPONENTS.weights, theta.reshape(3, 2), strict=True)
        ]
        return np.log(np.sum(parts, axis=0)).sum()

    rng = stream(4, "laws", "mixture")
    for _ in range(3):
        old, new = rng.standard_normal((2, 6))
        expected = log_likelihood(new) - log_likelihood(old)
        assert posterior.sums.ratio(old, new, np.inf)[0] == pytest.approx(expected, rel=1e-9)
        assert np.isfinite(posterior.sums.ratio(old, 1e3 + new, np.inf)[0])  # far from all rows


@pytest.mark.filterwarnings("ignore::dpmc.PosteriorWarning")
def test_a_mixture_is_sampled_under_a_budget():
    """Two components four standard deviations apart: means within 6 of about 1 / sqrt(1000)."""
    import dpmc

    rng = stream(5, "laws", "mixture")
    x = np.where(rng.random((2000, 1)) < 0.5, -2.0, 2.0) + rng.standard_normal((2000, 1))
    model = mixture.build(mixture.Params([[-1.0], [1.0]]))
    fit = dpmc.fit(
        model,
        x,
        method="dp_sgld",
        epsilon=100,
        delta=1e-6,
        start=[-1.0, 1.0],
        seed=1,
        progress=False,
    )
    assert np.abs(fit.kept().mean(axis=(0, 1)) - [-2.0, 2.0]).max() < 0.2
