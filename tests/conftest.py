"""Posteriors small enough for brute force, shared by the tests."""

from __future__ import annotations

import os
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from dpmc.types import Model
from tests.support.posteriors import banana_model, gaussian_model

# Files whose tests look at one run of the whole workflow.
WHOLE_WORKFLOW = tuple(f"tests/workflow/test_{name}.py" for name in ("regression", "site", "smoke"))
# The tests of the workflow that take longest; those of the cluster mostly wait.
FIRST = (*WHOLE_WORKFLOW, "tests/workflow/test_slurm.py")
MOST_PROCESSES = 4


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
