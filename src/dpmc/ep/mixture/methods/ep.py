"""Expectation propagation on a mixture: one factor for each row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmc.ep.mixture import engine as mixture_engine
from dpmc.ep.mixture.model import MixtureFit, MixtureModel
from dpmc.progress import Progress, silent
from dpmc.types import NO_GUARANTEE, Array, Budget, Guarantee


@dataclass(frozen=True)
class Params:
    """Settings of EP.

    Parameters
    ----------
    num_passes : int
        T, over all rows.
    step : float, optional
        Damping in (0, 1]; by default 1 / N as in [vinaroz2022dpsep, figure 1].
    order : {"cyclic", "permutation", "independent"}
    """

    num_passes: int = 100
    step: float | None = None
    order: str = "permutation"


def fit(
    rows: Array,
    model: MixtureModel,
    params: Params,
    budget: Budget | None,
    rng: np.random.Generator,
    progress: Progress = silent,
) -> tuple[MixtureFit, Guarantee]:
    """Run EP, which is not private: `budget` is not read.

    Returns
    -------
    (MixtureFit, Guarantee)
        See :func:`dpmc.ep.mixture.engine.fit`.

    Raises
    ------
    DpmcError
        If a setting is refused or rows do not fit the model.
    """
    step = 1 / len(rows) if params.step is None else params.step
    run = mixture_engine.Params("ep", params.num_passes, step, order=params.order)
    return mixture_engine.fit(rows, model, run, rng, progress), NO_GUARANTEE
