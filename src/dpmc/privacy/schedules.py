"""Release schedules of expectation propagation: their guarantee, and the noise for a budget.

One step computes a factor from one row, clips it, and releases the whole state, all blocks of
it, as one vector with Gaussian noise. A noise multiplier is the standard deviation of that
noise over the sensitivity of the vector under replacement of one row.
Earlier states are released, so that the steps compose adaptively; projections, the prior's
refinement from the released state and predictions come after the noise and cost nothing.

What the paper counts differs [vinaroz2022dpsep, Algorithm 3 and the public code]: its passes
are permutations or cycles, whose steps are not drawn independently, and its blocks count as
releases of their own, outside of the sampling. `epsilon_of_blocks` says what its noise is worth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Literal, get_args

from dpmc import checks
from dpmc.privacy import events
from dpmc.privacy.accountants import gaussian, subsampled
from dpmc.types import DpmcError, check_delta

Order = Literal["independent", "permutation", "cyclic"]
ORDERS: tuple[Order, ...] = get_args(Order)

# Uses of the rows that no accountant here covers, for `Guarantee.outside`.
STANDARDISATION = "standardisation by statistics of the training rows"
FITTED_NOISE_PRECISION = "noise precision taken from a run without noise"
STOPS = "a stop where no row has a finite prediction"
COUNTERS = "counts of clipped and invalid factors, told without noise"


@dataclass(frozen=True)
class Schedule:
    """Which rows the steps of a run use, under replacement of one row.

    Parameters
    ----------
    num_rows : int
        N, at least 2; public.
    num_passes : int
        T; a run makes ``T N`` steps.
    order : {"independent", "permutation", "cyclic"}
        ``"independent"``: one row drawn uniformly at every step. The others use every row
        once in each pass.
    """

    num_rows: int
    num_passes: int
    order: Order = "independent"

    def __post_init__(self) -> None:
        checks.at_least("num_rows", self.num_rows, 2)
        checks.at_least("num_passes", self.num_passes, 1)
        checks.one_of("order", self.order, ORDERS)

    @property
    def accountant(self) -> str:
        """Name of the tightest accountant of such runs."""
        return "subsampled" if self.order == "independent" else "gaussian"


def combined_multiplier(noise_multipliers: Sequence[float]) -> float:
    """Noise multiplier of one vector whose blocks have multipliers of their own.

    Parameters
    ----------
    noise_multipliers : sequence of float
        Of each block, over the sensitivity of that block alone.

    Returns
    -------
    float
        ``(sum of sigma_b**-2)**-0.5``: in units of its noise, block b moves by at most
        ``1 / sigma_b``. For B equal ones, ``sigma / sqrt(B)``.
    """
    if not noise_multipliers:
        raise DpmcError("`noise_multipliers` must have at least one entry, got none")
    for value in noise_multipliers:
        checks.positive("noise_multipliers", value)
    return 1 / math.sqrt(sum(value**-2 for value in noise_multipliers))


def counts(schedule: Schedule, noise_multiplier: float) -> dict[events.Event, int]:
    """Releases of a run, as its ledger has to hold them.

    Returns
    -------
    dict of event to int
        T N releases computed from one row drawn without replacement out of N; or, where every
        row is used once in each pass, T Gaussian releases: given all other rows, one pass
        tells of a row in one step only.
    """
    checks.positive("noise_multiplier", noise_multiplier)
    if schedule.order == "independent":
        event = events.sampled_gaussian(noise_multiplier, 1, schedule.num_rows)
        return {event: schedule.num_passes * schedule.num_rows}
    return {events.gaussian(noise_multiplier): schedule.num_passes}


def epsilon_of_blocks(
    noise_multipliers: Sequence[float], schedule: Schedule, delta: float
) -> float:
    """Epsilon that noise is worth, whatever it was calibrated to.

    Of uses of the rows besides the releases nothing is said.

    Parameters
    ----------
    noise_multipliers : sequence of float
        Of every block that a step releases, over the sensitivity of that block: four equal
        ones for the two layers of a network, two for a mixture [vinaroz2022dpsep, public
        code].
    schedule : Schedule
        With the order that the run had, or an order it might have had.
    delta : float
    """
    check_delta(delta)
    return epsilon_at(schedule, combined_multiplier(noise_multipliers), delta)


def _module(schedule: Schedule) -> ModuleType:
    return subsampled if schedule.accountant == "subsampled" else gaussian


def epsilon_at(schedule: Schedule, noise_multiplier: float, delta: float) -> float:
    """Epsilon at `delta` of a run, by the accountant of its schedule."""
    return float(_module(schedule).epsilon(counts(schedule, noise_multiplier), delta))


def delta_at(schedule: Schedule, noise_multiplier: float, epsilon: float) -> float:
    """Delta at `epsilon` of a run, by the accountant of its schedule."""
    return float(_module(schedule).delta(counts(schedule, noise_multiplier), epsilon))
