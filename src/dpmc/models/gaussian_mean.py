"""Mean of a Gaussian with known covariance [raisa2021dphmc, section 4; raisa2021thesis, 5.1]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmc.numerics import covariances
from dpmc.numerics.compiled import njit
from dpmc.rows import tuples
from dpmc.types import Array, Dataset, DpmcError, Model


@dataclass(frozen=True)
class Params:
    """Rows x ~ N(theta, covariance), prior theta ~ N(prior_mean, prior_variance I).

    Parameters
    ----------
    dim : int
        Dimension d.
    covariance : nested sequence of float, or ``{"seed": int}``
        Known covariance of a row, or the seed of a random one.
    prior_variance : float
        Variance of every component of the prior.
    prior_mean : float
        Mean of every component of the prior.
    tempering : float
        Exponent of the likelihood, in (0, 1].
    """

    dim: int
    covariance: Any
    prior_variance: float
    prior_mean: float = 0.0
    tempering: float = 1.0

    def __post_init__(self) -> None:
        if not self.prior_variance > 0:
            raise DpmcError(f"`prior_variance` must be positive, got {self.prior_variance}")


EXAMPLE = Params(3, [[1.0, 0.5, 0.5], [0.5, 1.0, 0.5], [0.5, 0.5, 1.0]], 4.0, 0.3)
EXAMPLE_ROWS = [[0.3, -1.2, 0.8], [1.4, 0.1, -0.5], [-0.7, 2.2, 0.4], [0.0, -0.3, -1.9]]


# Coefficients: precision @ theta (d), theta (d), -theta' precision theta / 2.
# Features of a row: precision @ x.
@njit
def _log_likelihood(c: Any, y: Any) -> Any:
    return tuples.dot(tuples.tail(c, y), y) + c[2 * len(y)]


@njit
def _gradient(c: Any, y: Any) -> Any:
    return tuples.subtract(y, c)


def build(params: Params) -> Model:
    """Posterior of the mean.

    Examples
    --------
    >>> model = build(Params(2, [[1.0, 0.0], [0.0, 1.0]], prior_variance=100.0))
    >>> model.dim
    2
    """
    sigma = covariances.resolve(params.covariance, params.dim)
    precision = np.linalg.inv(sigma)
    mean, variance, tempering = params.prior_mean, params.prior_variance, params.tempering

    def coefficients(theta: Array) -> Array:
        weighted = precision @ theta
        c = np.empty(2 * theta.size + 1)
        c[: theta.size] = weighted
        c[theta.size : 2 * theta.size] = theta
        c[2 * theta.size] = -0.5 * np.dot(weighted, theta)
        return c

    def log_prior(theta: Array) -> float:
        return -0.5 * float(np.sum((theta - mean) ** 2)) / variance

    def log_prior_gradient(theta: Array) -> Array:
        return (mean - theta) / variance

    def reference(dataset: Dataset, size: int, rng: np.random.Generator) -> Array:
        weight = tempering * dataset.num_rows
        posterior = np.linalg.inv(weight * precision + np.eye(params.dim) / variance)
        centre = posterior @ (weight * precision @ dataset.x.mean(axis=0) + mean / variance)
        draws: Array = centre + rng.standard_normal((size, params.dim)) @ (
            np.linalg.cholesky(posterior).T
        )
        return draws

    return Model(
        name="gaussian_mean",
        dim=params.dim,
        log_likelihood=_log_likelihood,
        gradient=_gradient,
        log_prior=log_prior,
        log_prior_gradient=log_prior_gradient,
        coefficients=coefficients,
        features=lambda x: precision @ x.T,
        linear=True,
        affine=True,
        tempering=tempering,
        reference=reference,
    )
