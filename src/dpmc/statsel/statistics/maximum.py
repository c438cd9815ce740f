"""The largest s(x) [alparslan2023thesis, section 6.3]."""

from __future__ import annotations

from dataclasses import dataclass

from dpmc.numerics import powers
from dpmc.statsel.types import Statistic


@dataclass(frozen=True)
class Params:
    """What the maximum is of.

    Parameters
    ----------
    power : float
        a of s(x) = |x|^a or x^a.
    absolute : bool
        Take |x|^a, else x^a.
    """

    power: float = 1.0
    absolute: bool = True


def last(n: int) -> int:
    """Return the rank n."""
    return n


def build(params: Params) -> Statistic:
    """Return the statistic."""
    transform = powers.power(float(params.power), params.absolute)
    return Statistic("max", "order", float(params.power), params.absolute, transform, last)
