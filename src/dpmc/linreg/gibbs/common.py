"""Shared parts of the Gibbs samplers: settings, checks, results and convergence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmc import checks
from dpmc.linreg.types import NoisyStatistics, Prior, Regression
from dpmc.types import Array, DpmcError, is_real

VARIANCE_MOVES = ("log", "linear")
ADAPTATIONS = ("frozen", "diminishing")


@dataclass(frozen=True)
class GibbsParams:
    """Settings of a chain in theta and sigma_y^2.

    Parameters
    ----------
    num_iterations : int
        All iterations.
    burn_in : int
        The first of them, whose draws are not returned.
    ridge : float
        What is added to the diagonal of psd(Shat_j); the public code of
        [alparslan2023thesis] adds 1.
    variance_move : {"log", "linear"}
        Random walk on log sigma_y^2, its step adapted to an acceptance of 0.44, or on
        sigma_y^2 with a fixed step [alparslan2023thesis, Algorithm 15].
    variance_walk_sd : float
        Standard deviation of the walk, or what its adaptation starts from.
    variance_start : float, optional
        Where sigma_y^2 starts; by default its prior mean.
    adaptation : {"frozen", "diminishing"}
        Steps adapt during burn-in only, after which the chain is a Markov chain, or ever
        less until the end.
    """

    num_iterations: int = 10_000
    burn_in: int = 5_000
    ridge: float = 0.0
    variance_move: str = "log"
    variance_walk_sd: float = 0.1
    variance_start: float | None = None
    adaptation: str = "frozen"

    def __post_init__(self) -> None:
        checks.at_least("burn_in", self.burn_in, 0)
        checks.at_least("num_iterations", self.num_iterations, self.burn_in + 1)
        if not (is_real(self.ridge) and 0 <= self.ridge < math.inf):
            raise DpmcError(f"`ridge` must be a finite number >= 0, got {self.ridge!r}")
        checks.one_of("variance_move", self.variance_move, VARIANCE_MOVES)
        checks.positive("variance_walk_sd", self.variance_walk_sd)
        checks.positive("variance_start", self.variance_start, optional=True)
        checks.one_of("adaptation", self.adaptation, ADAPTATIONS)

    @property
    def adapted_for(self) -> int:
        """Iterations during which the step of sigma_y^2 adapts."""
        if self.variance_move == "linear":
            return 0
        return self.burn_in if self.adaptation == "frozen" else self.num_iterations

    def first_variance(self, prior: Prior) -> float:
        """First sigma_y^2: by default its prior mean, or mode if it has none."""
        if self.variance_start is not None:
            return self.variance_start
        return prior.rate / (prior.shape - 1 if prior.shape > 1 else prior.shape + 1)


def check_release(noisy: NoisyStatistics, prior: Prior, least_rows: int = 1) -> None:
    """Refuse a release that a sampler cannot work with."""
    checks.instance("noisy", noisy, NoisyStatistics, "a release of dpmc.linreg")
    checks.instance("prior", prior, Prior, "a dpmc.linreg.types.Prior")
    num, dim = len(noisy.num_rows), prior.dim
    if noisy.s.shape != (num, dim, dim) or noisy.z.shape != (num, dim) or num < 1:
        raise DpmcError(
            f"`s` and `z` must have shapes {(num, dim, dim)} and {(num, dim)} and at least one "
            f"node, got {noisy.s.shape} and {noisy.z.shape}"
        )
    if not (np.isfinite(noisy.s).all() and np.isfinite(noisy.z).all()):
        raise DpmcError("`s` and `z` must hold finite numbers only")
    checks.positive("s_sd", float(noisy.s_sd))
    checks.positive("z_sd", float(noisy.z_sd))
    if min(noisy.num_rows) < least_rows:
        raise DpmcError(
            f"`num_rows` must be at least {least_rows} at every node for {dim} features, "
            f"got {min(noisy.num_rows)}"
        )


def regression(
    noisy: NoisyStatistics,
    draws: Array,
    variances: Array,
    diagnostics: Mapping[str, Any],
    failure: str = "",
) -> Regression:
    """Result of a chain; its coefficients are NaN where no draw was kept.

    Parameters
    ----------
    noisy : NoisyStatistics
        Release that the chain was given.
    draws : ndarray of shape (kept, d)
        Those made before a failure, if there was one.
    variances : ndarray of shape (kept,)
        Draws of sigma_y^2.
    diagnostics : mapping
        Acceptance rates and other measures of the chain.
    failure : str
        Why the chain stopped early, empty if it did not.
    """
    mean = draws.mean(axis=0) if len(draws) else np.full(draws.shape[1], math.nan)
    return Regression(
        coefficients=mean,
        guarantee=noisy.guarantee,
        draws=draws,
        variances=variances,
        diagnostics=dict(diagnostics),
        status=f"stopped: {failure}" if failure else "complete",
    )
