"""A progress bar for what reports its progress."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tqdm import tqdm

from dpmc import checks
from dpmc.progress import Progress


@contextmanager
def shown(progress: bool, unit: str) -> Iterator[Progress]:
    """Show a bar while something runs, and give what it tells its progress.

    Parameters
    ----------
    progress : bool
        Whether to show it.
    unit : str
        Of what is counted.
    """
    checks.flag("progress", progress)
    with tqdm(unit=unit, disable=not progress) as bar:

        def report(done: int, total: int, info: str) -> None:
            bar.total = total
            bar.set_postfix_str(info, refresh=False)
            bar.update(done - bar.n)

        yield report
