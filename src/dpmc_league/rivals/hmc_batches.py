"""DP-HMC whose gradients are from batches, and whose accept test is over all rows.

[raisa2021dphmc, section 6] names the subsampling of gradients as future work. Each gradient is n /
b times the noisy clipped sum over b rows drawn afresh without replacement. Detailed balance asks
of a gradient only that its law depends on the point alone, not that it be right: path and reverse
path have the same probability (:mod:`dpmc_league.trajectories`), with batches as with noise. A
ratio of a batch would need the penalty of an unknown variance; that of all rows is exact, and costs
the pass that batches have saved.

Iterations, batches and noise are functions of public numbers, so that what is released has one
dominating pair: the search's Gaussian budget, then N ratios and N + 1 sums over batches drawn
without replacement, composed numerically (:mod:`dpmc.privacy.accountants.subsampled`). The step
follows the rule of DP-HMC. The sum over a batch adds the variance n / b - 1 to each whitened
component, where a row's gradients have the curvature for their variance.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from dpmc import checks
from dpmc.automatic.whitened import WhitenedRows
from dpmc.privacy import events
from dpmc.privacy.accountants import subsampled
from dpmc.privacy.ledger import Ledger
from dpmc.types import Array, Dataset, DpmcError
from dpmc_league.footing import Footing, find, share_of
from dpmc_league.submission import Submission, Terms
from dpmc_league.task import Task
from dpmc_league.theory import BEST_SPREAD, GRADIENT_SHARE
from dpmc_league.trajectories import MOST_STEP, Path, steps

TITLE = "DP-HMC, gradients of batches"
LEAST_ROWS = 20
# Share of epsilon by which the bisection of the noise may miss the budget.
PRECISION = 1e-4


@dataclass(frozen=True)
class Params:
    """Settings of batches.

    Parameters
    ----------
    rate : float
        b / n, in (0, 1].
    """

    rate: float = 0.1

    def __post_init__(self) -> None:
        checks.positive("rate", self.rate)
        if self.rate > 1:
            raise DpmcError(f"`rate` must be at most 1, got {self.rate}")


AS_SET = Params()


class Plan(NamedTuple):
    """What a chain releases beside its search: a function of public numbers.

    Parameters
    ----------
    number : int
        Iterations.
    batch : (int, int)
        Rows of a batch, and of the data.
    for_gradients, for_ratios : float
        Noise multipliers.
    """

    number: int
    batch: tuple[int, int]
    for_gradients: float
    for_ratios: float

    def counts(self) -> dict[events.Event, int]:
        """Releases."""
        gradient = events.sampled_gaussian(self.for_gradients, *self.batch)
        ratio = events.gaussian(self.for_ratios)
        return {gradient: self.number + 1, ratio: self.number}


def refusal(task: Task) -> str:
    """Why the method cannot take part."""
    return "" if task.num_rows >= LEAST_ROWS else f"it needs {LEAST_ROWS} rows"


@functools.lru_cache(maxsize=64)
def plan(
    num_rows: int,
    rate: float,
    max_passes: int,
    mu: float,
    share: float,
    epsilon: float,
    delta: float,
) -> Plan:
    """Iterations and noise that spend a budget together with a search.

    Parameters
    ----------
    num_rows : int
    rate : float
    max_passes : int
        Over the rows: an iteration takes 1 for its ratio, and `rate` for its gradient.
    mu, share : float
        The whole budget in terms of Gaussian privacy, and the part of mu^2 of the search.
    epsilon, delta : float
        The same budget.
    """
    size = max(1, round(rate * num_rows))
    number = max(1, int((max_passes - 1) / (1 + rate)))
    searched = events.gaussian(1 / (mu * math.sqrt(share)))

    def at(scale: float) -> Plan:
        # Amplified, a sum over batches costs at least (b / n)^2 of what it would cost otherwise.
        gradients = size / num_rows * math.sqrt((number + 1) / GRADIENT_SHARE)
        ratios = math.sqrt(number / (1 - GRADIENT_SHARE))
        return Plan(number, (size, num_rows), scale * gradients, scale * ratios)

    def spent(scale: float) -> float:
        return subsampled.epsilon({searched: 1, **at(scale).counts()}, delta)

    low = high = 1 / (mu * math.sqrt(1 - share))
    while spent(high) > epsilon:
        low, high = high, 1.2 * high
    while high / low > 1 + PRECISION:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if spent(middle) > epsilon else (low, middle)
    return at(high)


def batch_gradient(found: Footing, task: Task, batch: tuple[int, int]) -> Callable[..., Array]:
    """Return ``(z, ledger, multiplier)``: the gradient in z of the log-posterior, from a batch."""
    size, num_rows = batch

    def gradient(z: Array, ledger: Ledger, multiplier: float) -> Array:
        theta = found.theta + found.basis @ z
        chosen = found.streams.batches.choice(num_rows, size, replace=False, shuffle=False)
        part = WhitenedRows(found.model, Dataset(task.name, task.rows[chosen], task.bounds))
        total = part.gradient_sum(theta, found.basis, found.bound)
        noisy = ledger.release(total, multiplier, found.streams.noise, batch)
        slope: Array = num_rows / size * noisy + found.basis.T @ found.prior.gradient(theta)
        return slope

    return gradient


def step_size(bound: float, planned: Plan, dim: int) -> float:
    """Step at which noise of gradients, batches and ratios makes decisions of 2.38."""
    size, num_rows = planned.batch
    scale = num_rows / size
    gradients = (scale * 2 * bound * planned.for_gradients) ** 2 + scale - 1
    ratios = (2 * bound * planned.for_ratios) ** 2
    return min(BEST_SPREAD / math.sqrt(dim * (gradients / 2 + ratios)), MOST_STEP)


def chain(found: Footing, task: Task, planned: Plan, ledger: Ledger) -> Path:
    """Run one chain."""
    gradient = batch_gradient(found, task, planned.batch)
    ground = Batched(found, gradient)
    eta = step_size(found.bound, planned, task.dim)
    return steps(ground, ledger, planned.number, eta, planned.for_gradients, planned.for_ratios)


class Batched:
    """A footing whose gradients are from batches."""

    def __init__(self, found: Footing, gradient: Callable[..., Array]) -> None:
        self.gradient, self.ratio = gradient, found.ratio
        self.start, self.bound, self.mu, self.streams = (
            found.start, found.bound, found.mu, found.streams,
        )  # fmt: skip


def run(task: Task, terms: Terms, params: Params = AS_SET) -> Submission:
    """Run one chain."""
    found = find(task, terms, "hmc_batches")
    share = share_of(task)
    planned = plan(
        task.num_rows, params.rate, terms.max_passes, terms.mu, share, terms.epsilon, terms.delta
    )
    ledger = Ledger(planned.counts())
    path = chain(found, task, planned, ledger)
    return found.submission(path.states, ledger)
