"""Methods on networks; a new one is an entry of ``TABLE``.

Each has ``Params`` and ``fit(x, y, task, params, budget, rng, progress, invalid_rows)``, see
:func:`dpmc.ep.network.dp_sep.fit`. `budget` is read by private methods only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpmc.ep.network import dp_sep, variants, vi
from dpmc.ep.network import engine as network_engine
from dpmc.ep.network.settings import NetworkSettings
from dpmc.ep.network.task import Fitted, Task
from dpmc.ep.settings import required
from dpmc.privacy import schedules
from dpmc.privacy.published_noise import autodp_published
from dpmc.privacy.schedules import (
    COUNTERS,
    FITTED_NOISE_PRECISION,
    STANDARDISATION,
    STOPS,
    Schedule,
)
from dpmc.progress import Progress, silent
from dpmc.types import NO_GUARANTEE, Array, Budget, Guarantee, InvalidRows


@dataclass(frozen=True)
class NetworkMethod:
    """A method, with its parameters."""

    name: str
    Params: type[Any]
    fit: Callable[..., Fitted]


def without_privacy(settings_of: Callable[[Task, Any], NetworkSettings]) -> Callable[..., Fitted]:
    """Method that runs the engine with these settings."""

    def fit(
        x: Array,
        y: Array,
        task: Task,
        params: Any,
        budget: Budget | None,
        rng: np.random.Generator,
        progress: Progress = silent,
        invalid_rows: InvalidRows = "refuse",
    ) -> Fitted:
        settings = settings_of(task, params)
        return network_engine.fit_without_privacy(x, y, settings, rng, progress, invalid_rows)

    return fit


@dataclass(frozen=True)
class AdfParams:
    """Settings of ADF.

    Parameters
    ----------
    num_passes : int
        Passes T over the rows.
    refine_prior : bool
        Whether the prior of the weights is refined after each pass, from the approximation
        alone (:class:`dpmc.ep.network.engine.PriorFactors`).
    """

    num_passes: int = 40
    refine_prior: bool = True


def _adf(task: Task, params: AdfParams) -> NetworkSettings:
    return NetworkSettings(
        sites="none",
        hidden=task.hidden,
        num_passes=params.num_passes,
        refine_prior=params.refine_prior,
    )


@dataclass(frozen=True)
class EpParams:
    """Settings of EP.

    Parameters
    ----------
    num_passes, refine_prior
        See `AdfParams`.
    step : float
        Damping, 0.4 in the public code of [vinaroz2022dpsep].
    """

    num_passes: int = 40
    step: float = 0.4
    refine_prior: bool = True


@dataclass(frozen=True)
class SepParams:
    """Settings of SEP.

    Parameters
    ----------
    num_passes, refine_prior
        See `AdfParams`.
    step : float
        s in (0, 1]: 1 in the public code of [vinaroz2022dpsep], 1 / N in its equation 4.
    """

    num_passes: int = 40
    step: float = 1.0
    refine_prior: bool = True


def _ep(task: Task, params: EpParams) -> NetworkSettings:
    return replace(_sep(task, params), sites="per_row")


def _sep(task: Task, params: SepParams | EpParams) -> NetworkSettings:
    return NetworkSettings(
        hidden=task.hidden,
        num_passes=params.num_passes,
        step=params.step,
        refine_prior=params.refine_prior,
    )


@dataclass(frozen=True)
class ClippedSepParams:
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


def _clipped_sep(task: Task, params: ClippedSepParams) -> NetworkSettings:
    base = variants.fixed_prior(task.hidden, params.num_passes, task.noise())
    return replace(base, clip=params.clip, clip_bound=params.clip_bound, step=params.step)


@dataclass(frozen=True)
class PublishedParams:
    """Settings of the public code.

    Parameters
    ----------
    num_passes : int
        Passes T over the rows.
    clip_bound : float
        Largest norm C of every block.
    intended : bool
        Whether factors are clipped and the noise is added.
    """

    num_passes: int = 40
    clip_bound: float = 1.0
    intended: bool = False


def published(
    x: Array,
    y: Array,
    task: Task,
    params: PublishedParams,
    budget: Budget | None,
    rng: np.random.Generator,
    progress: Progress = silent,
) -> Fitted:
    """Run DP-SEP as the public code of the paper does, or as it was meant to.

    The code draws noise and adds it to arrays that nothing reads: what Tables 2 and 3 of
    [vinaroz2022dpsep] print for DP-SEP has no privacy at all. ``intended=True`` adds that noise to
    factors that are really clipped: its deviation is that of a step of 1 / N where the step is 1,
    so the multiplier is too small by a factor of N, and rows come in permutations.
    """
    budget = required(budget)
    noise, passes = task.noise(), params.num_passes
    if not params.intended:
        settings = replace(variants.fixed_prior(task.hidden, passes, noise), wasted_draws=True)
        return network_engine.fit_without_privacy(x, y, settings, rng, progress)
    multiplier = autodp_published(budget.epsilon, budget.delta, len(y), 2 * passes * len(y))
    settings = variants.intended(task.hidden, passes, noise, multiplier, params.clip_bound)
    fitted = network_engine.fit(x, y, settings, rng, progress)
    schedule = Schedule(len(y), passes, order="permutation")
    true_multiplier = settings.true_multiplier(len(y))
    spent = schedules.epsilon_of_blocks([true_multiplier], schedule, budget.delta)
    outside = (STANDARDISATION, FITTED_NOISE_PRECISION, COUNTERS, STOPS)
    guarantee = Guarantee(spent, budget.delta, "replace", "gaussian", outside)
    return Fitted(fitted, guarantee, fitted.counters)


def variational(
    x: Array,
    y: Array,
    task: Task,
    params: vi.Params,
    budget: Budget | None,
    rng: np.random.Generator,
    progress: Progress = silent,
) -> Fitted:
    """Run variational inference."""
    return Fitted(vi.fit(x, y, task.hidden, params, rng), NO_GUARANTEE)


TABLE: dict[str, Any] = {
    method.name: method
    for method in (
        # Assumed density filtering: probabilistic backpropagation as first stated
        # [Hernandez-Lobato and Adams 2015]; every pass takes the same rows for new evidence.
        NetworkMethod("adf", AdfParams, without_privacy(_adf)),
        # Expectation propagation: probabilistic backpropagation with a site for each row.
        NetworkMethod("ep", EpParams, without_privacy(_ep)),
        # Stochastic expectation propagation: one factor for all rows.
        NetworkMethod("sep", SepParams, without_privacy(_sep)),
        # The public code of [vinaroz2022dpsep] computes clipped factors and does not use them, so
        # that its "SEP clipped" of Tables 2 and 3 is SEP with a broad fixed prior and the noise
        # variance of an earlier run on the same rows: this, with clip="none".
        NetworkMethod("clipped_sep", ClippedSepParams, without_privacy(_clipped_sep)),
        NetworkMethod("dp_sep_published", PublishedParams, published),
        # Mean-field variational inference [Graves 2011].
        NetworkMethod("vi", vi.Params, variational),
    )
} | {"dp_sep": dp_sep}
