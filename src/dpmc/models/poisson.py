"""Poisson regression: a count has mean exp(theta @ x)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmc.numerics.compiled import njit
from dpmc.numerics.vector_math import exp
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
    """Size and prior. A row has its features first and its response, a count, last.

    Parameters
    ----------
    num_features, intercept, prior_sd, row_norm
        See :class:`dpmc.rows.regressions.RegressionParams`.
    """


EXAMPLE = Params(2, prior_sd=2.0)
EXAMPLE_ROWS = [[0.3, -1.2, 1.0], [1.4, 0.1, 3.0], [-0.7, 2.2, 0.0], [0.0, -0.3, 2.0]]


# Features of a row: the count, then those of the regression.
@njit
def _log_likelihood(theta: Any, z: Any) -> Any:
    linear = tuples.dot(theta, tuples.tail(z, (0.0,)))
    return z[0] * linear - exp(linear)


@njit
def _gradient(theta: Any, z: Any) -> Any:
    x = tuples.tail(z, (0.0,))
    return tuples.scale(z[0] - exp(tuples.dot(theta, x)), x)


@njit
def _slope(inner: Any, before: Any) -> Any:
    return before[0] - exp(inner)


def build(params: Params) -> Model:
    """Posterior of the coefficients.

    No Lipschitz constant exists: means and counts are unbounded.

    Examples
    --------
    >>> build(Params(2)).dim
    3
    """
    log_prior, log_prior_gradient = normal_prior(np.full(params.num_coefficients, params.prior_sd))
    return Model(
        name="poisson",
        dim=params.num_coefficients,
        log_likelihood=_log_likelihood,
        gradient=_gradient,
        slope=_slope,
        log_prior=log_prior,
        log_prior_gradient=log_prior_gradient,
        features=response_first(params.intercept),
        example_rows=example_rows(np.arange(48.0) % 7, params),
    )
