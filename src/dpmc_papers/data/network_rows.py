"""Simulated rows of a random network: public data for choosing settings of private runs.

x ~ N(0, I), y a network of rectified units with normal weights, standardised, plus noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpmc import checks
from dpmc.types import Dataset, DpmcError


@dataclass(frozen=True)
class Params:
    """Size of the data and the network that generates them.

    Parameters
    ----------
    num_rows : int
        Rows for training; as many as a fifth of them, at least 1, are for testing.
    dim : int
        Number of features.
    num_units : int
        Rectified units of the network.
    noise_sd : float
        Standard deviation of the noise, in (0, 1); the target has variance one.
    seed : int
        Number of the draw of network and rows, at least 0.
    """

    num_rows: int
    dim: int
    num_units: int = 10
    noise_sd: float = 0.5
    seed: int = 0

    def __post_init__(self) -> None:
        checks.at_least("num_rows", self.num_rows, 2)
        checks.at_least("dim", self.dim, 1)
        checks.at_least("num_units", self.num_units, 1)
        if not 0 < self.noise_sd < 1:
            raise DpmcError(f"`noise_sd` must be above 0 and below 1, got {self.noise_sd}")
        checks.at_least("seed", self.seed, 0)


def generate(params: Params, rng: np.random.Generator) -> Dataset:
    """Features and target, x of shape (N, d + 1), as `data.uci_network` does."""
    num_test = max(1, params.num_rows // 5)
    x = rng.standard_normal((params.num_rows + num_test, params.dim))
    weights = rng.standard_normal((params.dim, params.num_units)) / math.sqrt(params.dim)
    biases, out = rng.standard_normal((2, params.num_units))
    clean = np.maximum(x @ weights + biases, 0) @ out
    scale = clean.std()
    clean = (clean - clean.mean()) / (scale if scale > 0 else 1.0)
    noise = params.noise_sd * rng.standard_normal(len(x))
    y = math.sqrt(1 - params.noise_sd**2) * clean + noise
    facts = {"num_train": params.num_rows, "num_clipped": 0, "y_shift": 0.0, "y_scale": 1.0}
    return Dataset("network_rows", np.column_stack((x, y)), facts=facts)
