"""Linear regression with normal noise of unknown standard deviation sigma.

The parameter is (coefficients, log sigma): no constraint, and nothing to transform.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmc import checks
from dpmc.numerics.compiled import njit
from dpmc.rows import tuples
from dpmc.rows.regressions import (
    RegressionParams,
    example_rows,
    normal_prior,
    response_first,
)
from dpmc.types import Model


@dataclass(frozen=True)
class Params(RegressionParams):
    """Size and prior of a regression. A row has its features first and its response last.

    Parameters
    ----------
    num_features, intercept, prior_sd, row_norm
        See :class:`dpmc.rows.regressions.RegressionParams`.
    log_noise_sd : float
        Standard deviation of log sigma under its normal prior with mean 0.
    """

    log_noise_sd: float = 3.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.positive("log_noise_sd", self.log_noise_sd)


EXAMPLE = Params(2, prior_sd=2.0)
EXAMPLE_ROWS = [[0.3, -1.2, 0.8], [1.4, 0.1, -0.5], [-0.7, 2.2, 0.4], [0.0, -0.3, -1.9]]


# Features of a row: the response, then those of the regression. The last entry of theta, log
# sigma, is one too many for the product, which takes as many as there are features.
@njit
def _log_likelihood(theta: Any, z: Any) -> Any:
    x = tuples.tail(z, (0.0,))
    log_sigma = theta[len(x)]
    scaled = (z[0] - tuples.dot(x, theta)) * math.exp(-log_sigma)
    return -log_sigma - 0.5 * scaled * scaled


@njit
def _gradient(theta: Any, z: Any) -> Any:
    x = tuples.tail(z, (0.0,))
    inverse = math.exp(-theta[len(x)])
    scaled = (z[0] - tuples.dot(x, theta)) * inverse
    slopes = tuples.scale(scaled * inverse, x)
    return slopes + (scaled * scaled - 1.0,)  # noqa: RUF005 (Numba has no unpacking)


def build(params: Params) -> Model:
    """Posterior of the coefficients and of log sigma.

    Examples
    --------
    >>> build(Params(2)).dim
    4
    """
    sds = np.append(np.full(params.num_coefficients, params.prior_sd), params.log_noise_sd)
    log_prior, log_prior_gradient = normal_prior(sds)
    return Model(
        name="linear",
        dim=params.num_coefficients + 1,
        log_likelihood=_log_likelihood,
        gradient=_gradient,
        log_prior=log_prior,
        log_prior_gradient=log_prior_gradient,
        features=response_first(params.intercept),
        example_rows=example_rows(np.linspace(-2, 2, 48), params),
    )
