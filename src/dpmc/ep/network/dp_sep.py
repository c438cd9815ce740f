"""DP-SEP on a network with the privacy that was asked for.

[vinaroz2022dpsep, Algorithm 3] with what it needs to hold: every step draws its row
independently, the factor is clipped as one vector, all of it gets noise, and prior and noise
variance are public constants or coordinates of the release.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpmc import checks
from dpmc.ep.network import engine as network_engine
from dpmc.ep.network import variants as network_variants
from dpmc.ep.network.task import Fitted, Task
from dpmc.ep.settings import required
from dpmc.privacy import noise_calibration
from dpmc.privacy.ledger import Ledger
from dpmc.privacy.schedules import COUNTERS, STANDARDISATION, Schedule, counts
from dpmc.privacy.spending import told
from dpmc.progress import Progress, silent
from dpmc.types import Array, Budget, InvalidRows


@dataclass(frozen=True)
class Params:
    """Settings of DP-SEP.

    Parameters
    ----------
    num_passes : int
        T: the run makes T N steps.
    clip_bound : float
        C, of the whole factor. With `prior_scale`, by default what does best on
        :mod:`dpmc_papers.data.network_rows`.
    step : float, optional
        s in (0, 1]; by default 1 / T.
    noise_variance : float, optional
        Of the targets, public; by default learned in the release.
    prior_precision : float, optional
        Of every weight, public; by default `prior_scale` times the noise.
    prior_scale : float
        Prior precision over the standard deviation of the noise that all steps leave on a
        coordinate, which is public. With less, noise puts weights anywhere: where a precision
        is that of the prior, the noise of the shift is divided by it.
    order : {"independent", "permutation"}
        Every step draws its row from all of them; or every pass uses each row once, which
        amplifies nothing and takes far more noise.
    diagnostics : {"none", "exact"}
        Whether counts that depend on rows are returned. They have no noise: ``"exact"`` is
        outside of the guarantee, which says so.
    """

    num_passes: int = 40
    clip_bound: float = 0.3
    step: float | None = None
    noise_variance: float | None = None
    prior_precision: float | None = None
    prior_scale: float = 1.0
    order: Any = "independent"
    diagnostics: Any = "none"


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
    """Run DP-SEP with the least noise that keeps the budget.

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
    """
    budget = required(budget)
    schedule = Schedule(len(y), params.num_passes, params.order)
    outside: tuple[str, ...] = (COUNTERS,) if params.diagnostics == "exact" else ()
    outside += (STANDARDISATION,) if task.standardised_by_rows else ()
    multiplier, guarantee = noise_calibration.calibrate(
        schedule, budget.epsilon, budget.delta, outside
    )
    settings = network_variants.private(
        task.hidden,
        params.num_passes,
        params.clip_bound,
        multiplier,
        params.noise_variance,
        params.step,
    )
    settings = replace(settings, order=params.order, diagnostics=params.diagnostics)
    prior = params.prior_precision
    if prior is None:
        checks.positive("prior_scale", params.prior_scale)
        prior = params.prior_scale * settings.noise_of_steps(len(y))
    settings = replace(settings, prior_precision=prior)
    ledger = Ledger(counts(schedule, multiplier))
    with told(guarantee, ledger.records):
        fitted = network_engine.fit(
            x, y, settings, rng, progress, ledger=ledger, invalid_rows=invalid_rows
        )
    return Fitted(fitted, guarantee, fitted.counters)
