"""Small releases and priors of private regression, shared by the tests."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from dpmc.linreg.types import NoisyStatistics, Prior
from dpmc.rng import stream
from dpmc.types import NO_GUARANTEE, Guarantee

UPPER = np.triu_indices(3)
FLAT = Prior(np.zeros(2), 4.0 * np.eye(2), 3.0, 2.0, np.eye(2), 3.0)


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


def symmetric(entries: np.ndarray) -> np.ndarray:
    out = np.empty((len(entries), 3, 3))
    out[:, UPPER[0], UPPER[1]] = out[:, UPPER[1], UPPER[0]] = entries
    return out


def noisy_statistics(num_rows=(400, 700), sd=10.0, with_u=True, name="rows"):
    """Release the statistics of simulated rows with a given noise."""
    rng = stream(27, name, len(num_rows))
    theta, stats_ = np.array([0.7, -0.4]), []
    for count in num_rows:
        x = rng.standard_normal((count, 2)) @ np.array([[1.0, 0.0], [0.4, 0.6]]).T
        w = np.column_stack([x, x @ theta + 0.8 * rng.standard_normal(count)])
        stats_.append(w.T @ w)
    noise = symmetric(sd * rng.standard_normal((len(num_rows), 6)))
    sums = np.array(stats_) + noise
    return NoisyStatistics(
        np.array(num_rows),
        sums[:, :2, :2],
        sums[:, :2, 2],
        sums[:, 2, 2] if with_u else None,
        sd,
        sd,
        sd,
        Guarantee(1.0, 1e-5),
    )
