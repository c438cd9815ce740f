"""Bayes-fixedS-fast: the posterior of theta with S_j and sigma_y^2 held fixed, in closed form.

[alparslan2023thesis, Algorithm 18], with the mean P^-1 r where P r is printed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpmc import checks
from dpmc.linreg.gibbs import common as gibbs
from dpmc.linreg.gibbs.conditionals import coefficient_posterior
from dpmc.linreg.types import NoisyStatistics, Prior, Regression
from dpmc.numerics.small_matrices import psd
from dpmc.types import DpmcError, is_real

STATISTICS: Literal["sz", "szu", "own", "exact"] = "sz"


@dataclass(frozen=True)
class Params:
    """Settings of Bayes-fixedS-fast.

    Parameters
    ----------
    noise_variance : float
        What sigma_y^2 is held at. As published, a third of the largest |y|: a scale, taken
        for a variance; where the noise of the release dominates it matters little.
    ridge : float
        What is added to the diagonal of psd(Shat_j).
    num_draws : int
        Independent draws of theta to return.
    """

    noise_variance: float
    ridge: float = 0.0
    num_draws: int = 0

    def __post_init__(self) -> None:
        checks.positive("noise_variance", self.noise_variance)
        if not (is_real(self.ridge) and 0 <= self.ridge < math.inf):
            raise DpmcError(f"`ridge` must be a finite number >= 0, got {self.ridge!r}")
        checks.at_least("num_draws", self.num_draws, 0)


def fit(
    noisy: NoisyStatistics, prior: Prior, params: Params, rng: np.random.Generator
) -> Regression:
    """Posterior mean and covariance, and draws if asked for."""
    gibbs.check_release(noisy, prior)
    s = psd(noisy.s) + params.ridge * np.eye(prior.dim)
    z_variance = float(noisy.z_sd) ** 2
    mean, covariance = coefficient_posterior(s, noisy.z, params.noise_variance, z_variance, prior)
    draws = None
    if params.num_draws:
        normals = rng.standard_normal((params.num_draws, prior.dim))
        draws = mean + normals @ np.linalg.cholesky(covariance).T
    return Regression(mean, noisy.guarantee, draws=draws, covariance=covariance)
