"""The mean of |x|^a [alparslan2023thesis, examples 4 and 5]."""

from __future__ import annotations

from dataclasses import dataclass

from dpmc import checks
from dpmc.numerics import powers
from dpmc.statsel.types import Statistic


@dataclass(frozen=True)
class Params:
    """The power.

    Parameters
    ----------
    power : float
        a, finite and > 0.
    """

    power: float = 1.0

    def __post_init__(self) -> None:
        checks.positive("power", self.power)


def build(params: Params) -> Statistic:
    """Return the statistic."""
    power = float(params.power)
    name = "|x|" if power == 1 else f"|x|^{power:g}"
    return Statistic(name, "mean", power, True, powers.power(power, True))
