"""Submissions to the league, the terms that methods get, and the list of methods."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from dpmc.checks import at_least
from dpmc.numerics.source_digest import module_names
from dpmc.privacy.budgets import GaussianBudget
from dpmc.registry import listed, refusal
from dpmc.types import Array, DpmcError, check_epsilon_delta
from dpmc_league.task import Task

RIVALS = "dpmc_league.rivals"
Records = Sequence[tuple[str, int]]


@dataclass(frozen=True)
class Terms:
    """What every method is given beside the task.

    Parameters
    ----------
    epsilon, delta : float
        The budget under substitution of one row.
    max_passes : int
        Passes over the rows that a chain may take after it has found where the posterior is.
    num_draws : int
        Draws of methods whose draws cost nothing.
    seed : int, optional
        Makes a run repeatable, and thereby not private; no row of a table is.
    """

    epsilon: float
    delta: float
    max_passes: int = 4000
    num_draws: int = 4000
    seed: int | None = None

    def __post_init__(self) -> None:
        check_epsilon_delta(self.epsilon, self.delta)
        at_least("max_passes", self.max_passes, 120)
        at_least("num_draws", self.num_draws, 100)

    @property
    def mu(self) -> float:
        """The budget in terms of Gaussian differential privacy."""
        return GaussianBudget.of(self.epsilon, self.delta).mu


@dataclass(frozen=True, eq=False)
class Submission:
    """Draws and the ledger that paid for them.

    Parameters
    ----------
    draws : ndarray of shape (iterations, chains, d)
        After warm-up.
    ledger : sequence of (str, int), or None
        Kinds of releases and how often each was made.
    outside : tuple of str
        Uses of the private rows that the ledger does not have.
    """

    draws: Array
    ledger: Records | None
    outside: tuple[str, ...] = ()


class Rival(Protocol):
    """A module of `dpmc_league.rivals`."""

    TITLE: str
    Params: type[Any]

    def refusal(self, task: Task) -> str:
        """Why the method cannot take part in a task; empty if it can."""

    def run(self, task: Task, terms: Terms) -> Submission:
        """Draws and the ledger."""


def rivals() -> tuple[str, ...]:
    """Names of all methods of the league."""
    return module_names(RIVALS)


def rival(name: str) -> Rival:
    """Method by the name of its file."""
    if name not in rivals():
        wanted = f"one of {listed(rivals())}"
        raise DpmcError(refusal("methods", wanted, name, rivals()))
    module: Any = importlib.import_module(f"{RIVALS}.{name}")
    found: Rival = module
    return found
