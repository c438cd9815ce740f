"""Noise on natural parameters, where DP-SEP adds it: no theorem, only the truth."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmc.ep.perturbation.noise import example_covariance, simulate_natural

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Params:
    """Settings of a simulation.

    Parameters
    ----------
    thresholds : sequence of float
        Values a that a divergence exceeds or not.
    num_draws : int
        Draws of the noise.
    """

    thresholds: Sequence[float]
    num_draws: int = 200_000


def table(params: Params, point: Mapping[str, Any], rng: np.random.Generator) -> pd.DataFrame:
    """Return the truth at one point of the grid: columns as of `dpmc.ep.perturbation.bounds.table`.

    Parameters
    ----------
    point : mapping
        ``dim`` and ``noise_sd``, of every coordinate of (h, Lambda).
    rng : numpy.random.Generator
        Of directions and noise; the mean is that of the first unit vector.
    """
    import pandas as pd

    covariance = example_covariance(int(point["dim"]), rng)
    mean = np.eye(len(covariance))[0]
    values = simulate_natural(covariance, mean, float(point["noise_sd"]), params.num_draws, rng)
    shares = [float(np.mean(values >= threshold)) for threshold in params.thresholds]
    errors = [math.sqrt(p * (1 - p) / params.num_draws) for p in shares]
    return pd.DataFrame(
        {"threshold": list(params.thresholds), "probability": shares, "probability_se": errors}
    )
