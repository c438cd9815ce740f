"""Parameters of a Gaussian that noise is added to; a new choice is an entry of ``TABLE``.

``table(params, point, rng)`` gives one row per threshold, with columns of
:func:`dpmc.ep.perturbation.bounds.table`, for the ``dim`` and ``noise_sd`` of a point.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmc.ep.perturbation import bounds
from dpmc.ep.perturbation.noise import Perturbation, example_covariance, simulate_natural

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class PerturbationMethod:
    """Quantity that noise is added to, with the parameters of its simulation."""

    name: str
    Params: type[Any]
    table: Callable[[Any, Mapping[str, Any], np.random.Generator], pd.DataFrame]


@dataclass(frozen=True)
class NaturalParams:
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


@dataclass(frozen=True)
class MomentsParams(NaturalParams):
    """Settings of a comparison of bounds.

    Parameters
    ----------
    thresholds, num_draws
        See `NaturalParams`.
    mean_sd : float
        sigma_1.
    low, high : float
        tau and A.
    """

    mean_sd: float = 0.05
    low: float = 0.5
    high: float = 1.5


def moments(
    params: MomentsParams, point: Mapping[str, Any], rng: np.random.Generator
) -> pd.DataFrame:
    """Compare bounds and truth; ``noise_sd`` is sigma_2."""
    perturbation = Perturbation(
        example_covariance(int(point["dim"]), rng),
        params.mean_sd,
        float(point["noise_sd"]),
        params.low,
        params.high,
    )
    return bounds.table(perturbation, params.thresholds, params.num_draws, rng)


def natural(
    params: NaturalParams, point: Mapping[str, Any], rng: np.random.Generator
) -> pd.DataFrame:
    """Simulate the truth; the mean is that of the first unit vector."""
    import pandas as pd

    covariance = example_covariance(int(point["dim"]), rng)
    mean = np.eye(len(covariance))[0]
    values = simulate_natural(covariance, mean, float(point["noise_sd"]), params.num_draws, rng)
    shares = [float(np.mean(values >= threshold)) for threshold in params.thresholds]
    errors = [math.sqrt(p * (1 - p) / params.num_draws) for p in shares]
    return pd.DataFrame(
        {"threshold": list(params.thresholds), "probability": shares, "probability_se": errors}
    )


TABLE = {
    method.name: method
    for method in (
        # Noise on mean and covariance, as Theorem 4.1 of [vinaroz2022dpsep] supposes.
        PerturbationMethod("moments", MomentsParams, moments),
        # Noise on natural parameters, where DP-SEP adds it: no theorem, only the truth.
        PerturbationMethod("natural", NaturalParams, natural),
    )
}
