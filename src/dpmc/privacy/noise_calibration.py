"""Calibration of noise: the least noise multiplier of four digits that keeps a budget."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from dpmc.privacy.gaussian_noise import analytic_multiplier
from dpmc.privacy.schedules import Schedule, delta_at, epsilon_at
from dpmc.types import DpmcError, Guarantee, check_epsilon_delta

_MAX_MULTIPLIER = 1e6


class Calibration(NamedTuple):
    """Noise that keeps a budget, and the guarantee of a run with it."""

    noise_multiplier: float
    guarantee: Guarantee


def calibrate(
    schedule: Schedule, epsilon: float, delta: float, outside: Sequence[str] = ()
) -> Calibration:
    """Least noise multiplier of four digits that keeps (epsilon, delta).

    Parameters
    ----------
    schedule : Schedule
    epsilon, delta : float
        The budget.
    outside : sequence of str
        Uses of the rows that are not accounted for.

    Returns
    -------
    Calibration
        Its guarantee is at most `epsilon`; with rows drawn independently it is `epsilon`.
    """
    check_epsilon_delta(epsilon, delta)
    noise_multiplier, proved = _calibrated(schedule, float(epsilon), float(delta))
    proof = Guarantee(proved, delta, "replace", schedule.accountant, tuple(outside))
    return Calibration(noise_multiplier, proof)


@functools.lru_cache(maxsize=256)
def _calibrated(schedule: Schedule, epsilon: float, delta: float) -> tuple[float, float]:
    """Noise multiplier and the epsilon that it is proved to keep, once a process."""
    single = analytic_multiplier(epsilon, delta)  # of one release from all rows
    independent = schedule.order == "independent"
    if independent:  # the limit of many steps, which errs by less than a factor of 2
        guess = math.log1p(schedule.num_rows / schedule.num_passes / single**2) ** -0.5
    else:
        guess = single * math.sqrt(schedule.num_passes)

    @functools.cache
    def excess(noise_multiplier: float) -> float:
        spent = delta_at(schedule, noise_multiplier, epsilon)
        return max(-50.0, math.log(spent / delta)) if spent > 0 else -50.0

    root = _root(excess, guess, -math.log(delta))
    noise_multiplier = None if root is None else _least(excess, root)
    if noise_multiplier is None:
        raise DpmcError(
            f"`epsilon` must be what accountant {schedule.accountant} proves at delta {delta:g} "
            f"with a noise multiplier of at most {_MAX_MULTIPLIER:g}, got {epsilon}"
        )
    if independent:  # an epsilon below the budget would take as long as the search
        return noise_multiplier, epsilon
    # The search for epsilon errs by 1e-7 upwards.
    return noise_multiplier, min(epsilon_at(schedule, noise_multiplier, delta), epsilon)


def _root(excess: Callable[[float], float], guess: float, logarithm: float) -> float | None:
    """Root of `excess`, which decreases, to a few units of the fifth digit.

    With `logarithm` that of 1 / delta of the budget: the square root of it, as spent, is nearly
    a straight line, so that few values are enough.
    """
    from scipy.optimize import brentq

    low, high, stride = guess, guess, 1.4
    while excess(high) > 0:
        low, high, stride = high, stride * high, stride**2
        if high > _MAX_MULTIPLIER:
            return None
    stride = 1.4
    while excess(low) <= 0:
        low, high, stride = low / stride, low, stride**2

    def line(value: float) -> float:
        return math.sqrt(logarithm) - math.sqrt(max(0.0, logarithm - excess(value)))

    return float(brentq(line, low, high, xtol=3e-5 * low))


def _least(excess: Callable[[float], float], root: float) -> float | None:
    """Least number of four digits at which `excess` is not positive, from near it."""
    found = _next(root * (1 - 1e-4))
    while excess(found) > 0:
        found = _next(found)
        if found > _MAX_MULTIPLIER:
            return None
    while excess(_previous(found)) <= 0:
        found = _previous(found)
    return found


def _next(value: float) -> float:
    """Next larger number of four digits."""
    digits = 3 - math.floor(math.log10(value))
    units = math.floor(value * 10.0**digits * (1 + 1e-12)) + 1
    return round(units / 10.0**digits, digits)


def _previous(value: float) -> float:
    """Next smaller number of four digits, of one that has four."""
    digits = 3 - math.floor(math.log10(value))
    units = round(value * 10.0**digits)
    if units <= 1000:
        return round(9999 / 10.0 ** (digits + 1), digits + 1)
    return round((units - 1) / 10.0**digits, digits)
