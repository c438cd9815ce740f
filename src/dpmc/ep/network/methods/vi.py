"""Mean-field variational inference on a network [Graves 2011]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmc.ep.network import vi
from dpmc.ep.network.task import Fitted, Task
from dpmc.progress import Progress, silent
from dpmc.types import NO_GUARANTEE, Array, Budget


@dataclass(frozen=True)
class Params:
    """Settings of variational inference.

    Parameters
    ----------
    num_passes : int
        Passes T over the rows.
    batch_size : int
        Rows of one gradient.
    num_samples : int
        Draws of the weights for one gradient.
    learning_rate : float
        Step size of Adam.
    prior_precision : float
        Prior precision of every weight.
    """

    num_passes: int = 40
    batch_size: int = 100
    num_samples: int = 10
    learning_rate: float = 1e-2
    prior_precision: float = 1.0


def fit(
    x: Array,
    y: Array,
    task: Task,
    params: Params,
    budget: Budget | None,
    rng: np.random.Generator,
    progress: Progress = silent,
) -> Fitted:
    """Run variational inference, which is not private: `budget` is not read.

    Raises
    ------
    DpmcError
        If a setting is refused.
    """
    settings = vi.VISettings(
        hidden=task.hidden,
        num_passes=params.num_passes,
        batch_size=params.batch_size,
        num_samples=params.num_samples,
        learning_rate=params.learning_rate,
        prior_precision=params.prior_precision,
    )
    return Fitted(vi.fit(x, y, settings, rng), NO_GUARANTEE)
