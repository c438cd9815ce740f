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
import math
import multiprocessing
import os
import platform
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import threadpoolctl

from dpmc.privacy.empirical import clopper_pearson
from dpmc.progress import silent
from dpmc.types import Array, DpmcError
from dpmc_papers.config import problems
from dpmc_papers.config.setups import ProblemSetup
from dpmc_papers.pipeline import chain_metrics, provenance, run_chains, run_studies, store
from dpmc_papers.pipeline.published_runs import Key, Run
from dpmc_papers.pipeline.run_studies import Part
from dpmc_papers.pipeline.workload import Workload

if TYPE_CHECKING:
    import pandas as pd

# Numbers that differ relatively by no more are the same, and so are those that differ by no more
# than this in all: what is left of numbers of order one that cancel.
TOLERANCE, CANCELLED = 1e-6, 1e-10
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|inf|nan)")
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

    Runs of one problem come one after another; `work` has the seed and the size of exact samples.
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
    """What a run is that comes out otherwise than published, by `largest`.

    `moved` is by how much it differs from itself with other rounding, as often as that is tried;
    the first that decides is the last that is asked for.
    """
    least = SHARE * min(largest, 1.0)
    return "rounding" if any(one > least for one in moved) else "different"


def measured(run: Run, rows: Path, reference: Array | None, seed: int) -> pd.DataFrame:
    """What is measured of a run that is made, from a file of rows and the seed of its document.

    Chains need `reference`, the exact sample of the problem.
    """
    # As in jobs of the workflow: sums in several threads are rounded otherwise.
    with threadpoolctl.threadpool_limits(1):
        return _measured(run, rows, reference, seed)


def _measured(run: Run, rows: Path, reference: Array | None, seed: int) -> pd.DataFrame:
    replicate, point = run.key[-1], run.made_by
    if isinstance(point, Part):
        read = functools.partial(store.read_dataset, rows, "rows")
        return run_studies.measured(point, read, silent)
    if reference is None:
        raise DpmcError(f"`reference` must be given for {run.told}, got none")
    dataset = store.read_dataset(rows, run_chains.row_order(point.setup))
    fits = run_chains.run_chains(point.setup, dataset, reference, [replicate])
    runs = ((point.setup, point.point, number, fit) for number, fit in fits)
    names = {"experiment": point.experiment, "label": point.label}
    return chain_metrics.evaluate(runs, reference, seed, **names)


class _Data:
    """The rows and the exact sample of one problem at a time, in files as jobs read them."""

    def __init__(self, work: Workload, folder: Path) -> None:
        self._work = work
        self._of: ProblemSetup | None = None
        self._rows, self._others = folder / "rows.parquet", folder / "moved.parquet"
        self.reference: Array | None = None

    def of(self, setup: ProblemSetup) -> Path:
        """File of the rows of a problem."""
        if setup != self._of:
            store.write_dataset(self._rows, problems.make_data(setup, self._work.paper.seed))
            self._of, self.reference = setup, self._sample(setup)
        return self._rows

    def moved(self, number: int) -> Path:
        """File of the same rows with other last digits, others for each number."""
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
    """What a run is that comes out otherwise."""
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
    """What `measured` returns in a process of its own, with other kernels of OpenBLAS if asked."""
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
    """Values whose last digits are moved at random; integers, such as labels, stay."""
    units = rng.integers(-UNITS, UNITS, size=x.shape, endpoint=True)
    found: Array = np.where(x == np.round(x), x, x + units * np.spacing(x))
    return found


def difference(there: pd.DataFrame, here: pd.DataFrame) -> tuple[float, tuple[str, ...]]:
    """Largest relative difference of two tables of a run, and the columns that differ.

    The columns of the published rows are compared; those of other studies are empty. It is infinite
    if there are other rows, or a column or a text is another one.
    """
    if len(there) != len(here):
        return math.inf, ("rows",)
    each = {}
    for name in there.columns:
        old = there[name].tolist()
        new = here[name].tolist() if name in here else [None] * len(here)
        each[name] = max(map(_apart, old, new), default=0.0)
    differ = tuple(name for name, value in each.items() if value > TOLERANCE)
    return max(each.values(), default=0.0), differ


