"""The mean of bits with Gaussian noise on each: F_2 of [alparslan2023thesis, example 6]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmc import checks
from dpmc.statsel.fisher import information
from dpmc.statsel.fisher.information import Estimate, Setting


@dataclass(frozen=True)
class Params:
    """Which formula, and at which privacy.

    Parameters
    ----------
    second_term : {"half", "published"}
        With the 1/2 that the thesis leaves out, or without.
    matched : bool
        Give Gaussian noise the privacy that randomised response has at epsilon, in place of
        epsilon-GDP.
    """

    second_term: str = "half"
    matched: bool = False

    def __post_init__(self) -> None:
        checks.one_of("second_term", self.second_term, tuple(information.SECOND_TERM))


def evaluate(params: Params, given: Setting, rng: np.random.Generator) -> Estimate:
    """Return the information."""
    information.check_bits(given)
    mu = information.matched(given.epsilon) if params.matched else given.epsilon
    value, published = (
        float(information.noisy_bits(given.theta, given.num_rows, mu, term))
        for term in (params.second_term, "published")
    )
    return Estimate(value, published=published)
