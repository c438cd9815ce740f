"""Scales on which numbers are compared: differences, ratios, or ratios of odds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmc.types import Array


@dataclass(frozen=True)
class Scale:
    """A transformation after which two numbers are compared by their difference.

    Parameters
    ----------
    name : {"plain", "log", "odds"}
        Differences of the numbers, of their logarithms, or of the logarithms of their odds.
    unit : float
        Half a unit in the last place of print, by which a number that may be printed as 0 (or as
        1, on the scale of odds) is kept away from the end of the scale.
    """

    name: str
    unit: float = 0.0

    def __call__(self, values: Any) -> Array:
        """Return `values` on this scale; what lies beyond its ends is infinite or NaN."""
        numbers = np.asarray(values, dtype=float)
        if self.name == "plain":
            return numbers
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.name == "log":
                return np.asarray(np.log(numbers + self.unit))
            return np.asarray(np.log((numbers + self.unit) / (1 - numbers + self.unit)))

    def of(self, value: float) -> float:
        """One number on this scale."""
        return float(self(value))

    def back(self, value: float) -> float:
        """Number that is `value` on this scale."""
        if self.name == "plain":
            return value
        if self.name == "log":
            return (math.exp(value) if value < 700 else math.inf) - self.unit
        share = 1 / (1 + math.exp(-value)) if value > -700 else 0.0
        return share * (1 + 2 * self.unit) - self.unit

    def slope(self, value: float) -> float:
        """Derivative of the scale, by which a small error is carried over."""
        if self.name == "plain":
            return 1.0
        if self.name == "log":
            return 1 / (value + self.unit) if value + self.unit > 0 else math.inf
        low, high = value + self.unit, 1 - value + self.unit
        return 1 / low + 1 / high if min(low, high) > 0 else math.inf


PLAIN, LOG, ODDS = Scale("plain"), Scale("log"), Scale("odds")
# Logarithms already: a difference is that of the logarithm of a density.
LOGARITHMS = ("loglik",)


def scale_of(metric: str, unit: float = 0.0) -> Scale:
    """Scale that fits a metric: odds of shares, ratios of what is positive.

    `unit` is half a unit in the last place of print.
    """
    if metric in LOGARITHMS:
        return PLAIN
    if metric.endswith(("_fraction", "_rate")):
        return Scale("odds", unit)
    return Scale("log", unit)
