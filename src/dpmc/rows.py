"""Sums over private rows: clipped log-likelihood ratios and clipped gradients, compiled.

A model says what one row contributes; the functions here turn that into loops over
all rows. The loops are generated as source text with one scalar per coefficient,
feature and accumulator, because a loop over an inner dimension keeps its
accumulators in memory and runs three to seven times slower than the same loop
with its accumulators in registers. Rows are stored feature-major, shape (q, n).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from typing import Any, Literal

import numba
import numpy as np
from numba.extending import overload

from dpmc.types import Array, Dataset, DpmcError, Model

# Sums may be reordered; NaN keeps its meaning, so that a diverged leapfrog shows.
FASTMATH = {"reassoc", "contract", "arcp", "nsz", "afn"}
# Rows that one pass keeps in the first-level cache while it looks for a clipped one.
BLOCK = 256
WIDE_BLOCK = 512
# Rows whose features are computed at once.
CHUNK = 16384
# Accumulators that stay in registers together.
GROUP = 10


@functools.cache
def compiled(function: Callable[..., Any]) -> Any:
    """Return `function` compiled by Numba, or itself if it is compiled already."""
    return function if hasattr(function, "py_func") else numba.njit(nogil=True)(function)


def dot(a: Any, b: Any) -> float:
    """Return the inner product of two tuples, over the length of the shorter."""
    return float(sum(p * q for p, q in zip(a, b, strict=False)))


def scale(s: float, x: Any) -> Any:
    """Return the tuple ``s * x``."""
    return tuple(s * entry for entry in x)


def subtract(x: Any, c: Any) -> Any:
    """Return the tuple ``x - c``, over the length of the shorter."""
    return tuple(p - q for p, q in zip(x, c, strict=False))


def tail(c: Any, x: Any) -> Any:
    """Return the entries of the tuple `c` after its first ``len(x)``."""
    return tuple(c[len(x) :])


def _unrolled(entry: str, join: str, count: int) -> Callable[..., Any]:
    text = join.join(entry.format(k=k) for k in range(count))
    namespace: dict[str, Any] = {}
    exec(f"def unrolled(a, b):\n    return ({text})", namespace)  # the text is ours alone
    result: Callable[..., Any] = namespace["unrolled"]
    return result


# The compiled forms of the four: unrolled for the length of the tuples, because a
# loop over a tuple of more than about ten entries is not unrolled by the compiler
# and then costs a hundred times more.
@overload(dot, strict=False)
def _dot(a: Any, b: Any) -> Callable[..., Any]:
    return _unrolled("a[{k}] * b[{k}]", " + ", min(len(a), len(b)))


@overload(scale, strict=False)
def _scale(a: Any, b: Any) -> Callable[..., Any]:
    return _unrolled("a * b[{k}],", " ", len(b))


@overload(subtract, strict=False)
def _subtract(a: Any, b: Any) -> Callable[..., Any]:
    return _unrolled("a[{k}] - b[{k}],", " ", min(len(a), len(b)))


@overload(tail, strict=False)
def _tail(a: Any, b: Any) -> Callable[..., Any]:
    text = "".join(f"a[{k}]," for k in range(len(b), len(a)))
    return _unrolled(text, "", 1)


def _tuple(format_: str, count: int) -> str:
    return "(" + "".join(format_.format(k=k) + ", " for k in range(count)) + ")"


def _compile(source: str, **names: Any) -> Any:
    namespace: dict[str, Any] = {"math": math, **names}
    exec(compile(source, "<dpmc.rows>", "exec"), namespace)  # the text is ours alone
    return numba.njit(fastmath=FASTMATH, nogil=True, error_model="numpy")(namespace["kernel"])


@functools.cache
def ratio_kernel(log_likelihood: Any, num_coefficients: int, num_features: int) -> Any:
    """Compile the sum of clipped log-likelihood ratios.

    Returns
    -------
    compiled function ``(features, old, new, bound) -> (sum, number clipped)``
        `features` has shape (q, n), `old` and `new` shape (m,). The row function is
        evaluated at both, or, where `old` is empty, once at `new`: the difference of
        the coefficients of a model that is linear in them.
    """
    source = f"""
def kernel(features, old, new, bound):
    b = {_tuple("new[{k}]", num_coefficients)}
    total = 0.0
    clipped = 0
    if old.size == 0:
        for j in range(features.shape[1]):
            r = log_likelihood(b, {_tuple("features[{k}, j]", num_features)})
            total += -bound if r < -bound else (bound if r > bound else r)
            clipped += abs(r) > bound
    else:
        a = {_tuple("old[{k}]", num_coefficients)}
        for j in range(features.shape[1]):
            x = {_tuple("features[{k}, j]", num_features)}
            r = log_likelihood(b, x) - log_likelihood(a, x)
            total += -bound if r < -bound else (bound if r > bound else r)
            clipped += abs(r) > bound
    return total, clipped
