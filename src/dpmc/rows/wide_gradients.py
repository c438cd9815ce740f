"""Gradients of the rows of a block, as they are: for callers that transform and clip them.

Of rows with many features they are formed by loops over the features in place of unrolled ones. The
time to compile unrolled code grows faster than the number of features (0.5 s for 10, 4.7 s for 100
and 13 s for 200, for each model anew), and code that long is not compiled well: 21, 345 and 745 ns
of a row, where a loop over the features of a block of rows takes 10, 89 and 208, and is compiled
once. It needs a model that says that a row enters by one inner product (`slope` of
:class:`dpmc.types.Model`): its gradient is then a number times its features.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from dpmc.numerics.compiled import compile_once, compile_source
from dpmc.rows.kernels import tuple_text
from dpmc.types import Model


@functools.cache
def row_gradients_kernel(gradient: Any, dim: int, num_coefficients: int, num_features: int) -> Any:
    """Compile the gradients of a block of rows.

    Returns
    -------
    compiled function ``(features, c, start, stop, out)``
        `features` has shape (q, n), `c` shape (m,) and `out` shape (stop - start, d). Whatever
        floats a row yields are left in `out`: nothing is clipped.
    """
    row = tuple_text("x{k}[j]", num_features)
    columns = "\n".join(f"    x{k} = features[{k}, start:stop]" for k in range(num_features))
    entries = "\n".join(f"        out[j, {k}] = g[{k}]" for k in range(dim))
    source = f"""
def kernel(features, coefficients, start, stop, out):
    c = {tuple_text("coefficients[{k}]", num_coefficients)}
{columns}
    for j in range(x0.size):
        g = gradient(c, {row})
{entries}
"""
    return compile_source(source, gradient=compile_once(gradient))


# Coefficients beyond which a loop is taken, where a model has a slope.
WIDE = 4
# Rows whose inner products are formed together.
BLOCK = 256
# Half the relative distance over which a slope is differenced: its error is 1e-9 of the curvature
# for a Poisson regression, and rounding as much.
HALF_STEP = 1e-4


def slope_of(model: Model) -> Any:
    """Slope of a model whose rows enter by one inner product with theta itself, or None.

    Rows of a model with coefficients of its own enter by an inner product with those.
    """
    return model.slope if model.coefficients is None else None


def gradients_kernel(model: Model, num_coefficients: int, num_features: int) -> Any:
    """Kernel of the gradients of a block of rows, as `row_gradients_kernel` makes it."""
    slope = slope_of(model)
    if slope is None or model.dim <= WIDE:
        return row_gradients_kernel(model.gradient, model.dim, num_coefficients, num_features)
    return loop_kernel(slope, num_features - model.dim)


@functools.cache
def loop_kernel(slope: Any, num_before: int) -> Any:
    """Compile the gradients of a block of rows from the slope of a row's log-likelihood.

    Parameters
    ----------
    slope : function ``(inner product, features before) -> float``
    num_before : int
        Features that are no part of the inner product; they come first.

    Returns
    -------
    compiled function ``(features, theta, start, stop, out)``
        `features` has shape (q, n), `theta` shape (d,) and `out` shape (stop - start, d).
    """
    before = tuple_text("features[{k}, first + j]", num_before)
    source = f"""
def kernel(features, theta, start, stop, out):
{_inner(num_before)}
        for j in range(size):
            inner[j] = slope(inner[j], {before})
        for k in range(theta.size):
            x = features[{num_before} + k, first:first + size]
            for j in range(size):
                out[first - start + j, k] = inner[j] * x[j]
"""
    return compile_source(source, slope=compile_once(slope), np=np)


@functools.cache
def curvatures_kernel(slope: Any, num_before: int) -> Any:
    """Compile the negative derivatives of the slopes of a block of rows, by central differences.

    Parameters
    ----------
    slope, num_before
        As `loop_kernel` has them.

    Returns
    -------
    compiled function ``(features, theta, start, stop, out)``
        `features` has shape (q, n), `theta` shape (d,) and `out` shape (stop - start,).
    """
    before = tuple_text("features[{k}, first + j]", num_before)
    source = f"""
def kernel(features, theta, start, stop, out):
{_inner(num_before)}
        for j in range(size):
            half = {HALF_STEP} * max(1.0, abs(inner[j]))
            change = slope(inner[j] - half, {before}) - slope(inner[j] + half, {before})
            out[first - start + j] = change / (2.0 * half)
"""
    return compile_source(source, slope=compile_once(slope), np=np)


def _inner(num_before: int) -> str:
    """Text of a loop over blocks of rows, as far as their inner products."""
    return f"""
    inner = np.empty({BLOCK})
    for first in range(start, stop, {BLOCK}):
        size = min({BLOCK}, stop - first)
        inner[:size] = 0.0
        for k in range(theta.size):
            weight = theta[k]
            x = features[{num_before} + k, first:first + size]
            for j in range(size):
                inner[j] += weight * x[j]
"""
