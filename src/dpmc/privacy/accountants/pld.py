"""The privacy-loss-distribution accountant of dp_accounting, where it is valid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpmc.privacy import accounting, events
from dpmc.privacy.accountants import gaussian
from dpmc.types import check_delta, check_epsilon

if TYPE_CHECKING:
    from dpmc.privacy.events import Counts, Releases
    from dpmc.types import Budget

UPPER_BOUND = True
REMARK = (
    "numerical and pessimistic, for Gaussian releases from all rows; under REPLACE_ONE "
    "dp_accounting takes a sampled release for Poisson sampling, which is no upper bound for "
    "batches drawn without replacement, so these are refused"
)
_SPACING = 1e-4


def _accountant(counts: Counts) -> Any:
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import PLDAccountant

    # Our multipliers are already relative to the substitution sensitivity, so the pair is
    # N(0, z^2) against N(1, z^2): what dp_accounting calls adding or removing a row. Its
    # REPLACE_ONE puts the two at -1 and +1.
    accountant = PLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE, _SPACING)
    for event, count in counts.items():
        noise = events.noise_of(event)
        if noise is None:
            raise accounting.refuse("pld", event, "Gaussian releases from all rows")
        if noise[1] < 1:
            raise accounting.refuse(
                "pld",
                event,
                "Gaussian releases from all rows: its sampled pair is of Poisson sampling",
            )
        if count:
            accountant.compose(events.gaussian(noise[0]), int(count))
    return accountant


def delta(counts: Counts, epsilon: float) -> float:
    """Upper bound on delta at `epsilon`."""
    check_epsilon(epsilon, zero=True)
    return float(_accountant(counts).get_delta(epsilon))


def epsilon(counts: Counts, delta: float) -> float:
    """Upper bound on epsilon at `delta`."""
    check_delta(delta)
    return float(_accountant(counts).get_epsilon(delta))


def max_iterations(releases: Releases, budget: Budget, num_chains: int) -> int:
    """Largest number of iterations per chain, searched from that of the closed form."""
    _accountant(releases.counts(1, num_chains))  # refuses by this accountant's own name
    guess = gaussian.max_iterations(releases, budget, num_chains)
    return accounting.search(delta, releases, budget, num_chains, guess)
