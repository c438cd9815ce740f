"""Row gradients and curvatures in coordinates where the posterior is round.

A step ``z`` moves the parameter by ``basis @ z``. With a basis that whitens the posterior a step of
length 1 is one posterior standard deviation in any direction, and what a row may contribute is
bounded in the same unit: a norm clip wastes nothing on directions that the data do not tell apart.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpmc.automatic import rank_one
from dpmc.numerics.row_products import times
from dpmc.privacy.clipped import Clipped, row_count, row_matrices, row_span, row_sum
from dpmc.rows.compiled_gradients import FUSED, RowGradients
from dpmc.rows.passes import Passes
from dpmc.rows.persons import Persons
from dpmc.rows.sources import Source, block_rows
from dpmc.rows.vectors import clip_rows, norms, pack
from dpmc.types import Array, Dataset, Model, Neighbours

# Half the distance, in whitened units, over which gradients are differenced: rounding and
# curvature of the curvature are both far below the noise of any release.
HALF_STEP = 1e-4
# Length of the directions of large rows.
UNIT = 1.0


class WhitenedRows:
    """Sums over private rows, each clipped in the coordinates of a basis.

    Parameters
    ----------
    model : Model
        The posterior, written for one row.
    data : Dataset, Source or Persons
        The private rows. Of persons what is summed, clipped and counted is the sum over the rows of
        each, in the place of a row.
    neighbours : {"replace", "add_remove"}
    varied : Dataset, optional
        The same rows, as `squares_sum` and `outer_sum` see them.
    """

    def __init__(
        self,
        model: Model,
        data: Dataset | Source | Persons,
        neighbours: Neighbours = "replace",
        varied: Dataset | None = None,
    ) -> None:
        self.dim, self.tempering, self.neighbours = model.dim, model.tempering, neighbours
        self._passes = Passes(model, data)
        self._varied = self._passes if varied is None else Passes(model, varied)
        # Public; where it is not, what was released stands in its place.
        self.num_rows = self._passes.num_rows
        self._block, self._wide_block = block_rows(self.dim), block_rows(self.dim**2)

    def gradients_beyond(
        self, theta: Array, basis: Array, lengths: Sequence[float]
    ) -> dict[float, Clipped[float]]:
        """Number of whitened row gradients that are longer than each of some lengths, > 0.

        One whose square overflows is; a row that will count as zero is not.
        """
        steps = np.array(sorted(lengths))
        counts = self._passes.total(_gradients_beyond, self._block, theta, basis, steps)
        return dict(zip(steps.tolist(), map(self._count, counts), strict=True))

    def gradient_sum(self, theta: Array, basis: Array, bound: float) -> Clipped[Array]:
        """Sum of whitened row gradients, each clipped to norm `bound`, shape (d,)."""
        total = self._passes.total(_gradient_sum, self._block, theta, basis, bound)
        return row_sum(total, bound, self.neighbours)

    def squares_sum(self, theta: Array, basis: Array, bound: float) -> Clipped[float]:
        """Sum of squared norms of whitened row gradients, each at most ``bound**2``."""
        total = self._varied.total(_squares_sum, self._block, theta, basis, bound)
        return row_span(float(total[0]), bound**2, self.neighbours)

    def outer_sum(self, theta: Array, basis: Array, bound: float) -> Clipped[Array]:
        """Packed sum of outer products of whitened row gradients clipped to norm `bound`."""
        total = self._varied.total(_outer_sum, self._wide_block, theta, basis, bound)
        return row_matrices(total, bound**2, self.neighbours)

    def large_sum(
        self, theta: Array, basis: Array, low: float, high: float
    ) -> tuple[Clipped[float], Clipped[float], Clipped[Array]]:
        """Number of whitened row gradients that exceed two norms, and the sum of directions.

        Each beyond the higher norm contributes a vector of length 1 to the sum, shape (d,).
        """
        found = self._passes.total(_large_sum, self._block, theta, basis, low, high)
        directions = row_sum(found[2:], UNIT, self.neighbours)
        return self._count(found[0]), self._count(found[1]), directions

    def slope_sum(self, theta: Array, direction: Array, bound: float) -> Clipped[float]:
        """Sum of row slopes along a direction of theta, each clipped to `bound`."""
        column = np.ascontiguousarray(direction[:, None])
        total = self._passes.total(_gradient_sum, self._block, theta, column, bound)
        return row_sum(float(total[0]), bound, self.neighbours)

    def curvatures_beyond(
        self, theta: Array, basis: Array, lengths: Sequence[float]
    ) -> dict[float, Clipped[float]]:
        """Number of whitened row curvatures that have a Frobenius norm beyond some, > 0."""
        steps = np.array(sorted(lengths))
        counts = self._passes.total(_curvatures_beyond, self._wide_block, theta, basis, steps)
        return dict(zip(steps.tolist(), map(self._count, counts), strict=True))

    def curvature_sum(self, theta: Array, basis: Array, bound: float) -> Clipped[Array]:
        """Packed sum of whitened row curvatures, each clipped to Frobenius norm `bound`.

        A curvature is the negative Hessian of the log-likelihood of a row, by differences of
        its gradient. Shape (d (d + 1) / 2,), see `pack`.
        """
        total = self._passes.total(_curvature_sum, self._wide_block, theta, basis, bound)
        return row_sum(total, bound, self.neighbours)

    def _count(self, number: int) -> Clipped[float]:
        return row_count(number, self.neighbours)


# What a block of rows contributes; functions of a module, so that other processes know them.


def _whitened(
    gradients: RowGradients, features: Array, first: int, last: int, theta: Array, basis: Array
) -> Array:
    with np.errstate(all="ignore"):
        return times(gradients(features, theta, first, last), basis)


def _gradients_beyond(
    gradients: RowGradients,
    features: Array,
    first: int,
    last: int,
    theta: Array,
    basis: Array,
    lengths: Array,
) -> Array:
    if gradients.dim <= FUSED:
        return gradients.beyond(features, theta, first, last, basis, lengths)
    return _beyond(norms(_whitened(gradients, features, first, last, theta, basis)), lengths)


def _gradient_sum(
    gradients: RowGradients,
    features: Array,
    first: int,
    last: int,
    theta: Array,
    basis: Array,
    bound: float,
) -> Array:
    if gradients.dim <= FUSED:
        return gradients.clipped_sum(features, theta, first, last, basis, bound)
    return _clipped_sum(_whitened(gradients, features, first, last, theta, basis), bound)


def _squares_sum(
    gradients: RowGradients,
    features: Array,
    first: int,
    last: int,
    theta: Array,
    basis: Array,
    bound: float,
) -> Array:
    found = norms(_whitened(gradients, features, first, last, theta, basis))
    return np.array([np.sum(np.minimum(np.where(np.isnan(found), 0.0, found), bound) ** 2)])


def _outer_sum(
    gradients: RowGradients,
    features: Array,
    first: int,
    last: int,
    theta: Array,
    basis: Array,
    bound: float,
) -> Array:
    rows = _whitened(gradients, features, first, last, theta, basis)
    clip_rows(rows, bound)
    return pack(rows.T @ rows)


def _large_sum(
    gradients: RowGradients,
    features: Array,
    first: int,
    last: int,
    theta: Array,
    basis: Array,
    low: float,
    high: float,
) -> Array:
    rows = _whitened(gradients, features, first, last, theta, basis)
    large = rows[~(norms(rows) <= low)]
    large = large[~np.isnan(large).any(axis=1)]
    largest = large[~(norms(large) <= high)]
    with np.errstate(all="ignore"):
        largest /= high
    clip_rows(largest, UNIT)
    return np.concatenate([[len(large), len(largest)], largest.sum(axis=0)])


def _curvature(
    gradients: RowGradients, features: Array, first: int, last: int, theta: Array, basis: Array
) -> Array:
    dim = gradients.dim
    columns = np.empty((last - first, dim, dim))
    with np.errstate(all="ignore"):
        for k in range(dim):
            step = HALF_STEP * basis[:, k]
            change = gradients(features, theta - step, first, last)
            change -= gradients(features, theta + step, first, last)
            columns[:, k] = times(change, basis) / (2 * HALF_STEP)
        return pack(columns)


def _curvatures_beyond(
    gradients: RowGradients,
    features: Array,
    first: int,
    last: int,
    theta: Array,
    basis: Array,
    lengths: Array,
) -> Array:
    if gradients.slope is not None:
        found = rank_one.norms(gradients, features, first, last, theta, basis)
    else:
        found = norms(_curvature(gradients, features, first, last, theta, basis))
    return _beyond(found, lengths)


def _curvature_sum(
    gradients: RowGradients,
    features: Array,
    first: int,
    last: int,
    theta: Array,
    basis: Array,
    bound: float,
) -> Array:
    if gradients.slope is not None:
        return rank_one.clipped_sum(gradients, features, first, last, theta, basis, bound)
    return _clipped_sum(_curvature(gradients, features, first, last, theta, basis), bound)


def _clipped_sum(rows: Array, bound: float) -> Array:
    """Sum of rows, each clipped in place."""
    clip_rows(rows, bound)
    total: Array = rows.sum(axis=0)
    return total


def _beyond(found: Array, lengths: Array) -> Array:
    """Number of norms that exceed each of some lengths, in order; NaN exceeds none."""
    places = np.searchsorted(lengths, np.where(np.isnan(found), 0.0, found), side="left")
    exactly = np.bincount(places, minlength=len(lengths) + 1)
    counts: Array = np.cumsum(exactly[::-1])[::-1][1:].astype(np.float64)
    return counts
