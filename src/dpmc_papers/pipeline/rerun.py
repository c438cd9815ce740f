"""Published runs made again by the code of today, and compared number by number.

Other processors round sums otherwise, and there are runs that make much of it: a trajectory under
clipped gradients is chaotic, and a proposal is accepted or not. A run that comes out otherwise is
therefore made again a few times, with other kernels of linear algebra and from data whose last
digits are moved at random. If it once comes out otherwise again, and by a like amount, rounding
decides it, and nothing is known of it. If not, the code or the settings are others.

Each of these is made in a process of its own, and so is the run itself before them: one that
depends on what ran before it in its process is not a function of its settings.
"""

from __future__ import annotations

import dataclasses
import functools
import multiprocessing
import os
import platform
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import threadpoolctl

from dpmc.progress import silent
from dpmc.types import Array, DpmcError
from dpmc_papers.config import problems
from dpmc_papers.config.setups import ProblemSetup
from dpmc_papers.pipeline import chain_metrics, run_chains, run_parts, store
from dpmc_papers.pipeline.differences import TOLERANCE, difference
from dpmc_papers.pipeline.jobs import StudyPart
from dpmc_papers.pipeline.published_runs import Key, Run
from dpmc_papers.pipeline.workload import Workload

if TYPE_CHECKING:
    import pandas as pd

# What runs were published with is another measure of the same name: R-hat without ranks.
REDEFINED = ["rhat"]
# A run is decided by rounding if another differs by more than this share of the difference.
SHARE = 0.1
# How often that is tried, and by how many units in the last place each of the data may move. One
# unit would hardly move a sum over many rows, whose own rounding is larger.
TRIES, UNITS = 5, 16
# Kernels of OpenBLAS that every processor of a kind can run, and that round unlike newer ones.
KERNELS = {"x86_64": "Prescott", "AMD64": "Prescott", "aarch64": "ARMV8", "arm64": "ARMV8"}
KERNEL_VARIABLE = "OPENBLAS_CORETYPE"

Outcome = Literal["same", "rounding", "history", "different"]
# What is wrong.
FAILS: tuple[Outcome, ...] = ("history", "different")


@dataclass(frozen=True)
class Compared:
    """A run that was made again.

    Parameters
    ----------
    run : Run
    outcome : {"same", "rounding", "history", "different"}
        Whether its numbers are the published ones, and if not, whether rounding decides them, or
        what ran before.
    difference : float
        Largest relative difference of a number; infinite if rows, columns or a text differ.
    columns : tuple of str
        Those that differ by more than ``TOLERANCE``.
    """

    run: Run
    outcome: Outcome
    difference: float
    columns: tuple[str, ...]


def compared(
    work: Workload, chosen: Sequence[Run], published: Mapping[Key, pd.DataFrame]
) -> Iterator[Compared]:
    """Make runs again, one after another, and compare each with its published rows.

    Parameters
    ----------
    work : Workload
        The document, for the seed and the size of its exact samples.
    chosen : sequence of Run
        Runs of one problem one after another.
    published : mapping of tuple to pandas.DataFrame
        As :class:`~dpmc_papers.pipeline.published_runs.Published` has them.

    Yields
    ------
    Compared
        For each run.
    """
    with tempfile.TemporaryDirectory(prefix="dpmc-rerun-") as folder:
        data = _Data(work, Path(folder))
        for run in chosen:
            seed = work.paper.seed
            rows = data.of(run.setup)
            there = published[run.key].drop(columns=REDEFINED, errors="ignore")
            here = measured(run, rows, data.reference, seed)
            largest, columns = difference(there, here)
            outcome: Outcome = "same"
            if largest > TOLERANCE:
                outcome = _why(run, here, largest, data, seed)
            yield Compared(run, outcome, largest, columns)


def outcome_of(largest: float, moved: Iterable[float]) -> Outcome:
    """Return what a run is that comes out otherwise.

    Parameters
    ----------
    largest : float
        By how much the run differs from the published one.
    moved : iterable of float
        By how much it differs from itself with other rounding, as often as that is tried. The
        first that decides is the last that is asked for.
    """
    least = SHARE * min(largest, 1.0)
    return "rounding" if any(one > least for one in moved) else "different"


