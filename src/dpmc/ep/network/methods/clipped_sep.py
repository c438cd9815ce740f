"""SEP with the fixed prior and noise of the clipped rows of Tables 2 and 3, clipped or not.

The public code of [vinaroz2022dpsep] computes clipped factors and does not use them, so that
its "SEP clipped" is SEP with a broad fixed prior and a noise variance that an earlier run on the
same rows found. ``clip="none"`` is that; with ``"joint"`` or ``"per_block"`` factors are clipped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpmc.ep.network import engine as network_engine
from dpmc.ep.network import variants as network_variants
from dpmc.ep.network.task import Fitted, Task
from dpmc.progress import Progress, silent
from dpmc.types import NO_GUARANTEE, Array, Budget


@dataclass(frozen=True)
class Params:
    """Settings of clipped SEP.

    Parameters
    ----------
    num_passes : int
    clip : {"none", "joint", "per_block"}
    clip_bound : float, optional
        C, with a clip.
    step : float
        s in (0, 1].
    """

    num_passes: int = 40
    clip: Any = "none"
    clip_bound: float | None = None
    step: float = 1.0


def fit(
    x: Array,
    y: Array,
    task: Task,
    params: Params,
    budget: Budget | None,
    rng: np.random.Generator,
    progress: Progress = silent,
) -> Fitted:
    """Run clipped SEP, which is not private: `budget` is not read.

    Raises
    ------
    DpmcError
        If a setting is refused or the data set has no constants for its noise.
    """
    base = network_variants.fixed_prior(task.hidden, params.num_passes, task.noise())
    bound = math.inf if params.clip_bound is None else params.clip_bound
    run = replace(base, clip=params.clip, clip_bound=bound, step=params.step)
    found = network_engine.fit(x, y, run, rng, progress)
    return Fitted(found, NO_GUARANTEE, found.counters)