def _apart(old: Any, new: Any) -> float:
    """Relative difference of two values, infinity if they cannot be compared."""
    if isinstance(old, str) and isinstance(new, str):
        return _texts_apart(old, new)
    if _is_missing(old) or _is_missing(new):
        return 0.0 if _is_missing(old) and _is_missing(new) else math.inf
    if isinstance(old, str) or isinstance(new, str):
        return math.inf
    return _numbers_apart(float(old), float(new))


def _texts_apart(old: str, new: str) -> float:
    """Largest relative difference of the numbers in two texts of the same words."""
    if old == new:
        return 0.0
    if NUMBER.sub("#", old) != NUMBER.sub("#", new):
        return math.inf
    numbers = zip(NUMBER.findall(old), NUMBER.findall(new), strict=True)
    return max(_numbers_apart(float(a), float(b)) for a, b in numbers)


def _numbers_apart(old: float, new: float) -> float:
    if old == new or (math.isnan(old) and math.isnan(new)) or abs(old - new) <= CANCELLED:
        return 0.0
    largest = max(abs(old), abs(new))
    return abs(old - new) / largest if math.isfinite(largest) else math.inf


def _is_missing(value: Any) -> bool:
    """Whether a study has no such column, or this row no such value."""
    return value is None or value == "" or value != value


def report(found: Sequence[Compared], confidence: float | None = 0.95) -> list[str]:
    """In lines how many runs came out as published, and which did not.

    `confidence` is of the bound on the share of all runs that differ; None if not all were as
    likely.
    """
    by = {name: [one for one in found if one.outcome == name] for name in get_args(Outcome)}
    apart = max((one.difference for one in by["same"]), default=0.0)
    lines = [f"{len(by['same'])} the same, to a relative difference of {apart:.1e} at most"]
    words: dict[Outcome, str] = {
        "rounding": "decided by rounding, nothing is known of them",
        "history": "depend on what ran before them",
        "different": "different",
    }
    for outcome, told in words.items():
        if outcome == "history" and not by[outcome]:
            continue
        lines.append(f"{len(by[outcome])} {told}")
        lines += [f"  {one.run.told}: {_columns(one)}" for one in by[outcome]]
    number, differ = len(found) - len(by["rounding"]), sum(len(by[name]) for name in FAILS)
    if number and confidence is not None:
        most = 100 * most_that_differ(number, differ, confidence)
        lines.append(
            f"of all runs that rounding does not decide at most {most:.1f} % differ, "
            f"at {100 * confidence:.0f} % confidence"
        )
    return lines


def machines(path: Path) -> str:
    """In words what results were made on, as a file says, and what this machine is."""
    there, here = provenance.read(path), provenance.machine()
    made = there.get("target", "an unknown kind of processor")
    versions = there.get("packages", {})
    packages = [
        f"{name} {versions[name]} there, {version} here"
        for name, version in here["packages"].items()
        if name in versions and versions[name] != version
    ]
    return "; ".join([f"made on {made}, at {there['commit']}; this is {here['target']}", *packages])


def most_that_differ(number: int, found: int, confidence: float) -> float:
    """Upper confidence bound on the share of runs that differ, `found` of `number` in a sample.

    The sample is without replacement, so that the bound holds with more.
    """
    return 1 - clopper_pearson(number - found, number, 1 - confidence)


def _columns(one: Compared) -> str:
    """Columns of a run that differ, a few of them, and by how much."""
    shown, more = one.columns[:3], len(one.columns) - 3
    others = f" and {more} more" if more > 0 else ""
    return f"{', '.join(shown)}{others}, by {one.difference:.1e} at most"
