"""Noise on mean and covariance, as Theorem 4.1 of [vinaroz2022dpsep] supposes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmc.ep.perturbation import bounds
from dpmc.ep.perturbation.noise import Perturbation, example_covariance

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Params:
    """Settings of a comparison of bounds.

    Parameters
    ----------
    thresholds : sequence of float
        Values a that a divergence exceeds or not.
    num_draws : int
        Draws of the noise.
    mean_sd : float
        sigma_1.
    low, high : float
        tau and A.
    """

    thresholds: Sequence[float]
    num_draws: int = 200_000
    mean_sd: float = 0.05
    low: float = 0.5
    high: float = 1.5


def table(params: Params, point: Mapping[str, Any], rng: np.random.Generator) -> pd.DataFrame:
    """Return bounds and truth at one point of the grid.

    Parameters
    ----------
    point : mapping
        ``dim`` and ``noise_sd``, which is sigma_2.
    rng : numpy.random.Generator
        Of directions and noise.

    Returns
    -------
    DataFrame
        One row per threshold, with the columns of :func:`dpmc.ep.perturbation.bounds.table`.
    """
    perturbation = Perturbation(
        example_covariance(int(point["dim"]), rng),
        params.mean_sd,
        float(point["noise_sd"]),
        params.low,
        params.high,
    )
    return bounds.table(perturbation, params.thresholds, params.num_draws, rng)
