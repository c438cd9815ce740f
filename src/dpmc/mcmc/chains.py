"""Drive a kernel: chains one after the other or in threads, what they record, how far they are.

Chains in threads give the same bytes as one after the other. A chain draws from streams of its own,
so that nothing depends on which is ahead. Compiled passes over the rows let other threads run; what
is plain Python does not, so that threads pay where the rows are many.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
import numpy.typing as npt

from dpmc import checks
from dpmc.privacy.ledger import Ledger
from dpmc.progress import REPORT_EVERY, Progress, silent
from dpmc.rng import Streams
from dpmc.types import Array


@dataclass(frozen=True)
class Run:
    """The chains of one replicate, before anything is said about privacy.

    Fields as in :class:`dpmc.fits.Fit`, but with the axis of iterations first.
    """

    draws: Array | None
    info: Mapping[str, npt.NDArray[Any]]
    totals: Mapping[str, npt.NDArray[Any]]
    status: str = "complete"


class Sampler(Protocol):
    """A method that knows its posterior and its parameters."""

    def __call__(
        self,
        start: Array,
        num_iterations: int,
        streams: Sequence[Streams],
        ledger: Ledger,
        progress: Progress = silent,
    ) -> Run:
        """Run one chain from each row of `start`, shape (chains, d)."""
        ...


class Info(NamedTuple):
    """Records of a Metropolis-Hastings step."""

    accepted: bool
    ratio_clipped: int
    diverged: bool = False
    gradient_clipped: int = 0


class Kernel(NamedTuple):
    """A Markov kernel on states with a field ``theta``.

    ``init(theta, num_iterations, ledger, streams) -> State`` holds what the next step
    needs, ``step(state, ledger, streams) -> (State, Info)`` makes it. A step reads
    `num_rows` rows for its ratio and as many for each of its gradients. With more than one
    point per step, states have a field ``points``, shape (points_per_step, d), that is
    stored in place of ``theta``.
    """

    init: Callable[[Array, int, Ledger, Streams], Any]
    step: Callable[[Any, Ledger, Streams], tuple[Any, Info]]
    num_rows: int
    gradients_per_step: int = 0
    points_per_step: int = 1


def sampler(kernel: Kernel) -> Sampler:
    """Function that runs chains of `kernel` and collects what they record."""

    def run(
        start: Array,
        num_iterations: int,
        streams: Sequence[Streams],
        ledger: Ledger,
        progress: Progress = silent,
    ) -> Run:
        chains, dim = start.shape
        points = kernel.points_per_step
        stored = attrgetter("theta" if points == 1 else "points")
        draws = np.empty((num_iterations, points, chains, dim))
        info: dict[str, npt.NDArray[Any]] = {
            "accepted": np.empty((num_iterations, chains), dtype=bool),
            "ratio_clipped": np.empty((num_iterations, chains), dtype=np.int64),
            "diverged": np.empty((num_iterations, chains), dtype=bool),
            "gradient_clipped": np.empty((num_iterations, chains), dtype=np.int64),
        }
        columns = tuple(info[name] for name in Info._fields)
        for c in range(chains):
            state = kernel.init(start[c].copy(), num_iterations, ledger, streams[c])
            for i in range(num_iterations):
                state, recorded = kernel.step(state, ledger, streams[c])
                draws[i, :, c] = stored(state)
                for column, value in zip(columns, recorded, strict=True):
                    column[i, c] = value
                if (i + 1) % REPORT_EVERY == 0 or i + 1 == num_iterations:
                    rate = info["accepted"][: i + 1, c].mean()
                    progress(
                        c * num_iterations + i + 1, chains * num_iterations, f"accepted {rate:.3f}"
                    )
        totals = _totals(info, num_iterations, chains, kernel)
        if points > 1:
            info = {name: np.repeat(values, points, axis=0) for name, values in info.items()}
        return Run(draws.reshape(-1, chains, dim), info, totals)

    return run


def _totals(
    info: dict[str, npt.NDArray[Any]], num_iterations: int, chains: int, kernel: Kernel
) -> dict[str, npt.NDArray[Any]]:
    totals = {name: values.sum(axis=0, dtype=np.int64) for name, values in info.items()}
    totals["num_iterations"] = np.full(chains, num_iterations)
    totals["ratio_rows"] = np.full(chains, num_iterations * kernel.num_rows)
    if kernel.gradients_per_step:
        rows = num_iterations * kernel.gradients_per_step * kernel.num_rows
        totals["gradient_rows"] = np.full(chains, rows)
    else:
        del totals["gradient_clipped"], info["gradient_clipped"]
        del totals["diverged"], info["diverged"]
    return totals


# Entries of the rows from which on an iteration is mostly compiled code.
MANY_ENTRIES = 200_000


def number_of_threads(given: int | None, num_chains: int, num_entries: int) -> int:
    """Number of threads to use: as given, at most one for each chain.

    Parameters
    ----------
    given : int or None
        None takes one for each processor where the rows are many, and a single one where they
        are few.
    num_chains : int
    num_entries : int
        Of all rows: rows times columns.
    """
    if given is not None:
        checks.at_least("num_threads", given, 1)
        return min(int(given), num_chains)
    if num_entries < MANY_ENTRIES:
        return 1
    known = hasattr(os, "sched_getaffinity")
    processors = len(os.sched_getaffinity(0)) if known else os.cpu_count() or 1
    return min(processors, num_chains)


def threaded(make: Callable[[], Sampler], num_threads: int) -> Sampler:
    """Sampler that runs its chains in threads.

    Parameters
    ----------
    make : callable ``() -> Sampler``
        Called once for each chain, since a sampler may keep scratch memory.
    num_threads : int
        1 runs all chains in this thread.

    Returns
    -------
    Sampler
        With the results of one that ``make`` returns.
    """
    first = make()
    if num_threads == 1:
        return first

    def run(
        start: Array,
        num_iterations: int,
        streams: Sequence[Streams],
        ledger: Ledger,
        progress: Progress = silent,
    ) -> Run:
        chains = range(len(start))
        samplers = [first, *(make() for _ in chains[1:])]
        locked, report = _Locked(ledger), _Together(progress, len(start))
        shared = cast(Ledger, locked)

        def chain(c: int) -> Run:
            one = start[c : c + 1]
            return samplers[c](one, num_iterations, streams[c : c + 1], shared, report.of(c))

        with ThreadPoolExecutor(num_threads) as pool:
            try:
                return joined(list(pool.map(chain, chains)))
            except BaseException:  # an interrupt as well: chains end at their next release
                locked.close()
                raise

    return run


def joined(runs: Sequence[Run]) -> Run:
    """Chains of one each side by side; where one stopped early, all are cut to its length.

    Parameters
    ----------
    runs : sequence of Run
        Each of one chain.
    """
    finite = [int(run.totals["num_iterations"][0]) for run in runs]
    which = finite.index(min(finite))
    status = runs[which].status.replace("chain 0 ", f"chain {which} ", 1)
    lengths = [0 if run.draws is None else len(run.draws) for run in runs]
    length = min(lengths)
    return Run(
        np.concatenate([_draws(run)[:length] for run in runs], axis=1) if length else None,
        {
            name: np.concatenate([run.info[name][:length] for run in runs], axis=1)
            for name in runs[0].info
        },
        {name: np.concatenate([run.totals[name] for run in runs]) for name in runs[0].totals},
        status,
    )


def _draws(run: Run) -> npt.NDArray[Any]:
    assert run.draws is not None
    return run.draws


class _Locked:
    """A ledger that one thread at a time uses."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger, self._lock, self._closed = ledger, threading.Lock(), False

    def close(self) -> None:
        """Refuse everything from now on."""
        self._closed = True

    def __getattr__(self, name: str) -> Any:
        with self._lock:
            value = getattr(self._ledger, name)
        if not callable(value):
            return value

        def call(*arguments: Any, **options: Any) -> Any:
            with self._lock:
                if self._closed:
                    raise RuntimeError("another chain has ended with an error")
                return value(*arguments, **options)

        setattr(self, name, call)
        return call


class _Together:
    """The progress of all chains, told by one thread at a time."""

    def __init__(self, progress: Progress, num_chains: int) -> None:
        self._progress, self._lock = progress, threading.Lock()
        self._done = [0] * num_chains

    def of(self, chain: int) -> Progress:
        """Progress of one chain."""

        def report(done: int, total: int, info: str) -> None:
            with self._lock:
                self._done[chain] = done
                self._progress(sum(self._done), total * len(self._done), info)

        return report
