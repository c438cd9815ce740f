"""The gradient of every row of a block, as it is: for callers that transform and clip it."""

from __future__ import annotations

import functools
from typing import Any

from dpmc.numerics.compiled import compile_once, compile_source
from dpmc.rows.kernels import tuple_text


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
