"""Sums X'X, X'y and y'y of each node, in one pass over rows that need not fit in memory.

Every row is bounded before it meets another one: a product or a sum of rows never holds a
number that the bounds do not allow, whatever floats the rows are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dpmc.checks import at_least, one_of, positive
from dpmc.linreg.sensitivity import check_scale
from dpmc.linreg.types import NodeStatistics
from dpmc.types import Array, DpmcError, as_numbers

Rows = tuple[Array, Array]

# Rows that are summed at once: some 100 kB, which stays in the cache.
BLOCK = 4096
# A row that is as long as the bound but for rounding is not beyond it.
ROUNDING = 1e-12
# Clipped rows go below the bound by more than the rounding of doing so.
INSIDE = 1.0 - 1e-14
INVALID_ROWS = ("refuse", "zero")


def node_sizes(num_rows: int, num_nodes: int) -> npt.NDArray[np.int64]:
    """Rows of each node: equally many, and what remains goes to the last."""
    at_least("num_rows", num_rows, 1)
    at_least("num_nodes", num_nodes, 1)
    if num_nodes > num_rows:
        raise DpmcError(
            f"`num_nodes` must be at most {num_rows}, the number of rows, got {num_nodes}"
        )
    sizes = np.full(num_nodes, num_rows // num_nodes, dtype=np.int64)
    sizes[-1] += num_rows % num_nodes
    return sizes


def node_statistics(
    chunks: Rows | Iterable[Rows],
    num_nodes: int,
    num_rows: int,
    bounds: tuple[float, float],
    *,
    invalid_rows: Literal["refuse", "zero"] = "refuse",
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
        sensitivity of the sums rests on them. Of a row beyond them the features are shortened
        to the bound and the target is moved to the nearest end, and the row is counted.
    invalid_rows : {"refuse", "zero"}
        What becomes of a row with an entry that is NaN or infinite: it is an error, or it
        counts as a row of zeros.

    Notes
    -----
    A refusal reveals that some row is refused, which no budget covers; its text reveals
    neither which row nor what it holds. With ``invalid_rows="zero"`` nothing is refused for
    what rows hold.

    Examples
    --------
    >>> x, y = np.ones((6, 2)), np.ones(6)
    >>> sums = node_statistics((x, y), num_nodes=2, num_rows=6, bounds=(2.0, 1.0))
    >>> sums.s.shape, sums.num_rows.tolist()
    ((2, 2, 2), [3, 3])
    """
    sizes = node_sizes(num_rows, num_nodes)
    for name, bound in zip(("x bound", "y bound"), bounds, strict=True):
        positive(name, bound)
        check_scale(name, bound)
    one_of("invalid_rows", invalid_rows, INVALID_ROWS)
    sums = _Sums(sizes, bounds, invalid_rows)
    pairs: Any = [chunks] if _is_pair(chunks) else chunks
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise DpmcError(
                "`chunks` must be a pair (x, y) of arrays or an iterable of pairs, got "
                f"{type(pair).__name__}"
            )
        x, y = (as_numbers("x and y in `chunks`", part, invalid_rows) for part in pair)
        sums.add(x, y)
    return sums.finish()


def _is_pair(chunks: Any) -> bool:
    """Whether `chunks` is one pair of arrays, or of data frames."""
    if not isinstance(chunks, tuple) or len(chunks) != 2:
        return False
    return all(hasattr(part, "__array__") for part in chunks)


