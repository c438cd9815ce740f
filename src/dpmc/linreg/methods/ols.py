"""Least squares on the exact sums of all nodes: no privacy."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from dpmc.linreg.types import NodeStatistics, Prior, Regression
from dpmc.types import NO_GUARANTEE, NoParams

STATISTICS: Literal["sz", "szu", "own", "exact"] = "exact"

Params = NoParams


def fit(
    statistics: NodeStatistics, prior: Prior, params: Params, rng: np.random.Generator
) -> Regression:
    """Coefficients of least squares, of smallest norm where they are not unique.

    Returns
    -------
    Regression
        With covariance ``s2 S^-1`` where S has full rank and there are more rows than
        features, s2 the residual sum of squares over n - d; diagnostics ``rank`` and
        ``noise_variance`` (s2).
    """
    s, z = statistics.s.sum(axis=0), statistics.z.sum(axis=0)
    dim, num_rows = statistics.dim, int(statistics.num_rows.sum())
    theta, _, rank, _ = np.linalg.lstsq(s, z, rcond=None)
    spare = num_rows - dim
    residual = max(0.0, float(statistics.u.sum() - 2 * theta @ z + theta @ s @ theta))
    variance = residual / spare if spare > 0 else math.nan
    full = int(rank) == dim and spare > 0
    return Regression(
        coefficients=theta,
        covariance=variance * np.linalg.inv(s) if full else None,
        diagnostics={"rank": int(rank), "noise_variance": variance},
        guarantee=NO_GUARANTEE,
    )
