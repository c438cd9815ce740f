"""Logistic regression: the probability of a response of 1 is 1 / (1 + exp(-theta @ x))."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmc.numerics.compiled import njit
from dpmc.numerics.vector_math import exp, log1p
from dpmc.rows import tuples
from dpmc.rows.regressions import RegressionParams, design, example_rows, normal_prior
from dpmc.types import Array, Model


@dataclass(frozen=True)
class Params(RegressionParams):
    """Size and prior. A row has its features first and its response, 0 or 1, last.

    Parameters
    ----------
    num_features, intercept, prior_sd, row_norm
        See :class:`dpmc.rows.regressions.RegressionParams`.
    """


EXAMPLE = Params(2, prior_sd=2.0)
EXAMPLE_ROWS = [[0.3, -1.2, 1.0], [1.4, 0.1, 0.0], [-0.7, 2.2, 0.0], [0.0, -0.3, 1.0]]


# The features of a row are those of the regression, times -1 for a response of 0.
@njit
def _log_likelihood(theta: Any, z: Any) -> Any:
    margin = tuples.dot(theta, z)
    return min(margin, 0.0) - log1p(exp(-abs(margin)))


@njit
def _gradient(theta: Any, z: Any) -> Any:
    return tuples.scale(1.0 / (1.0 + exp(tuples.dot(theta, z))), z)


@njit
def _slope(inner: Any, before: Any) -> Any:
    return 1.0 / (1.0 + exp(inner))


def build(params: Params) -> Model:
    """Posterior of the coefficients; responses are 0 and 1.

    The gradient of a row is no longer than its features, so that `row_norm` is the Lipschitz
    constant. A response that is neither 0 nor 1 counts as nothing.

    Examples
    --------
    >>> build(Params(3, row_norm=2.0)).dim
    4
    """
    log_prior, log_prior_gradient = normal_prior(np.full(params.num_coefficients, params.prior_sd))
    return Model(
        name="logistic",
        dim=params.num_coefficients,
        log_likelihood=_log_likelihood,
        gradient=_gradient,
        slope=_slope,
        log_prior=log_prior,
        log_prior_gradient=log_prior_gradient,
        features=_signed(params.intercept),
        lipschitz=params.row_norm,
        example_rows=example_rows(np.arange(48.0) % 2, params),
    )


def _signed(intercept: bool) -> Callable[[Array], Array]:
    def features(x: Array) -> Array:
        response = x[:, -1]
        sign = np.where(response == 1, 1.0, np.where(response == 0, -1.0, np.nan))
        return design(x, intercept, sign)

    return features
