"""Banana-shaped posterior from Gaussian rows [raisa2021thesis, 5.2; raisa2021dphmc, section 4].

With u(theta) = theta_2 + curvature (theta_1 - centre)^2 + shift, a row has independent
components x_1 ~ N(theta_1, v_1), x_2 ~ N(u, v_2) and x_k ~ N(theta_k, v_k). In the
coordinates (theta_1, u, theta_3, ...), whose Jacobian is one, the posterior is a
product of Gaussians [raisa2021thesis, Theorem 12].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmc.numerics.compiled import njit
from dpmc.rows import tuples
from dpmc.types import Array, Dataset, DpmcError, Model


@dataclass(frozen=True)
class Params:
    """Curvature, row variances and prior of the banana.

    Parameters
    ----------
    curvature : float
        The constant a; zero gives a Gaussian mean with diagonal covariance.
    variances : sequence of float of length d >= 2
        Variances v_k of the components of a row.
    prior_variance : float
        Variance of theta_1, u, theta_3, ... under the prior.
    shift, centre : float
        The constants b and m.
    tempering : float
        Exponent of the likelihood, in (0, 1].
    """

    curvature: float
    variances: Sequence[float]
    prior_variance: float
    shift: float = 0.0
    centre: float = 0.0
    tempering: float = 1.0

    def __post_init__(self) -> None:
        if len(self.variances) < 2 or not all(v > 0 for v in self.variances):
            raise DpmcError(
                f"`variances` must be two or more positive numbers, got {list(self.variances)}"
            )
        if not self.prior_variance > 0:
            raise DpmcError(f"`prior_variance` must be positive, got {self.prior_variance}")


EXAMPLE = Params(1.5, [2.0, 0.5, 1.5], prior_variance=3.0, shift=0.2, centre=-0.1)
EXAMPLE_ROWS = [[0.3, -1.2, 0.8], [1.4, 0.1, -0.5], [-0.7, 2.2, 0.4], [0.0, -0.3, -1.9]]


# With mu = (theta_1, u, theta_3, ...) and tau = 1/v, the coefficients are
# tau mu (d), mu (d), -sum tau mu^2 / 2, 2 a (theta_1 - m); the features are tau x.
@njit
def _log_likelihood(c: Any, y: Any) -> Any:
    return tuples.dot(tuples.tail(c, y), y) + c[2 * len(y)]


@njit
def _gradient(c: Any, y: Any) -> Any:
    e = tuples.subtract(y, c)
    return (e[0] + c[2 * len(y) + 1] * e[1],) + e[1:]  # noqa: RUF005 (Numba has no unpacking)


def build(params: Params) -> Model:
    """Banana posterior.

    Examples
    --------
    >>> model = build(Params(20.0, [20.0, 2.5], prior_variance=1000.0))
    >>> model.dim
    2
    """
    dim = len(params.variances)
    tau = 1.0 / np.asarray(params.variances, dtype=np.float64)
    a, b, m, tau0 = params.curvature, params.shift, params.centre, 1.0 / params.prior_variance
    tempering = params.tempering

    def reference(dataset: Dataset, size: int, rng: np.random.Generator) -> Array:
        weight = tempering * dataset.num_rows * tau
        variance = 1.0 / (weight + tau0)
        mu = weight * dataset.x.mean(axis=0) * variance
        draws: Array = mu + np.sqrt(variance) * rng.standard_normal((size, dim))
        draws[:, 1] -= a * (draws[:, 0] - m) ** 2 + b
        return draws

    coefficients, log_prior, log_prior_gradient = _functions(tau, a, b, m, tau0)
    return Model(
        name="banana",
        dim=dim,
        log_likelihood=_log_likelihood,
        gradient=_gradient,
        log_prior=log_prior,
        log_prior_gradient=log_prior_gradient,
        coefficients=coefficients,
        features=lambda x: tau[:, None] * x.T,
        linear=True,
        affine=True,
        tempering=tempering,
        reference=reference,
    )


def _functions(tau: Array, a: float, b: float, m: float, tau0: float) -> Any:
    """Coefficients, the log-prior and its gradient, to be compiled."""
    dim = tau.size

    def coefficients(theta: Array) -> Array:
        c = np.empty(2 * dim + 2)
        c[2 * dim] = 0.0
        for k in range(dim):
            mu = theta[k] + a * (theta[0] - m) ** 2 + b if k == 1 else theta[k]
            c[k] = tau[k] * mu
            c[dim + k] = mu
            c[2 * dim] -= 0.5 * tau[k] * mu * mu
        c[2 * dim + 1] = 2.0 * a * (theta[0] - m)
        return c

    def log_prior(theta: Array) -> float:
        u = theta[1] + a * (theta[0] - m) ** 2 + b
        rest = np.sum(theta**2) - theta[1] ** 2
        return float(-0.5 * tau0 * (rest + u * u))

    def log_prior_gradient(theta: Array) -> Array:
        u = theta[1] + a * (theta[0] - m) ** 2 + b
        gradient = -tau0 * theta
        gradient[1] = -tau0 * u
        gradient[0] -= tau0 * 2.0 * a * (theta[0] - m) * u
        return gradient

    return coefficients, log_prior, log_prior_gradient
