"""Expectation propagation on a network: probabilistic backpropagation with a site for each row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmc.ep.network import engine as network_engine
from dpmc.ep.network.task import Fitted, Task
from dpmc.progress import Progress, silent
from dpmc.types import NO_GUARANTEE, Array, Budget


@dataclass(frozen=True)
class Params:
    """Settings of EP.

    Parameters
    ----------
    num_passes : int
    step : float
        Damping, 0.4 in the public code of [vinaroz2022dpsep].
    refine_prior : bool
        See :mod:`dpmc.ep.network.prior_refinement`.
    """

    num_passes: int = 40
    step: float = 0.4
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
    """Run EP, which is not private: `budget` is not read.

    Raises
    ------
    DpmcError
        If a setting is refused or the sites do not fit into memory.
    """
    run = network_engine.Params(
        "ep", task.hidden, params.num_passes, params.step, refine_prior=params.refine_prior
    )
    found = network_engine.fit(x, y, run, rng, progress)
    return Fitted(found, NO_GUARANTEE, found.counters)
