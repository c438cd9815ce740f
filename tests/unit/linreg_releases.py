"""Small releases and priors of private regression, shared by the tests."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from dpmc.linreg.values import NoisyStatistics, Prior
from dpmc.types import NO_GUARANTEE


def release(
    rng: np.random.Generator,
    num_rows: tuple[int, ...],
    theta: np.ndarray,
    noise_sd: float,
    noise_variance: float = 0.1,
) -> NoisyStatistics:
    """Return the release of correlated Gaussian rows, noise on each upper entry once."""
    dim = len(theta)
    s, z = [], []
    for n in num_rows:
        x = rng.standard_normal((n, dim)) @ (0.7 * np.eye(dim) + 0.3)
        y = x @ theta + math.sqrt(noise_variance) * rng.standard_normal(n)
        s.append(x.T @ x + symmetric_noise(rng, dim, noise_sd))
        z.append(x.T @ y + noise_sd * rng.standard_normal(dim))
    sd = (noise_sd, noise_sd, 0.0)
    return NoisyStatistics(np.array(num_rows), np.array(s), np.array(z), None, *sd, NO_GUARANTEE)


def symmetric_noise(rng: np.random.Generator, dim: int, sd: float) -> np.ndarray:
    """Return a symmetric matrix with independent noise on its upper triangle."""
    upper = np.triu(sd * rng.standard_normal((dim, dim)))
    return upper + np.triu(upper, 1).T


def thesis_prior(dim: int, variance: float = 38.0) -> Prior:
    """Return the prior of the thesis with Lambda = I."""
    return Prior(np.zeros(dim), variance * np.eye(dim), 20.0, 0.5, np.eye(dim), dim + 1.0)


def dense_prior(dim: int) -> Prior:
    """Return a prior without symmetries."""
    covariance = 0.3 * np.eye(dim) + 0.2
    scale = 4.0 * np.eye(dim) + 0.7
    return Prior(np.linspace(0.5, -0.4, dim), covariance, 4.0, 3.0, scale, dim + 5.0)


def positive(rng: np.random.Generator, num: int, dim: int, dof: int = 9) -> np.ndarray:
    """Return positive definite matrices, shape (num, d, d)."""
    draws = stats.wishart(dof, np.eye(dim) + 0.3).rvs(num, random_state=rng)
    return np.reshape(draws, (num, dim, dim))
