"""Zero-concentrated differential privacy, converted to (epsilon, delta)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dpmc.privacy import accounting
from dpmc.privacy.accountants._whole import mean_loss
from dpmc.types import check_delta, check_epsilon
from dpmc.types.gaussian_curve import affordable_rho

if TYPE_CHECKING:
    from dpmc.privacy.events import Counts, Releases
    from dpmc.types import Budget

UPPER_BOUND = True
REMARK = (
    "valid but loose: Gaussian releases add up in rho, and rho-zCDP gives "
    "epsilon = rho + 2 sqrt(rho ln(1/delta)); releases computed from a batch are refused"
)


def delta(counts: Counts, epsilon: float) -> float:
    """Return ``exp(-(epsilon - rho)**2 / (4 rho))``, 1 where epsilon is below rho."""
    check_epsilon(epsilon, zero=True)
    rho = mean_loss(counts)
    if rho == 0:
        return 0.0
    return math.exp(-((epsilon - rho) ** 2) / (4 * rho)) if epsilon > rho else 1.0


def epsilon(counts: Counts, delta: float) -> float:
    """Return ``rho + 2 sqrt(rho ln(1/delta))``."""
    check_delta(delta)
    rho = mean_loss(counts)
    return rho + 2 * math.sqrt(-rho * math.log(delta))


def max_iterations(releases: Releases, budget: Budget, num_chains: int) -> int:
    """Largest number of iterations per chain, by division of rho."""

    def within(num_iterations: int) -> bool:
        return delta(releases.counts(num_iterations, num_chains), budget.epsilon) <= budget.delta

    initial = mean_loss(releases.counts(0, num_chains))
    cost = mean_loss(releases.counts(1, num_chains)) - initial
    left = affordable_rho(budget.epsilon, budget.delta) - initial
    return accounting.settle(left / cost, within)
