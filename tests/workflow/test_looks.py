"""How often a run looks for further jobs: at the end of each, unless a limit is asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.workflow.conftest import TINY, copy_tiny

# Snakemake, telling of each look that it sets for later.
TELLING = """
import sys
from snakemake.cli import main
from snakemake.scheduling.job_scheduler import JobScheduler
later = JobScheduler._schedule_reevalutation
def tell(self, seconds):
    print(f"look in {seconds:g} s", flush=True)
    later(self, seconds)
JobScheduler._schedule_reevalutation = tell
main(sys.argv[1:])
"""


@pytest.mark.parametrize(
    ("options", "look"),
    [((), None), (("--max-jobs-per-timespan", "50/2s"), "look in 2 s")],
)
def test_only_a_limit_that_is_asked_for_makes_a_run_look_later(tmp_path, options, look) -> None:
    project = copy_tiny(tmp_path / "project")
    done = subprocess.run(
        [sys.executable, "-c", TELLING, "-c1", "--until", "problem", *options, "--config", *TINY],
        cwd=project.folder,
        env=project.environment(),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert ("look in" in done.stdout) == (look is not None)
    assert look is None or look in done.stdout
