"""A clip bound that is fixed beforehand: all of the budget is for DP-SEP."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmc import checks
from dpmc.ep.mixture.model import MixtureFit, MixtureModel
from dpmc.types import Array, Budget
from dpmc_league import sep_clips
from dpmc_league.sep_clips import Run


@dataclass(frozen=True)
class Params:
    """Settings of DP-SEP with a fixed bound.

    Parameters
    ----------
    num_passes : int
        T: a run makes T N steps.
    clip_bound : float
        C, of a factor as one vector.
    """

    num_passes: int = 20
    clip_bound: float = 8.0

    def __post_init__(self) -> None:
        checks.at_least("num_passes", self.num_passes, 3)
        checks.positive("clip_bound", self.clip_bound)


def fit(
    rows: Array, model: MixtureModel, params: Params, budget: Budget, rng: np.random.Generator
) -> tuple[MixtureFit, Run]:
    """Run DP-SEP."""
    run = sep_clips.begin(len(rows), params.num_passes, 0, budget)
    passes = params.num_passes
    return sep_clips.passes(rows, model, run, passes, params.clip_bound, rng), run
