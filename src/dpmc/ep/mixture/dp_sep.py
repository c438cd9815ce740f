"""DP-SEP on a mixture with the privacy that was asked for.

[vinaroz2022dpsep, Algorithm 3] with what it needs to hold: every step draws its row
independently, h and Lambda are clipped and released as one vector, nothing else depends on
the rows, and the accountant is one for such draws under replacement of one row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmc.ep.mixture import engine as mixture_engine
from dpmc.ep.mixture.model import MixtureFit, MixtureModel
from dpmc.ep.mixture.settings import MixtureSettings
from dpmc.ep.settings import required
from dpmc.privacy import noise_calibration
from dpmc.privacy.ledger import Ledger, Noise
from dpmc.privacy.schedules import COUNTERS, Schedule, counts
from dpmc.privacy.spending import told
from dpmc.progress import Progress, silent
from dpmc.types import Array, Budget, Guarantee, InvalidRows


@dataclass(frozen=True)
class Params:
    """Settings of DP-SEP.

    Parameters
    ----------
    num_passes : int
        T: the run makes T N steps.
    clip_bound : float
        C, of (h, Lambda) of all components as one vector.
    step : float, optional
        s in (0, 1]; by default 0.1 / T: the less q forgets of earlier steps, the better their
        sum stands out of the noise. `debias` makes up for the evidence left out.
    debias : bool
        Divide by the share of the rows that the steps include.
    order : {"independent", "permutation", "cyclic"}
        Every step draws its row from all of them; or every pass uses each row once, which
        amplifies nothing.
    diagnostics : {"none", "exact"}
        Whether counts that depend on rows are returned. They have no noise: ``"exact"`` is
        outside of the guarantee, which says so.
    """

    num_passes: int = 100
    clip_bound: float = 8.0
    step: float | None = None
    debias: bool = True
    order: Any = "independent"
    diagnostics: Any = "none"


def fit(
    rows: Array,
    model: MixtureModel,
    params: Params,
    budget: Budget | None,
    rng: np.random.Generator,
    progress: Progress = silent,
    invalid_rows: InvalidRows = "refuse",
    noise: Noise = "continuous",
) -> tuple[MixtureFit, Guarantee]:
    """Run DP-SEP with the least noise that keeps the budget.

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
    noise : {"continuous", "discrete"}
        As of `dpmc.fit`.

    Returns
    -------
    (MixtureFit, Guarantee)
        The fit, and the privacy that it has.
    """
    budget = required(budget)
    schedule = Schedule(len(rows), params.num_passes, params.order)
    outside = (COUNTERS,) if params.diagnostics == "exact" else ()
    multiplier, guarantee = noise_calibration.calibrate(
        schedule, budget.epsilon, budget.delta, outside
    )
    settings = MixtureSettings(
        num_passes=params.num_passes,
        step=0.1 / params.num_passes if params.step is None else params.step,
        clip="joint",
        clip_bound=params.clip_bound,
        noise_multiplier=multiplier,
        order=params.order,
        repair="noise",
        debias=params.debias,
        diagnostics=params.diagnostics,
    )
    ledger = Ledger(counts(schedule, multiplier), noise)
    with told(guarantee, ledger.records):
        fitted = mixture_engine.fit(rows, model, settings, rng, progress, ledger, invalid_rows)
    return fitted, guarantee
