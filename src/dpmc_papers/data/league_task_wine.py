"""Rows of the task of the league that comes from a file: red wine [Cortez et al. 2009]."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpmc.types import Dataset
from dpmc_papers.data import league_task, wine_red


@dataclass(frozen=True)
class Params(league_task.Params):
    """Which task: ``"logistic_wine_v1"``."""

    task: str = "logistic_wine_v1"


def generate(params: Params, rng: np.random.Generator, path: Path | None = None) -> Dataset:
    """Rows, see :mod:`dpmc_papers.data.league_task`.

    The task looks for the file at `path` by itself, and compares its digest.

    Raises
    ------
    UnavailableError
        If the file is not on this machine.
    """
    return league_task.generate(params, rng)


def raw_file(params: Params) -> str:
    """Key in ``uci.TABLES`` of the raw file."""
    return wine_red.TABLE
