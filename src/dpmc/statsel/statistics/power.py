"""The mean of x^a [alparslan2023thesis, example 3]."""

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
    power : int
        a, at least 1.
    """

    power: int = 1

    def __post_init__(self) -> None:
        checks.at_least("power", self.power, 1)


def build(params: Params) -> Statistic:
    """Return the statistic."""
    power = float(params.power)
    name = "x" if power == 1 else f"x^{power:g}"
    return Statistic(name, "mean", power, False, powers.power(power, False))
