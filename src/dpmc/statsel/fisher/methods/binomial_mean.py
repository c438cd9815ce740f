"""The mean of bits with Gaussian noise on it, the mean being binomial and not normal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmc.statsel.fisher import information, quadrature
from dpmc.statsel.fisher.information import Estimate, Setting


@dataclass(frozen=True)
class Params:
    """At which privacy.

    Parameters
    ----------
    matched : bool
        As for :mod:`dpmc.statsel.fisher.methods.noisy_mean`.
    """

    matched: bool = False


def evaluate(params: Params, given: Setting, rng: np.random.Generator) -> Estimate:
    """Return the information."""
    information.check_bits(given)
    mu = information.matched(given.epsilon) if params.matched else given.epsilon
    return Estimate(quadrature.noisy_count(given.theta, given.num_rows, mu))
