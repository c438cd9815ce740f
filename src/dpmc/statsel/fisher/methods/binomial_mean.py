"""The mean of bits with Gaussian noise on it, the mean being binomial and not normal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmc.statsel.fisher import information, quadrature
from dpmc.statsel.fisher.information import InformationEstimate, ReleaseSetting


@dataclass(frozen=True)
class Params:
    """At which privacy noise is added.

    Parameters
    ----------
    matched : bool
        Give Gaussian noise the privacy that randomised response has at epsilon, in place of
        epsilon-GDP.
    """

    matched: bool = False


def evaluate(
    params: Params, release: ReleaseSetting, rng: np.random.Generator
) -> InformationEstimate:
    """Return the information."""
    information.check_bits(release)
    mu = information.matched(release.epsilon) if params.matched else release.epsilon
    return InformationEstimate(quadrature.noisy_count(release.theta, release.num_rows, mu))
