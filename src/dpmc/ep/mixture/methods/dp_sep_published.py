"""DP-SEP on a mixture as the public code of the paper runs it.

What it spends is not what it asks for. Rows come in turn, so that sampling amplifies nothing:
a row has a part in one release of h and one of Lambda in each pass, and their epsilon together
is what the guarantee states. Outside of it are steps that are skipped where a row decides.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmc.ep.mixture import published as mixture_published
from dpmc.ep.mixture.model import MixtureFit, MixtureModel
from dpmc.ep.settings import required
from dpmc.privacy import schedules
from dpmc.privacy.published_noise import autodp_published
from dpmc.privacy.schedules import Schedule
from dpmc.progress import Progress, silent
from dpmc.types import Array, Budget, DpmcError, Guarantee


@dataclass(frozen=True)
class Params:
    """Settings of the public code.

    Parameters
    ----------
    num_passes : int
        T.
    clip_bound : float
        C, of h and of Lambda, each of all components together.
    damping : float
        gamma, > 0: the step is gamma / N.
    h_share : float
        Share of epsilon and delta, in (0, 1), that the code gives to h.
    """

    num_passes: int = 100
    clip_bound: float = 1.0
    damping: float = 1.0
    h_share: float = 0.8

    def __post_init__(self) -> None:
        if not 0 < self.h_share < 1:
            raise DpmcError(f"`h_share` must be in (0, 1), got {self.h_share!r}")


def fit(
    rows: Array,
    model: MixtureModel,
    params: Params,
    budget: Budget | None,
    rng: np.random.Generator,
    progress: Progress = silent,
) -> tuple[MixtureFit, Guarantee]:
    """Run the public code with the noise that it takes for the budget.

    Parameters
    ----------
    rng : numpy.random.Generator
        Not read: normals come from the seed of the public code.

    Returns
    -------
    (MixtureFit, Guarantee)
        The fit, and the guarantee that its releases have together.

    Raises
    ------
    DpmcError
        If a setting is refused, rows do not fit the model or there is no budget.
    """
    budget = required(budget)
    steps = params.num_passes * len(rows)
    multipliers = [
        autodp_published(share * budget.epsilon, share * budget.delta, len(rows), steps)
        for share in (params.h_share, 1 - params.h_share)
    ]
    settings = mixture_published.PublishedSettings(
        params.num_passes, params.damping / len(rows), params.clip_bound, *multipliers
    )
    fitted = mixture_published.fit(
        rows, model, settings, mixture_published.legacy_stream(model), progress
    )
    schedule = Schedule(len(rows), params.num_passes, order="cyclic")
    spent = schedules.epsilon_of_blocks(multipliers, schedule, budget.delta)
    outside = mixture_published.OUTSIDE
    return fitted, Guarantee(spent, budget.delta, "replace", "gaussian", outside)
