"""Rows of a task of the league, as frozen in :mod:`dpmc_league.catalogue`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmc.types import Dataset
from dpmc_league.task import known, task


@dataclass(frozen=True)
class Params:
    """Which task.

    Parameters
    ----------
    task : str
        The name of its file in :mod:`dpmc_league.catalogue`, such as ``"gaussian_2_v1"``.
    """

    task: str

    def __post_init__(self) -> None:
        known(self.name)

    @property
    def name(self) -> str:
        """Name of the task."""
        return self.task.replace("_", "-")


def generate(params: Params, rng: np.random.Generator) -> Dataset:
    """Rows, and make the draws of the reference, which are kept in the user's cache.

    Jobs that score methods then find both. Nothing is drawn from `rng`: a task never changes.
    """
    one = task(params.name)
    one.reference()
    return one.dataset
