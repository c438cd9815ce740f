"""Rényi divergences at integer orders: of a batch, of a composition, and what they prove."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaln

from dpmc.privacy import accounting, events
from dpmc.types import Array, check_delta, check_epsilon

if TYPE_CHECKING:
    from dpmc.privacy.events import Counts, Event, Releases
    from dpmc.types import Budget

COVERED = "Gaussian releases, from all rows or from batches drawn without replacement"


def orders(largest: int) -> Array:
    """Orders 2 to `largest`."""
    return np.arange(2, largest + 1, dtype=np.float64)


def amplified(fraction: float, of_batch: Array, drop_last: bool = False) -> Array:
    """Rényi divergence of a release from a batch drawn without replacement.

    Parameters
    ----------
    fraction : float
        Batch size over rows.
    of_batch : ndarray of shape (m,)
        Divergence of the release from the batch itself at the orders 2 to m + 1.
    drop_last : bool
        Whether to stop the sum one term too early, as the public code of
        raisa2021thesis does.

    Returns
    -------
    ndarray of shape (m,)
        An upper bound at the same orders, unless its last term is dropped [Wang, Balle and
        Kasiviswanathan 2019, theorem 9; raisa2021thesis, Theorem 8].
    """
    order = orders(len(of_batch) + 1)[:, None]
    j = order.T
    second = of_batch[0]
    # The smaller of 4 (exp(e) - 1) and 2 exp(e), in logarithms.
    moment = np.log(2.0) + (j - 1) * of_batch
    moment[0, 0] = second + min(math.log(2), math.log(4) + math.log(-math.expm1(-second)))
    choose = gammaln(order + 1) - gammaln(j + 1) - gammaln(np.maximum(order - j, 0) + 1)
    kept = (j < order) | (j == 2) if drop_last else j <= order
    terms = np.where(kept, choose + j * math.log(fraction) + moment, -np.inf)
    total = np.logaddexp(0.0, np.logaddexp.reduce(terms, axis=1))
    return np.asarray(total / (order[:, 0] - 1), dtype=np.float64)


@dataclass(frozen=True)
class RenyiAccountant:
    """Adds Rényi divergences up and converts them to (epsilon, delta).

    Parameters
    ----------
    orders : ndarray of shape (m,)
    curve : callable ``(Event) -> ndarray of shape (m,)``
        The divergence of one release at the orders, infinite where there is none.
    improved : bool
        Whether to convert by Canonne, Kamath and Steinke (2020), proposition 12, instead of
        Mironov (2017), proposition 3, which is weaker.
    """

    orders: Array
    curve: Callable[[Event], Array]
    improved: bool = False

    @property
    def _gain(self) -> Array:
        """Terms that the conversion takes off ``ln delta = (order - 1) (divergence - epsilon)``."""
        if not self.improved:
            return np.zeros_like(self.orders)
        return (self.orders - 1) * np.log1p(-1 / self.orders) - np.log(self.orders)

    def _composed(self, counts: Counts) -> Array:
        total = np.zeros_like(self.orders)
        for event, count in counts.items():
            curve = self.curve(event)
            if count:  # infinite divergences times zero
                total = total + count * curve
        return total

    def delta(self, counts: Counts, epsilon: float) -> float:
        """Smallest delta over the orders, at most 1."""
        check_epsilon(epsilon, zero=True)
        divergence = self._composed(counts)
        if not divergence.any():
            return 0.0
        log_delta = (self.orders - 1) * (divergence - epsilon) + self._gain
        return math.exp(min(0.0, float(log_delta.min())))

    def epsilon(self, counts: Counts, delta: float) -> float:
        """Smallest epsilon over the orders, at least 0."""
        check_delta(delta)
        divergence = self._composed(counts)
        if not divergence.any():
            return 0.0
        bound = divergence + (self._gain - math.log(delta)) / (self.orders - 1)
        return max(0.0, float(bound.min()))

    def max_iterations(self, releases: Releases, budget: Budget, num_chains: int) -> int:
        """Largest number of iterations per chain, by division at every order."""

        def within(num_iterations: int) -> bool:
            counts = releases.counts(num_iterations, num_chains)
            return self.delta(counts, budget.epsilon) <= budget.delta

        initial = self._composed(releases.counts(0, num_chains))
        iteration = events.Releases((), releases.per_iteration)
        cost = self._composed(iteration.counts(1, num_chains))
        finite = np.isfinite(initial) & np.isfinite(cost)
        if not finite.any():
            return 0
        left = budget.epsilon - (self._gain - math.log(budget.delta)) / (self.orders - 1)
        quotients = (left - initial)[finite] / cost[finite]
        return accounting.settle(float(quotients.max()), within)


def gaussian_curve(
    accountant: str, event: Event, orders: Array, drop_last: bool = False, covered: str = COVERED
) -> Array:
    """Rényi divergence of a Gaussian release at `orders`."""
    noise = events.noise_of(event)
    if noise is None:
        raise accounting.refuse(accountant, event, covered)
    noise_multiplier, fraction = noise
    whole = orders / (2 * noise_multiplier**2)
    return whole if fraction == 1 else amplified(fraction, whole, drop_last)
