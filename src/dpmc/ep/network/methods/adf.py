"""Assumed density filtering on a network: probabilistic backpropagation as first stated.

[Hernandez-Lobato and Adams 2015]. Every pass takes the same rows for new evidence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmc.ep.network import engine as network_engine
from dpmc.ep.network.task import Fitted, Task
from dpmc.progress import Progress, silent
from dpmc.types import NO_GUARANTEE, Array, Budget


@dataclass(frozen=True)
class Params:
    """Settings of ADF.

    Parameters
    ----------
    num_passes : int
    refine_prior : bool
        See :mod:`dpmc.ep.network.prior_refinement`.
    """

    num_passes: int = 40
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
    """Run ADF, which is not private: `budget` is not read.

    Raises
    ------
    DpmcError
        If a setting is refused.
    """
    run = network_engine.Params(
        "adf", task.hidden, params.num_passes, refine_prior=params.refine_prior
    )
    found = network_engine.fit(x, y, run, rng, progress)
    return Fitted(found, NO_GUARANTEE, found.counters)
