"""Independent Gaussian rows with a known covariance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmc.numerics import covariances
from dpmc.types import Dataset, DpmcError
from dpmc_papers.data import _threefry


@dataclass(frozen=True)
class Params:
    """Rows x ~ N(mean, covariance).

    Parameters
    ----------
    num_rows : int
        Number of rows n.
    mean : sequence of float of length d
        The true parameter.
    covariance : nested sequence of float, or ``{"seed": int}``
        Covariance of a row, or the seed of a random one.
    threefry_seed : int, optional
        Draw the rows as JAX does from this seed, instead of from the stream: the rows of
        a published experiment.
    """

    num_rows: int
    mean: Sequence[float]
    covariance: Any
    threefry_seed: int | None = None

    def __post_init__(self) -> None:
        if self.num_rows < 1:
            raise DpmcError(f"`num_rows` must be a positive integer, got {self.num_rows}")


def generate(params: Params, rng: np.random.Generator) -> Dataset:
    """Draw the rows, x of shape (n, d)."""
    mean = np.asarray(params.mean, dtype=np.float64)
    factor = np.linalg.cholesky(covariances.resolve(params.covariance, mean.size))
    shape = (params.num_rows, mean.size)
    if params.threefry_seed is None:
        noise = rng.standard_normal(shape)
    else:
        noise = _threefry.normal(_threefry.seed_key(params.threefry_seed), shape)
    x = mean + noise @ factor.T
    return Dataset("gaussian_rows", x, truth=mean)
