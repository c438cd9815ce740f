"""Stochastic expectation propagation on a mixture: one factor for all rows, clipped or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpmc.ep.mixture import engine as mixture_engine
from dpmc.ep.mixture.model import MixtureFit, MixtureModel
from dpmc.ep.mixture.settings import MixtureSettings
from dpmc.ep.settings import Clip
from dpmc.privacy.schedules import Order
from dpmc.progress import Progress, silent
from dpmc.types import NO_GUARANTEE, Array, Budget, Guarantee, InvalidRows


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
        Rows in turn, of a fresh permutation of each pass, or drawn anew for each step.
    invalid : {"no_change", "skip"}
        What takes the place of a factor that is not finite: one that changes nothing, or no
        step at all. ``"skip"`` also leaves out steps after which the rows alone do not add up
        to a density.
    clip : {"none", "joint", "per_block"}
        Clip of a factor: none, of h and Lambda as one vector, or of each of the two.
    clip_bound : float, optional
        Largest norm C of a clipped vector; left out without a clip.
    clip_prior : bool
        Whether h and Lambda of the prior are clipped, too, as in the public code.
    """

    num_passes: int = 100
    step: float | None = None
    order: Order = "permutation"
    invalid: Literal["no_change", "skip"] = "no_change"
    clip: Clip = "none"
    clip_bound: float | None = None
    clip_prior: bool = False


def fit(
    rows: Array,
    model: MixtureModel,
    params: Params,
    budget: Budget | None,
    rng: np.random.Generator,
    progress: Progress = silent,
    invalid_rows: InvalidRows = "refuse",
) -> tuple[MixtureFit, Guarantee]:
    """Run SEP, which is not private, clipped or not: `budget` is not read.

    Parameters
    ----------
    rows : ndarray of shape (N, d)
        Private rows; their number is public.
    model : MixtureModel
        Weights, spread and prior; public.
    params : Params
        Settings of the method.
    budget : Budget or None
        Epsilon and delta to keep; read by private methods only.
    rng : numpy.random.Generator
        Root of the order of the rows and of any noise.
    progress : callable ``(steps done, steps in all, text)``
        Called after each pass.
    invalid_rows : {"refuse", "zero"}
        Whether a row with an entry that is not finite is refused, which no guarantee covers,
        or contributes nothing.

    Returns
    -------
    (MixtureFit, Guarantee)
        The fit, and the privacy that it has.

    Raises
    ------
    DpmcError
        If a setting is refused or rows do not fit the model.
    """
    settings = MixtureSettings(
        num_passes=params.num_passes,
        step=1 / len(rows) if params.step is None else params.step,
        clip=params.clip,
        clip_bound=params.clip_bound,
        order=params.order,
        invalid=params.invalid,
        repair="factor_sum" if params.invalid == "skip" else "prior",
        clip_prior=params.clip_prior,
    )
    fitted = mixture_engine.fit(rows, model, settings, rng, progress, None, invalid_rows)
    return fitted, NO_GUARANTEE
