"""Expectation propagation on a mixture: one factor for each row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmc.ep.mixture import engine as mixture_engine
from dpmc.ep.mixture.model import MixtureFit, MixtureModel
from dpmc.ep.mixture.settings import MixtureSettings
from dpmc.privacy.schedules import Order
from dpmc.progress import Progress, silent
from dpmc.types import NO_GUARANTEE, Array, Budget, Guarantee, InvalidRows


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
        Rows in turn, of a fresh permutation of each pass, or drawn anew for each step.
    """

    num_passes: int = 100
    step: float | None = None
    order: Order = "permutation"


def fit(
    rows: Array,
    model: MixtureModel,
    params: Params,
    budget: Budget | None,
    rng: np.random.Generator,
    progress: Progress = silent,
    invalid_rows: InvalidRows = "refuse",
) -> tuple[MixtureFit, Guarantee]:
    """Run EP, which is not private: `budget` is not read.

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
    step = 1 / len(rows) if params.step is None else params.step
    settings = MixtureSettings(
        sites="per_row", num_passes=params.num_passes, step=step, order=params.order
    )
    fitted = mixture_engine.fit(rows, model, settings, rng, progress, None, invalid_rows)
    return fitted, NO_GUARANTEE
