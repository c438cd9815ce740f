"""A clip bound found under the same budget: a share of the factors is to be longer.

A tenth of the passes are made with a public bound. Where they end, eight noisy counts bisect for
the length that so many factors exceed, and the other passes start anew with it. Of adaptive clips
[Andrew et al. 2021, "Differentially private learning with adaptive clipping"] have the median.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmc import checks
from dpmc.ep.mixture.model import MixtureFit, MixtureModel
from dpmc.types import Array, Budget, DpmcError
from dpmc_league import sep_clips
from dpmc_league.sep_clips import Run

COUNTS = 8
FIRST = 0.1


@dataclass(frozen=True)
class Params:
    """Settings of DP-SEP with a bound that is found.

    Parameters
    ----------
    num_passes : int
        T, in all.
    first_bound : float
        Public bound of the first passes.
    clipped_share : float
        Of the factors, in (0, 1), that are to be longer than the bound.
    """

    num_passes: int = 20
    first_bound: float = 1.0
    clipped_share: float = 0.5

    def __post_init__(self) -> None:
        checks.at_least("num_passes", self.num_passes, 3)
        checks.positive("first_bound", self.first_bound)
        if not 0 < self.clipped_share < 1:
            raise DpmcError(f"`clipped_share` must be in (0, 1), got {self.clipped_share}")


def fit(
    rows: Array, model: MixtureModel, params: Params, budget: Budget, rng: np.random.Generator
) -> tuple[MixtureFit, Run]:
    """Run DP-SEP twice, the second time with the bound that is found where the first ends."""
    first_rng, count_rng, last_rng = rng.spawn(3)
    run = sep_clips.begin(len(rows), params.num_passes, COUNTS, budget)
    first = max(1, round(FIRST * params.num_passes))
    place = sep_clips.passes(rows, model, run, first, params.first_bound, first_rng)
    bound = sep_clips.search(
        lambda length: sep_clips.longer(rows, model, place, length),
        params.clipped_share * len(rows),
        run,
        count_rng,
    )
    return sep_clips.passes(rows, model, run, params.num_passes - first, bound, last_rng), run
