"""Runs of Snakemake that are forks of a process of the tests; see ``preloaded.py``."""

from __future__ import annotations

import json
import select
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = Path(__file__).with_name("preloaded.py")
SECONDS = 1800.0


class Preloaded:
    """The process, started when it is first asked for a run; it ends with the one that uses it.

    Parameters
    ----------
    *prefix : str
        A command that it is started by.
    """

    def __init__(self, *prefix: str) -> None:
        self.prefix = prefix
        self.server: subprocess.Popen[str] | None = None

    def run(
        self,
        arguments: tuple[str, ...],
        folder: Path,
        environment: dict[str, str],
        terminal: str = "",
    ) -> subprocess.CompletedProcess[str]:
        """Run Snakemake as `python -m snakemake` in a folder; return what it said, errors too.

        What it says to a terminal, whoever looks at that has to read meanwhile.
        """
        if self.server is None:
            self.server = subprocess.Popen(
                [*self.prefix, sys.executable, str(PROGRAM)],
                env=environment,
                text=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        with tempfile.NamedTemporaryFile("w+", encoding="utf-8") as output:
            request = json.dumps([arguments, str(folder), environment, terminal or output.name])
            print(request, file=self.server.stdin, flush=True)
            ready, _, _ = select.select([self.server.stdout], [], [], SECONDS)
            assert ready, f"{arguments}: not within {SECONDS:.0f} s"
            answer = self.server.stdout.readline()
            assert answer, f"the process that runs are forks of has ended: {self.server.poll()}"
            said = output.read()
        return subprocess.CompletedProcess(arguments, int(answer), said)
