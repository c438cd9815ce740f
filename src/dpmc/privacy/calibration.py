"""Calibration of iterations: the releases that a budget affords, fixed before the first."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from dpmc import checks
from dpmc.privacy import accounting
from dpmc.privacy.events import Releases
from dpmc.types import Budget, DpmcError, Guarantee
from dpmc.types.gaussian_curve import affordable_mean_loss

if TYPE_CHECKING:
    from dpmc.privacy.events import Counts, Event

# The tightest first; each refuses the events that it cannot prove.
BEST_ACCOUNTANTS = ("gaussian", "subsampled", "barker_pld", "rdp")


class TooSmallError(DpmcError):
    """A budget that buys no iteration.

    Parameters
    ----------
    message : str
    least : float
        An epsilon that would.
    """

    def __init__(self, message: str, least: float) -> None:
        super().__init__(message)
        self.least = least


@dataclass(frozen=True)
class Plan:
    """Iterations that a budget buys.

    Parameters
    ----------
    budget : Budget
    releases : Releases
        What one chain releases.
    num_iterations : int
        Iterations of each chain.
    num_chains : int
        Chains released together under the budget.
    guarantee : Guarantee
        By the tightest accountant that proves an upper bound, at the budget's delta.

    Examples
    --------
    >>> from dpmc.privacy import Releases, gaussian
    >>> releases = Releases((), ((gaussian(20.0), 1),))
    >>> made = plan(releases, Budget(4, 1e-6, "gaussian"), num_chains=2)
    >>> made.num_chains, made.guarantee.epsilon <= 4
    (2, True)
    """

    budget: Budget
    releases: Releases
    num_iterations: int
    num_chains: int
    guarantee: Guarantee

    @cached_property
    def counts(self) -> Mapping[Event, int]:
        """Count of each event in all chains together."""
        return self.releases.counts(self.num_iterations, self.num_chains)


def plan(
    releases: Releases, budget: Budget, num_chains: int = 1, max_iterations: int | None = None
) -> Plan:
    """Plan of what `budget` buys.

    Parameters
    ----------
    releases : Releases
        What one chain releases.
    budget : Budget
        Shared by all chains.
    num_chains : int, default 1
        Chains released together.
    max_iterations : int, optional
        Iterations per chain to stop at where the budget would buy more; the guarantee is
        that of the iterations that are left.

    Returns
    -------
    Plan
        With as many iterations as the budget's accountant allows, never more.

    Raises
    ------
    DpmcError
        If the budget is too small for one iteration of every chain, the accountant
        is unknown, or it cannot prove one of the releases.

    Examples
    --------
    >>> from dpmc.privacy import Releases, gaussian
    >>> releases = Releases((), ((gaussian(20.0), 1),))
    >>> plan(releases, Budget(4, 1e-6, "gaussian"), max_iterations=10).num_iterations
    10
    """
    if max_iterations is not None:
        checks.at_least("max_iterations", max_iterations, 1)
    num_iterations = max_iterations
    if num_iterations is None or not _within(releases, budget, num_chains, num_iterations):
        num_iterations = accounting.max_iterations(releases, budget, num_chains)
    if num_iterations < 1:
        raise _too_small(releases, budget, num_chains)
    if max_iterations is not None:
        num_iterations = min(num_iterations, max_iterations)
    counts = releases.counts(num_iterations, num_chains)
    return Plan(budget, releases, num_iterations, num_chains, _guarantee(counts, budget))


def share_multiplier(budget: Budget, share: float) -> float:
    """Noise multiplier of one Gaussian release that costs a share of a budget.

    Gaussian privacy adds up in mu^2 (Dong, Roth and Su 2022, corollary 3.3), and the budget
    holds as much of it as its delta at its epsilon is that of one Gaussian release.

    Parameters
    ----------
    budget : Budget
        Only its epsilon and delta count.
    share : float
        Of mu^2, in (0, 1).

    Returns
    -------
    float
        ``1 / sqrt(share mu^2)``.
    """
    mean_loss = affordable_mean_loss(budget.epsilon, budget.delta)  # mu^2 / 2
    return 1.0 / math.sqrt(2 * share * mean_loss)


def best_accountant(counts: Counts) -> str:
    """Name of the tightest accountant that proves an upper bound for `counts`."""
    refusal = DpmcError("`counts` must have at least one release, got none")
    for name in BEST_ACCOUNTANTS:
        try:
            accounting.load(name).delta(dict.fromkeys(counts, 0), 1.0)
        except DpmcError as error:
            refusal = error
        else:
            return name
    raise refusal


def _within(releases: Releases, budget: Budget, num_chains: int, num_iterations: int) -> bool:
    """Whether a budget affords so many iterations: quicker than asking how many it does."""
    counts = releases.counts(num_iterations, num_chains)
    return bool(accounting.load(budget.accountant).delta(counts, budget.epsilon) <= budget.delta)


def _guarantee(counts: Counts, budget: Budget) -> Guarantee:
    name = best_accountant(counts)
    accountant = accounting.load(name)
    epsilon = float(accountant.epsilon(counts, budget.delta))
    if epsilon > budget.epsilon and accountant.delta(counts, budget.epsilon) <= budget.delta:
        epsilon = budget.epsilon  # the search for epsilon errs by 1e-7 upwards
    return Guarantee(epsilon, budget.delta, budget.neighbours, name)


def _too_small(releases: Releases, budget: Budget, num_chains: int) -> TooSmallError:
    accountant = accounting.load(budget.accountant)
    counts = releases.counts(1, num_chains)
    delta = float(accountant.delta(counts, budget.epsilon))
    smallest = float(accountant.epsilon(counts, budget.delta))
    return TooSmallError(
        f"`epsilon` must be at least {smallest * (1 + 1e-6):.6g}, got {budget.epsilon:g}: one "
        f"iteration of {num_chains} chain(s) costs delta = {delta:.3g} (budget {budget.delta:g}) "
        f"by accountant {budget.accountant}",
        smallest,
    )
