"""Posteriors small enough for brute force, shared by the tests."""

from __future__ import annotations

import functools

import numpy as np
import pytest

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


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of a file on one processor, and begin with those that take longest.

    Tests of several files that share a run of the whole workflow are one group, by their mark.
    """
    shared = {item for item in items if item.get_closest_marker("xdist_group")}
    for item in items:
        if item not in shared:
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
    if hasattr(config, "workerinput"):
        order = {item: (item not in shared, item.path.parent.name != "workflow") for item in items}
        items.sort(key=lambda item: order[item])


@pytest.fixture(params=["gaussian", "banana"])
def model(request: pytest.FixtureRequest) -> Model:
    return gaussian_model() if request.param == "gaussian" else banana_model()
