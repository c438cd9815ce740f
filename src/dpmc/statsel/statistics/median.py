"""The median of s(x), of a rank, or averaged [alparslan2023thesis, section 6.3]."""

from __future__ import annotations

from dataclasses import dataclass

from dpmc.numerics import powers
from dpmc.statsel.types import Statistic


@dataclass(frozen=True)
class Params:
    """What the median is of, and how it is taken for an even number of records.

    Parameters
    ----------
    power : float
        a of s(x) = |x|^a or x^a.
    absolute : bool
        Take |x|^a, else x^a.
    average : bool
        For even n, release the mean of ranks n/2 and n/2 + 1 rather than rank n/2. It has a
        smooth sensitivity of its own.
    """

    power: float = 1.0
    absolute: bool = True
    average: bool = False


def middle(n: int) -> int:
    """Return the rank (n + 1)/2, or the lower median n/2 for even n."""
    return (n + 1) // 2


def build(params: Params) -> Statistic:
    """Return the statistic."""
    transform = powers.power(float(params.power), params.absolute)
    return Statistic(
        "median", "order", float(params.power), params.absolute, transform, middle, params.average
    )