def measured(run: Run, rows: Path, reference: Array | None, seed: int) -> pd.DataFrame:
    """Make a run, and return what is measured of it.

    Parameters
    ----------
    run : Run
    rows : Path
        File of the rows.
    reference : ndarray or None
        The exact sample of the problem, which chains need.
    seed : int
        Of the document.

    Raises
    ------
    DpmcError
        If there is no exact sample for a chain.
    """
    # As in jobs of the workflow: sums in several threads are rounded otherwise.
    with threadpoolctl.threadpool_limits(1):
        return _measured(run, rows, reference, seed)


def _measured(run: Run, rows: Path, reference: Array | None, seed: int) -> pd.DataFrame:
    replicate, job = run.key[-1], run.job
    if isinstance(job, StudyPart):
        read = functools.partial(store.read_dataset, rows, "rows")
        return run_parts.measured(job, [replicate], read, silent)
    if reference is None:
        raise DpmcError(f"`reference` must be given for {run.told}, got none")
    dataset = store.read_dataset(rows, run_chains.row_order(job.setup))
    fits = run_chains.run_chains(job.setup, dataset, reference, [replicate])
    runs = ((job.setup, job.point, number, fit) for number, fit in fits)
    names = {"experiment": job.experiment, "label": job.label}
    return chain_metrics.evaluate(runs, reference, seed, **names)


class _Data:
    """The rows and the exact sample of one problem at a time, in files as jobs read them."""

    def __init__(self, work: Workload, folder: Path) -> None:
        self._work = work
        self._of: ProblemSetup | None = None
        self._rows, self._others = folder / "rows.parquet", folder / "moved.parquet"
        self.reference: Array | None = None

    def of(self, setup: ProblemSetup) -> Path:
        """Return the file of the rows of a problem."""
        if setup != self._of:
            store.write_dataset(self._rows, problems.make_data(setup, self._work.paper.seed))
            self._of, self.reference = setup, self._sample(setup)
        return self._rows

    def moved(self, number: int) -> Path:
        """Return a file of the same rows with other last digits, others for each number."""
        dataset = store.read_dataset(self._rows)
        x = moved(dataset.x, np.random.default_rng(number))
        store.write_dataset(self._others, dataclasses.replace(dataset, x=x))
        return self._others

    def _sample(self, setup: ProblemSetup) -> Array | None:
        sizes, seed = self._work.paper.reference, self._work.paper.seed
        if setup.model is None or sizes is None:
            return None
        rows = store.read_dataset(self._rows)
        return problems.make_reference(setup, rows, seed, sizes.num_draws, 0)


def _why(run: Run, here: pd.DataFrame, largest: float, data: _Data, seed: int) -> Outcome:
    """Return what a run is that comes out otherwise."""
    alone = elsewhere(run, data.of(run.setup), data.reference, seed)
    if difference(here, alone)[0] > TOLERANCE:
        return "history"
    kernels = KERNELS.get(platform.machine())
    others = (
        elsewhere(run, data.moved(number), data.reference, seed, kernels=kernels)
        for number in range(TRIES)
    )
    return outcome_of(largest, (difference(here, one)[0] for one in others))


def elsewhere(*arguments: Any, kernels: str | None = None) -> pd.DataFrame:
    """Return what `measured` returns in a process of its own.

    Parameters
    ----------
    *arguments
        Of `measured`.
    kernels : str, optional
        Of OpenBLAS; those that it chooses by default.
    """
    before = os.environ.get(KERNEL_VARIABLE)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        try:
            if kernels is not None:
                os.environ[KERNEL_VARIABLE] = kernels
            future = pool.submit(measured, *arguments)  # starts the process
        finally:
            os.environ.pop(KERNEL_VARIABLE, None)
            if before is not None:
                os.environ[KERNEL_VARIABLE] = before
        return future.result()


def moved(x: Array, rng: np.random.Generator) -> Array:
    """Return values whose last digits are moved at random; integers, such as labels, stay."""
    units = rng.integers(-UNITS, UNITS, size=x.shape, endpoint=True)
    found: Array = np.where(x == np.round(x), x, x + units * np.spacing(x))
    return found
