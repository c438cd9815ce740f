"""Sums of whitened and clipped row gradients, fused: no array holds a number for each row.

A pass that writes the gradients of many rows, whitens them, clips them and adds them up goes over
memory once for each. Here some rows at a time take all of these steps, in the first-level cache.
Entries of one coordinate lie together, so that each step but the clip of a single row is a loop
over rows which the processor vectorizes. Arithmetic is exact: an entry that is not a number, or
not finite, has to be found.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from dpmc.numerics.compiled import compile_source
from dpmc.rows.clipping import clip_vector, ordinary

# Rows that take all steps together.
BLOCK = 128

# The whitened gradients of `size` rows from `first` on, into `white`, and their squared norms.
_WHITENED = """
        size = min(BLOCK, stop - first)
        gradients(features, coefficients, first, first + size, rows.T[:size])
        for k in range(width):
            for j in range(size):
                white[k, j] = rows[0, j] * basis[0, k]
            for i in range(1, dim):
                weight = basis[i, k]
                for j in range(size):
                    white[k, j] += rows[i, j] * weight
        for j in range(size):
            squared[j] = white[0, j] * white[0, j]
        for k in range(1, width):
            for j in range(size):
                squared[j] += white[k, j] * white[k, j]
"""

_SUM = f"""
def kernel(features, coefficients, start, stop, basis, bound, total):
    dim, width = basis.shape
    rows, white = np.empty((dim, BLOCK)), np.empty((width, BLOCK))
    squared, weights, one = np.empty(BLOCK), np.empty(BLOCK), np.empty(width)
    sums = np.zeros((width, BLOCK))
    for first in range(start, stop, BLOCK):
{_WHITENED}
        strange = 0
        for j in range(size):
            weights[j] = bound / math.sqrt(squared[j]) if squared[j] > bound * bound else 1.0
            strange += not ordinary(squared[j])
        if strange:
            for j in range(size):
                if not ordinary(squared[j]):
                    for k in range(width):
                        one[k] = white[k, j]
                    clip_vector(one, bound)
                    for k in range(width):
                        white[k, j] = one[k]
                    weights[j] = 1.0
        for k in range(width):
            for j in range(size):
                sums[k, j] += weights[j] * white[k, j]
    for k in range(width):
        total[k] = 0.0
        for j in range(BLOCK):
            total[k] += sums[k, j]
"""

_BEYOND = f"""
def kernel(features, coefficients, start, stop, basis, lengths, counts):
    dim, width = basis.shape
    rows, white = np.empty((dim, BLOCK)), np.empty((width, BLOCK))
    squared = np.empty(BLOCK)
    counts[:] = 0.0
    for first in range(start, stop, BLOCK):
{_WHITENED}
        for j in range(size):
            norm = math.sqrt(squared[j])
            low, high = 0, lengths.size
            while low < high:
                middle = (low + high) // 2
                if norm > lengths[middle]:
                    low = middle + 1
                else:
                    high = middle
            if low > 0:
                counts[low - 1] += 1.0
    for k in range(lengths.size - 2, -1, -1):
        counts[k] += counts[k + 1]
"""


@functools.cache
def sum_kernel(gradients: Any) -> Any:
    """Compile the sum of whitened gradients of rows, each clipped.

    Parameters
    ----------
    gradients : compiled function ``(features, c, start, stop, out)``
        See :func:`dpmc.rows.wide_gradients.row_gradients_kernel`.

    Returns
    -------
    compiled function ``(features, c, start, stop, basis, bound, total)``
        `features` has shape (q, n), `c` shape (m,), `basis` shape (d, k) and `total`, which is
        written, shape (k,). A gradient times `basis` is clipped to the Euclidean norm `bound`,
        finite and > 0, whatever floats it holds, see :mod:`dpmc.rows.clipping`.
    """
    return _compiled(_SUM, gradients)


@functools.cache
def beyond_kernel(gradients: Any) -> Any:
    """Compile how many whitened gradients of rows are longer than each of some lengths.

    Parameters
    ----------
    gradients : compiled function
        As `sum_kernel` has it.

    Returns
    -------
    compiled function ``(features, c, start, stop, basis, lengths, counts)``
        `lengths`, increasing, and `counts`, which is written, have shape (l,). A square that
        overflows is beyond all, and a gradient with an entry that is not a number beyond none.
    """
    return _compiled(_BEYOND, gradients)


def _compiled(source: str, gradients: Any) -> Any:
    names = {"gradients": gradients, "clip_vector": clip_vector, "ordinary": ordinary}
    return compile_source(source, False, np=np, math=math, BLOCK=BLOCK, **names)
