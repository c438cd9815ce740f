"""Methods on a mixture; a new one is an entry of ``TABLE``.

Each has ``Params`` and ``fit(rows, model, params, budget, rng, progress, invalid_rows)``, see
:func:`dpmc.ep.mixture.dp_sep.fit`. `budget` is read by private methods only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dpmc.ep.mixture import dp_sep, published
from dpmc.ep.mixture import engine as mixture_engine
from dpmc.ep.mixture.model import MixtureFit, MixtureModel
from dpmc.ep.mixture.settings import MixtureSettings
from dpmc.ep.settings import Clip, required
from dpmc.privacy import schedules
from dpmc.privacy.published_noise import autodp_published
from dpmc.privacy.schedules import Order, Schedule
from dpmc.progress import Progress, silent
from dpmc.types import NO_GUARANTEE, Array, Budget, Guarantee, InvalidRows

# Share of epsilon and delta that the public code gives to h.
H_SHARE = 0.8


@dataclass(frozen=True)
class MixtureMethod:
    """A method, with its parameters."""

    name: str
    Params: type[Any]
    fit: Callable[..., tuple[MixtureFit, Guarantee]]


def without_privacy(
    settings_of: Callable[[int, Any], MixtureSettings],
) -> Callable[..., tuple[MixtureFit, Guarantee]]:
    """Method that runs the engine with these settings, given the number of rows."""

    def fit(
        rows: Array,
        model: MixtureModel,
        params: Any,
        budget: Budget | None,
        rng: np.random.Generator,
        progress: Progress = silent,
        invalid_rows: InvalidRows = "refuse",
    ) -> tuple[MixtureFit, Guarantee]:
        settings = settings_of(len(rows), params)
        fitted = mixture_engine.fit(rows, model, settings, rng, progress, None, invalid_rows)
        return fitted, NO_GUARANTEE

    return fit


@dataclass(frozen=True)
class EpParams:
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


def _ep(num_rows: int, params: EpParams) -> MixtureSettings:
    return MixtureSettings(
        sites="per_row",
        num_passes=params.num_passes,
        step=1 / num_rows if params.step is None else params.step,
        order=params.order,
    )


@dataclass(frozen=True)
class SepParams:
    """Settings of SEP, clipped or not.

    Parameters
    ----------
    num_passes, order
        See `EpParams`.
    step : float, optional
        s in (0, 1]; by default 1 / N as in [vinaroz2022dpsep, equation 4], where SEP as first
        stated has 1 [Li, Hernandez-Lobato and Turner 2015].
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


def _sep(num_rows: int, params: SepParams) -> MixtureSettings:
    return MixtureSettings(
        num_passes=params.num_passes,
        step=1 / num_rows if params.step is None else params.step,
        clip=params.clip,
        clip_bound=params.clip_bound,
        order=params.order,
        invalid=params.invalid,
        repair="factor_sum" if params.invalid == "skip" else "prior",
        clip_prior=params.clip_prior,
    )


@dataclass(frozen=True)
class PublishedParams:
    """Settings of the public code.

    Parameters
    ----------
    num_passes : int
        T.
    clip_bound : float
        C, of h and of Lambda, each of all components together.
    """

    num_passes: int = 100
    clip_bound: float = 1.0


def fit_published(
    rows: Array,
    model: MixtureModel,
    params: PublishedParams,
    budget: Budget | None,
    rng: np.random.Generator,
    progress: Progress = silent,
) -> tuple[MixtureFit, Guarantee]:
    """Run DP-SEP as the public code of the paper does, with the noise that it takes for the budget.

    What it spends is not what it asks for. Rows come in turn, so that sampling amplifies nothing:
    a row has a part in one release of h and one of Lambda in each pass, and their epsilon together
    is what the guarantee states. Outside of it are steps that are skipped where a row decides.
    Normals come from the seed of the public code, and `rng` is not read.
    """
    budget = required(budget)
    steps = params.num_passes * len(rows)
    multipliers = [
        autodp_published(share * budget.epsilon, share * budget.delta, len(rows), steps)
        for share in (H_SHARE, 1 - H_SHARE)
    ]
    settings = published.PublishedSettings(
        params.num_passes, 1 / len(rows), params.clip_bound, *multipliers
    )
    fitted = published.fit(rows, model, settings, published.legacy_stream(model), progress)
    schedule = Schedule(len(rows), params.num_passes, order="cyclic")
    spent = schedules.epsilon_of_blocks(multipliers, schedule, budget.delta)
    return fitted, Guarantee(spent, budget.delta, "replace", "gaussian", published.OUTSIDE)


TABLE: dict[str, Any] = {
    method.name: method
    for method in (
        # Expectation propagation: one factor for each row.
        MixtureMethod("ep", EpParams, without_privacy(_ep)),
        # Stochastic expectation propagation: one factor for all rows.
        MixtureMethod("sep", SepParams, without_privacy(_sep)),
        MixtureMethod("dp_sep_published", PublishedParams, fit_published),
    )
} | {"dp_sep": dp_sep}
