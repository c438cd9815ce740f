"""Which tests run, in which order and on how many processors; posteriors shared by them."""

from __future__ import annotations

import gc
import os
import sys
from typing import Any

import hypothesis
import pytest
from xdist.scheduler import LoadScopeScheduling

from dpmc.types import Model
from tests.support.posteriors import banana_model, gaussian_model

# A busy machine is no fault of the code.
hypothesis.settings.register_profile("dpmc", deadline=None)
hypothesis.settings.load_profile("dpmc")

# What takes longest, by the beginnings of names, in the order in which it starts. Whole runs of the
# workflow come first, with the cluster, which mostly waits; what looks at them comes once they are
# likely to be there.
FIRST = (
    *(f"tests/workflow/test_{name}.py" for name in ("slurm", "smoke", "lint")),
    "tests/test_environments.py",
    *(f"tests/workflow/test_{name}.py" for name in ("interruptions", "elsewhere", "reruns")),
    *(f"tests/workflow/test_{name}.py" for name in ("rules", "raw_files", "league")),
    "tests/website/",
    "tests/mutation/",
    "tests/statistical/",
    "tests/workflow/",
    *(f"tests/automatic/test_{name}.py" for name in ("fit", "large", "small_budgets")),
    "tests/automatic/glm/test_statistics.py",
    "tests/papers/verdicts/test_power.py",
    *(f"tests/league/test_{name}.py" for name in ("attack", "task", "table")),
    *(f"tests/papers/outputs/test_{name}.py" for name in ("raisa2021thesis", "layout")),
    *(f"tests/{name}.py" for name in ("mcmc/test_fit", "numerics/test_compiled", "test_docs")),
)
MOST_PROCESSES = 4
LEFT_OUT = "left out; --all runs them, and so does a command that names tests or folders"


class ByFile(LoadScopeScheduling):
    """Tests of a file run on one processor."""

    def _split_scope(self, nodeid: str) -> str:
        return nodeid.partition("::")[0]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="run the tests marked slow, too")


def pytest_configure(config: pytest.Config) -> None:
    """Have one thread of linear algebra in each process of tests, and keep their bytecode."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    # Containers often tell Python to keep no bytecode: every process would compile all tests anew.
    # Without other processes it may be a planted bug that is tested, which must not be kept.
    if hasattr(config, "workerinput"):
        sys.dont_write_bytecode = False


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
    known = hasattr(os, "sched_getaffinity")
    return min((len(os.sched_getaffinity(0)) if known else os.cpu_count() or 1) + 1, MOST_PROCESSES)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile:
    return ByFile(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave slow tests out unless they are asked for, and start with the longest files."""
    slow = {item for item in items if item.get_closest_marker("slow") is not None}
    left_out = set() if everything(config) else slow
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: place(item.nodeid))


def place(nodeid: str) -> int:
    """Return where the file of a test stands in the order of their starts."""
    found = (number for number, start in enumerate(FIRST) if nodeid.startswith(start))
    return next(found, len(FIRST))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Have the collector of garbage leave thousands of tests alone."""
    gc.collect()
    gc.freeze()


@pytest.fixture(params=["gaussian", "banana"])
def model(request: pytest.FixtureRequest) -> Model:
    return gaussian_model() if request.param == "gaussian" else banana_model()
