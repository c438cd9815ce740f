"""Errors of a correction of the Barker test, on a grid ten times as fine as that of its program."""

from __future__ import annotations

import numpy as np
from scipy.special import expit


def cdf_error(correction) -> float:
    """Return the largest distance of the distribution function from the logistic one."""
    x = np.arange(0, 24.0, 0.005)
    return float(np.abs(correction.tail(x) - expit(-x)).max())


def odds_error(correction) -> float:
    """Return the largest |ln F(l) / F(-l) - l| for l up to 8: the error of detailed balance."""
    x = np.arange(0, 8.0025, 0.005)
    tail = correction.tail(x)
    return float(np.abs(np.log1p(-tail) - np.log(tail) - x).max())