"""
    return _compile(source, log_likelihood=compiled(log_likelihood))


def _lines(numbers: Iterable[int], template: str, indent: int) -> str:
    return "\n".join(" " * indent + template.format(k=k) for k in numbers)


def _squares(first: int, last: int) -> str:
    return " + ".join(f"g[{k}] * g[{k}]" for k in range(first, last))


@functools.cache
def gradient_kernel(gradient: Any, dim: int, num_coefficients: int, num_features: int) -> Any:
    """Compile the sum of row gradients, each clipped to a Euclidean norm.

    Returns
    -------
    compiled function ``(features, c, bound) -> (tuple of d floats, number clipped)``
        A block of rows without a clipped one costs no square root and no division:
        the first loop finds out, and the second is skipped.
    """
    if dim > GROUP + 2:
        return _wide_gradient_kernel(gradient, dim, num_coefficients, num_features)
    norm = _squares(0, dim)
    row = f"gradient(c, {_tuple('x{k}[j]', num_features)})"
    source = f"""
def kernel(features, coefficients, bound):
    c = {_tuple("coefficients[{k}]", num_coefficients)}
    n = features.shape[1]
    squared = bound * bound
    clipped = 0
    clipping = False
{_lines(range(dim), "a{k} = 0.0", 4)}
    for first in range(0, n, {BLOCK}):
        last = min(first + {BLOCK}, n)
{_lines(range(num_features), "x{k} = features[{k}, first:last]", 8)}
        if not clipping:
            count = 0
{_lines(range(dim), "p{k} = 0.0", 12)}
            for j in range(x0.size):
                g = {row}
                count += {norm} > squared
{_lines(range(dim), "p{k} += g[{k}]", 16)}
            if count == 0:
{_lines(range(dim), "a{k} += p{k}", 16)}
                continue
        count = 0
        for j in range(x0.size):
            g = {row}
            length = {norm}
            over = length > squared
            w = bound / math.sqrt(length) if over else 1.0
            count += over
{_lines(range(dim), "a{k} += w * g[{k}]", 12)}
        clipping = count > 0
        clipped += count
    return {_tuple("a{k}", dim)}, clipped
"""
    return _compile(source, gradient=compiled(gradient))


def _wide_gradient_kernel(gradient: Any, dim: int, num_coefficients: int, num_features: int) -> Any:
    """Compile the same sum for many dimensions: norms first, then sums, in groups of components.

    More than a dozen accumulators do not fit the registers. What a group does not use
    of the gradient, the compiler leaves out.
    """
    row = f"g = gradient(c, {_tuple('x{k}[j]', num_features)})"
    norms = "".join(
        f"""
        for j in range(x0.size):
            {row}
            weights[j] {"=" if low == 0 else "+="} {_squares(low, min(low + GROUP, dim))}
"""
        for low in range(0, dim, GROUP)
    )
    sums = "".join(
        f"""
        for j in range(x0.size):
            {row}
            w = weights[j]
{_lines(range(low, min(low + GROUP, dim)), "a{k} += w * g[{k}]", 12)}
"""
        for low in range(0, dim, GROUP)
    )
    source = f"""
def kernel(features, coefficients, bound):
    c = {_tuple("coefficients[{k}]", num_coefficients)}
    n = features.shape[1]
    weights = np.empty({WIDE_BLOCK})
    squared = bound * bound
    clipped = 0
{_lines(range(dim), "a{k} = 0.0", 4)}
    for first in range(0, n, {WIDE_BLOCK}):
        last = min(first + {WIDE_BLOCK}, n)
{_lines(range(num_features), "x{k} = features[{k}, first:last]", 8)}
{norms}
        for j in range(x0.size):
            length = weights[j]
            over = length > squared
            weights[j] = bound / math.sqrt(length) if over else 1.0
            clipped += over
{sums}
    return {_tuple("a{k}", dim)}, clipped
"""
    return _compile(source, gradient=compiled(gradient), np=np)


@functools.cache
def gather_kernel(num_features: int) -> Any:
    """Compile the copy of a batch of rows to feature-major order.

    Returns
    -------
    compiled function ``(rows, batch, out)``
        `rows` has shape (n, q), `batch` shape (b,) of uint64, `out` shape (q, b).
    """
    source = f"""
