"""Posteriors small enough for brute force."""

from __future__ import annotations

import functools

import numpy as np

from dpmc.models import banana, gaussian_mean
from dpmc.rng import stream
from dpmc.types import Dataset, Model


def rows(name: str, num_rows: int, dim: int) -> Dataset:
    """Return Gaussian rows that do not depend on which test asks for them."""
    x = stream(7, "tests", name, num_rows, dim).standard_normal((num_rows, dim))
    return Dataset(name, x, truth=np.zeros(dim))


# Built once: what a model compiles is cached by its functions.
@functools.cache
def gaussian_model(dim: int = 2, tempering: float = 1.0) -> Model:
    covariance = (0.5 * np.eye(dim) + 0.5).tolist()
    return gaussian_mean.build(gaussian_mean.Params(dim, covariance, 4.0, 0.3, tempering))


@functools.cache
def banana_model(dim: int = 3, tempering: float = 1.0) -> Model:
    variances = [2.0, 0.5, *([1.5] * (dim - 2))]
    return banana.build(banana.Params(1.5, variances, 3.0, 0.2, -0.1, tempering))