class _Sums:
    """Rows wait in a buffer until a block of fixed place in its node is full."""

    def __init__(
        self,
        sizes: npt.NDArray[np.int64],
        bounds: tuple[float, float],
        invalid_rows: str,
    ) -> None:
        self.sizes = sizes
        self.bounds = bounds
        self.zero = invalid_rows == "zero"
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
                raise DpmcError(f"`chunks` must have num_rows = {self.sizes.sum()} rows, got more")
            part = self.buffer[self.filled : self.filled + count]
            with np.errstate(over="ignore", invalid="ignore"):  # of longer floats
                part[:, :-1] = x[start : start + count]
                part[:, -1] = y[start : start + count]
            start += count
            self.filled += count
            self.left -= count
            if self.filled == BLOCK or self.left == 0:
                self._flush()

    def finish(self) -> NodeStatistics:
        """Sums, if all rows came."""
        came = self.added + self.filled
        if came != self.sizes.sum():
            raise DpmcError(f"`chunks` must have num_rows = {self.sizes.sum()} rows, got {came}")
        s, z, u = self.gram[:, :-1, :-1], self.gram[:, :-1, -1], self.gram[:, -1, -1]
        return NodeStatistics(
            self.sizes,
            s.copy(),
            z.copy(),
            u.copy(),
            self.num_clipped,
            (float(self.bounds[0]), float(self.bounds[1])),
        )

    def _check(self, x: npt.NDArray[Any], y: npt.NDArray[Any]) -> None:
        """Refuse rows of the wrong shape or kind; the first chunk fixes the number of features."""
        dim = self.buffer.shape[1] - 1 if self.buffer.size else None
        if x.ndim != 2 or x.shape[1] != (dim or x.shape[1]) or x.shape[1] == 0:
            raise DpmcError(f"x in `chunks` must have shape (m, {dim or 'd >= 1'}), got {x.shape}")
        if y.shape != (len(x),):
            raise DpmcError(f"y in `chunks` must have shape {(len(x),)}, got {y.shape}")
        if dim is None:
            dim = x.shape[1]
            if self.sizes[0] < dim:
                raise DpmcError(
                    f"`num_nodes` must leave each node at least {dim} rows, the number of "
                    f"features, got {len(self.sizes)} nodes, the smallest of {self.sizes[0]} rows"
                )
            self.buffer = np.ones((BLOCK, dim + 1))
            self.gram = np.zeros((len(self.sizes), dim + 1, dim + 1))

    def _flush(self) -> None:
        """Bound the rows that wait and add their products to the node."""
        rows = self.buffer[: self.filled]
        with np.errstate(over="ignore", invalid="ignore"):
            total = rows.sum()
        if not np.isfinite(total):
            self._invalid(rows)
        beyond = bound_rows(rows, *self.bounds)
        self.num_clipped += int(np.count_nonzero(beyond))
        self.gram[self.node] += rows.T @ rows
        self.added += self.filled
        self.filled = 0
        if self.left == 0 and self.node + 1 < len(self.sizes):
            self.node += 1
            self.left = int(self.sizes[self.node])

    def _invalid(self, rows: Array) -> None:
        """Refuse rows that are not finite or put zeros there; a finite sum may have overflown."""
        finite = np.isfinite(rows)
        if finite.all():
            return
        if self.zero:
            rows[~finite.all(axis=1)] = 0.0
            return
        column = int(np.argmin(finite.all(axis=0)))
        name = "y" if column == rows.shape[1] - 1 else f"x, column {column},"
        raise DpmcError(f"`{name}` must be finite numbers, unless invalid_rows='zero'")


def bound_rows(rows: Array, x_bound: float, y_bound: float) -> npt.NDArray[np.bool_]:
    """Bound rows in place and return which of them were beyond by more than rounding.

    Parameters
    ----------
    rows : ndarray of shape (m, d + 1)
        Features, then the target, of any floats: NaN counts as 0. Features longer than
        `x_bound` are shortened to it; if some are infinite, the others count as 0 next to
        them. The target is moved to [-`y_bound`, `y_bound`].
    x_bound, y_bound : float
        From 1e-75 to 1e75.
    """
    x, y = rows[:, :-1], rows[:, -1]
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        norms = np.sqrt(np.einsum("ij,ij->i", x, x))
        odd = ~np.isfinite(norms)
        if odd.any():
            x[odd] = _moderate(x[odd], x_bound)
            norms[odd] = np.sqrt(np.einsum("ij,ij->i", x[odd], x[odd]))
        long = norms > x_bound * INSIDE
        beyond: npt.NDArray[np.bool_] = norms > x_bound * (1 + ROUNDING)
        y[np.isnan(y)] = 0.0
        beyond |= np.abs(y) > y_bound * (1 + ROUNDING)
        if long.any():
            x[long] *= (x_bound * INSIDE / norms[long])[:, None]
    np.clip(y, -y_bound, y_bound, out=y)
    return beyond


def _moderate(x: Array, x_bound: float) -> Array:
    """Rows without NaN, and those whose square overflows at twice the bound instead.

    Parameters
    ----------
    x : ndarray of shape (m, d)
        Any floats.
    x_bound : float
        Largest norm of a row.
    """
    x = np.where(np.isnan(x), 0.0, x)
    infinite = np.isinf(x)
    x = np.where(infinite.any(axis=1, keepdims=True), np.where(infinite, np.sign(x), 0.0), x)
    far = infinite.any(axis=1) | ~np.isfinite(np.einsum("ij,ij->i", x, x))
    direction = x[far] / np.abs(x[far]).max(axis=1, keepdims=True)
    direction /= np.sqrt(np.einsum("ij,ij->i", direction, direction))[:, None]
    x[far] = 2 * x_bound * direction
    return x
