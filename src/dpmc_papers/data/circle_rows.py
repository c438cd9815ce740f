"""Rows of the circle model: independent Gaussian radii."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpmc.types import Dataset, DpmcError
from dpmc_papers.data import _threefry


@dataclass(frozen=True)
class Params:
    """Rows of the model in :mod:`dpmc.models.circle`: one column r ~ N(mean, sd^2).

    Parameters
    ----------
    num_rows : int
        Number of rows n.
    mean, sd : float
        Mean and standard deviation of r, which may be negative: the model squares it.
    threefry_seed : int, optional
        Draw the rows as JAX does from this seed, with the second of the two keys that it
        splits into, instead of from the stream: the rows of a published experiment.
    """

    num_rows: int
    mean: float
    sd: float
    threefry_seed: int | None = None

    def __post_init__(self) -> None:
        if self.num_rows < 1:
            raise DpmcError(f"`num_rows` must be a positive integer, got {self.num_rows}")
        if not (math.isfinite(self.sd) and self.sd > 0):
            raise DpmcError(f"`sd` must be positive and finite, got {self.sd}")


def generate(params: Params, rng: np.random.Generator) -> Dataset:
    """Draw the rows, x of shape (n, 1); no one point of a ring is the true parameter."""
    shape = (params.num_rows, 1)
    if params.threefry_seed is None:
        noise = rng.standard_normal(shape)
    else:
        key = _threefry.split(_threefry.seed_key(params.threefry_seed), 2)[1]
        noise = _threefry.normal(key, shape)
    return Dataset("circle_rows", np.asarray(params.mean + params.sd * noise))
