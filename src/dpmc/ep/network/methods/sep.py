"""Stochastic expectation propagation on a network: one factor for all rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmc.ep.network import engine as network_engine
from dpmc.ep.network.task import Fitted, Task
from dpmc.progress import Progress, silent
from dpmc.types import NO_GUARANTEE, Array, Budget


@dataclass(frozen=True)
class Params:
    """Settings of SEP.

    Parameters
    ----------
    num_passes : int
    step : float
        s in (0, 1]: 1 in the public code of [vinaroz2022dpsep], 1 / N in its equation 4.
    refine_prior : bool
        See :mod:`dpmc.ep.network.prior_refinement`.
    """

    num_passes: int = 40
    step: float = 1.0
    refine_prior: bool = True


def fit(
    x: Array,
    y: Array,
    task: Task,
    params: Params,
    budget: Budget | None,
    rng: np.random.Generator,
    progress: Progress = silent,
) -> Fitted:
    """Run SEP, which is not private: `budget` is not read.

    Raises
    ------
    DpmcError
        If a setting is refused.
    """
    run = network_engine.Params(
        "sep", task.hidden, params.num_passes, params.step, refine_prior=params.refine_prior
    )
    found = network_engine.fit(x, y, run, rng, progress)
    return Fitted(found, NO_GUARANTEE, found.counters)
