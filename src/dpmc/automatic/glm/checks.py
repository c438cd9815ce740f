"""Checks of the model of a regression by released numbers: variance, mean and residuals."""

from __future__ import annotations

import math

import numpy as np

from dpmc.automatic.glm.residuals import EDGES
from dpmc.fits.check import Check
from dpmc.types import Array

# Sizes of residuals between which rows are counted, in about these deviations of a response: bins
# beyond would add noise to it, and next to no rows.
SIZES = 0.0, 0.5, 1.0, 2.0, 4.0, 16.0
# By how much the variance of the model may be another, as a share: clipping takes some of it.
KNOWN = 0.05


def of_gradients(dispersion: tuple[float, float], remaining: float) -> list[Check]:
    """Checks of the mean residual, and of the variance of gradients over that of the model."""
    ratio, noise = dispersion
    return [
        Check("mean residual, in its deviations", remaining, 1.0, 0.0),
        Check("variance over that of the model", ratio, math.hypot(noise, KNOWN), 1.0),
    ]


def of_residuals(
    counts: Array, noise: float, unit: float, num_rows: float, freedom: float | None
) -> list[Check]:
    """Checks of the shares of rows that have a residual of each size, of either sign.

    Parameters
    ----------
    counts : ndarray of shape (k + 1,)
        Released, between the k edges.
    noise : float
        Standard deviation of a count.
    unit : float
        Of the edges, in the scale of responses as it is known in the end.
    num_rows : float
    freedom : float, optional
        Of a Student-t distribution; normal without.
    """
    from scipy.stats import norm, t

    law = norm if freedom is None else t(freedom)
    places = [int(np.argmin(np.abs(EDGES - size / unit))) for size in SIZES]
    ends = EDGES[places] * unit
    found = []
    for side, name in ((1, "above"), (-1, "below")):
        for k in range(len(SIZES) - 1):
            bins = np.arange(places[k] + 1, places[k + 1] + 1)
            bins = bins if side > 0 else len(EDGES) - bins
            expected = float(law.cdf(ends[k + 1]) - law.cdf(ends[k]))
            variance = len(bins) * noise**2 + num_rows * expected * (1 - expected)
            what = f"residuals {name} 0, from {ends[k]:.2g} to {ends[k + 1]:.2g}"
            share = float(counts[bins].sum()) / num_rows
            found.append(Check(what, share, math.sqrt(variance) / num_rows, expected))
    return found
