"""Two-stage release: a statistic selected on a first part of the records, released of the rest.

[alparslan2023thesis, section 6.5]: y0 is a fixed statistic of the first n0 records with noise.
It gives a posterior of theta, that posterior a score to every candidate, and the best candidate
is released of the other records, as y1. Which records come first is fixed in advance, and each
record enters one release: by parallel composition the whole has the guarantee of one release,
although the choice depends on y0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpmc.privacy import single_releases
from dpmc.privacy.ledger import Ledger, Noise, noise_of
from dpmc.statsel import records, releases
from dpmc.statsel.records import InvalidRows
from dpmc.statsel.selection.planning import (
    NOISES,
    Indices,
    MeanDistributions,
    SelectionPlan,
    normalised,
)
from dpmc.statsel.types import Mechanism, Statistic, plain
from dpmc.types import Array, DpmcError, Guarantee


def select(plan: SelectionPlan, first: Array) -> Indices:
    """Candidate with the lowest score given y0, shape (R,): post-processing of it."""
    best: Indices = np.argmin(scores(plan, first), axis=1)
    return best


def scores(plan: SelectionPlan, first: Array) -> Array:
    """Score of every candidate given y0, shape (R, K)."""
    zero = np.zeros(len(first), dtype=np.int64)
    weights = normalised(log_likelihood(plan, plan.first_distributions, first, zero))
    expected_cost: Array = weights @ plan.cost.T
    return expected_cost


def estimate(plan: SelectionPlan, first: Array | None, second: Array, selected: Indices) -> Array:
    """Posterior means of theta given y1, and y0 unless it is None, shape (R,)."""
    log_posterior = log_likelihood(plan, plan.distributions, second, selected)
    if first is not None:
        zero = np.zeros(len(first), dtype=np.int64)
        log_posterior += log_likelihood(plan, plan.first_distributions, first, zero)
    means: Array = normalised(log_posterior) @ plan.theta
    return means


def log_likelihood(
    plan: SelectionPlan, distributions: MeanDistributions, y: Array, index: Indices
) -> Array:
    """Log p(y | theta) of releases on the grid, shape (R, G).

    Parameters
    ----------
    distributions : MeanDistributions
        Of the released statistics.
    y : ndarray of shape (R,)
        Released means.
    index : ndarray of int, shape (R,)
        Of the statistic that each y releases.
    """
    out = np.empty((len(y), len(plan.theta)))
    NOISES[plan.mechanism.noise].fill(
        y, index, distributions.mean, distributions.sd, distributions.scale, out
    )
    return out


class Outcome(NamedTuple):
    """Runs of the procedure."""

    # first and second (R,): y0 and y1.
    first: Array
    second: Array
    selected: Indices  # (R,) of int: index of the candidate that y1 releases
    estimate: Array  # (R,): posterior mean of theta given both
    noise: Noise = "continuous"  # Of both releases: see :mod:`dpmc.privacy.single_releases`


def run(plan: SelectionPlan, x: Array, noise: Array) -> Outcome:
    """Run the procedure on several data sets, with noise that is given.

    `x`, shape (R, n): records, those of the first part first; clipped here.
    """

    def add(means: Array, scale: Array, index: Indices, part: int) -> Array:
        return np.asarray(means + scale * noise[:, part])

    return _run(plan, x, add)


def release(
    plan: SelectionPlan,
    x: npt.ArrayLike,
    rng: np.random.Generator | None = None,
    *,
    noise: Noise | None = None,
    invalid_rows: InvalidRows = "refuse",
) -> tuple[Outcome, Guarantee]:
    """Run the procedure on one data set, with the guarantee of all that is released of it.

    `noise` in {"continuous", "discrete"}, optional: floating-point noise, or noise on a grid: see
    :mod:`dpmc.privacy.single_releases`. Discrete by default, and continuous with `rng`, as
    published. `invalid_rows` in {"refuse", "zero"}: A record that is no finite number is an error,
    or counts as 0 before it is clipped.
    """
    kind = noise_of(noise, published=rng is not None)
    for statistic in (plan.first, *plan.candidates):
        releases.check_range(statistic, plan.population.support)
    checked = records.checked(x, invalid_rows)[None]
    if checked.size != sum(plan.sizes):
        raise DpmcError(f"`x` must have {sum(plan.sizes)} records as planned, got {checked.size}")
    if kind == "continuous":
        drawn = draw_noise(plan.mechanism, single_releases.generator(rng), 1)
        return run(plan, checked, drawn), plan.guarantee

    def add(means: Array, scale: Array, index: Indices, part: int) -> Array:
        mean, width, epsilon = float(means[0]), float(scale[0]), plan.epsilon
        statistic = (plan.first, plan.candidates[index[0]])[part]
        spread = statistic.range(plan.population.support)
        rounding = releases.rounding_of_mean(spread, plan.sizes[part])
        if plan.mechanism.noise == "laplace":
            return np.array([single_releases.laplace(mean, width, rng, kind, rounding)])
        terms = width * epsilon, 1 / epsilon
        return np.array([single_releases.gaussian(mean, *terms, rng, Ledger(), kind, rounding)])

    return _run(plan, checked, add)._replace(noise=kind), plan.guarantee


def _run(
    plan: SelectionPlan, x: Array, add: Callable[[Array, Array, Indices, int], Array]
) -> Outcome:
    """Run the procedure with noise that `add` brings to means, given its scale."""
    if x.shape[-1] != sum(plan.sizes):
        raise DpmcError(f"`x` must have {sum(plan.sizes)} records as planned, got {x.shape[-1]}")
    parts = x[:, : plan.sizes[0]], x[:, plan.sizes[0] :]

    def noisy(statistics: Sequence[Statistic], scale: Array, index: Indices, part: int) -> Array:
        return add(exact_means(statistics, plan, parts[part], index), scale[index], index, part)

    first = noisy([plan.first], plan.first_distributions.scale, np.zeros(len(x), dtype=np.int64), 0)
    selected = select(plan, first)
    second = noisy(plan.candidates, plan.distributions.scale, selected, 1)
    return Outcome(first, second, selected, estimate(plan, first, second, selected))


def draw_noise(mechanism: Mechanism, rng: np.random.Generator, runs: int) -> Array:
    """Noise of both releases of each data set, in units of its scale, shape (R, 2)."""
    return single_releases.standard_noise(mechanism.noise, (runs, 2), rng)


def exact_means(
    statistics: Sequence[Statistic], plan: SelectionPlan, x: Array, index: Indices
) -> Array:
    """One mean of each data set, that of its statistic: private.

    `x`, shape (R, m): of any floats: NaN counts as 0, and all are clipped to the support. `index`,
    shape (R,): which statistic of each data set is released.
    """
    support = plan.population.support
    clipped = records.clip(x, support)
    means = np.empty(len(x))
    for k in np.unique(index):
        rows = index == k
        # Before it was compiled: one function for every power would take seconds.
        means[rows] = plain(statistics[k].transform)(clipped[rows]).mean(axis=1)
    return means
