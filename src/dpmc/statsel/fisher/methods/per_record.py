"""Records with noise of their own, by quadrature [alparslan2023thesis, section 4.2.4]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmc import checks
from dpmc.statsel.fisher import quadrature
from dpmc.statsel.fisher.information import InformationEstimate, ReleaseSetting


@dataclass(frozen=True)
class Params:
    """The noise.

    Parameters
    ----------
    noise : {"laplace", "gaussian"}
        epsilon is of epsilon-DP, or of epsilon-GDP.
    noiseless : bool
        Without noise, whatever epsilon is.
    """

    noise: str = "laplace"
    noiseless: bool = False

    def __post_init__(self) -> None:
        checks.one_of("noise", self.noise, ("laplace", "gaussian"))


def evaluate(
    params: Params, release: ReleaseSetting, rng: np.random.Generator
) -> InformationEstimate:
    """Return the information."""
    width = release.statistic.sensitivity(release.population.support)
    scale = 0.0 if params.noiseless else width / release.epsilon
    return InformationEstimate(
        quadrature.per_record(
            release.population,
            release.statistic,
            release.theta,
            release.num_rows,
            scale,
            params.noise,
        )
    )
