"""Noise that a budget buys in passes over rows, as the methods of `dpmc.ep` calibrate theirs."""

from __future__ import annotations

from dataclasses import fields
from functools import lru_cache
from typing import Literal

from dpmc import registry
from dpmc.privacy.noise_calibration import calibrate
from dpmc.privacy.schedules import Schedule
from dpmc_papers.config.pricing import Bought
from dpmc_papers.config.setups import StudyPoint


def describe(
    point: StudyPoint, rows: int, delta: float, noise_precision: Literal["released", "public"]
) -> Bought:
    """Return what the budget of a point buys.

    A method that calibrates its noise to a budget has a parameter ``accountant``; that of others
    is fixed.

    Parameters
    ----------
    point : StudyPoint
    rows : int
        That are learnt from.
    delta : float
    noise_precision : {"released", "public"}
        Of the observations; see :class:`dpmc.privacy.schedules.Schedule`.
    """
    passes = point.params.get("num_passes")
    if "epsilon" not in point.point:
        return Bought(None, passes, "none")
    epsilon = float(point.point["epsilon"])
    module = registry.load(point.study, point.method)
    calibrates = "accountant" in {entry.name for entry in fields(module.Params)}
    if passes is None or not calibrates:
        return Bought(epsilon, passes, "as published")
    multiplier = _multiplier(rows, int(passes), epsilon, delta, noise_precision)
    return Bought(epsilon, passes, f"{multiplier:.4g}")


@lru_cache(maxsize=1024)
def _multiplier(
    rows: int,
    passes: int,
    epsilon: float,
    delta: float,
    noise_precision: Literal["released", "public"],
) -> float:
    schedule = Schedule(rows, passes, noise_precision=noise_precision)
    return calibrate(schedule, epsilon, delta).noise_multiplier
