"""Release schedules of expectation propagation: their guarantee, and the noise for a budget.

One step computes a factor from one row, clips it, and releases the whole state, all blocks of
it, as one vector with Gaussian noise. A noise multiplier is the standard deviation of that
noise over the sensitivity of the vector under replacement of one row, see `sensitivity`.
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
from typing import TYPE_CHECKING, Any, Literal

from dpmc import checks
from dpmc.privacy import connect_dots, events
from dpmc.privacy.accountants import gaussian, subsampled
from dpmc.types import DpmcError, Guarantee, Neighbours, check_delta

if TYPE_CHECKING:
    from dpmc.privacy.events import Counts

Order = Literal["independent", "permutation", "cyclic"]
Clip = Literal["joint", "per_block"]
Accountant = Literal["subsampled", "connect_dots", "rdp", "gaussian"]

ORDERS: tuple[Order, ...] = ("independent", "permutation", "cyclic")
# Of rows drawn independently; without such draws it is "gaussian". The first is the default.
SAMPLED: tuple[Accountant, ...] = ("subsampled", "connect_dots", "rdp")
# Of Rényi divergence: enough for epsilon from 0.5 to 50 at delta 1e-5, and quick.
RENYI_ORDERS = (1.5, *range(2, 17), *range(18, 65, 2))

# Uses of the rows that no accountant here covers, for `Guarantee.outside`.
STANDARDISATION = "standardisation by statistics of the training rows"
FITTED_NOISE_PRECISION = "noise precision taken from a run without noise"
STOPS = "a stop where no row has a finite prediction"
COUNTERS = "counts of clipped and invalid factors, told without noise"


@dataclass(frozen=True)
class Schedule:
    """Which rows the steps of a run use, and what every step releases.

    Parameters
    ----------
    num_rows : int
        N, at least 2; public.
    num_passes : int
        T; a run makes ``T N`` steps.
    order : {"independent", "permutation", "cyclic"}
        ``"independent"``: one row drawn uniformly at every step. The others use every row
        once in each pass.
    neighbours : {"replace"}
        How neighbouring data sets differ; ``"add_remove"`` is refused.
    blocks : {"together", "separate"}
        Whether all blocks of a step are one vector, to whose sensitivity the noise
        multiplier refers, or are counted as releases of their own, which is refused.
    noise_precision : {"public", "released", "unaccounted"}
        A public constant; learned, with its parameters among the coordinates that are
        clipped and released; or learned in addition to them, which is refused.
    """

    num_rows: int
    num_passes: int
    order: Order = "independent"
    neighbours: Neighbours = "replace"
    blocks: Literal["together", "separate"] = "together"
    noise_precision: Literal["public", "released", "unaccounted"] = "public"

    def __post_init__(self) -> None:
        checks.at_least("num_rows", self.num_rows, 2)
        checks.at_least("num_passes", self.num_passes, 1)
        checks.one_of("order", self.order, ORDERS)
        if self.neighbours != "replace":
            raise DpmcError(
                "`neighbours` must be 'replace', since the number of rows is in the factor and in "
                f"the sampling fraction and so has to be public, got {self.neighbours!r}"
            )
        if self.blocks != "together":
            raise DpmcError(
                "`blocks` must be 'together', since the blocks of a step come from the same row "
                f"and are one release inside of the sampling, not several, got {self.blocks!r}"
            )
        if self.noise_precision not in ("public", "released"):
            raise DpmcError(
                "`noise_precision` must be 'public' or 'released', since what is learned of it "
                "has to be clipped and noised with the other coordinates, got "
                f"{self.noise_precision!r}"
            )

    @property
    def num_steps(self) -> int:
        """K = T N."""
        return self.num_passes * self.num_rows


def sensitivity(step: float, clip_bound: float, clip: Clip = "joint", num_blocks: int = 1) -> float:
    """How far replacing the row of one step can move the released vector.

    Parameters
    ----------
    step : float
        s, the weight of a new factor in the state: 1 for stochastic expectation
        propagation, gamma / N in [vinaroz2022dpsep, equation 4].
    clip_bound : float
        C, the largest norm of a factor, or of each of its blocks.
    clip : {"joint", "per_block"}
    num_blocks : int
        B, read where every block is clipped on its own.

    Returns
    -------
    float
        ``2 s C``, times ``sqrt(B)`` for blocks. Proposition 1 of the paper is the case
        ``s = gamma / N``; its code for networks has s = 1 with the noise of that case.
    """
    checks.positive("step", step)
    checks.positive("clip_bound", clip_bound)
    checks.one_of("clip", clip, ("joint", "per_block"))
    checks.at_least("num_blocks", num_blocks, 1)
    return 2 * step * clip_bound * (math.sqrt(num_blocks) if clip == "per_block" else 1.0)


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
    """What a run releases: what its ledger has to hold.

    Returns
    -------
    dict of event to int
        K releases computed from one row drawn without replacement out of N; or, where every
        row is used once in each pass, T Gaussian releases: given all other rows, one pass
        tells of a row in one step only.
    """
    checks.positive("noise_multiplier", noise_multiplier)
    if schedule.order == "independent":
        event = events.sampled_gaussian(noise_multiplier, 1, schedule.num_rows)
        return {event: schedule.num_steps}
    return {events.gaussian(noise_multiplier): schedule.num_passes}


def guarantee(
    schedule: Schedule,
    noise_multiplier: float,
    delta: float,
    accountant: Accountant | None = None,
    outside: Sequence[str] = (),
) -> Guarantee:
    """Privacy of a run.

    Parameters
    ----------
    schedule : Schedule
    noise_multiplier : float
        Noise standard deviation over the sensitivity of the whole vector.
    delta : float
        In (0, 1).
    accountant : {"subsampled", "connect_dots", "rdp", "gaussian"}, optional
        For independent draws ``"subsampled"`` (the default: numerical, the tightest),
        ``"connect_dots"`` (numerical, within 0.5 % and quicker for few rows, refused where it
        does not settle) or ``"rdp"`` (Theorem 27 of Wang, Balle and Kasiviswanathan 2019, in
        dp_accounting: 1.3 to 2.7 times the epsilon); otherwise ``"gaussian"``, which is exact.
    outside : sequence of str
        Uses of the rows that are not accounted for.
    """
    name = checked_accountant(schedule, accountant)
    check_delta(delta)
    epsilon = epsilon_at(name, schedule, noise_multiplier, delta)
    return Guarantee(epsilon, delta, "replace", name, tuple(outside))


def epsilon_of_blocks(
    noise_multipliers: Sequence[float],
    schedule: Schedule,
    delta: float,
    noise_added: bool = True,
    accountant: Accountant | None = None,
) -> float:
    """Epsilon that noise is worth, whatever it was calibrated to.

    Parameters
    ----------
    noise_multipliers : sequence of float
        Of every block that a step releases, over the sensitivity of that block: four equal
        ones for the two layers of a network, two for a mixture [vinaroz2022dpsep, public
        code].
    schedule : Schedule
        With the order that the run had, or an order it might have had.
    delta : float
    noise_added : bool
        False for noise that is drawn and never added, as in the public code for networks.
    accountant : str, optional
        By default ``"connect_dots"`` or ``"gaussian"``.

    Returns
    -------
    float
        ``inf`` without noise. Of uses of the rows besides the releases nothing is said.
    """
    if accountant is None:
        accountant = "connect_dots" if schedule.order == "independent" else "gaussian"
    combined = combined_multiplier(noise_multipliers)
    found = guarantee(schedule, combined, delta, accountant) if noise_added else None
    return math.inf if found is None else found.epsilon


def checked_accountant(schedule: Schedule, accountant: Accountant | None) -> Accountant:
    """Accountant that proves something of such runs, the default one for None."""
    independent = schedule.order == "independent"
    if accountant is None:
        return SAMPLED[0] if independent else "gaussian"
    checks.one_of("accountant", accountant, (*SAMPLED, "gaussian"))
    if independent and accountant == "gaussian":
        raise DpmcError(
            f"`accountant` must be {' or '.join(SAMPLED)} with order 'independent', where a row "
            "may be drawn at every step, got 'gaussian'"
        )
    if not independent and accountant != "gaussian":
        raise DpmcError(
            f"`accountant` must be 'gaussian' with order {schedule.order!r}, where each row is "
            f"used once in every pass and none is drawn independently, got {accountant!r}"
        )
    return accountant


def _renyi_accountant(released: Counts) -> Any:
    from dp_accounting import NeighboringRelation
    from dp_accounting.rdp import RdpAccountant

    accountant = RdpAccountant(RENYI_ORDERS, NeighboringRelation.REPLACE_ONE)
    for event, count in released.items():
        accountant.compose(event, count)
    return accountant


def epsilon_at(
    name: Accountant, schedule: Schedule, noise_multiplier: float, delta: float
) -> float:
    """Epsilon at `delta` by an accountant that `checked_accountant` let through."""
    released = counts(schedule, noise_multiplier)
    if name == "rdp":
        return float(_renyi_accountant(released).get_epsilon(delta))
    if name == "connect_dots":
        rows, steps = schedule.num_rows, schedule.num_steps
        return connect_dots.epsilon(noise_multiplier, rows, steps, delta)
    module = subsampled if name == "subsampled" else gaussian
    return float(module.epsilon(released, delta))


def delta_at(
    name: Accountant, schedule: Schedule, noise_multiplier: float, epsilon: float, cut: float
) -> float:
    """Delta at `epsilon`; `cut` is a delta of interest, see `connect_dots.delta`."""
    released = counts(schedule, noise_multiplier)
    if name == "rdp":
        return float(_renyi_accountant(released).get_delta(epsilon))
    if name == "connect_dots":
        rows, steps = schedule.num_rows, schedule.num_steps
        return connect_dots.delta(noise_multiplier, rows, steps, epsilon, cut)
    module = subsampled if name == "subsampled" else gaussian
    return float(module.delta(released, epsilon))
