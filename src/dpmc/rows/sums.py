"""Sums over private rows: clipped log-likelihood ratios and clipped gradients.

A model says what one row contributes; :mod:`dpmc.rows.kernels` turns that into loops over all
rows. The tuple helpers here are for the row functions of models.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numba
import numpy as np

from dpmc.numerics.compiled import compile_once
from dpmc.privacy.clipped import Clipped, row_sum
from dpmc.rows.kernels import gradient_kernel, ratio_kernel
from dpmc.rows.model_checks import check_rows
from dpmc.rows.pruned import InnerSums
from dpmc.rows.sorted import SortedSums
from dpmc.types import Array, Dataset, DpmcError, Model

# Rows whose features are computed at once.
CHUNK = 16384
# Features from which on a ratio of an affine model is worth a search for the rows to look at.
WIDE = 4


def feature_rows(
    model: Model, dataset: Dataset, order: Literal["features", "rows"], consume: bool = False
) -> Array:
    """Features of all rows, contiguous float64.

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

    Returns
    -------
    ndarray
        NaN where the features of a row cannot be computed, and for all of a row that is NaN:
        no error reveals a row.
    """
    x = dataset.x
    n = dataset.num_rows
    count = len(check_rows(model, x.shape[1]).features)
    in_place = x.T if order == "features" else x
    fits = x.dtype == np.float64 and count == x.shape[1] and in_place.flags.c_contiguous
    if fits and model.features is None:
        return in_place
    shape = (count, n) if order == "features" else (n, count)
    out = in_place if fits and consume else np.empty(shape)
    _fill(model, x, out if order == "features" else out.T, dataset.invalid_rows == "zero")
    return out


def part_features(model: Model, x: Array, nan_rows: bool) -> Array:
    """Features of some of the rows, shape (q, m), contiguous float64.

    The same as `feature_rows` gives for them, if they begin at a multiple of `CHUNK`.

    Parameters
    ----------
    model : Model
    x : ndarray of shape (m, p)
        Private rows.
    nan_rows : bool
        Whether a row of NaN is one that counts as nothing.
    """
    if model.features is None and x.dtype == np.float64 and x.T.flags.c_contiguous:
        return x.T
    out = np.empty((len(check_rows(model, x.shape[1]).features), len(x)))
    _fill(model, x, out, nan_rows)
    return out


def _fill(model: Model, x: Array, out: Array, nan_rows: bool) -> None:
    """Write the features of rows, shape (q, n), a chunk at a time."""
    for first in range(0, len(x), CHUNK):
        rows = x[first : first + CHUNK]
        if model.features is not None:
            # Products of matrices differ with their layout, and in shorter floats so much with the
            # number of rows that one that has to be taken alone would move the sum of all others.
            rows = np.ascontiguousarray(rows, dtype=np.float64)
        part = _described(model, rows, len(out))
        if nan_rows:
            part = np.where(np.isnan(rows).all(axis=1), np.nan, part)
        out[:, first : first + CHUNK] = part


def _described(model: Model, x: Array, count: int) -> Array:
    """Features of rows, shape (count, rows); row by row where they fail together."""
    with np.errstate(all="ignore"):
        part = _attempt(model, x, count)
        if part is None:
            alone = [_attempt(model, x[k : k + 1], count) for k in range(len(x))]
            nothing = np.full((count, 1), np.nan)
            part = np.concatenate([nothing if one is None else one for one in alone], axis=1)
    return part


def _attempt(model: Model, x: Array, count: int) -> Array | None:
    try:
        part: Array = np.asarray((model.features or np.transpose)(x), dtype=np.float64)
    except Exception:  # what it says may depend on private rows
        return None
    return part if part.shape == (count, len(x)) else None


class RowSums:
    """The sums over all rows that a method may ask of one posterior.

    They are passes over the rows. Those of affine models need few of them or none, up to
    rounding: :class:`dpmc.rows.sorted.SortedSums`, :class:`dpmc.rows.pruned.InnerSums`.

    Parameters
    ----------
    model : Model
        The posterior, written for one row.
    dataset : Dataset
        The private rows.
    consume : bool
        Whether the rows may be overwritten, see :func:`feature_rows`.
    """

    def __init__(self, model: Model, dataset: Dataset, consume: bool = False) -> None:
        self.model = model
        self.features = feature_rows(model, dataset, "features", consume)
        self.num_rows = dataset.num_rows
        self._coefficients = (
            None if model.coefficients is None else compile_once(model.coefficients)
        )
        probe = np.zeros(model.dim) if dataset.truth is None else dataset.truth
        count = len(self.coefficients(probe))
        self._ratio = ratio_kernel(model.log_likelihood, count, len(self.features))
        self._gradient = gradient_kernel(model.gradient, model.dim, count, len(self.features))
        self._none = np.empty(0)
        self._probe = probe
        self._sorted: SortedSums | None = None
        self._inner: InnerSums | None = None
        self._borrowed = not consume and np.shares_memory(self.features, dataset.x)
        # Rows that are not finite are for passes alone, which clip each by itself.
        with np.errstate(over="ignore", invalid="ignore"):
            self._fast = model.affine and bool(np.isfinite(self.features.sum()))
        if self._fast:
            self._sorted = SortedSums(model, self.features, count)

    def coefficients(self, theta: Array) -> Array:
        """Coefficients of `theta`, shape (m,)."""
        coefficients: Array = theta if self._coefficients is None else self._coefficients(theta)
        return coefficients

    @functools.cached_property
    def ratio(self) -> Callable[[Array, Array, float], tuple[float, int]]:
        """The sum over rows of the clipped log-likelihood ratio and the clip count.

        A function ``(theta, theta_new, bound) -> (sum, number clipped)``: the ratio is
        that of `theta_new` to `theta`, each of shape (d,), clipped to [-bound, bound];
        ``inf`` clips nothing. It is compiled when first asked for.
        """
        self._try(self._ratio, self._none, self.coefficients(self._probe), 1.0)
        if self._fast and len(self.features) >= WIDE:
            self._put_in_order()
        return self._any_ratio

    @functools.cached_property
    def clipped_ratio(self) -> Callable[[Array, Array, float], tuple[Clipped[float], int]]:
        """The same as :attr:`ratio`, with the sensitivity of the sum, for a ledger."""
        ratio = self.ratio

        def clipped(theta: Array, theta_new: Array, bound: float) -> tuple[Clipped[float], int]:
            total, count = ratio(theta, theta_new, bound)
            return row_sum(total, bound), count

        return clipped

    def _any_ratio(self, theta: Array, theta_new: Array, bound: float) -> tuple[float, int]:
        found = self._sorted and self._sorted.ratio(theta, theta_new, bound)
        if found:
            return found
        if self._inner is None or len(self.features) < WIDE:
            return self.plain_ratio(theta, theta_new, bound)
        return self._inner.ratio(theta, theta_new, bound, self._outer_ratio)

    def _outer_ratio(self, c: Array, bound: float, first: int, last: int) -> tuple[float, int]:
        found: tuple[float, int] = self._ratio(self.features, self._none, c, bound, first, last)
        return found

    def plain_ratio(self, theta: Array, theta_new: Array, bound: float) -> tuple[float, int]:
        """Same as :attr:`ratio`, always by a pass over the rows."""
        old, new = self.coefficients(theta), self.coefficients(theta_new)
        if self.model.linear:
            old, new = self._none, new - old
        total, clipped = self._ratio(self.features, old, new, bound, 0, self.num_rows)
        return total, int(clipped)

    @functools.cached_property
    def gradient(self) -> Callable[[Array, float], tuple[Array, int]]:
        """The sum over rows of the clipped gradient and the clip count.

        A function ``(theta, bound) -> (sum of shape (d,), number clipped)``: each row's
        gradient is shortened to at most the Euclidean norm `bound`. It is compiled when
        first asked for.
        """
        self._try(self._gradient, self.coefficients(self._probe), 1.0)
        if self._fast and len(self.features) > 1:
            self._put_in_order()
        return self._any_gradient

    @functools.cached_property
    def clipped_gradient(self) -> Callable[[Array, float], tuple[Clipped[Array], int]]:
        """The same as :attr:`gradient`, with the sensitivity of the sum, for a ledger."""
        gradient = self.gradient

        def clipped(theta: Array, bound: float) -> tuple[Clipped[Array], int]:
            total, count = gradient(theta, bound)
            return row_sum(total, bound), count

        return clipped

    def _any_gradient(self, theta: Array, bound: float) -> tuple[Array, int]:
        found = self._sorted and self._sorted.gradient(theta, bound)
        if found:
            return found
        if self._inner is None:
            return self.plain_gradient(theta, bound)
        return self._inner.gradient(theta, bound, self._outer_gradient)

    def _outer_gradient(
        self, c: Array, bound: float, first: int, last: int
    ) -> tuple[Sequence[float], int]:
        found: tuple[Sequence[float], int] = self._gradient(self.features, c, bound, first, last)
        return found

    def plain_gradient(self, theta: Array, bound: float) -> tuple[Array, int]:
        """Same as :attr:`gradient`, always by a pass over the rows."""
        c = self.coefficients(theta)
        total, clipped = self._gradient(self.features, c, bound, 0, self.num_rows)
        return np.array(total), int(clipped)

    def _put_in_order(self) -> None:
        if self._inner is None:
            if self._borrowed:
                self.features = self.features.copy()
            self._inner = InnerSums(self.model, self.features, len(self.coefficients(self._probe)))

    def _try(self, kernel: Any, *arguments: Any) -> None:
        """Compile a kernel, on no row, or refuse the row functions that it is made of."""
        no_rows = np.zeros((len(self.features), 1))
        compiled(self.model, len(self.features), kernel, no_rows, *arguments, 0, 0)


def compiled(model: Model, num_features: int, kernel: Any, *arguments: Any) -> None:
    """Compile a kernel by calling it on no row, or refuse the row functions that it is made of.

    Parameters
    ----------
    model : Model
        Named in the message.
    num_features : int
        What its row functions read of a row.
    kernel, *arguments
        The compiled function, and what it is called with.
    """
    errors = numba.errors
    try:
        kernel(*arguments)
    except (errors.NumbaError, errors.UnsupportedBytecodeError) as error:
        reason = " ".join(str(error).split())[:300]
        raise DpmcError(
            f"model {model.name!r}: row functions do not compile for rows of {num_features} "
            f"features: {reason}"
        ) from None
