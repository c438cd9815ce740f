"""Statistics of the records; a new one is a function and an entry of ``TABLE``."""

from __future__ import annotations

from dpmc import checks
from dpmc.numerics import powers
from dpmc.statsel.types import Statistic


def abs_power(power: float = 1.0) -> Statistic:
    """Mean of |x|^power, power > 0 [alparslan2023thesis, examples 4 and 5]."""
    checks.positive("power", power)
    power = float(power)
    name = "|x|" if power == 1 else f"|x|^{power:g}"
    return Statistic(name, "mean", power, True, powers.power(power, True))


def power(power: int = 1) -> Statistic:
    """Mean of x^power, power an integer >= 1 [alparslan2023thesis, example 3]."""
    checks.at_least("power", power, 1)
    name = "x" if power == 1 else f"x^{power:g}"
    return Statistic(name, "mean", float(power), False, powers.power(float(power), False))


def median(power: float = 1.0, absolute: bool = True, average: bool = False) -> Statistic:
    """Median of s(x) [alparslan2023thesis, section 6.3].

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
    transform = powers.power(float(power), absolute)
    return Statistic("median", "order", float(power), absolute, transform, middle, average)


def maximum(power: float = 1.0, absolute: bool = True) -> Statistic:
    """Largest s(x) = |x|^power, or x^power [alparslan2023thesis, section 6.3]."""
    transform = powers.power(float(power), absolute)
    return Statistic("max", "order", float(power), absolute, transform, last)


def middle(n: int) -> int:
    """Rank (n + 1)/2, or the lower median n/2 for even n."""
    return (n + 1) // 2


def last(n: int) -> int:
    """Rank n."""
    return n


TABLE = {"abs_power": abs_power, "maximum": maximum, "median": median, "power": power}
