"""Regression with Student-t noise of unknown scale: few rows far off do not move it much.

The parameter is (coefficients, log scale). Without features it is a robust location.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmc import checks
from dpmc.numerics.compiled import njit
from dpmc.numerics.vector_math import log1p
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
    degrees_of_freedom : float
        Of the noise.
    log_scale_sd : float
        Standard deviation of the log scale under its normal prior with mean 0.
    """

    degrees_of_freedom: float = 4.0
    log_scale_sd: float = 3.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.positive("degrees_of_freedom", self.degrees_of_freedom)
        checks.positive("log_scale_sd", self.log_scale_sd)


EXAMPLE = Params(2, prior_sd=2.0)
EXAMPLE_ROWS = [[0.3, -1.2, 0.8], [1.4, 0.1, -5.5], [-0.7, 2.2, 0.4], [0.0, -0.3, -1.9]]


@functools.cache
def _row_functions(freedom: float) -> tuple[Callable[..., Any], Callable[..., Any]]:
    # Features of a row: the response, then those of the regression.
    @njit
    def log_likelihood(theta: Any, z: Any) -> Any:
        x = tuples.tail(z, (0.0,))
        log_scale = theta[len(x)]
        scaled = (z[0] - tuples.dot(x, theta)) * math.exp(-log_scale)
        return -log_scale - 0.5 * (freedom + 1.0) * log1p(scaled * scaled / freedom)

    @njit
    def gradient(theta: Any, z: Any) -> Any:
        x = tuples.tail(z, (0.0,))
        inverse = math.exp(-theta[len(x)])
        scaled = (z[0] - tuples.dot(x, theta)) * inverse
        weight = (freedom + 1.0) / (freedom + scaled * scaled)
        slopes = tuples.scale(weight * scaled * inverse, x)
        return slopes + (weight * scaled * scaled - 1.0,)  # noqa: RUF005 (Numba has no unpacking)

    return log_likelihood, gradient


def build(params: Params) -> Model:
    """Posterior of the coefficients and of the log scale.

    Examples
    --------
    >>> build(Params(0)).dim
    2
    """
    log_likelihood, gradient = _row_functions(float(params.degrees_of_freedom))
    sds = np.append(np.full(params.num_coefficients, params.prior_sd), params.log_scale_sd)
    log_prior, log_prior_gradient = normal_prior(sds)
    return Model(
        name="student_t",
        dim=params.num_coefficients + 1,
        log_likelihood=log_likelihood,
        gradient=gradient,
        log_prior=log_prior,
        log_prior_gradient=log_prior_gradient,
        features=response_first(params.intercept),
        example_rows=example_rows(np.linspace(-4, 4, 48), params),
    )
