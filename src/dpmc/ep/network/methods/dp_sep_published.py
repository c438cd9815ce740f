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
from dpmc.ep.settings import required
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
from dpmc.types import Array, Budget, Guarantee


@dataclass(frozen=True)
class Params:
    """Settings of the public code.

    Parameters
    ----------
    num_passes : int
        Passes T over the rows.
    clip_bound : float
        Largest norm C of every block.
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
    budget = required(budget)
    noise, passes = task.noise(), params.num_passes
    if not params.intended:
        settings = network_variants.published("dp_sep", task.hidden, passes, noise)
        return network_engine.fit_without_privacy(x, y, settings, rng, progress)
    multiplier = autodp_published(budget.epsilon, budget.delta, len(y), 2 * passes * len(y))
    settings = network_variants.intended(task.hidden, passes, noise, multiplier, params.clip_bound)
    fitted = network_engine.fit(x, y, settings, rng, progress)
    true_multiplier = settings.true_multiplier(len(y))
    schedule = Schedule(len(y), passes, order="permutation")
    spent = schedules.epsilon_of_blocks([true_multiplier], schedule, budget.delta)
    outside = (STANDARDISATION, FITTED_NOISE_PRECISION, COUNTERS, STOPS)
    guarantee = Guarantee(spent, budget.delta, "replace", "gaussian", outside)
    return Fitted(fitted, guarantee, fitted.counters)
