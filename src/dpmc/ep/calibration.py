"""How much noise keeps a budget: the least multiplier of four digits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from dpmc.ep.accounting import Accountant, Schedule, checked_accountant, delta_at, epsilon_at
from dpmc.privacy.accountants import gaussian
from dpmc.types import DpmcError, Guarantee, check_epsilon_delta

_MAX_MULTIPLIER = 1e6


class Calibration(NamedTuple):
    """Noise that keeps a budget, and the guarantee of a run with it."""

    noise_multiplier: float
    guarantee: Guarantee


def calibrate(
    schedule: Schedule,
    epsilon: float,
    delta: float,
    accountant: Accountant | None = None,
    outside: Sequence[str] = (),
) -> Calibration:
    """Return the least noise multiplier of four digits that keeps (epsilon, delta).

    Parameters
    ----------
    schedule : Schedule
    epsilon, delta : float
        The budget.
    accountant, outside
        See `guarantee`.

    Returns
    -------
    Calibration
        Its guarantee is at most `epsilon`.

    Raises
    ------
    DpmcError
        If the accountant proves nothing of such a run, or a value is out of range.
    """
    name = checked_accountant(schedule, accountant)
    check_epsilon_delta(epsilon, delta)
    mean_loss = gaussian.affordable_mean_loss(epsilon, delta)
    if name == "gaussian":
        guess = math.sqrt(0.5 * schedule.num_passes / mean_loss)
    else:  # the limit of many steps, which errs by less than a factor of 2
        guess = math.log1p(2 * mean_loss * schedule.num_rows / schedule.num_passes) ** -0.5

    def excess(noise_multiplier: float) -> float:
        spent = delta_at(name, schedule, noise_multiplier, epsilon, delta)
        return max(-50.0, math.log(spent / delta)) if spent > 0 else -50.0

    noise_multiplier = _least(excess, guess)
    if noise_multiplier is None:
        raise DpmcError(
            f"epsilon: {epsilon}, allowed what accountant {name} proves at delta {delta:g} with a "
            f"noise multiplier of at most {_MAX_MULTIPLIER:g}"
        )
    proved = epsilon_at(name, schedule, noise_multiplier, delta)
    if name != "connect_dots":  # the search for epsilon errs by 1e-7 upwards
        proved = min(proved, epsilon)
    while proved > epsilon:  # where the finer grid of the check is not the tighter one
        noise_multiplier = _next(noise_multiplier)
        proved = epsilon_at(name, schedule, noise_multiplier, delta)
    return Calibration(noise_multiplier, Guarantee(proved, delta, "replace", name, tuple(outside)))


def _least(excess: Callable[[float], float], guess: float) -> float | None:
    """Return the least number of four digits at which `excess`, decreasing, is not positive."""
    from scipy.optimize import brentq

    low, high, stride = guess, guess, 1.4
    while excess(high) > 0:
        low, high, stride = high, stride * high, stride**2
        if high > _MAX_MULTIPLIER:
            return None
    stride = 1.4
    while excess(low) <= 0:
        low, high, stride = low / stride, low, stride**2
    root = float(brentq(excess, low, high, xtol=1e-5 * low))
    found = _next(root * (1 - 1e-4))
    while excess(found) > 0:
        found = _next(found)
    return found


def _next(value: float) -> float:
    """Return the next larger number of four digits."""
    digits = 3 - math.floor(math.log10(value))
    units = math.floor(value * 10.0**digits * (1 + 1e-12)) + 1
    return round(units / 10.0**digits, digits)
