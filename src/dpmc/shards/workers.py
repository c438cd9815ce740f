"""Who sums the parts of rows: threads of this process, or whatever takes functions to be called.

Nothing here schedules or recovers: an executor of `concurrent.futures` or a Dask client does.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator
from multiprocessing.pool import ThreadPool
from typing import Any

from dpmc.types import Array, DpmcError

# Parts that are handed out ahead of the one that is waited for, for each worker.
AHEAD = 2

Work = Callable[[Any], Array]


def run(
    work: Work, tasks: Iterator[Any], workers: Any, time_limit: float, name: str
) -> Iterator[Array]:
    """Results of tasks, in their order.

    Parameters
    ----------
    work : callable
        A function of a module.
    tasks : iterator of Task
    workers : int, concurrent.futures.Executor or distributed.Client
        Threads, or what has ``submit``.
    time_limit : float
        Seconds that a part may take before it is given up.
    name : str
        Of the rows, for messages.
    """
    if isinstance(workers, int):
        if workers == 1:
            yield from _in_order(lambda task: _Asked(work, task), tasks, 0, time_limit, name)
            return
        # Its threads end with the process, also one that never answers.
        with ThreadPool(workers) as pool:
            yield from _in_order(
                lambda task: _Waiting(pool.apply_async(work, (task,))),
                tasks,
                workers,
                time_limit,
                name,
            )
        return
    number = _number(workers)
    options = {"pure": False} if hasattr(workers, "scheduler_info") else {}
    yield from _in_order(
        lambda task: workers.submit(work, task.packed(), **options), tasks, number, time_limit, name
    )


class _Asked:
    """A result that is computed when it is asked for, in this thread."""

    def __init__(self, work: Work, task: Any) -> None:
        self._work, self._task = work, task

    def result(self, timeout: float) -> Array:
        del timeout  # nobody is there to give up
        return self._work(self._task)

    def cancel(self) -> None:
        """Do nothing: nothing was begun."""


class _Waiting:
    """The result of a thread, asked for as of a future."""

    def __init__(self, result: Any) -> None:
        self._result = result

    def result(self, timeout: float) -> Array:
        found: Array = self._result.get(timeout)
        return found

    def cancel(self) -> None:
        """Do nothing: the pool ends with the pass."""


def _in_order(
    submit: Callable[[Any], Any], tasks: Iterator[Any], workers: int, time_limit: float, name: str
) -> Iterator[Array]:
    waiting: collections.deque[Any] = collections.deque()
    try:
        for task in tasks:
            waiting.append(submit(task))
            if len(waiting) > AHEAD * workers:
                yield _answer(waiting.popleft(), time_limit, name)
        while waiting:
            yield _answer(waiting.popleft(), time_limit, name)
    finally:
        for future in waiting:
            future.cancel()


def _answer(future: Any, time_limit: float, name: str) -> Array:
    try:
        found: Array = future.result(timeout=time_limit)
    except DpmcError:
        raise
    except Exception as error:
        if type(error).__name__ == "TimeoutError":
            future.cancel()
            raise DpmcError(
                f"data {name!r}: a worker must answer within {time_limit:g} s (`time_limit`), and "
                "one did not; nothing was drawn"
            ) from None
        kind = type(error).__name__  # what it says may depend on private rows
        raise DpmcError(
            f"data {name!r}: each part must be summed by some worker, and one was lost ({kind}); "
            "nothing was drawn"
        ) from None
    return found


def _number(workers: Any) -> int:
    """Number of tasks that an executor works on at once, as far as it tells."""
    if hasattr(workers, "nthreads"):
        return int(max(1, sum(workers.nthreads().values())))
    return int(getattr(workers, "_max_workers", 4))
