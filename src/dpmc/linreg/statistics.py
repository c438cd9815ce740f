"""The sums X'X, X'y and y'y of each node, in one pass over rows that need not fit in memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dpmc.checks import at_least, one_of, positive
from dpmc.linreg.values import NodeStatistics
from dpmc.types import Array, DpmcError

Rows = tuple[Array, Array]

# Rows that are summed at once: some 100 kB, which stays in the cache.
BLOCK = 4096
# A row that is as long as the bound but for rounding is not beyond it.
ROUNDING = 1e-12
# What is clipped goes below the bound by more than the rounding of doing so.
INSIDE = 1.0 - 1e-14


def node_sizes(num_rows: int, num_nodes: int) -> npt.NDArray[np.int64]:
    """Return the rows of each node: equally many, and what remains goes to the last.

    Raises
    ------
    DpmcError
        If there is no row or node, or a node would be empty.
    """
    at_least("num_rows", num_rows, 1)
    at_least("num_nodes", num_nodes, 1)
    if num_nodes > num_rows:
        raise DpmcError(f"num_nodes: {num_nodes}, allowed at most {num_rows}, the number of rows")
    sizes = np.full(num_nodes, num_rows // num_nodes, dtype=np.int64)
    sizes[-1] += num_rows % num_nodes
    return sizes


def node_statistics(
    chunks: Rows | Iterable[Rows],
    num_nodes: int,
    num_rows: int,
    bounds: tuple[float, float],
    beyond: Literal["clip", "refuse"] = "clip",
) -> NodeStatistics:
    """Add up the rows of each node in one pass.

    Node j holds the j-th run of ``num_rows // num_nodes`` consecutive rows, the last one also
    what remains. Memory depends on the size of a chunk and not on their number; the sums
    depend to the last bit on the rows alone, not on how they are cut into chunks.

    Parameters
    ----------
    chunks : pair or iterable of pairs (ndarray of shape (m, d), ndarray of shape (m,))
        Features and targets, m rows at a time.
    num_nodes : int
        Number J of nodes.
    num_rows : int
        Number n of all rows, public.
    bounds : (float, float)
        Largest Euclidean norm of a row's features, and largest absolute target. The
        sensitivity of the sums rests on them: they hold for every row that is added.
    beyond : {"clip", "refuse"}
        What becomes of a row beyond them: its features are shortened to the bound and its
        target is moved to the nearest end, and the row is counted; or it is an error.

    Returns
    -------
    NodeStatistics

    Raises
    ------
    DpmcError
        If there are more nodes than rows, a node has fewer rows than features, a bound is
        not > 0, the shapes or the number of rows do not fit, or a row has NaN or is beyond
        the bounds and to be refused.
    """
    sizes = node_sizes(num_rows, num_nodes)
    for name, bound in zip(("x bound", "y bound"), bounds, strict=True):
        positive(name, bound)
    one_of("beyond", beyond, ("clip", "refuse"))
    sums = _Sums(sizes, bounds, beyond)
    pairs: Any = [chunks] if _is_pair(chunks) else chunks
    for x, y in pairs:
        sums.add(np.asarray(x), np.asarray(y))
    return sums.finish()


def _is_pair(chunks: Any) -> bool:
    """Return whether `chunks` is one pair of arrays."""
    if not isinstance(chunks, tuple) or len(chunks) != 2:
        return False
    return all(isinstance(part, np.ndarray) for part in chunks)


class _Sums:
    """Rows wait in a buffer until a block of fixed place in its node is full."""

    def __init__(
        self, sizes: npt.NDArray[np.int64], bounds: tuple[float, float], beyond: str
    ) -> None:
        self.sizes = sizes
        self.bounds = bounds
        self.refuse = beyond == "refuse"
        self.node = 0
        self.left = int(sizes[0])
        self.added = 0
        self.filled = 0
        self.num_clipped = 0
        self.buffer = np.empty((0, 0))
        self.gram = np.empty((0, 0, 0))

    def add(self, x: npt.NDArray[Any], y: npt.NDArray[Any]) -> None:
        """Take the next rows, in whatever number."""
        self._check(x, y)
        start = 0
        while start < len(x):
            count = min(BLOCK - self.filled, self.left, len(x) - start)
            if count == 0:
                raise DpmcError(f"chunks: more rows than num_rows, allowed {self.sizes.sum()}")
            part = self.buffer[self.filled : self.filled + count]
            part[:, :-1] = x[start : start + count]
            part[:, -1] = y[start : start + count]
            start += count
            self.filled += count
            self.left -= count
            if self.filled == BLOCK or self.left == 0:
                self._flush()

    def finish(self) -> NodeStatistics:
        """Return the sums, if all rows came."""
        came = self.added + self.filled
        if came != self.sizes.sum():
            raise DpmcError(f"chunks: {came} rows, allowed {self.sizes.sum()} (num_rows)")
        s, z, u = self.gram[:, :-1, :-1], self.gram[:, :-1, -1], self.gram[:, -1, -1]
        return NodeStatistics(self.sizes, s.copy(), z.copy(), u.copy(), self.num_clipped)

    def _check(self, x: npt.NDArray[Any], y: npt.NDArray[Any]) -> None:
        """Refuse rows of the wrong shape or kind; the first chunk fixes the number of features."""
        dim = self.buffer.shape[1] - 1 if self.buffer.size else None
        if x.ndim != 2 or x.shape[1] != (dim or x.shape[1]) or x.shape[1] == 0:
            raise DpmcError(f"chunks: x of shape {x.shape}, allowed (m, {dim or 'd >= 1'})")
        if y.shape != (len(x),):
            raise DpmcError(f"chunks: y of shape {y.shape}, allowed {(len(x),)}")
        if x.dtype.kind not in "fiub" or y.dtype.kind not in "fiub":
            raise DpmcError(f"chunks: dtypes {x.dtype} and {y.dtype}, allowed real numbers")
        if dim is None:
            dim = x.shape[1]
            if self.sizes[0] < dim:
                raise DpmcError(
                    f"num_nodes: {len(self.sizes)} of {self.sizes[0]} rows or more, allowed nodes "
                    f"of at least {dim} rows, the number of features"
                )
            self.buffer = np.empty((BLOCK, dim + 1))
            self.gram = np.zeros((len(self.sizes), dim + 1, dim + 1))

    def _flush(self) -> None:
        """Bound the rows that wait and add their products to the node."""
        rows = self.buffer[: self.filled]
        with np.errstate(over="ignore", invalid="ignore"):
            total = rows.sum()
        if not np.isfinite(total):
            self._check_finite(rows)
        beyond = bound_rows(rows, *self.bounds)
        if self.refuse and beyond.any():
            row = self.added + int(np.argmax(beyond))
            raise DpmcError(
                f"row {row} is beyond the bounds, allowed features of norm {self.bounds[0]:g} "
                f"and a target of {self.bounds[1]:g} at most"
            )
        self.num_clipped += int(np.count_nonzero(beyond))
        self.gram[self.node] += rows.T @ rows
        self.added += self.filled
        self.filled = 0
        if self.left == 0 and self.node + 1 < len(self.sizes):
            self.node += 1
            self.left = int(self.sizes[self.node])

    def _check_finite(self, rows: Array) -> None:
        """Refuse rows that are not finite; a finite sum of them may have overflown."""
        where = np.argwhere(~np.isfinite(rows))
        if len(where):
            row, column = (int(k) for k in where[0])
            name = "y" if column == rows.shape[1] - 1 else f"x, column {column}"
            value = rows[row, column]
            raise DpmcError(f"row {self.added + row}: {name} is {value}, allowed a finite number")


def bound_rows(rows: Array, x_bound: float, y_bound: float) -> npt.NDArray[np.bool_]:
    """Bound rows in place and return which of them were beyond by more than rounding.

    Parameters
    ----------
    rows : ndarray of shape (m, d + 1)
        Features, then the target; finite. Features longer than `x_bound` are shortened to
        it, or to zero where their square is beyond floating point; the target is moved to
        [-`y_bound`, `y_bound`].
    x_bound, y_bound : float
        Positive.
    """
    x, y = rows[:, :-1], rows[:, -1]
    with np.errstate(over="ignore"):
        norms = np.sqrt(np.einsum("ij,ij->i", x, x))
    long = norms > x_bound * INSIDE
    beyond: npt.NDArray[np.bool_] = norms > x_bound * (1 + ROUNDING)
    beyond |= np.abs(y) > y_bound * (1 + ROUNDING)
    if long.any():
        x[long] *= (x_bound * INSIDE / norms[long])[:, None]
    np.clip(y, -y_bound, y_bound, out=y)
    return beyond
