"""Stochastic expectation propagation on a mixture: one factor for all rows, clipped or not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmc.ep.mixture import engine as mixture_engine
from dpmc.ep.mixture.model import MixtureFit, MixtureModel
from dpmc.progress import Progress, silent
from dpmc.types import NO_GUARANTEE, Array, Budget, Guarantee


@dataclass(frozen=True)
class Params:
    """Settings of SEP.

    Parameters
    ----------
    num_passes : int
        T, over all rows.
    step : float, optional
        s in (0, 1]; by default 1 / N as in [vinaroz2022dpsep, equation 4], where SEP as first
        stated has 1 [Li, Hernandez-Lobato and Turner 2015].
    order : {"cyclic", "permutation", "independent"}
    invalid : {"no_change", "skip"}
        See :class:`dpmc.ep.mixture.engine.Params`.
    clip : {"none", "joint", "per_block"}
    clip_bound : float, optional
        C, with a clip.
    clip_prior : bool
    """

    num_passes: int = 100
    step: float | None = None
    order: str = "permutation"
    invalid: str = "no_change"
    clip: str = "none"
    clip_bound: float | None = None
    clip_prior: bool = False


def fit(
    rows: Array,
    model: MixtureModel,
    params: Params,
    budget: Budget | None,
    rng: np.random.Generator,
    progress: Progress = silent,
) -> tuple[MixtureFit, Guarantee]:
    """Run SEP, which is not private, clipped or not: `budget` is not read.

    Returns
    -------
    (MixtureFit, Guarantee)
        See :func:`dpmc.ep.mixture.engine.fit`.

    Raises
    ------
    DpmcError
        If a setting is refused or rows do not fit the model.
    """
    run = mixture_engine.Params(
        "sep",
        params.num_passes,
        1 / len(rows) if params.step is None else params.step,
        clip=params.clip,
        clip_bound=params.clip_bound,
        order=params.order,
        invalid=params.invalid,
        repair="factor_sum" if params.invalid == "skip" else "prior",
        clip_prior=params.clip_prior,
    )
    return mixture_engine.fit(rows, model, run, rng, progress), NO_GUARANTEE
