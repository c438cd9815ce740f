"""Two variants of private distributed regression: averaged rows, and an intercept.

They are proposed, and not tried, in [alparslan2023thesis, section 5.2.4]. The sensitivities
are not those printed there: averaging does change them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpmc import checks
from dpmc.linreg import release_terms
from dpmc.linreg.release import jointly
from dpmc.linreg.release_terms import Source, Terms
from dpmc.linreg.sensitivity import check_bounds, check_scale, statistics_sensitivity
from dpmc.linreg.sufficient_statistics import bound_rows
from dpmc.linreg.types import NodeStatistics, NoisyStatistics
from dpmc.privacy.gaussian_noise import Calibration
from dpmc.privacy.ledger import Ledger, Noise
from dpmc.types import NEIGHBOURS, Array, DpmcError, Neighbours


def averaged(rows: Array, block_size: int, bound: float) -> Array:
    """Return the sums of blocks of consecutive rows over sqrt(k), nearly Gaussian for large k.

    With y treated as one more column, the regression of the new rows has the same theta and
    sigma_y^2 [alparslan2023thesis, section 5.2.4.1]. Every row is bounded before it is added:
    a sum bounded in the end would let one row decide where the others of its block go.

    Parameters
    ----------
    rows : ndarray of shape (n,) or (n, p)
        Rows of one node, of any floats, their number a multiple of k: which rows form a
        block is public. NaN counts as 0.
    block_size : int
        k.
    bound : float
        Of the Euclidean norm of a row, or the absolute value of a number.

    Returns
    -------
    ndarray of shape (n / k,) or (n / k, p)
        Bounded by sqrt(k) times the bound of the rows.

    Raises
    ------
    DpmcError
        If the number of rows is no multiple of `block_size`, or the bound is out of range.
    """
    checks.at_least("block_size", block_size, 1)
    checks.positive("bound", bound)
    check_scale("bound", bound)
    if len(rows) % block_size:
        raise DpmcError(f"rows: {len(rows)}, allowed a multiple of block_size {block_size}")
    inside = np.zeros((len(rows), (rows.shape[1] if rows.ndim == 2 else 1) + 1))
    inside[:, :-1] = rows if rows.ndim == 2 else rows[:, None]
    bound_rows(inside, bound, bound)
    kept = inside[:, :-1].reshape(rows.shape)
    blocks = kept.reshape(len(rows) // block_size, block_size, *rows.shape[1:])
    return np.asarray(blocks.sum(axis=1) / math.sqrt(block_size))


def averaged_sensitivity(
    x_bound: float,
    y_bound: float,
    dim: int,
    block_size: int,
    neighbours: Neighbours = "replace",
    with_u: bool = False,
) -> float:
    """Return the largest change of (vech S, z), or (vech S, z, u), of averaged rows.

    With s the sum of the other rows of a block, a row changes its products by
    ``(s w' + w s' + w w') / k``: by up to (2 k - 1) / k times as much as a row that is not
    averaged, if it comes or goes, as a row of zeros in its block. Replaced by its negative it
    changes them by 4 (k - 1) / k times that, the most there is for k >= 2. Both where all
    rows of the block are the same and on the bounds.

    Parameters
    ----------
    x_bound, y_bound : float
        Of the rows before averaging.
    dim, neighbours, with_u
        See `dpmc.linreg.sensitivity.statistics_sensitivity`.
    block_size : int
        k.

    Raises
    ------
    DpmcError
        If an argument is out of range.
    """
    checks.at_least("block_size", block_size, 1)
    if block_size == 1:
        return statistics_sensitivity(x_bound, y_bound, dim, neighbours, with_u)
    check_bounds(x_bound, y_bound, dim, neighbours)
    one = statistics_sensitivity(x_bound, y_bound, dim, "add_remove", with_u)
    factor = 2 * block_size - 1 if neighbours == "add_remove" else 4 * (block_size - 1)
    return factor / block_size * one


def release_averaged(
    statistics: NodeStatistics,
    x_bound: float,
    y_bound: float,
    epsilon: float,
    delta: float,
    rng: np.random.Generator | None = None,
    *,
    block_size: int,
    neighbours: Neighbours = "replace",
    calibration: Calibration = "analytic",
    with_u: bool = False,
    bounds_source: Source = "public",
    ledgers: Sequence[Ledger] | None = None,
    noise: Noise = "continuous",
) -> NoisyStatistics:
    """Release the statistics of averaged rows.

    Parameters
    ----------
    statistics : NodeStatistics
        Of `averaged` rows, `num_rows` their number.
    x_bound, y_bound : float
        Of the rows before averaging.
    block_size : int
        k.
    epsilon, delta, rng, neighbours, calibration, with_u, bounds_source, ledgers, noise
        See `dpmc.linreg.release.release`.

    Raises
    ------
    DpmcError
        As `dpmc.linreg.release.release`.
    """
    terms = Terms(epsilon, delta, neighbours, calibration, bounds_source, noise)
    checks.at_least("block_size", block_size, 1)
    root = math.sqrt(block_size)
    release_terms.check_within(statistics, root * x_bound, root * y_bound)
    changes: dict[Neighbours, float] = {
        relation: averaged_sensitivity(
            x_bound, y_bound, statistics.dim, block_size, relation, with_u
        )
        for relation in NEIGHBOURS
    }
    return jointly(statistics, changes, rng, terms, with_u, ledgers)


def intercept_sensitivity(
    x_bound: float,
    y_bound: float,
    dim: int,
    neighbours: Neighbours = "replace",
    with_u: bool = False,
) -> float:
    """Return the largest change of all entries of (vech S, z[, u]) of rows (1, x) but n.

    Parameters
    ----------
    x_bound, y_bound : float
        Of the rows without the leading one.
    dim : int
        Number d of features, the leading one not among them.
    neighbours, with_u
        See `dpmc.linreg.sensitivity.statistics_sensitivity`.

    Returns
    -------
    float
        Attained, except by replacement at d = 1, where it is an upper bound.

    Raises
    ------
    DpmcError
        If an argument is out of range.
    """
    check_bounds(x_bound, y_bound, dim, neighbours)
    b2, y2 = x_bound**2, y_bound**2
    if neighbours == "add_remove":
        return math.sqrt((1 + b2) * (b2 + y2) + (y2**2 if with_u else 0.0))
    if not with_u:
        return math.sqrt(_replaced(b2, y_bound, y_bound))
    moved = [_replaced(b2, y_bound, b) + (y2 - b**2) ** 2 for b in _stationary(b2, y_bound)]
    return math.sqrt(max(moved))


def release_with_intercept(
    statistics: NodeStatistics,
    x_bound: float,
    y_bound: float,
    epsilon: float,
    delta: float,
    rng: np.random.Generator | None = None,
    *,
    neighbours: Neighbours = "replace",
    calibration: Calibration = "analytic",
    with_u: bool = False,
    bounds_source: Source = "public",
    ledgers: Sequence[Ledger] | None = None,
    noise: Noise = "continuous",
) -> NoisyStatistics:
    """Release the statistics of rows (1, x), their number without noise.

    Parameters
    ----------
    statistics : NodeStatistics
        Of `dpmc.linreg.sufficient_statistics.node_statistics` with ``intercept=True``.
    x_bound, y_bound : float
        Of the rows without the leading one.
    epsilon, delta, rng, neighbours, calibration, with_u, bounds_source, ledgers, noise
        See `dpmc.linreg.release.release`.

    Returns
    -------
    NoisyStatistics
        ``s[:, 0, 0]`` are the numbers of rows. Where an estimator takes all entries of S to
        have the same noise, it gives this one less weight than it deserves.

    Raises
    ------
    DpmcError
        As `dpmc.linreg.release.release`, or if the rows have no leading one.
    """
    terms = Terms(epsilon, delta, neighbours, calibration, bounds_source, noise)
    release_terms.check_within(statistics, x_bound, y_bound, intercept=True)
    changes: dict[Neighbours, float] = {
        relation: intercept_sensitivity(x_bound, y_bound, statistics.dim - 1, relation, with_u)
        for relation in NEIGHBOURS
    }
    return jointly(statistics, changes, rng, terms, with_u, ledgers, known=1)


def _replaced(b2: float, a: float, b: float) -> float:
    """Return the largest squared change without u, for targets a = Y and -b, b in [0, Y].

    Features have norm B and inner product t: ``-2 t**2 + 2 t (a b - 1)`` at its best t.
    """
    lean = abs(a * b - 1)
    best = lean**2 / 2 if lean <= 2 * b2 else 2 * b2 * (lean - b2)
    return 2 * b2 + 2 * b2**2 + (a + b) ** 2 + b2 * (a**2 + b**2) + best


def _stationary(b2: float, a: float) -> list[float]:
    """Return Y, and where in [0, Y] the derivative by b of the change with u may vanish.

    It is a cubic for each of the three forms of the part in t; roots of the wrong form are
    harmless, since the change is evaluated as it is.
    """
    found = [a]
    # (a + b)^2 + b2 b^2 + (a^2 - b^2)^2, and the part in t: (ab - 1)^2 / 2 or +-2 b2 (ab - 1).
    for square, constant in ((a**2, -a), (0.0, 2 * b2 * a), (0.0, -2 * b2 * a)):
        cubic = [4.0, 0.0, 2 + 2 * b2 - 4 * a**2 + square, 2 * a + constant]
        found += [min(max(float(root.real), 0.0), a) for root in np.roots(cubic)]
    return found
