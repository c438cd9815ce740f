"""A process that has imported Snakemake, of which most runs of the tests are forks.

More than half of a dry run of a small configuration would be imports of other packages. Nothing of
this one is imported before the fork: every run reads the sources of its own copy of the project.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

PRELOADED = (
    "dpath",
    "jinja2",
    "jsonschema",
    "msgspec.yaml",
    "nbformat",
    "numba",
    "pandas",
    "pooch",
    "pyarrow.parquet",
    "requests",
    "scipy.special",
    "smart_open",
    "snakemake.cli",
    "snakemake.persistence",
    "snakemake.script",
    "snakemake.utils",
    "tqdm.auto",
    "yte",
)
SECONDS = 1800.0
OURS = ("dpmc", "snakemake_logger_plugin_dpmc", "tests")


class Preloaded:
    """The process, started when it is first asked for a run; it ends with the one that uses it."""

    def __init__(self) -> None:
        self.server: subprocess.Popen[str] | None = None

    def run(
        self, arguments: tuple[str, ...], folder: Path, environment: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """Run Snakemake as `python -m snakemake` in a folder; return what it said, errors too."""
        if self.server is None:
            self.server = subprocess.Popen(
                [sys.executable, __file__],
                env=environment,
                text=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        with tempfile.NamedTemporaryFile("w+", encoding="utf-8") as output:
            request = json.dumps([arguments, str(folder), environment, output.name])
            print(request, file=self.server.stdin, flush=True)
            ready, _, _ = select.select([self.server.stdout], [], [], SECONDS)
            assert ready, f"{arguments}: not within {SECONDS:.0f} s"
            answer = self.server.stdout.readline()
            assert answer, f"the process that runs are forks of has ended: {self.server.poll()}"
            said = output.read()
        return subprocess.CompletedProcess(arguments, int(answer), said)


def main() -> None:
    """Fork for every line of standard input, and write the return code of each fork."""
    for name in PRELOADED:
        importlib.import_module(name)
    early = [name for name in sys.modules if name.partition(".")[0] in OURS]
    assert early == [], early
    gc.freeze()
    while line := sys.stdin.readline():
        child = os.fork()
        if child == 0:
            return snakemake(*json.loads(line))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    return None


def snakemake(arguments: list[str], folder: str, environment: dict[str, str], told: str) -> Any:
    """Become a run of Snakemake."""
    output = os.open(told, os.O_WRONLY)
    for number in (1, 2):
        os.dup2(output, number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["snakemake", *arguments]
    sys.path[:1] = [folder, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    importlib.invalidate_caches()
    return sys.modules["snakemake.cli"].main(arguments)


if __name__ == "__main__":
    main()
