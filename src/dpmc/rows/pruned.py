"""Clipped sums over all rows of an affine model that pass over few of them.

The ratio or gradient of a row is that of the median row plus a slope times how far the row is
from it. Rows closer than a radius can therefore not be clipped, and theirs add up to a prefix
sum; only those further out are looked at one by one. Rows are ordered by their distance once.

No row moves the sum by more than its clip allows, whatever float it is: slopes depend on theta
alone, what all inner rows share is multiplied by their number with twice the digits, and the
median and the prefix sums of inner rows do not feel rows far out.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dpmc.numerics.compiled import compile_once, compile_source, identity, njit
from dpmc.numerics.exact_sums import add_product
from dpmc.rows.kernels import tuple_text
from dpmc.types import Array, Model

# Rows that share a radius and a prefix sum.
BLOCK = 512
# Rows that are put in order together: what is copied to do so stays small.
CHUNK = 128 * BLOCK
# Rows that the centre is taken from, at most.
SAMPLED = 8192
# How far below the bound a row has to be, relative, not to be looked at: far above rounding.
MARGIN = 1e-9
# Where slopes are measured: a power of two, far out, so that what is there at zero rounds little.
REACH = 2.0**20


@njit
def _inner(
    origin: Any, slopes: Any, bound: float, centre: Any, sizes: Any, radii: Any, prefix: Any
) -> tuple[Any, Any, bool]:
    """First row of each chunk to look at, the sum of those before, and if they are all.

    Plain loops: array functions take the compiler seconds.

    Parameters
    ----------
    origin : ndarray of shape (d,)
        What a row of zeros contributes.
    slopes : ndarray of shape (d, q)
        S: what it changes by along each feature. The spectral norm of S is at most
        ``sqrt(|S|_1 |S|_inf)``, and that of one row its length.
    bound : float
        Rows are clipped to this norm.
    centre : ndarray of shape (q,)
        The median row.
    sizes, radii, prefix : ndarray
        Of each chunk: its rows, the radius of each block, the sum of what is before it.
    """
    dim, num_features = slopes.shape
    length = 0.0
    row = column = square = 0.0
    base, rest = origin.copy(), np.zeros(dim)
    for k in range(dim):
        for i in range(num_features):
            if slopes[k, i] != 0.0:  # few are in most models
                base[k], rest[k] = add_product(base[k], rest[k], slopes[k, i], centre[i])
        length += base[k] * base[k]
        total = 0.0
        for i in range(num_features):
            total += abs(slopes[k, i])
            square += slopes[k, i] * slopes[k, i]
        row = max(row, total)
    for i in range(num_features):
        total = 0.0
        for k in range(dim):
            total += abs(slopes[k, i])
        column = max(column, total)
    norm = math.sqrt(min(row * column, square))
    limit = (bound * (1.0 - MARGIN) - math.sqrt(length)) / norm
    first = np.zeros(sizes.size, np.int64)
    count = rows = 0
    inner = np.zeros(num_features)
    for chunk in range(sizes.size):
        low = 0
        if limit >= 0.0:  # not so for NaN
            high = radii.shape[1]
            while low < high:
                middle = (low + high) >> 1
                if radii[chunk, middle] <= limit:
                    low = middle + 1
                else:
                    high = middle
        first[chunk] = min(low * BLOCK, sizes[chunk])
        count += first[chunk]
        rows += sizes[chunk]
        for i in range(num_features):
            inner[i] += prefix[chunk, low, i]
    sums = np.zeros(dim)
    if count == 0:
        return first, sums, False
    for k in range(dim):
        sums[k], low_digits = add_product(0.0, count * rest[k], float(count), base[k])
        for i in range(num_features):
            low_digits += slopes[k, i] * inner[i]
        sums[k] += low_digits
    # Where slopes are next to nothing rows far out count as inner, and their sums can overflow.
    for k in range(dim):
        if not math.isfinite(sums[k]):
            return np.zeros(sizes.size, np.int64), np.zeros(dim), False
    return first, sums, count == rows


@functools.cache
def inner_kernel(
    coefficients: Any, function: Any, dim: int, num_coefficients: int, num_features: int
) -> Any:
    """Compile the search for the rows of a row function to look at, and the sum of the others.

    Returns
    -------
    compiled function ``(old, new, bound, *rows) -> (c, first, sums, whether first are all)``
        `c`, shape (m,), are the coefficients at `new`, less those at `old` unless it is empty.
        The row function at them is d numbers, whose values at a row of zeros and slopes along
        each feature :func:`_inner` needs; the others are what it takes and returns.
    """
    entry = "[{k}]" if dim > 1 else ""

    def lines(text: str, indent: int) -> str:
        return "\n".join(
            " " * indent + text.replace("ENTRY", entry).format(k=k) for k in range(dim)
        )

    source = f"""
