"""The league: every method on every task at every budget, scored, whatever becomes of a method."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from dpmc.progress import Progress, silent
from dpmc.rng import stream
from dpmc.types import UnavailableError
from dpmc_league import attack
from dpmc_league.attack import Attacked
from dpmc_league.score import SCORED, Score, scored
from dpmc_league.submission import Submission, Terms, rival
from dpmc_league.task import Task, known, task

if TYPE_CHECKING:
    import pandas as pd

ABSENT = "does not take part: "


class Method(Protocol):
    """What takes part beside the methods of `dpmc_league.rivals`."""

    def run(self, task: Task, terms: Terms) -> Submission:
        """Draws and the ledger."""


@dataclass(frozen=True)
class Row:
    """One submission of the league.

    Parameters
    ----------
    task, method : str
    epsilon : float
        The budget.
    repeat : int
    score : Score
    seconds : float
        Processor time of the method and of the processes that it waited for, compiling and, in
        the first row of a task, the attack included; it differs from run to run.
    """

    task: str
    method: str
    epsilon: float
    repeat: int
    score: Score
    seconds: float = math.nan

    def columns(self) -> dict[str, Any]:
        """Row as it is written: ``outside`` as text, ``ledger_epsilon`` recomposed."""
        head = {"task": self.task, "method": self.method, "epsilon": self.epsilon}
        last = {"seconds": self.seconds}
        return head | {"repeat": self.repeat} | self.score.columns() | last


def play(
    tasks: Sequence[str],
    methods: Sequence[str],
    epsilons: Sequence[float],
    *,
    foreign: Mapping[str, Method] = MappingProxyType({}),
    repeats: int = 1,
    max_passes: int = 1000,
    num_draws: int = 2000,
    attack_runs: int = 60,
    seed: int | None = 1,
    progress: Progress = silent,
) -> list[Row]:
    """Row for each task, method, budget and repeat, in this order.

    Parameters
    ----------
    tasks, methods : sequence of str
        Names; an unknown one is refused before anything runs.
    epsilons : sequence of float
    foreign : mapping of str to Method
        By name.
    repeats, max_passes, num_draws : int
        See :class:`dpmc_league.submission.Terms`.
    attack_runs : int
        Runs of the attack on each method, see :mod:`dpmc_league.attack`; 0 for none. With 60 a
        method is found out that adds next to no noise, with 300 one with half of it.
    seed : int, optional
        Of all streams; each submission then names a known seed as outside of its guarantee.
    progress : callable
    """
    chosen = [(name, rival(name)) for name in methods] + list(foreign.items())
    grid = [(e, r) for e in epsilons for r in range(repeats)]
    for name in tasks:
        known(name)
    rows: list[Row] = []
    total = len(tasks) * len(chosen) * len(grid)
    for name in tasks:
        try:
            one = task(name)
        except UnavailableError as error:
            found = Score(f"{ABSENT}{error}")
            rows += [Row(name, label, e, r, found) for label, _ in chosen for e, r in grid]
            continue
        for label, method in chosen:
            attacked = functools.cache(functools.partial(attack.of, method, one, attack_runs))
            for epsilon, repeat in grid:
                key = None if seed is None else _key(seed, name, label, epsilon, repeat)
                terms = Terms(epsilon, one.delta, max_passes, num_draws, key)
                before = _processor_seconds()
                found = entry(one, method, terms, attacked if attack_runs else None)
                seconds = _processor_seconds() - before
                rows.append(Row(name, label, epsilon, repeat, found, seconds))
                progress(len(rows), total, f"{name} {label}")
    return rows


def entry(
    one: Task, method: Any, terms: Terms, attacked: Callable[[], Attacked] | None = None
) -> Score:
    """Score of one run, or why there is none.

    Parameters
    ----------
    one : Task
    method : module or object with ``run(task, terms)``
    terms : Terms
    attacked : callable, optional
        Returns what an attack on the method finds. It is asked where a run would be scored, and
        has the last word.
    """
    refused = getattr(method, "refusal", lambda task: "")(one)
    if refused:
        return Score(f"{ABSENT}{refused}")
    found = _entry(one, method, terms)
    if attacked is None or not found.scored:
        return found
    said = attacked()
    if said.reason:
        found = Score(said.reason, found.epsilon, found.mu, found.outside)
    return replace(found, attack_epsilon=said.epsilon, attack_claim=said.claim)


def _entry(one: Task, method: Any, terms: Terms) -> Score:
    try:
        with np.errstate(all="ignore"):  # a chain that diverges is told by its draws
            handed = method.run(one, terms)
    except Exception as error:  # of a method's own: it is to become a row, not the end of the table
        line = " ".join(str(error).split())[:200]
        return Score(f"failed: {line or type(error).__name__}")
    return scored(one, handed.draws, handed.ledger, terms.epsilon, handed.outside)


def _processor_seconds() -> float:
    """Processor time of this process and of those that it has waited for."""
    return sum(os.times()[:4])


def _key(seed: int, *where: Any) -> int:
    return int(stream(seed, "league", "submission", *where).integers(2**62))


def frame(rows: Iterable[Row]) -> pd.DataFrame:
    """Table of rows: a column for each of their numbers."""
    import pandas as pd  # a method of the league needs none of it

    return pd.DataFrame([row.columns() for row in rows])


def write(path: Path, rows: Iterable[Row]) -> None:
    """Write rows as CSV, numbers to six digits."""
    part = path.with_suffix(".part")
    frame(rows).to_csv(part, index=False, float_format="%.6g")
    part.replace(path)


def standings(rows: Iterable[Row]) -> pd.DataFrame:
    """What the repeats of each method on each task at each budget come to, the nearest first.

    Medians of distances, and effective draws: 1 over the mean square of the errors of all repeats.
    ``status`` says why none has a score, where none has.
    """
    keys = ["task", "epsilon", "method"]
    table = frame(rows)
    groups = table[table["status"] == SCORED].groupby(keys)
    found = groups[["sliced_wasserstein", "mmd", "deviation_ratio"]].median()
    found["effective_draws"] = 1 / groups["mean_error"].agg(lambda errors: (errors**2).mean())
    found = found.reindex(table.groupby(keys).size().index)
    status = table.groupby(keys)["status"].first()
    found["status"] = status.where(found["effective_draws"].isna(), SCORED)
    return found.sort_values(["task", "epsilon", "sliced_wasserstein"]).reset_index()


def summary(rows: Iterable[Row]) -> str:
    """Standings as text."""
    return standings(rows).to_string(index=False, float_format="{:.3g}".format, na_rep="")
