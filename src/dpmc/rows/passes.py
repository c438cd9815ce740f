"""Sums over all rows of a source, block by block in one order, whoever computes them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpmc.numerics.compile_cache import compile_once
from dpmc.rows import fused_sums, row_functions
from dpmc.rows.model_checks import check_rows
from dpmc.rows.shipping import packed, unpacked
from dpmc.rows.sources import InMemory, Source, spans
from dpmc.rows.sums import part_features
from dpmc.rows.wide_gradients import curvatures_kernel, gradients_kernel
from dpmc.types import Array, Dataset, DpmcError, Model

# Features of rows in memory that are kept, in numbers: larger ones are made anew in each pass.
KEPT = 1 << 23
# Numbers of features that are made at once, so that they stay in the second-level cache, and the
# fewest and most rows that they may be: what Python adds to each piece is felt by few rows.
PIECE, LEAST_ROWS, MOST_ROWS = 1 << 17, 1 << 10, 1 << 14
# The largest number of coordinates for which steps of a sum are fused: beyond it the library of
# linear algebra whitens faster, see benchmarks/measure_growth.py --fused.
FUSED = 24


class RowGradients:
    """The gradient of every row of a model, compiled.

    Parameters
    ----------
    model : Model
    num_columns : int
        Columns p of the rows.

    Raises
    ------
    DpmcError
        If the model is refused on public probes, see :mod:`dpmc.rows.model_checks`.
    """

    def __init__(self, model: Model, num_columns: int) -> None:
        self.model = row_functions.without_errors(model)
        self.dim = model.dim
        self.count = len(check_rows(self.model, num_columns).features)
        self._coefficients: Any = (
            (lambda theta: theta)
            if model.coefficients is None
            else compile_once(model.coefficients)
        )
        length = len(self._coefficients(np.zeros(model.dim)))
        self._kernel = gradients_kernel(self.model, length, self.count)
        # A row then enters by its inner product with theta alone.
        self.slope = self.model.slope if model.coefficients is None else None
        fitting = PIECE // max(self.count, 1)
        self.piece = min(max(1 << fitting.bit_length() >> 1, LEAST_ROWS), MOST_ROWS)

    def features(self, x: Array, nan_rows: bool) -> Array:
        """Return what the row functions read of rows, shape (q, m), `piece` rows at a time.

        Rows that begin at a multiple of `piece` have the same features alone as among others.
        """
        if len(x) <= self.piece or (self.model.features is None and x.dtype == np.float64):
            return part_features(self.model, x, nan_rows)
        out = np.empty((self.count, len(x)))
        for first in range(0, len(x), self.piece):
            last = first + self.piece
            out[:, first:last] = part_features(self.model, x[first:last], nan_rows)
        return out

    def __call__(self, features: Array, theta: Array, first: int, last: int) -> Array:
        """Return the gradients of rows, tempered, as they are: shape (last - first, d)."""
        rows = np.empty((last - first, self.dim))
        self._kernel(features, self._coefficients(theta), first, last, rows)
        if self.model.tempering != 1:
            rows *= self.model.tempering
        return rows

    def curvatures(self, features: Array, theta: Array, first: int, last: int) -> Array:
        """Return the curvatures of rows along their inner products, tempered, by differences.

        The curvature of a row, the negative Hessian of its log-likelihood, is this number times
        the outer product of its last d features with themselves. Shape (last - first,).

        Raises
        ------
        TypeError
            If the model has no slope.
        """
        if self.slope is None:
            raise TypeError("the model must have a slope")
        out = np.empty(last - first)
        curvatures_kernel(self.slope, self.count - self.dim)(features, theta, first, last, out)
        out *= self.model.tempering
        return out

    def clipped_sum(
        self, features: Array, theta: Array, first: int, last: int, basis: Array, bound: float
    ) -> Array:
        """Return the sum of gradients of rows times `basis`, each clipped to norm `bound`.

        Parameters
        ----------
        features, theta, first, last
            As to a call.
        basis : ndarray of shape (d, k)
        bound : float
            Finite and > 0.

        Returns
        -------
        ndarray of shape (k,)
        """
        total = np.empty(basis.shape[1])
        kernel = fused_sums.sum_kernel(self._kernel)
        c, basis = self._coefficients(theta), np.ascontiguousarray(basis * self.model.tempering)
        kernel(features, c, first, last, basis, bound, total)
        return total

    def beyond(
        self, features: Array, theta: Array, first: int, last: int, basis: Array, lengths: Array
    ) -> Array:
        """Return how many gradients of rows, times `basis`, are longer than each length.

        Parameters
        ----------
        features, theta, first, last, basis
            As `clipped_sum` has them.
        lengths : ndarray of shape (l,)
            Increasing, > 0.

        Returns
        -------
        ndarray of shape (l,)
            A square that overflows is beyond all, a gradient that is none beyond none.
        """
        counts = np.empty(len(lengths))
        kernel = fused_sums.beyond_kernel(self._kernel)
        c, basis = self._coefficients(theta), np.ascontiguousarray(basis * self.model.tempering)
        kernel(features, c, first, last, basis, lengths, counts)
        return counts


# What a block of rows contributes to a sum: the gradients, features of shape (q, m), the first
# row of the block and the one behind it, and what else the sum depends on.
Part = Callable[..., Array]


@dataclass(frozen=True)
class Task:
    """The blocks of some rows, to be summed by some worker.

    Parameters
    ----------
    source : Source
    first, last : int
        Its rows: from a multiple of `SPAN` on.
    model : Model
        As it is, or in another process as bytes.
    part : callable
        A function of a module.
    block : int
        Rows of a block.
    arguments : tuple
        Of `part`.
    """

    source: Source
    first: int
    last: int
    model: Model | bytes
    part: Part
    block: int
    arguments: tuple[Any, ...]

    def packed(self) -> Task:
        """Return a task that another process can be given."""
        return replace(self, model=_packed(self.model)) if isinstance(self.model, Model) else self


def work(task: Task) -> Array:
    """Return the sums of a task over each `SPAN` of rows, in order, shape (spans, k)."""
    model = task.model if isinstance(task.model, Model) else _unpacked(task.model)
    gradients = _compiled(model, task.source.num_columns)
    task.source.check()
    found = []
    seen = 0
    for x in spans(task.source, task.first, task.last):
        rows = Dataset(task.source.name, x, invalid_rows=task.source.invalid_rows).x
        found.append(_added(_pieces(gradients, rows, task)))
        seen += len(x)
    task.source.check()
    if seen != task.last - task.first:
        raise DpmcError(
            f"data {task.source.name!r}: rows {task.first} to {task.last} must be there, got {seen}"
        )
    return np.stack(found)


def _added(parts: Iterable[Array]) -> Array:
    """Return the sum of arrays of one shape, in their order."""
    total: Array | float = 0.0
    for one in parts:
        total = total + one
    assert isinstance(total, np.ndarray)
    return total


def _pieces(gradients: RowGradients, x: Array, task: Task) -> Iterator[Array]:
    for first in range(0, len(x), gradients.piece):
        rows = x[first : first + gradients.piece]
        features = gradients.features(rows, task.source.invalid_rows == "zero")
        yield from _blocks(gradients, features, 0, len(rows), task)


def _blocks(
    gradients: RowGradients, features: Array, start: int, stop: int, task: Task
) -> Iterator[Array]:
    size = min(task.block, gradients.piece)
    for first in range(start, stop, size):
        last = min(first + size, stop)
        yield np.atleast_1d(task.part(gradients, features, first, last, *task.arguments))


@functools.lru_cache(maxsize=8)
def _compiled(model: Model, num_columns: int) -> RowGradients:
    return RowGradients(model, num_columns)


_packed = functools.lru_cache(maxsize=8)(packed)
_unpacked = functools.lru_cache(maxsize=8)(unpacked)


class Passes:
    """Sums over all rows of a source.

    Parameters
    ----------
    model : Model
        The posterior, written for one row.
    data : Dataset or Source
        The private rows.

    Raises
    ------
    DpmcError
        If the model is refused on public probes, see :mod:`dpmc.rows.model_checks`.
    """

    def __init__(self, model: Model, data: Dataset | Source) -> None:
        self.model = model
        self.source = source = InMemory(data) if isinstance(data, Dataset) else data
        self.num_rows = source.num_rows
        self._gradients = _compiled(model, source.num_columns)
        self._kept: Array | None = None
        if isinstance(source, InMemory):
            x, nan_rows = source.dataset.x, source.invalid_rows == "zero"
            free = self._gradients.model.features is None and x.T.flags.c_contiguous
            if self._gradients.count * source.num_rows <= KEPT or (free and x.dtype == np.float64):
                self._kept = self._gradients.features(x, nan_rows)

    def total(self, part: Part, block: int, *arguments: Any) -> Array:
        """Return the sum of what blocks of rows contribute, shape (k,).

        Parameters
        ----------
        part : callable
            A function of a module: ``(gradients, features, first, last, *arguments)``.
        block : int
            Rows of a block, see :func:`dpmc.rows.sources.block_rows`.
        *arguments
            Of `part`.
        """
        sums = self._parts(part, block, arguments)
        return _added(one for spans_of_part in sums for one in spans_of_part)

    def _parts(self, part: Part, block: int, arguments: tuple[Any, ...]) -> Iterator[Array]:
        source, step = self.source, self.source.part_rows
        tasks = (
            Task(
                source, first, min(first + step, self.num_rows), self.model, part, block, arguments
            )
            for first in range(0, self.num_rows, step)
        )
        if isinstance(source, InMemory):
            yield from map(self._in_memory, tasks)
        else:
            yield from source.run(work, tasks)

    def _in_memory(self, task: Task) -> Array:
        if self._kept is not None:
            # They are not cut: a view of them that is not contiguous is compiled for anew.
            parts = _blocks(self._gradients, self._kept, task.first, task.last, task)
            return _added(parts)[None, :]
        assert isinstance(self.source, InMemory)
        x = self.source.dataset.x[task.first : task.last]
        return _added(_pieces(self._gradients, x, task))[None, :]
