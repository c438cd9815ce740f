"""Posterior given the exact sums of all nodes, in closed form: no privacy.

With theta ~ N(m, sigma_y^2 / precision) and sigma_y^2 ~ inverse gamma(a, b) the posterior
is normal inverse gamma [alparslan2023thesis, section 7.1.2, with b and a factor 1/2 that the
formula for the rate lacks there].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.linalg import cho_solve, solve_triangular

from dpmc import checks
from dpmc.linreg.types import NodeStatistics, Prior, Regression
from dpmc.types import NO_GUARANTEE

STATISTICS: Literal["sz", "szu", "own", "exact"] = "exact"


@dataclass(frozen=True)
class Params:
    """Settings of the posterior without privacy.

    Parameters
    ----------
    num_draws : int
        Independent draws.
    precision : float, optional
        Of theta over sigma_y, a multiple of the identity; the inverse of C by default.
    """

    num_draws: int = 2000
    precision: float | None = None

    def __post_init__(self) -> None:
        checks.at_least("num_draws", self.num_draws, 1)
        checks.positive("precision", self.precision, optional=True)


def fit(
    statistics: NodeStatistics, prior: Prior, params: Params, rng: np.random.Generator
) -> Regression:
    """Posterior and independent draws of theta and sigma_y^2.

    Returns
    -------
    Regression
        The covariance is that of theta alone, a t distribution; diagnostics ``shape`` and
        ``rate`` of the distribution of sigma_y^2.
    """
    if params.precision is None:
        precision = np.linalg.inv(prior.covariance)
    else:
        precision = params.precision * np.eye(prior.dim)
    s, z = statistics.s.sum(axis=0), statistics.z.sum(axis=0)
    factor = np.linalg.cholesky(s + precision)
    mean = cho_solve((factor, True), z + precision @ prior.mean)
    shape = prior.shape + float(statistics.num_rows.sum()) / 2
    # As a residual and a shrinkage, neither below 0 but for rounding.
    residual = float(statistics.u.sum() - 2 * mean @ z + mean @ s @ mean)
    shift = mean - prior.mean
    rate = prior.rate + (max(0.0, residual) + float(shift @ precision @ shift)) / 2
    variances = rate / rng.standard_gamma(shape, params.num_draws)
    normals = rng.standard_normal((prior.dim, params.num_draws))
    deviations = solve_triangular(factor, normals, lower=True, trans="T").T
    scale = rate / (shape - 1) if shape > 1 else math.inf
    return Regression(
        coefficients=mean,
        draws=mean + np.sqrt(variances)[:, None] * deviations,
        variances=variances,
        covariance=scale * cho_solve((factor, True), np.eye(prior.dim)),
        diagnostics={"shape": shape, "rate": rate},
        guarantee=NO_GUARANTEE,
    )
