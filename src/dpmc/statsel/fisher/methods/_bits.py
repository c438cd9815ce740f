"""Shared parameters and evaluation of the two methods for bits with Gaussian noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dpmc import checks
from dpmc.statsel.fisher import information
from dpmc.statsel.fisher.information import InformationEstimate, ReleaseSetting
from dpmc.types import Array

Formula = Callable[[float, int, float, str], Array]


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


def evaluate(formula: Formula, params: Params, release: ReleaseSetting) -> InformationEstimate:
    """Return the information by `formula`, and what the formula gives as printed."""
    information.check_bits(release)
    mu = information.matched(release.epsilon) if params.matched else release.epsilon
    value, published = (
        float(formula(release.theta, release.num_rows, mu, term))
        for term in (params.second_term, "published")
    )
    return InformationEstimate(value, published=published)
