"""SEP with the fixed prior and noise of the clipped rows of Tables 2 and 3, clipped or not.

The public code of [vinaroz2022dpsep] computes clipped factors and does not use them, so that
its "SEP clipped" is SEP with a broad fixed prior and the noise variance of an earlier run on the
same rows. ``clip="none"`` is that; with ``"joint"`` or ``"per_block"`` factors are clipped.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpmc.ep.network import engine as network_engine
from dpmc.ep.network import variants as network_variants
from dpmc.ep.network.task import Fitted, Task
from dpmc.progress import Progress, silent
from dpmc.types import Array, Budget, InvalidRows


@dataclass(frozen=True)
class Params:
    """Settings of clipped SEP.

    Parameters
    ----------
    num_passes : int
        Passes T over the rows.
    clip : {"none", "joint", "per_block"}
        Clip of a factor: none, as one vector, or block by block.
    clip_bound : float, optional
        Largest norm C of a clipped vector; left out without a clip.
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
    invalid_rows: InvalidRows = "refuse",
) -> Fitted:
    """Run clipped SEP, which is not private: `budget` is not read.

    Parameters
    ----------
    x : ndarray of shape (N, d)
        Features of the private rows, of about unit size.
    y : ndarray of shape (N,)
        Targets, of about unit size; their number is public.
    task : Task
        Public description of the regression problem.
    params : Params
        Settings of the method.
    budget : Budget or None
        Epsilon and delta to keep; read by private methods only.
    rng : numpy.random.Generator
        Source of the first weights, the order of rows and any noise.
    progress : callable ``(steps done, steps in all, text)``
        Called after each block of steps.
    invalid_rows : {"refuse", "zero"}
        Whether a row with an entry that is not finite is refused, which no guarantee covers,
        or contributes nothing.

    Raises
    ------
    DpmcError
        If a setting is refused or the data set has no constants for its noise.
    """
    base = network_variants.fixed_prior(task.hidden, params.num_passes, task.noise())
    settings = replace(base, clip=params.clip, clip_bound=params.clip_bound, step=params.step)
    return network_engine.fit_without_privacy(x, y, settings, rng, progress, invalid_rows)
