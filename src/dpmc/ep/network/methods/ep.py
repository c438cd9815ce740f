"""Expectation propagation on a network: probabilistic backpropagation with a site for each row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmc.ep.network import engine as network_engine
from dpmc.ep.network.settings import NetworkSettings
from dpmc.ep.network.task import Fitted, Task
from dpmc.progress import Progress, silent
from dpmc.types import Array, Budget, InvalidRows


@dataclass(frozen=True)
class Params:
    """Settings of EP.

    Parameters
    ----------
    num_passes : int
        Passes T over the rows.
    step : float
        Damping, 0.4 in the public code of [vinaroz2022dpsep].
    refine_prior : bool
        Whether the prior of the weights is refined after each pass, from the approximation
        alone (:mod:`dpmc.ep.network.prior_refinement`).
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
    invalid_rows: InvalidRows = "refuse",
) -> Fitted:
    """Run EP, which is not private: `budget` is not read.

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
        If a setting is refused or the sites do not fit into memory.
    """
    settings = NetworkSettings(
        sites="per_row",
        hidden=task.hidden,
        num_passes=params.num_passes,
        step=params.step,
        refine_prior=params.refine_prior,
    )
    return network_engine.fit_without_privacy(x, y, settings, rng, progress, invalid_rows)
