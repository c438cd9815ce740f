"""DP-SEP on a network as the public code of the paper runs it, or as it was meant to run.

The code draws noise and adds it to arrays that nothing reads: what Tables 2 and 3 of
[vinaroz2022dpsep] print for DP-SEP has no privacy at all. ``intended=True`` adds that noise to
factors that are really clipped: its deviation is that of a step of 1 / N where the step is 1, so
the multiplier is too small by a factor of N, and rows come in permutations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmc.ep.network import engine as network_engine
from dpmc.ep.network import variants as network_variants
from dpmc.ep.network.task import Fitted, Task
from dpmc.privacy import schedules
from dpmc.privacy.published_noise import autodp_published
from dpmc.privacy.schedules import (
    COUNTERS,
    FITTED_NOISE_PRECISION,
    STANDARDISATION,
    STOPS,
    Schedule,
)
from dpmc.progress import Progress, silent
from dpmc.types import NO_GUARANTEE, Array, Budget, DpmcError, Guarantee


@dataclass(frozen=True)
class Params:
    """Settings of the public code.

    Parameters
    ----------
    num_passes : int
    clip_bound : float
        C of every block.
    intended : bool
        Whether factors are clipped and the noise is added.
    """

    num_passes: int = 40
    clip_bound: float = 1.0
    intended: bool = False


def fit(
    x: Array,
    y: Array,
    task: Task,
    params: Params,
    budget: Budget | None,
    rng: np.random.Generator,
    progress: Progress = silent,
) -> Fitted:
    """Run the public code.

    Raises
    ------
    DpmcError
        If a setting is refused, there is no budget or the data set has no constants.
    """
    if budget is None:
        raise DpmcError("budget: None, allowed an epsilon and a delta with method 'dp_sep'")
    noise, passes = task.noise(), params.num_passes
    if not params.intended:
        run = network_variants.published("dp_sep", task.hidden, passes, noise)
        found = network_engine.fit(x, y, run, rng, progress)
        return Fitted(found, NO_GUARANTEE, found.counters)
    multiplier = autodp_published(budget.epsilon, budget.delta, len(y), 2 * passes * len(y))
    run = network_variants.intended(task.hidden, passes, noise, multiplier, params.clip_bound)
    found = network_engine.fit(x, y, run, rng, progress)
    true_multiplier = run.noise_sd(len(y)) / run.sensitivity
    schedule = Schedule(len(y), passes, order="permutation")
    spent = schedules.epsilon_of_blocks([true_multiplier], schedule, budget.delta)
    outside = (STANDARDISATION, FITTED_NOISE_PRECISION, COUNTERS, STOPS)
    guarantee = Guarantee(spent, budget.delta, "replace", "gaussian", outside)
    return Fitted(found, guarantee, found.counters)
