"""Place and shape of a posterior, found at a share of the budget.

Chains of the league run in coordinates that whiten the posterior, where a row contributes at most a
bound c / 2 to the gradient: what k = (mu / c)^2 refers to (:mod:`dpmc_league.theory`). Both are
released by the noisy Newton steps of :mod:`dpmc.automatic`, so that nothing is outside of the
ledger.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from dpmc.automatic.centre import locate
from dpmc.automatic.noise_aware import NoiseAware
from dpmc.automatic.prior import Prior, starting_point
from dpmc.automatic.purse import Purse
from dpmc.automatic.whitened import WhitenedRows
from dpmc.privacy.budgets import GaussianBudget
from dpmc.privacy.clipped import Clipped
from dpmc.privacy.ledger import Ledger
from dpmc.rng import Streams
from dpmc.rows import model_checks, row_functions
from dpmc.rows.sums import RowSums
from dpmc.rows.vectors import clipped_mean
from dpmc.types import Array, Model
from dpmc_league.submission import Submission, Terms
from dpmc_league.task import Task

# Share of mu^2 that the search has, the same where only the place is not public, and share of a
# chain that is warm-up.
SHARE, KNOWN_SHAPE = 0.3, 0.1
WARM_UP = 0.1
OUTSIDE_SEED = "a known seed"


class Ground(Protocol):
    """Whitened coordinates z of a posterior in which a chain runs, and what it may spend."""

    @property
    def start(self) -> Array:
        """Where a chain starts, shape (d,)."""

    @property
    def bound(self) -> float:
        """Half of c: clip bound of whitened row gradients, and of ratios per length of a move."""

    @property
    def mu(self) -> float:
        """What may be spent."""

    @property
    def streams(self) -> Streams:
        """Of moves and of noise."""

    def gradient(self, z: Array, ledger: Ledger, multiplier: float) -> Array:
        """Release the gradient of the log-posterior with noise of sd ``2 bound multiplier``."""

    def ratio(self, z: Array, z_new: Array, ledger: Ledger, multiplier: float) -> float:
        """Release the log-posterior ratio with noise of sd ``2 bound multiplier |z_new - z|``."""


def worth(ground: Ground) -> float:
    """K = (mu / c)^2, exact draws that a budget would buy of a normal posterior."""
    return (ground.mu / (2 * ground.bound)) ** 2


@dataclass(frozen=True, eq=False)
class Footing:
    """Whitening coordinates ``theta + basis @ z``, and what is left to be spent.

    Parameters
    ----------
    model : Model
    rows : WhitenedRows
    row_ratio : callable ``(theta, theta_new, bound) -> (Clipped sum, number clipped)``
    prior : Prior
    theta : ndarray of shape (d,)
    basis : ndarray of shape (d, d)
    bound : float
        Clip bound of whitened row gradients.
    mean : ndarray of shape (d,)
        Where the mode is thought to be, in z.
    mean_variance : float
        Of privacy noise in each entry of `mean`.
    start : ndarray of shape (d,)
        One draw of z given what is released.
    mu : float
        What is left for chains.
    spent : tuple of (str, int)
        Records of the search.
    streams : Streams
    outside : tuple of str
    """

    model: Model
    rows: WhitenedRows
    row_ratio: Callable[[Array, Array, float], tuple[Clipped[float], int]]
    prior: Prior
    theta: Array
    basis: Array
    bound: float
    mean: Array
    mean_variance: float
    start: Array
    mu: float
    spent: tuple[tuple[str, int], ...]
    streams: Streams
    outside: tuple[str, ...]

    def ledger(self) -> Ledger:
        """Ledger that takes no more than what is left."""
        return Ledger(GaussianBudget(self.mu))

    def thetas(self, z: Array) -> Array:
        """Parameters of whitened coordinates, shape (..., d)."""
        values: Array = self.theta + z @ self.basis.T
        return values

    def gradient(self, z: Array, ledger: Ledger, multiplier: float) -> Array:
        """Release the gradient of the log-posterior in z, with noise of sd 2 bound multiplier."""
        theta = self.theta + self.basis @ z
        total = self.rows.gradient_sum(theta, self.basis, self.bound)
        noisy = ledger.release(total, multiplier, self.streams.noise)
        slope: Array = noisy + self.basis.T @ self.prior.gradient(theta)
        return slope

    def ratio(self, z: Array, z_new: Array, ledger: Ledger, multiplier: float) -> float:
        """Release the log-posterior ratio, with noise of sd ``2 bound multiplier |z_new - z|``."""
        theta, theta_new = self.thetas(z), self.thetas(z_new)
        # Rows are clipped before the likelihood is tempered.
        bound = self.bound * math.dist(z, z_new) / self.model.tempering
        ratio, _ = self.row_ratio(theta, theta_new, bound)
        noisy = ledger.release(ratio, multiplier, self.streams.noise)
        prior = self.prior.log_density(theta_new) - self.prior.log_density(theta)
        return self.model.tempering * noisy + prior

    def submission(self, z: Array, ledger: Ledger) -> Submission:
        """Chain of shape (iterations, d) in z as a submission, its warm-up left out."""
        first = math.ceil(WARM_UP * len(z))
        records = together(self.spent, ledger.records())
        return Submission(self.thetas(z[first:, None, :]), records, self.outside)


def find(task: Task, terms: Terms, name: str) -> Footing:
    """Spend a share of the budget on where the posterior is; `name`, a method, keys the streams."""
    streams = Streams.of(terms.seed, "league", name, task.name)
    model = row_functions.without_errors(task.model)
    model_checks.check(model, task.rows.shape[1], task.bounds, False)
    prior = Prior.of(model)
    rows = WhitenedRows(model, task.dataset)
    sums = RowSums(model, task.dataset)
    share = share_of(task)
    ledger = Ledger(GaussianBudget(terms.mu * math.sqrt(share)))
    place = (_search if task.shape is None else _by_mean)(task, rows, prior, ledger, streams)
    return Footing(
        model,
        rows,
        lambda *arguments: sums.clipped_ratio(*arguments),
        prior,
        place.theta,
        place.basis,
        place.bound,
        place.mean,
        place.mean_variance,
        place.start,
        terms.mu * math.sqrt(1 - share) * (1 - 1e-12),
        ledger.records(),
        streams,
        () if terms.seed is None else (OUTSIDE_SEED,),
    )


def share_of(task: Task) -> float:
    """Share of mu^2 that the search has."""
    return SHARE if task.shape is None else KNOWN_SHAPE


class _Place(NamedTuple):
    """What is known of the posterior; see `Footing`."""

    theta: Array
    basis: Array
    bound: float
    mean: Array
    mean_variance: float
    start: Array


def _search(
    task: Task, rows: WhitenedRows, prior: Prior, ledger: Ledger, streams: Streams
) -> _Place:
    """Find place and shape by noisy Newton steps."""
    point = starting_point(task.model, prior, np.asarray(task.start, dtype=np.float64))
    centre = locate(rows, prior, Purse(ledger, streams.noise), point)
    mean, covariance = NoiseAware.of(centre, prior).approximation()
    values, vectors = np.linalg.eigh(covariance)
    normal = streams.chain.standard_normal(len(mean))
    start = mean + vectors @ (np.sqrt(np.maximum(values, 0.0)) * (vectors.T @ normal))
    variance = centre.gradient_noise**2
    return _Place(centre.theta, centre.basis, centre.gradient_bound, mean, variance, start)


def _by_mean(
    task: Task, rows: WhitenedRows, prior: Prior, ledger: Ledger, streams: Streams
) -> _Place:
    """Find the place by one noisy mean, where the shape is public."""
    statistic, shape = task.statistic, task.shape
    assert statistic is not None
    assert shape is not None
    assert statistic.exact_spread is not None
    assert statistic.transform is not None
    summaries = statistic.summaries(task.rows)
    mean = clipped_mean(summaries, statistic.bound)
    multiplier = ledger.least_multiplier()
    noisy = ledger.release(mean, multiplier, streams.noise)
    variance = (mean.sensitivity * multiplier / statistic.exact_spread) ** 2
    normal = streams.chain.standard_normal(task.dim)
    return _Place(
        statistic.transform(noisy[None])[0],
        shape,
        statistic.bound * statistic.exact_spread,
        np.zeros(task.dim),
        variance,
        math.sqrt(1 + variance) * normal,
    )


def together(*records: Iterable[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    """Records of several ledgers as those of one."""
    counts: dict[str, int] = {}
    for part in records:
        for text, count in part:
            counts[text] = counts.get(text, 0) + count
    return tuple(sorted(counts.items()))
