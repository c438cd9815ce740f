"""A budget for Gaussian releases whose noise is chosen as one goes.

A Gaussian release with noise multiplier z has Gaussian differential privacy (1 / z)-GDP. If each
multiplier is a function of earlier outputs and public data alone, and the sum of 1 / z^2 is at
most mu^2 whatever the outputs, then all releases together are mu-GDP [Smith and Thakurta 2022,
"Fully Adaptive Composition for Gaussian Differential Privacy"; Koskela, Tobaben and Honkela 2022,
"Individual Privacy Accounting with Gaussian Differential Privacy"]. The number of releases and
what is released may depend on earlier outputs too.

It is mu that holds, not the sum that happens to have been spent when one stops: that is random,
and whoever quotes it afterwards quotes a number that the outputs have chosen.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from dpmc.privacy import events
from dpmc.types import DpmcError, Guarantee, check_epsilon_delta, is_real

if TYPE_CHECKING:
    from dpmc.privacy.events import Event

# Sums are kept in integers, in units of 2**-_SCALE: each multiplier is charged up to one unit
# more than it costs, so that rounding lets nothing through.
_SCALE = 192
UNLIMITED = 2**62
# How far the sum may exceed mu^2, relative to it: n releases with a multiplier of sqrt(n) / mu are
# n equal shares whichever way floating point rounds it. `worst` reckons with it; the curve that
# `GaussianBudget.of` inverts is computed to a relative 1e-9, which is far more.
ROUNDING = Fraction(1, 2**50)
# What has to be told the mu of each budget that ledgers are made with, before its first release.
_payer: ContextVar[Callable[[float], None] | None] = ContextVar("payer", default=None)


@contextlib.contextmanager
def paid_by(pay: Callable[[float], None]) -> Iterator[None]:
    """Let the budgets of ledgers that are made in a block be paid for when they are first used.

    Parameters
    ----------
    pay : callable ``(mu) -> None``
        Called with all of a budget before anything of it is released. If it raises, nothing is.
    """
    token = _payer.set(pay)
    try:
        yield
    finally:
        _payer.reset(token)


def is_paid() -> bool:
    """Whether a ledger that is made now has to have a budget, since another pays for it."""
    return _payer.get() is not None


@dataclass(frozen=True)
class GaussianBudget:
    """Budget of adaptively chosen Gaussian releases together.

    Parameters
    ----------
    mu : float
        Of Gaussian differential privacy; 1e-150 to 1e150. The sum of 1 / z^2 stays within mu^2.

    Raises
    ------
    DpmcError
        If `mu` is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from dpmc.privacy import Ledger, asserted
    >>> ledger = Ledger(GaussianBudget(0.5))
    >>> rng = np.random.default_rng()
    >>> mean = asserted(1.0, sensitivity=0.1)
    >>> first = ledger.release(mean, noise_multiplier=4.0, rng=rng)
    >>> second = ledger.release(mean, noise_multiplier=8.0 if first > 1 else 9.0, rng=rng)
    >>> ledger.remaining > 0.17
    True
    """

    mu: float

    def __post_init__(self) -> None:
        least = events.LEAST_MULTIPLIER
        if not (is_real(self.mu) and least <= self.mu <= 1 / least):
            raise DpmcError(f"`mu` must be from {least:g} to {1 / least:g}, got {self.mu!r}")

    @classmethod
    def of(cls, epsilon: float, delta: float) -> GaussianBudget:
        """Largest budget that keeps (epsilon, delta), by the exact Gaussian curve.

        Raises
        ------
        DpmcError
            If epsilon is not finite and > 0, or no Gaussian noise has it, or delta not in (0, 1).
        """
        from dpmc.privacy.accountants.gaussian import keeps
        from dpmc.types.gaussian_curve import affordable_mean_loss, log_delta

        check_epsilon_delta(epsilon, delta)
        mu = math.sqrt(2 * affordable_mean_loss(epsilon, delta))
        while log_delta(epsilon, mu * mu / 2) > math.log(delta):
            mu *= 1 - 1e-14
        while not keeps(epsilon, delta, cls(mu).multiplier):
            mu *= 1 - 1e-12
        return cls(mu)

    @property
    def multiplier(self) -> float:
        """Noise multiplier of one release that is as dear as all of the budget, or dearer."""
        most = Fraction(self.mu) ** 2 * (1 + ROUNDING)
        multiplier = math.nextafter(1 / self.mu / math.sqrt(1 + ROUNDING), math.inf)
        while Fraction(multiplier) ** 2 * most > 1:
            multiplier = math.nextafter(multiplier, 0.0)
        return multiplier

    def guarantee(self, delta: float) -> Guarantee:
        """Guarantee of all releases together under substitution of one row."""
        from dpmc.privacy.accountants import gaussian

        return Guarantee(gaussian.epsilon(self.worst(), delta), delta, accountant="gaussian")

    def worst(self) -> dict[Event, int]:
        """One release that is as dear as all of the budget."""
        return {events.gaussian(self.multiplier): 1}


class Meter:
    """Meter of what has been spent of a budget.

    Parameters
    ----------
    budget : GaussianBudget
    """

    __slots__ = ("_limit", "_mu", "_pay", "_total")

    def __init__(self, budget: GaussianBudget) -> None:
        self._mu, self._pay = budget.mu, _payer.get()
        numerator, denominator = budget.mu.as_integer_ratio()
        self._limit = (numerator**2 << _SCALE) // denominator**2
        self._total = 0

    def charge(self, event: Event, before: int, number: int) -> None:
        """Charge for `number` releases of an event that was released `before` times, or refuse."""
        noise = events.noise_of(event)
        if noise is None or noise[1] != 1:
            raise DpmcError(
                "a Gaussian budget covers Gaussian releases from all rows only, got "
                f"{events.text(event)}"
            )
        total = self._total + _cost(noise[0], before + number) - _cost(noise[0], before)
        if total > self._limit * (1 + ROUNDING):
            raise DpmcError(
                f"the sum of 1 / z^2 must be at most {_upwards(self._limit)!r} by the budget, "
                f"got {_upwards(total)!r} with {number} more of {events.text(event)}"
            )
        if self._pay is not None:
            self._pay(self._mu)
            self._pay = None
        self._total = total

    @property
    def spent(self) -> float:
        """The sum of 1 / z^2 so far, rounded up."""
        return _upwards(self._total)

    @property
    def remaining(self) -> float:
        """Rest of mu^2, rounded down."""
        left = max(self._limit - self._total, 0)
        value = left / 2**_SCALE
        return value if Fraction(value) * 2**_SCALE <= left else math.nextafter(value, 0.0)

    def least_multiplier(self) -> float:
        """Smallest noise multiplier of one more release; infinite if there is none."""
        left = self._limit - self._total
        if left <= 0 or self.remaining == 0:
            return math.inf
        multiplier = 1 / math.sqrt(self.remaining)
        while multiplier < math.inf and _cost(multiplier, 1) > left:
            multiplier = math.nextafter(multiplier, math.inf)
        return multiplier


class Tally:
    """Count of the releases of one event, up to what a plan or a meter allows."""

    __slots__ = ("allowed", "event", "meter", "used")

    def __init__(self, event: Event, allowed: int, meter: Meter | None) -> None:
        self.event = event
        self.allowed = allowed if meter is None else -1
        self.meter = meter
        self.used = 0

    def ask(self, number: int) -> None:
        """Refuse `number` releases more than are allowed, or charge the meter for them."""
        if self.meter is None:
            raise DpmcError(
                f"releases of {events.text(self.event)} must be at most {self.allowed} by the "
                f"plan, got {self.used + number} in all"
            )
        self.meter.charge(self.event, self.used, number)

    def add(self, number: int) -> None:
        """Record `number` releases, or refuse all of them."""
        if self.used + number > self.allowed:
            self.ask(number)
        self.used += number


def _cost(noise_multiplier: float, number: int) -> int:
    """Return ``number / noise_multiplier**2`` in units, rounded up."""
    numerator, denominator = noise_multiplier.as_integer_ratio()
    return -((-number * denominator**2 << _SCALE) // numerator**2)


def _upwards(units: int) -> float:
    try:
        value = units / 2**_SCALE
    except OverflowError:
        return math.inf
    return value if Fraction(value) * 2**_SCALE >= units else math.nextafter(value, math.inf)
