"""Private rows of persons who may have several each, for the search of a regression.

Units, second moments, lengths, residuals and the scale are those of one row of each person, drawn
by a public generator: sums over them have the sensitivities of rows. What the coefficients are
found by is summed over all rows, those of a person first: the gradient, clipped to a length that
noisy counts of such lengths are for, and the curvature. Neither bound is that of one row times a
number of rows, and no sum depends on how many rows there are but by way of clipped persons.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmc.automatic.glm import kernels
from dpmc.automatic.glm.rows import Rows, Sums, packed_sum
from dpmc.numerics.compiled import njit
from dpmc.privacy.clipped import Clipped, row_histogram, row_span, row_sum
from dpmc.rows.persons import Persons
from dpmc.types import Array

# Persons whose rows are read at once.
BLOCK = 1 << 10
# Rows of a person, between which persons are counted, and lengths of their gradients, over the
# bound on that of a row.
SIZES = np.append([0.0], 2.0 ** np.arange(0, 21))
LENGTHS = 2.0 ** (np.arange(-6, 15) / 2)
# Deviations of its noise that a count has to exceed, and share of persons that may have more rows
# than the bound on curvatures is for; ratio of the last lengths that are seen to those behind.
CLEAR, RARE, FALL = 3.0, 0.02, 10.0
# Bounds to choose from, over that on the gradient of a row.
BOUNDS = 2.0 ** (np.arange(-12, 29) / 4)


@dataclass(frozen=True)
class PersonRows(Rows):
    """One row of each person, and the rows of all.

    Parameters
    ----------
    persons : Persons, optional
        As many as there are rows.
    """

    persons: Persons | None = None

    def sizes(self) -> Clipped[Array]:
        """Number of persons who have so many rows, between `SIZES`."""
        assert self.persons is not None
        places = np.searchsorted(SIZES, np.diff(self.persons.starts), side="left")
        return row_histogram(np.bincount(places, minlength=len(SIZES) + 1).astype(np.float64))

    def total(self, most: float) -> Clipped[float]:
        """Number of rows, of which those of a person count up to a number."""
        assert self.persons is not None
        counts = np.minimum(np.diff(self.persons.starts), most)
        return row_span(float(counts.sum()), most)

    def lengths_of_persons(self, basis: Array, phi: Array, numbers: Array) -> Clipped[Array]:
        """Number of persons whose gradient is so long, between `LENGTHS`."""
        dim = self.dim
        found, _ = self._summed(basis, phi, numbers, np.zeros((dim, 0)), np.zeros((0, 0)))
        places = np.searchsorted(LENGTHS * numbers[kernels.GRADIENT], found)
        return row_histogram(np.bincount(places, minlength=len(LENGTHS) + 1).astype(np.float64))

    def scores(
        self, basis: Array, phi: Array, numbers: Array, curved: bool, meat: bool = False
    ) -> Sums:
        """Sums over persons of gradients and curvatures, and over one row of each of the rest."""
        ones = super().scores(basis, phi, numbers, False)
        if not curved:
            return ones
        shape = kernels.padded(basis).shape
        curvature = np.zeros(shape)
        squares = np.zeros(shape if meat else (0, 0))
        _, gradient = self._summed(basis, phi, numbers, curvature, squares)
        longest, largest = numbers[kernels.PERSON], float(numbers[kernels.PERSON_CURVED])
        if self.kind == kernels.STUDENT_T and not numbers[kernels.SAFE]:
            # A sum over many rows may be as long with either sign: see `row_matrices`.
            largest *= math.sqrt(2)
        return Sums(
            row_sum(gradient[: self.dim], float(longest)),
            packed_sum(curvature, largest, self.neighbours),
            packed_sum(squares, float(longest**2), self.neighbours),
            *ones[3:],
        )

    def _summed(
        self, basis: Array, phi: Array, numbers: Array, curvature: Array, squares: Array
    ) -> tuple[Array, Array]:
        """Lengths of gradients of persons, and the sum of gradients; writes the others."""
        assert self.persons is not None
        x, starts = self.persons.rows.x, self.persons.starts
        basis, inverse = kernels.padded(basis), 1 / self.scale
        gradient, found = np.zeros(basis.shape[1]), np.empty(len(starts) - 1)
        for first in range(0, len(found), BLOCK):
            ends = starts[first : first + BLOCK + 1]
            rows = np.ascontiguousarray(x[ends[0] : ends[-1]], dtype=np.float64)
            add_persons(
                rows, ends - ends[0], self.location, inverse, basis, int(self.constant), phi,
                self.kind, numbers, self.table, gradient, curvature, squares,
                found[first : first + BLOCK],
            )  # fmt: skip
        return found, gradient


@njit
def add_persons(
    x: Any,
    starts: Any,
    location: Any,
    inverse: Any,
    basis: Any,
    constant: int,
    phi: Any,
    kind: int,
    numbers: Any,
    table: Any,
    gradient: Any,
    curvature: Any,
    squares: Any,
    lengths: Any,
) -> None:
    """Add the gradients and curvatures of persons, clipped, and write the lengths of gradients.

    Curvatures and squares of gradients are left out where their arrays are empty.
    """
    dim, width = basis.shape
    own, extra, none = np.empty(width), np.empty(4), np.empty((0, 0))
    bent = np.empty(curvature.shape)
    longest, largest = numbers[kernels.PERSON], numbers[kernels.PERSON_CURVED]
    for p in range(len(starts) - 1):
        own[:] = 0.0
        bent[:] = 0.0
        kernels.scores(
            x[starts[p] : starts[p + 1]], location, inverse, basis, constant, phi, kind, numbers,
            table, own, bent if bent.size else none, none, extra,
        )  # fmt: skip
        lengths[p] = math.sqrt(np.sum(own * own))
        if not curvature.size:
            continue
        factor = 1.0 if lengths[p] <= longest else longest / lengths[p]
        for k in range(width):
            own[k] *= factor
            gradient[k] += own[k]
        size = math.sqrt(np.sum(bent * bent))
        factor = 1.0 if size <= largest else largest / size
        for j in range(dim):
            for k in range(width):
                curvature[j, k] += factor * bent[j, k]
        if squares.size:
            for j in range(dim):
                for k in range(width):
                    squares[j, k] += own[j] * own[k]


def most_rows(counts: Array, noise: float) -> float:
    """Number of rows that few persons have more than.

    Parameters
    ----------
    counts : ndarray of shape (k + 1,)
        Released, between the k `SIZES`.
    noise : float
        Standard deviation of a count.
    """
    place = _last(counts, noise, RARE * float(counts.sum()))
    return max(float(SIZES[min(place, len(SIZES) - 1)]), 1.0)


def _last(counts: Array, deviation: float, few: float = 0.0) -> int:
    """Bin beyond which there are no more than a few, as far as noise lets see."""
    beyond = np.append(np.cumsum(counts[:0:-1])[::-1], 0.0)
    noise = deviation * np.sqrt(np.arange(len(counts) - 1, -1, -1))
    return int(np.argmax(beyond <= few + CLEAR * noise))


def clip_bound(
    counts: Array, deviation: float, noise: float, unit: float, dim: int, each: float
) -> tuple[float, float]:
    """Bound on gradients of persons that costs least, and the share of slopes that it leaves.

    What it takes of a gradient counts as if that of all pulled one way, and noise against it. A
    gradient that is clipped changes less as the point moves: by the bound over its length, and not
    along itself.

    Parameters
    ----------
    counts : ndarray of shape (k + 1,)
        Released, between the k `LENGTHS`. Beyond those that noise shows they fall by `FALL` each.
    deviation : float
        Standard deviation of a count.
    noise : float
        Of an entry of the gradient, for a bound of 1.
    unit : float
        Of the lengths: the bound on gradients of rows.
    dim : int
    each : float
        Rows of a person, for where noise hides all.
    """
    last = _last(counts, deviation)
    if not counts[last] > CLEAR * deviation:
        return unit * math.sqrt(each), 1.0
    behind = counts[last] / FALL ** np.arange(1, len(counts) - last)
    persons = np.append(np.maximum(counts[: last + 1], 0.0), behind)
    sizes = unit * np.append(LENGTHS[0], LENGTHS) * 2**0.25

    def error(bound: float) -> float:
        taken = float(persons @ np.maximum(sizes - bound, 0.0))
        return math.hypot(math.sqrt(dim) * noise * bound, taken)

    bound = float(min(unit * BOUNDS, key=error))
    slopes = np.where(sizes > bound, bound / sizes * (1 - 1 / dim), 1.0)
    return bound, float(persons @ slopes / persons.sum())