def kernel(rows, batch, out):
{_lines(range(num_features), "o{k} = out[{k}]", 4)}
    for r in range(batch.size):
        x = rows[batch[r]]
{_lines(range(num_features), "o{k}[r] = x[{k}]", 8)}
"""
    return _compile(source)


def feature_rows(
    model: Model, dataset: Dataset, order: Literal["features", "rows"], consume: bool = False
) -> Array:
    """Return what the row functions read of each row, contiguous float64.

    Parameters
    ----------
    model : Model
        Says what the features are.
    dataset : Dataset
        The private rows.
    order : {"features", "rows"}
        Shape (q, n) for passes over all rows, (n, q) for batches of a few.
    consume : bool
        Write the features over the rows where layout and size allow, so that the data
        are held once; the data set must not be used afterwards.

    Raises
    ------
    DpmcError
        If the features of the model do not fit the rows or are not finite.
    """
    x = dataset.x
    n = dataset.num_rows
    describe = model.features or np.transpose
    count = len(describe(x[:1]))
    in_place = x.T if order == "features" else x
    fits = x.dtype == np.float64 and count == x.shape[1] and in_place.flags.c_contiguous
    if fits and model.features is None:
        return in_place
    shape = (count, n) if order == "features" else (n, count)
    out = in_place if fits and consume else np.empty(shape)
    for first in range(0, n, CHUNK):
        part = describe(x[first : first + CHUNK])
        if part.shape != (count, min(CHUNK, n - first)) or not np.isfinite(part.sum()):
            raise DpmcError(
                f"model {model.name!r}: features of rows from {first} on have shape {part.shape} "
                f"or are not finite, allowed finite numbers of shape ({count}, rows)"
            )
        if order == "features":
            out[:, first : first + CHUNK] = part
        else:
            out[first : first + CHUNK] = part.T
    return out


class RowSums:
    """The sums over all rows that a method may ask of one posterior.

    Parameters
    ----------
    model : Model
        The posterior, written for one row.
    dataset : Dataset
        The private rows.
    consume : bool
        Whether the rows may be overwritten, see :func:`feature_rows`.

    Raises
    ------
    DpmcError
        If the row functions do not fit the rows: wrong number of features or components.
    """

    def __init__(self, model: Model, dataset: Dataset, consume: bool = False) -> None:
        self.model = model
        self.features = feature_rows(model, dataset, "features", consume)
        self.num_rows = dataset.num_rows
        self._coefficients = None if model.coefficients is None else compiled(model.coefficients)
        probe = np.zeros(model.dim) if dataset.truth is None else dataset.truth
        count = len(self.coefficients(probe))
        self._ratio = ratio_kernel(model.log_likelihood, count, len(self.features))
        self._gradient = gradient_kernel(model.gradient, model.dim, count, len(self.features))
        self._none = np.empty(0)
        self._check(probe)

    def coefficients(self, theta: Array) -> Array:
        """Return the coefficients of `theta`, shape (m,)."""
        coefficients: Array = theta if self._coefficients is None else self._coefficients(theta)
        return coefficients

    def ratio(self, theta: Array, theta_new: Array, bound: float) -> tuple[float, int]:
        """Return the sum over rows of the clipped log-likelihood ratio and the clip count.

        Parameters
        ----------
        theta, theta_new : ndarray of shape (d,)
            The ratio is that of `theta_new` to `theta`.
        bound : float
            Each ratio is clipped to [-bound, bound]; ``inf`` clips nothing.
        """
        old, new = self.coefficients(theta), self.coefficients(theta_new)
        if self.model.linear:
            old, new = self._none, new - old
        total, clipped = self._ratio(self.features, old, new, bound)
        return total, int(clipped)

    def gradient(self, theta: Array, bound: float) -> tuple[Array, int]:
        """Return the sum over rows of the clipped gradient, shape (d,), and the clip count.

        Parameters
        ----------
        theta : ndarray of shape (d,)
            Where the gradient is taken.
        bound : float
            Each row's gradient is shortened to at most this Euclidean norm.
        """
        total, clipped = self._gradient(self.features, self.coefficients(theta), bound)
        return np.array(total), int(clipped)

    def _check(self, theta: Array) -> None:
        """Refuse row functions that do not fit, by one row in plain Python, then compiled."""
        name, count = self.model.name, len(self.features)
        c = tuple(self.coefficients(theta).tolist())
        try:
            length = len(compiled(self.model.gradient).py_func(c, tuple(self.features[:, 0])))
        except IndexError as error:
            raise DpmcError(
                f"model {name!r}: row functions do not fit rows of {count} features: {error}"
            ) from None
        if length != self.model.dim:
            raise DpmcError(
                f"model {name!r}: gradient has {length} components, allowed {self.model.dim}"
            )
        row = np.ascontiguousarray(self.features[:, :1])
        try:
            self._gradient(row, self.coefficients(theta), 1.0)
            self._ratio(row, self._none, self.coefficients(theta), 1.0)
        except numba.core.errors.TypingError as error:
            reason = " ".join(str(error).split())[:300]
            raise DpmcError(
                f"model {name!r}: row functions do not compile for rows of {count} features: "
                f"{reason}"
            ) from None
