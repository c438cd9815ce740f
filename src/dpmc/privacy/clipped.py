"""Values that carry how far one row moves them, and what loops clip rows to.

A ledger adds noise to a `Clipped` and to nothing else, so that whoever asks for a release cannot
state its sensitivity. The functions here that make one are for the code that clips, counts or
averages rows, beside the bound that it does so with, and the relation of neighbours that a budget
is for: forgotten, it is substitution, and a ledger of another relation refuses the value.
`asserted` is for a value whose sensitivity a user answers for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from dpmc.privacy.events import BarkerEvent
from dpmc.types import NEIGHBOURS, Array, DpmcError, Neighbours

V = TypeVar("V", float, Array)


class Clipped(NamedTuple, Generic[V]):
    """A function of private rows, and how far one of them moves it.

    Parameters
    ----------
    value : float or ndarray
        Private.
    sensitivity : float
        Bound on the Euclidean change of `value` between neighbouring data sets, >= 0; infinite
        where nothing was clipped, which no ledger releases.
    neighbours : {"replace", "add_remove"}
        How neighbouring data sets differ.

    Examples
    --------
    >>> asserted(0.25, sensitivity=0.01).sensitivity
    0.01
    """

    value: V
    sensitivity: float
    neighbours: Neighbours = "replace"


class BarkerRatio(NamedTuple):
    """The log-ratio of a batch, its row ratios clipped as an event of the Barker test says.

    Parameters
    ----------
    value : float
        Private.
    batch_variance : float
        s^2, variance of `value` over batches, estimated from the clipped ratios of this one;
        between 0 and ``event.clip_scale**2``. Private.
    event : BarkerEvent
    """

    value: float
    batch_variance: float
    event: BarkerEvent


@dataclass(frozen=True)
class Clip:
    """Clip of the contribution of a row in a compiled loop, and its factor.

    Parameters
    ----------
    bound : float
        Of the Euclidean norm of each block.
    scale : float
        Of the contribution, after it is clipped.
    blocks : int
        Parts of a contribution that are clipped each by itself.
    """

    bound: float
    scale: float = 1.0
    blocks: int = 1

    @property
    def sensitivity(self) -> float:
        """Largest change of a sum of contributions by a substituted row."""
        return 2 * self.bound * self.scale * math.sqrt(self.blocks)


def row_sum(value: V, bound: float, neighbours: Neighbours = "replace") -> Clipped[V]:
    """Sum over rows, each of which contributes a vector of norm `bound` at most.

    A row in place of its opposite moves it by twice as much as one that is added.
    """
    return Clipped(value, 2 * bound if neighbours == "replace" else bound, neighbours)


def row_mean(value: Array, bound: float, num_rows: int) -> Clipped[Array]:
    """Mean over rows, each of which contributes a vector of norm `bound` at most.

    Under substitution alone, as shares are: otherwise the number of rows is private.
    """
    return Clipped(value, 2 * bound / num_rows)


def row_count(number: int, neighbours: Neighbours = "replace") -> Clipped[float]:
    """Number of rows: one that is substituted, added or removed moves it by 1 at most."""
    return Clipped(float(number), 1.0, neighbours)


def row_shares(values: Array, num_rows: int) -> Clipped[Array]:
    """Shares of rows, each of which a substituted one moves by ``1 / num_rows`` at most."""
    return Clipped(values, math.sqrt(values.size) / num_rows)


def row_span(value: float, width: float, neighbours: Neighbours = "replace") -> Clipped[float]:
    """Sum over rows, each of which contributes a number from 0 to a width."""
    return Clipped(value, width, neighbours)


def row_counts(numbers: Array, neighbours: Neighbours = "replace") -> Clipped[Array]:
    """Numbers of rows, each of which one row may move by 1."""
    return Clipped(numbers, math.sqrt(numbers.size), neighbours)


def row_histogram(numbers: Array, neighbours: Neighbours = "replace") -> Clipped[Array]:
    """Number of rows that are in each of some bins.

    A substituted row leaves one bin for another; one that is added or removed is in one of them.
    """
    return Clipped(numbers, math.sqrt(2) if neighbours == "replace" else 1.0, neighbours)


def row_matrices(packed: Array, bound: float, neighbours: Neighbours = "replace") -> Clipped[Array]:
    """Packed sum over rows of multiples of a v v', each of Frobenius norm at most `bound`.

    Two of them with multiples of one sign have an inner product of at least 0, so that one in
    place of another moves the sum by sqrt(2) times the bound at most. So do multiples of either
    sign, if those below 0 have norms of at most 0.41 times the bound.
    """
    return Clipped(packed, (math.sqrt(2) if neighbours == "replace" else 1.0) * bound, neighbours)


def asserted(
    value: float | Array, sensitivity: float, neighbours: Neighbours = "replace"
) -> Clipped[Any]:
    """Value whose sensitivity is the caller's word.

    Parameters
    ----------
    value : float or ndarray of float64
    sensitivity : float
        Bound on the Euclidean change of `value` between neighbouring data sets; finite, >= 0.
    neighbours : {"replace", "add_remove"}
        How neighbouring data sets differ.

    Raises
    ------
    DpmcError
        If `value` has other numbers than float64, `sensitivity` is out of range, or there is no
        such relation.

    Examples
    --------
    >>> asserted(1.0, sensitivity=0.1)
    Clipped(value=1.0, sensitivity=0.1, neighbours='replace')
    """
    bound = number("sensitivity", sensitivity)
    if not 0 <= bound < math.inf:
        raise DpmcError(f"`sensitivity` must be finite and at least 0, got {sensitivity}")
    if neighbours not in NEIGHBOURS:
        raise DpmcError(f"`neighbours` must be one of {', '.join(NEIGHBOURS)}, got {neighbours!r}")
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        value = number("value", value)
    check_value(value)
    # An array without a dimension is a number to those that add noise.
    return Clipped(float(value) if np.ndim(value) == 0 else value, bound, neighbours)


def check_value(value: object) -> None:
    """Refuse a value that no noise of float64 hides: another kind of number would keep a part."""
    if isinstance(value, float):
        return
    # A masked array keeps what is masked as it is, without noise.
    if type(value) is not np.ndarray or value.dtype != np.float64:
        plain = not np.ma.isMaskedArray(value)
        kind = getattr(value, "dtype", None) if plain else None
        kind = type(value).__name__ if kind is None else kind
        raise DpmcError(f"`value` must be a float or an array of float64, got {kind}")


def number(name: str, value: object) -> float:
    """Number as a Python float, whose arithmetic is that of float64."""
    if isinstance(value, bool) or not isinstance(value, float | int | np.integer):
        raise DpmcError(f"`{name}` must be a float, got {type(value).__name__}")
    try:
        return float(value)
    except OverflowError:
        pass  # and raise nothing from what has the value
    raise DpmcError(f"`{name}` must be a float, got an integer beyond all floats")
