"""Which tests run, in which order and on how many processors; posteriors shared by them."""

from __future__ import annotations

import os
from typing import Any

import hypothesis
import pytest
from xdist.scheduler import LoadScopeScheduling

from dpmc.types import Model
from tests.support.posteriors import banana_model, gaussian_model

# A busy machine is no fault of the code.
hypothesis.settings.register_profile("dpmc", deadline=None)
hypothesis.settings.load_profile("dpmc")

# Files whose tests look at one run of the whole workflow.
WHOLE_WORKFLOW = tuple(f"tests/workflow/test_{name}.py" for name in ("regression", "site", "smoke"))
# The tests of the workflow that take longest; those of the cluster mostly wait.
FIRST = (*WHOLE_WORKFLOW, "tests/workflow/test_slurm.py")
MOST_PROCESSES = 4
LEFT_OUT = "left out; --all runs them, and so does a command that names tests or folders"


class ByFile(LoadScopeScheduling):
    """Tests of a file run on one processor, and so do files that share a run of the workflow."""

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        return "whole workflow" if path.startswith(WHOLE_WORKFLOW) else path


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="run the tests marked slow, too")


def pytest_report_header(config: pytest.Config) -> str:
    return f"tests marked slow: {'not left out' if everything(config) else LEFT_OUT}"


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if not everything(config):
        terminalreporter.write_line(f"tests marked slow: {LEFT_OUT}")


def everything(config: pytest.Config) -> bool:
    """Return whether slow tests run: with ``--all``, or if the command line selects tests."""
    selected = config.option.keyword or config.option.markexpr
    return bool(config.getoption("--all") or selected or config.args != config.getini("testpaths"))


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    return min(len(os.sched_getaffinity(0)) + 1, MOST_PROCESSES)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile:
    return ByFile(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave slow tests out unless they are asked for, and put the rest in order.

    End with the workflow, which finds much compiled by then, and there with its longest parts.

    They would otherwise compile the same functions side by side.
    """
    slow = {item for item in items if item.get_closest_marker("slow") is not None}
    left_out = set() if everything(config) else slow
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]
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
