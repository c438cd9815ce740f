"""Sums over all rows of a source, block by block in one order, whoever computes them.

A worker in another process is given the model as bytes, and compiles from them what this one has
compiled.
"""

from __future__ import annotations

import functools
import io
import operator
import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import cloudpickle
import numpy as np

from dpmc.rows.compiled_gradients import RowGradients
from dpmc.rows.person_gradients import PersonGradients
from dpmc.rows.persons import Persons
from dpmc.rows.sources import InMemory, Source, spans
from dpmc.types import Array, Dataset, DpmcError, Model


def packed(model: Model) -> bytes:
    """Model as bytes."""
    with io.BytesIO() as stream:
        try:
            _Pickler(stream, protocol=pickle.HIGHEST_PROTOCOL).dump(model)
        except Exception as error:  # whatever the functions of a user hold
            reason = " ".join(str(error).split())[:200]
            raise DpmcError(
                f"model {model.name!r}: its functions must be such that other processes can be "
                f"given them: {reason}"
            ) from None
        return stream.getvalue()


def unpacked(data: bytes) -> Model:
    """Model of `packed`."""
    model: Model = pickle.loads(data)
    return model


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Cloudpickle's, but that functions compiled by this package are compiled so again."""

    def reducer_override(self, value: Any) -> Any:
        """Recipe of a compiled function of this package."""
        recipe = getattr(value, "recipe", None) if hasattr(value, "py_func") else None
        return super().reducer_override(value) if recipe is None else (operator.call, (recipe,))


# Features of rows in memory that are kept, in numbers: larger ones are made anew in each pass.
KEPT = 1 << 23
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
        """Task that another process can be given."""
        return replace(self, model=_packed(self.model)) if isinstance(self.model, Model) else self


def work(task: Task) -> Array:
    """Sums of a task over each `SPAN` of rows, in order, shape (spans, k)."""
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
    """Sum of arrays of one shape, in their order."""
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
    data : Dataset, Source or Persons
        The private rows; the sums are over persons where these are of some.
    """

    def __init__(self, model: Model, data: Dataset | Source | Persons) -> None:
        self.model = model
        self.num_rows = data.num_rows
        self._kept: Array | None = None
        self._gradients: RowGradients
        if isinstance(data, Persons):
            self.source: Source = InMemory(data.rows)
            # It has the features of its rows itself, and is given persons from here on.
            self._gradients, self._kept = PersonGradients(model, data), data.rows.x
            return
        self.source = source = InMemory(data) if isinstance(data, Dataset) else data
        self._gradients = _compiled(model, source.num_columns)
        if isinstance(source, InMemory):
            x, nan_rows = source.dataset.x, source.invalid_rows == "zero"
            free = self._gradients.model.features is None and x.T.flags.c_contiguous
            if self._gradients.count * source.num_rows <= KEPT or (free and x.dtype == np.float64):
                self._kept = self._gradients.features(x, nan_rows)

    def total(self, part: Part, block: int, *arguments: Any) -> Array:
        """Sum of what blocks of rows contribute, shape (k,).

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
