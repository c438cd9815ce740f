"""Posteriors small enough for brute force, shared by the tests."""

from __future__ import annotations

import functools
import os
from typing import Any

import numpy as np
import pytest
from xdist.scheduler import LoadScopeScheduling

from dpmc.models import banana, gaussian_mean
from dpmc.rng import stream
from dpmc.types import Dataset, Model

# Files whose tests look at one run of the whole workflow.
WHOLE_WORKFLOW = tuple(f"tests/workflow/test_{name}.py" for name in ("regression", "site", "smoke"))
# The tests of the workflow that take longest; those of the cluster mostly wait.
FIRST = (*WHOLE_WORKFLOW, "tests/workflow/test_slurm.py")
MOST_PROCESSES = 4


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


class ByFile(LoadScopeScheduling):
    """Tests of a file run on one processor, and so do files that share a run of the workflow."""

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        return "whole workflow" if path.startswith(WHOLE_WORKFLOW) else path


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    return min(len(os.sched_getaffinity(0)) + 1, MOST_PROCESSES)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile:
    return ByFile(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """End with the workflow, which finds much compiled by then, and there with its longest parts.

    They would otherwise compile the same functions side by side.
    """
    if hasattr(config, "workerinput"):
        items.sort(
            key=lambda item: (
                item.path.parent.name == "workflow",
                not item.nodeid.startswith(FIRST),
            )
        )


@pytest.fixture(params=["gaussian", "banana"])
def model(request: pytest.FixtureRequest) -> Model:
    return gaussian_model() if request.param == "gaussian" else banana_model()
