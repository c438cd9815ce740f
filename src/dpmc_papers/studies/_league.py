"""Columns of the studies of the league, and one submission as a row of them."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmc import checks
from dpmc.privacy.gaussian_noise import true_epsilon
from dpmc.progress import Progress
from dpmc.rng import stream
from dpmc.types import NO_GUARANTEE, Dataset, Guarantee
from dpmc_league import attack
from dpmc_league.score import Score
from dpmc_league.submission import Terms
from dpmc_league.table import ABSENT, entry
from dpmc_league.task import Task, task
from dpmc_papers.config.setups import StudyPoint, StudySetup
from dpmc_papers.data import league_task
from dpmc_papers.studies import _tables

if TYPE_CHECKING:
    import pandas as pd

SCORES = (
    "mu",
    "ledger_epsilon",
    "mmd",
    "sliced_wasserstein",
    "mean_error",
    "worst_mean_error",
    "square_error",
    "deviation_ratio",
    "worst_deviation",
    "effective_draws",
    "per_mu2",
    "bulk_ess",
    "predictive",
    "coverage_50",
    "coverage_90",
    "passes",
    "normal_distance",
    "attack_epsilon",
    "attack_claim",
)
COLUMNS = {
    **_tables.COLUMNS,
    "num_rows": "int64",
    "dim": "int64",
    "releases": "int64",
    "clip_factor": "float64",
    **dict.fromkeys(SCORES, "float64"),
}
unavailable = functools.partial(_tables.unavailable, COLUMNS)


@dataclass(frozen=True)
class Params:
    """Terms of all methods; see :class:`dpmc_league.submission.Terms`.

    Parameters
    ----------
    max_passes : int
        Passes over the rows that a chain may take.
    num_draws : int
        Draws of methods whose draws cost nothing.
    attack_runs : int
        Runs of the attack that a method has to stand, see :mod:`dpmc_league.attack`; 0 for none.
    """

    max_passes: int = 1000
    num_draws: int = 2000
    attack_runs: int = 0

    def __post_init__(self) -> None:
        checks.at_least("attack_runs", self.attack_runs, 0)


def run(
    setup: StudySetup,
    dataset: Dataset,
    replicates: Iterable[int],
    method_of: Callable[[StudyPoint], Any],
    progress: Progress,
) -> pd.DataFrame:
    """Score a method, which `method_of` makes of a point, at some points of a study.

    All methods share the seed of a task, an epsilon and a replicate: two that run the same chain
    have the same one. Each point has ``epsilon``, and may have ``num_rows``: so many of the rows
    alone; `dataset` may differ from the rows of the task in its last digits. Where ``status`` is
    not ``complete`` it says why there is no score. ``square_error`` is the square of
    ``mean_error``: 1 over its mean over replicates is the number of effective draws.
    """
    runs = Params(**_tables.having(setup.params, Params)).attack_runs

    @functools.cache
    def of(place: int) -> tuple[Task, Any, Any]:
        one, method = _task(points[place], dataset), method_of(points[place])
        return one, method, functools.partial(attack.of, method, one, runs) if runs else None

    def row(point: StudyPoint, replicate: int) -> dict[str, Any]:
        one, method, attacked = of(points.index(point))
        found = entry(one, method, terms(point, one.delta, replicate), attacked)
        return {
            **_tables.place(point, replicate),
            "delta": one.delta,
            "num_rows": one.num_rows,
            "dim": one.dim,
            **point.own("epsilon", "num_rows"),
            **_measured(found, point, one.delta),
        }

    points = setup.each()
    return _tables.tabulate(COLUMNS, itertools.product(points, replicates), progress, row)


def terms(point: StudyPoint, delta: float, replicate: int) -> Terms:
    """Terms of one run."""
    epsilon = float(point.point["epsilon"])
    key = stream(point.seed, "league", point.problem.name, epsilon, replicate)
    own = Params(**_tables.having(point.params, Params))
    seed = int(key.integers(2**62))
    return Terms(epsilon, delta, own.max_passes, own.num_draws, seed)


def check(point: StudyPoint) -> None:
    """Refuse a point that a run would refuse."""
    _task_name(point)
    terms(point, 0.5, 0)


def _task(point: StudyPoint, dataset: Dataset) -> Task:
    """Task of a point, with all of its rows or the first of them."""
    one = task(_task_name(point))
    if not np.array_equal(dataset.x, one.rows):
        one = one.rounded(dataset.x)
    return one.first(int(point.point["num_rows"])) if "num_rows" in point.point else one


def _task_name(setup: StudyPoint | StudySetup) -> str:
    params: Mapping[str, Any] = setup.problem.data.params
    return league_task.Params(params["task"]).name


def _measured(found: Score, point: StudyPoint, delta: float) -> dict[str, Any]:
    """Columns of one submission."""
    outside = [*found.outside, *point.outside]
    return {
        **found.columns(),
        **_tables.guaranteed(_guarantee(found, delta), outside),
        "square_error": found.mean_error**2,
        "status": "complete" if found.scored else found.status,
    }


def _guarantee(found: Score, delta: float) -> Guarantee:
    """What a submission has proved: by mu where all releases are Gaussian."""
    if found.status.startswith(ABSENT):  # nothing was read
        return Guarantee(0.0, delta)
    if math.isfinite(found.mu):
        return Guarantee(true_epsilon(1 / found.mu, delta), delta, accountant="gaussian")
    if math.isfinite(found.epsilon):
        return Guarantee(found.epsilon, delta, accountant="pld")
    return NO_GUARANTEE
