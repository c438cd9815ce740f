"""Parts of regression models: rows of features and a response, and a normal prior."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpmc import checks
from dpmc.types import Array, DpmcError


@dataclass(frozen=True)
class RegressionParams:
    """Size and prior of a regression. A row has its features first and its response last.

    Parameters
    ----------
    num_features : int
        Columns before the response; with an intercept there may be none.
    intercept : bool
        Whether a constant is put before the features: coefficient 0.
    prior_sd : float
        Standard deviation of each coefficient under its normal prior with mean 0.
    row_norm : float, optional
        A public bound on the Euclidean norm of the features of a row, the constant included.
    """

    num_features: int
    intercept: bool = True
    prior_sd: float = 10.0
    row_norm: float | None = None

    def __post_init__(self) -> None:
        checks.at_least("num_features", self.num_features, 0 if self.intercept else 1)
        checks.positive("prior_sd", self.prior_sd)
        checks.positive("row_norm", self.row_norm, optional=True)
        if self.row_norm is not None and self.row_norm < self.intercept:
            raise DpmcError(
                "`row_norm` must be at least 1 where a constant is among the features, got "
                f"{self.row_norm!r}"
            )

    @property
    def num_coefficients(self) -> int:
        """Coefficients, that of the constant among them."""
        return self.num_features + self.intercept


def design(x: Array, intercept: bool, weights: Array | float = 1.0) -> Array:
    """Features of rows, shape (k, m), below a constant if there is one.

    Parameters
    ----------
    x : ndarray of shape (m, p)
        Features, and a response behind them.
    intercept : bool
    weights : float or ndarray of shape (m,)
        What the features of each row, the constant among them, are multiplied by.
    """
    return _write_design(np.empty((x.shape[1] - 1 + intercept, len(x))), x, weights)


def _write_design(out: Array, x: Array, weights: Array | float) -> Array:
    constant = len(out) - x.shape[1] + 1
    out[:constant] = weights
    np.multiply(x[:, :-1].T, weights, out=out[constant:], dtype=np.float64)
    return out


def response_first(intercept: bool) -> Callable[[Array], Array]:
    """Function that puts the response first, a constant second, then the features."""

    def features(x: Array) -> Array:
        out = np.empty((x.shape[1] + intercept, len(x)))
        out[0] = x[:, -1]
        _write_design(out[1:], x, 1.0)
        return out

    return features


def normal_prior(sds: Array) -> tuple[Callable[[Array], float], Callable[[Array], Array]]:
    """Log-density and gradient of independent normal priors with mean 0."""
    precision = sds**-2.0

    def log_prior(theta: Array) -> float:
        return -0.5 * float(np.sum(precision * theta**2))

    def log_prior_gradient(theta: Array) -> Array:
        return -precision * theta

    return log_prior, log_prior_gradient


def example_rows(responses: Array, params: RegressionParams) -> Array:
    """Public made-up rows: normal features at three scales, and these responses.

    Rows beyond the norm that is declared are shortened to it.
    """
    rng = np.random.default_rng(20260101)
    scales = np.repeat([0.1, 0.5, 1.0], -(-len(responses) // 3))[: len(responses), None]
    features = scales * rng.standard_normal((len(responses), params.num_features))
    if params.row_norm is not None:
        room = math.sqrt(params.row_norm**2 - params.intercept)
        lengths = np.linalg.norm(features, axis=1, keepdims=True)
        features *= np.minimum(1.0, room / np.where(lengths > 0, lengths, 1.0))
    return np.column_stack([features, responses])
