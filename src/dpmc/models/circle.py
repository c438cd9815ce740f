"""A ring around the origin: squared distance of theta to squared radii [raisa2021thesis, 5.3].

With s = |theta|^2 and w = r^2 of a row, the log-likelihood is -scale (s - w)^2 under a
flat prior. As a density of r it would need a normalising constant that depends on theta,
which it does not have: the posterior is one of a loss, which no method here minds.

Exact draws: the log-likelihoods of n rows add up to -n scale (s - mean(w))^2 and a constant,
and an area element is half of ds times the element of the angle. So s has the distribution
N(mean(w), 1 / (2 scale T n)) truncated to s >= 0, and the angle is uniform and independent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmc.numerics.compiled import njit
from dpmc.types import Array, Dataset, DpmcError, Model


@dataclass(frozen=True)
class Params:
    """Log-likelihood -scale (theta_1^2 + theta_2^2 - r^2)^2 of a row, flat prior.

    Parameters
    ----------
    scale : float
        The constant a of the published experiments: how fast the log-likelihood falls.
    tempering : float
        Exponent of the likelihood, in (0, 1].
    """

    scale: float
    tempering: float = 1.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.scale) and self.scale > 0):
            raise DpmcError(f"`scale` must be positive and finite, got {self.scale}")


EXAMPLE = Params(scale=0.04)
EXAMPLE_ROWS = [[1.2], [1.9], [0.8], [1.5]]


# Coefficients: 2 a s, -a s^2, s, 4 a theta_1, 4 a theta_2. Feature of a row: w = r^2.
# What -a (s - w)^2 has beyond the first two, -a w^2, is free of theta.
@njit
def _log_likelihood(c: Any, y: Any) -> Any:
    return c[0] * y[0] + c[1]


@njit
def _gradient(c: Any, y: Any) -> Any:
    e = y[0] - c[2]
    return e * c[3], e * c[4]


def build(params: Params) -> Model:
    """Circle posterior, for rows of one column r.

    Examples
    --------
    >>> build(Params(scale=1e-5)).dim
    2
    """
    a, tempering = params.scale, params.tempering

    def coefficients(theta: Array) -> Array:
        s = theta[0] * theta[0] + theta[1] * theta[1]
        c = np.empty(5)
        c[0] = 2.0 * a * s
        c[1] = -a * s * s
        c[2] = s
        c[3] = 4.0 * a * theta[0]
        c[4] = 4.0 * a * theta[1]
        return c

    def log_prior(theta: Array) -> float:
        return 0.0

    def log_prior_gradient(theta: Array) -> Array:
        return np.zeros(2)

    def reference(dataset: Dataset, size: int, rng: np.random.Generator) -> Array:
        from scipy.stats import truncnorm

        mean = float(np.mean(np.square(dataset.x[:, 0])))
        sd = 1.0 / math.sqrt(2.0 * a * tempering * dataset.num_rows)
        s = truncnorm.rvs(-mean / sd, math.inf, mean, sd, size=size, random_state=rng)
        angle = rng.uniform(0.0, 2.0 * math.pi, size)
        draws: Array = np.sqrt(s)[:, None] * np.column_stack((np.cos(angle), np.sin(angle)))
        return draws

    return Model(
        name="circle",
        dim=2,
        log_likelihood=_log_likelihood,
        gradient=_gradient,
        log_prior=log_prior,
        log_prior_gradient=log_prior_gradient,
        coefficients=coefficients,
        features=lambda x: np.square(x[:, :1]).T,
        linear=True,
        affine=True,
        tempering=tempering,
        reference=reference,
    )
