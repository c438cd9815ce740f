"""Progress callbacks of long computations."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int, str], None]
# Iterations between two reports of progress.
REPORT_EVERY = 500


def silent(done: int, total: int, info: str) -> None:
    """Report nothing."""
