"""Simulated rows of linear regression with Gaussian features [alparslan2023thesis, 7.2].

theta ~ N(0, I), Sigma_x ~ inverse Wishart(V'V, d + 1) with standard normal V, rows
x ~ N(0, Sigma_x), y = x'theta + N(0, noise_variance).

An inverse Wishart of d + 1 degrees of freedom has no mean: the scale of the features, and
with it every error, differs by orders of magnitude between draws. The thesis shows one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpmc import checks
from dpmc.rng import stream
from dpmc.types import Array, Dataset


@dataclass(frozen=True)
class Params:
    """Size of the data and which parameters generate them.

    Parameters
    ----------
    num_rows : int
        Number of rows n.
    dim : int
        Number of features d.
    noise_variance : float
        Variance sigma_y^2 of y around x'theta.
    draw : int
        Number of the draw of theta, V and Sigma_x, at least 0.
    """

    num_rows: int
    dim: int
    noise_variance: float = 1.0
    draw: int = 0

    def __post_init__(self) -> None:
        checks.at_least("num_rows", self.num_rows, 1)
        checks.at_least("dim", self.dim, 1)
        checks.positive("noise_variance", self.noise_variance)
        checks.at_least("draw", self.draw, 0)


class RegressionTruth(NamedTuple):
    """What generated the rows.

    Parameters
    ----------
    coefficients : ndarray of shape (d,)
        theta.
    feature_covariance : ndarray of shape (d, d)
        Sigma_x.
    feature_factor : ndarray of shape (d, d)
        F with F F' = Sigma_x.
    scale : ndarray of shape (d, d)
        V'V, which the thesis also takes as scale of the prior.
    """

    coefficients: Array
    feature_covariance: Array
    feature_factor: Array
    scale: Array


def truth(params: Params) -> RegressionTruth:
    """What generates the rows: a function of `dim` and `draw` alone.

    It has a stream of its own, so that it is available without the rows, and so that all
    sizes and noise levels share it.
    """
    dim = params.dim
    rng = stream(params.draw, "regression truth", dim)
    theta = rng.standard_normal(dim)
    v = rng.standard_normal((dim, dim))
    scale = v.T @ v
    # The Bartlett factor B of a Wishart(d + 1, I): Sigma_x = L (B B')^-1 L' with L L' = V'V.
    bartlett = np.tril(rng.standard_normal((dim, dim)), -1)
    np.fill_diagonal(bartlett, np.sqrt(rng.chisquare(dim + 1 - np.arange(dim))))
    factor = np.linalg.solve(bartlett, np.linalg.cholesky(scale).T).T
    return RegressionTruth(theta, factor @ factor.T, factor, scale)


def generate(params: Params, rng: np.random.Generator) -> Dataset:
    """Draw the rows [features | target], x of shape (n, d + 1).

    ``bounds`` hold the largest norm of a row of features, ``x_norm``, the largest absolute
    target, ``y_abs``, as the thesis takes them, read off the private rows; ``facts`` the number of
    rows that serve for learning, ``num_train``: all of them.
    """
    drawn = truth(params)
    shape = (params.num_rows, params.dim)
    features = rng.standard_normal(shape) @ drawn.feature_factor.T
    noise = np.sqrt(params.noise_variance) * rng.standard_normal(params.num_rows)
    target = features @ drawn.coefficients + noise
    bounds = {
        "x_norm": float(np.sqrt(np.max(np.einsum("ij,ij->i", features, features)))),
        "y_abs": float(np.max(np.abs(target))),
    }
    rows, facts = np.column_stack([features, target]), {"num_train": params.num_rows}
    return Dataset("regression_rows", rows, bounds, "data", drawn.coefficients, facts=facts)
