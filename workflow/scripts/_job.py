"""What every script does: log to its own file, and tell bad input in one line."""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from dpmc.types import DpmcError

SECONDS_BETWEEN_LINES = 5.0


class Progress:
    """Writes a line now and then: iterations done, what the chain says, time left."""

    def __init__(self, log: IO[str]) -> None:
        self.log = log
        self.start = self.last = time.monotonic()

    def __call__(self, done: int, total: int, info: str) -> None:
        """Tell that `done` of `total` iterations are done."""
        now = time.monotonic()
        if done < total and now - self.last < SECONDS_BETWEEN_LINES:
            return
        self.last = now
        left = (now - self.start) * (total - done) / max(done, 1)
        self.log.write(
            f"{done} of {total} iterations ({done / total:.0%}), {info}, {left:.0f} s left\n"
        )


@contextmanager
def job(snakemake: Any) -> Iterator[Progress]:
    """Send errors to the log of the job; Snakemake shows the log of a job that fails."""
    with open(snakemake.log[0], "w", buffering=1, encoding="utf-8") as log:  # noqa: PTH123
        try:
            yield Progress(log)
            # Benchmarks sample the processor time and miss the end of a job.
            log.write(f"done, {time.process_time():.2f} s of processor time\n")
        except DpmcError as error:
            log.write(f"dpmc: {error}\n")
            sys.exit(1)
        except Exception:
            traceback.print_exc(file=log)
            sys.exit(1)
