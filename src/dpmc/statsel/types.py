"""Frozen, validated data classes of statistic selection.

A population, a statistic and a mechanism are values that know nothing of each other
[alparslan2023thesis, chapters 4 and 6]. Neighbouring data sets differ in one record, and their
size n is public. Records are clipped to the support of the population before any statistic:
the sensitivities rest on that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from dpmc import checks
from dpmc.types import Array, DpmcError, Guarantee, is_real

Base = Literal["normal", "symmetric", "unit"]
Kind = Literal["mean", "order"]
Noise = Literal["gaussian", "laplace", "bits"]
BASES: tuple[Base, ...] = get_args(Base)
KINDS: tuple[Kind, ...] = get_args(Kind)
NOISES: tuple[Noise, ...] = get_args(Noise)


@dataclass(frozen=True)
class Population:
    """The distribution P_theta of one record.

    Parameters
    ----------
    name : str
        As in configurations and tables.
    theta_domain : (float, float)
        Open interval of theta.
    support : (float, float)
        Records are clipped to it.
    base : {"normal", "symmetric", "unit"}
        Distribution of Z: N(0, 1), U(-1, 1) or U(0, 1).
    generate : compiled function ``(theta, z) -> x``
        The record before clipping, non-decreasing in z.
    log_density : compiled function ``(x, theta) -> float``
        Of the record before clipping.
    score : compiled function ``(x, theta) -> float``, optional
        Derivative of the log-density by theta; None where the support of P_theta moves
        with theta.
    odd : bool
        Whether ``generate(theta, -z) = -generate(theta, z)``: then |x| is
        ``generate(theta, |z|)``.
    closed_above : bool
        Whether theta may also be the upper end of its domain.
    """

    name: str
    theta_domain: tuple[float, float]
    support: tuple[float, float]
    base: Base
    generate: Any
    log_density: Any
    score: Any | None = None
    odd: bool = False
    closed_above: bool = False

    def __post_init__(self) -> None:
        checks.one_of("base", self.base, BASES)
        low, high = self.theta_domain
        if not low < high:
            raise DpmcError(f"`theta_domain` must have low < high, got {self.theta_domain}")
        check_support(self.support)

    def check_theta(self, theta: float) -> None:
        """Refuse a theta outside of its domain."""
        low, high = self.theta_domain
        inside = is_real(theta) and math.isfinite(theta)
        inside = inside and (low < theta < high or (self.closed_above and theta == high))
        if not inside:
            close = "]" if self.closed_above else ")"
            raise DpmcError(
                f"`theta` must be in ({low:g}, {high:g}{close} for {self.name}, got {theta!r}"
            )

    def draw_base(self, rng: np.random.Generator, shape: int | tuple[int, ...]) -> Array:
        """Independent draws of Z."""
        if self.base == "normal":
            return rng.standard_normal(shape)
        return rng.uniform(-1.0 if self.base == "symmetric" else 0.0, 1.0, shape)

    def draw(self, theta: float, rng: np.random.Generator, shape: int | tuple[int, ...]) -> Array:
        """Independent records, not clipped."""
        self.check_theta(theta)
        drawn: Array = self.generate(float(theta), self.draw_base(rng, shape))
        return drawn


@dataclass(frozen=True)
class Statistic:
    """Released number: the mean of s over the records, or an order statistic of s.

    Parameters
    ----------
    name : str
        As it stands in tables, such as ``"|x|^0.5"`` or ``"median"``.
    kind : {"mean", "order"}
        Mean over the records, or an order statistic.
    power : float
        Finite and > 0.
    absolute : bool
        s(x) = |x|^power, else x^power with an integer power.
    transform : compiled function ``(x) -> s``
        Statistic of one record.
    rank : callable ``(n) -> int``, optional
        Rank of the order statistic from 1 to n, for kind ``"order"``.
    average : bool
        Release the mean of ranks m and m + 1 where n is even, else rank m alone.
    """

    name: str
    kind: Kind
    power: float
    absolute: bool
    transform: Any
    rank: Callable[[int], int] | None = None
    average: bool = False

    def __post_init__(self) -> None:
        checks.one_of("kind", self.kind, KINDS)
        checks.positive("power", self.power)
        if not self.absolute and self.power != int(self.power):
            raise DpmcError(f"`power` must be an integer >= 1 for x^power, got {self.power!r}")
        if (self.rank is None) != (self.kind == "mean"):
            raise DpmcError(
                f"`rank` must be set for kind 'order' and for no other, got {self.rank!r}"
            )

    def range(self, support: tuple[float, float]) -> tuple[float, float]:
        """Least and the largest s of records in `support`."""
        check_support(support)
        low, high = support
        ends = sorted(self._value(end) for end in support)
        if low < 0 < high and (self.absolute or self.power % 2 == 0):
            return 0.0, ends[1]
        return ends[0], ends[1]

    def sensitivity(self, support: tuple[float, float]) -> float:
        """Most that one record moves the sum of s, or any order statistic of s."""
        low, high = self.range(support)
        return high - low

    def averages(self, n: int) -> bool:
        """Whether two ranks are averaged for n records."""
        return self.average and n % 2 == 0

    def _value(self, x: float) -> float:
        try:
            return float((abs(x) if self.absolute else x) ** self.power)
        except OverflowError:
            return math.inf if x > 0 or self.absolute or self.power % 2 == 0 else -math.inf


@dataclass(frozen=True)
class Mechanism:
    """The noise of a release and what it guarantees.

    Parameters
    ----------
    name : str
        As in configurations and tables.
    noise : {"gaussian", "laplace", "bits"}
        Distribution of the noise; bits are flipped.
    per_record : bool
        Each record is released with noise of its own (local model), else one number.
    needs_delta : bool
        Whether the noise depends on delta.
    scale : callable ``(sensitivity, n, epsilon) -> float``
        Standard deviation, Laplace scale, or probability of keeping a bit. `sensitivity` is of
        the sum of s, or, for noise by smooth sensitivity, the smooth sensitivity of the
        released number. No noise at epsilon = inf.
    guarantee : callable ``(epsilon, delta=None) -> Guarantee``
        What the release really has.
    log_density : compiled function ``(v, scale) -> float``
        Of the noise v; for bits, v is 0 where the bit was kept.
    constants : callable ``(epsilon, delta) -> (alpha, beta)``, optional
        Of noise by smooth sensitivity: refused where they do not give (epsilon, delta).
    """

    name: str
    noise: Noise
    per_record: bool
    needs_delta: bool
    scale: Callable[[float, int, float], float]
    guarantee: Callable[..., Guarantee]
    log_density: Any
    constants: Callable[[float, float], tuple[float, float]] | None = None

    def __post_init__(self) -> None:
        checks.one_of("noise", self.noise, NOISES)


def check_parts(population: Any, statistic: Any, mechanism: Any) -> None:
    """Refuse what is no population, statistic or mechanism, such as its name."""
    for name, value, kind in (
        ("population", population, Population),
        ("statistic", statistic, Statistic),
        ("mechanism", mechanism, Mechanism),
    ):
        checks.instance(name, value, kind, f"one of dpmc.statsel.{name}")


def check_support(support: tuple[float, float]) -> None:
    """Refuse bounds of records that are not finite, or not in order."""
    low, high = support
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise DpmcError(f"`support` must be two finite numbers in order, got {support}")


def plain(function: Any) -> Any:
    """Compiled function as Python has it, which NumPy needs no compiler for."""
    return getattr(function, "py_func", function)
