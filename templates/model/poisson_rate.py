"""Log-linear Poisson regression: counts x with rate exp(theta_1 + theta_2 t) of a covariate t.

To copy to ``src/dpmc/models/<name>.py``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmc import checks
from dpmc.types import Model


@dataclass(frozen=True)
class Params:
    """Prior of the regression.

    Parameters
    ----------
    prior_variance : float
        Of each component of theta, normal around 0.
    """

    prior_variance: float

    def __post_init__(self) -> None:
        checks.positive("prior_variance", self.prior_variance)


# What the tests of all models run it with: parameters, and a few made-up rows.
EXAMPLE = Params(prior_variance=4.0)
EXAMPLE_ROWS = [[1.0, 0.3], [0.0, -1.2], [4.0, 0.9], [2.0, 0.1]]


def log_likelihood(theta: Any, row: Any) -> float:
    """Log-likelihood of one row, up to what does not depend on theta."""
    count, t = row
    rate = theta[0] + theta[1] * t
    return count * rate - math.exp(rate)


def gradient(theta: Any, row: Any) -> tuple[float, float]:
    """Gradient of `log_likelihood` by theta."""
    count, t = row
    residual = count - math.exp(theta[0] + theta[1] * t)
    return residual, residual * t


def build(params: Params) -> Model:
    """Model of the posterior."""
    variance = params.prior_variance
    return Model(
        "poisson_rate",
        2,
        log_likelihood,
        gradient,
        log_prior=lambda theta: -0.5 * np.sum(theta**2) / variance,
        log_prior_gradient=lambda theta: -theta / variance,
    )