def kernel(old, new, bound, centre, sizes, radii, prefix):
    v = coefficients(new)
    change = np.empty({num_coefficients})
    for k in range({num_coefficients}):
        change[k] = v[k]
    if old.size > 0:
        v = coefficients(old)
        for k in range({num_coefficients}):
            change[k] -= v[k]
    c = {tuple_text("change[{k}]", num_coefficients)}
    origin, slopes = np.empty({dim}), np.empty(({dim}, {num_features}))
    g = function(c, {tuple_text("0.0", num_features)})
{lines("origin[{k}] = gENTRY", 4)}
    for i in range({num_features}):
        h = function(c, {tuple_text(f"{REACH!r} if i == {{k}} else 0.0", num_features)})
{lines(f"slopes[{{k}}, i] = (hENTRY - gENTRY) / {REACH!r}", 8)}
    first, sums, whole = inner(origin, slopes, bound, centre, sizes, radii, prefix)
    return change, first, sums, whole
"""
    names = {"coefficients": compile_once(coefficients), "function": compile_once(function)}
    # The row function may come compiled for a pass over rows, or is compiled here: alike, so that
    # no digit depends on which process was first.
    return compile_source(source, {"contract"}, **names, inner=_inner, np=np)


class InnerSums:
    """Rows in the order of their distance from the median row, and what their blocks add up to.

    Beside the rows it holds (q + 1) / 512 numbers per row.

    Parameters
    ----------
    model : Model
        An affine one.
    features : ndarray of shape (q, n)
        What the row functions read of each row, all finite. Put in order in place, chunk
        by chunk.
    num_coefficients : int
        Number m of coefficients.
    """

    def __init__(self, model: Model, features: Array, num_coefficients: int) -> None:
        self._model = model
        self._coefficients = compile_once(model.coefficients or identity)
        self._shape = (num_coefficients, len(features))
        num_features, num_rows = features.shape
        # Any point will do that is not far out: the median of some rows, which copies no more of
        # them, and one of the values, since the mean of two could overflow.
        some = features[:, :: -(-num_rows // SAMPLED)]
        middle = some.shape[1] // 2
        centre = np.array([np.partition(feature, middle)[middle] for feature in some])
        starts = range(0, num_rows, CHUNK)
        self._starts = np.array(starts)
        sizes = np.minimum(CHUNK, num_rows - self._starts)
        radii = np.full((len(starts), CHUNK // BLOCK), np.inf)
        prefix = np.zeros((len(starts), CHUNK // BLOCK + 1, num_features))
        for k, (start, size) in enumerate(zip(starts, sizes, strict=True)):
            _order(features[:, start : start + size], centre, radii[k], prefix[k])
        self._rows = centre, sizes, radii, prefix
        self._none = np.empty(0)

    @functools.cached_property
    def _ratio(self) -> Any:
        return inner_kernel(self._coefficients, self._model.log_likelihood, 1, *self._shape)

    @functools.cached_property
    def _gradient(self) -> Any:
        model = self._model
        return inner_kernel(self._coefficients, model.gradient, model.dim, *self._shape)

    def ratio(
        self, theta: Array, theta_new: Array, bound: float, outside: Callable[..., Any]
    ) -> tuple[float, int]:
        """Clipped ratio of all rows, as :attr:`dpmc.rows.sums.RowSums.ratio` has it.

        Parameters
        ----------
        theta, theta_new, bound
            As there.
        outside : callable ``(c, bound, first, last) -> (sum, number clipped)``
            The same for the rows from `first` on and before `last`, by a pass over them; `c` are
            the coefficients at the new theta less those at the old one, shape (m,).
        """
        change, first, sums, whole = self._ratio(theta, theta_new, bound, *self._rows)
        total, clipped = float(sums[0]), 0
        for low, high in () if whole else self._ranges(first):
            part, count = outside(change, bound, low, high)
            total += part
            clipped += count
        return total, clipped

    def gradient(
        self, theta: Array, bound: float, outside: Callable[..., Any]
    ) -> tuple[Array, int]:
        """Clipped gradient of all rows; `outside` as in :meth:`ratio`, `c` at theta."""
        c, first, total, whole = self._gradient(self._none, theta, bound, *self._rows)
        clipped = 0
        for low, high in () if whole else self._ranges(first):
            part, count = outside(c, bound, low, high)
            total += part
            clipped += count
        return total, clipped

    def _ranges(self, first: Any) -> list[tuple[int, int]]:
        """Rows of each chunk that are to be looked at."""
        sizes = self._rows[1]
        low, high = (self._starts + first).tolist(), (self._starts + sizes).tolist()
        return [(a, b) for a, b in zip(low, high, strict=True) if a < b]


def _order(rows: Array, centre: Array, radii: Array, prefix: Array) -> None:
    """Order the rows of one chunk in place, and write the radii and prefix sums of its blocks."""
    with np.errstate(over="ignore"):  # an infinite distance is far out as well
        away = rows - centre[:, None]
        squares = np.einsum("qn,qn->n", away, away)
    order = np.argsort(squares, kind="stable")
    rows[:] = rows[:, order]
    away = away[:, order]
    blocks = np.arange(0, order.size, BLOCK)
    last = np.minimum(blocks + BLOCK, order.size) - 1
    # Rounding of a radius is far below the margin.
    radii[: blocks.size] = np.sqrt(squares[order][last])
    with np.errstate(over="ignore", invalid="ignore"):
        sums = np.add.reduceat(away, blocks, axis=1)
        prefix[1 : blocks.size + 1] = np.cumsum(sums, axis=1, dtype=np.longdouble).T
    # An infinite limit takes in the blocks that are not there.
    prefix[blocks.size + 1 :] = prefix[blocks.size]
