"""Drive a kernel: chains one after the other, what they record, and how far they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

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
    """What a method becomes once it knows the posterior and its parameters."""

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
    """What a Metropolis-Hastings step records."""

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
    """Return the function that runs chains of `kernel` and collects what they record."""

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
