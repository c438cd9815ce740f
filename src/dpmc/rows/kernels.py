"""Loops over rows, generated as source text and compiled.

One scalar per coefficient, feature and accumulator: a loop over an inner dimension keeps
its accumulators in memory and runs three to seven times slower than the same loop with
its accumulators in registers. Rows are stored feature-major, shape (q, n).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from dpmc.numerics.compiled import compile_once, compile_source
from dpmc.rows.clipping import clip_vector

# Rows that one pass keeps in the first-level cache while it looks for a clipped one.
BLOCK = 256
# Rows of a block where a pass is made for each group of components.
WIDE_BLOCK = 512
# Accumulators that stay in registers together.
GROUP = 10
# How many rows ahead rows of a batch are asked for, and numbers in a line of the cache.
AHEAD = 32
NUMBERS_PER_LINE = 8


def tuple_text(format_: str, count: int) -> str:
    """Text of a tuple of `count` entries, each from the format with its number k."""
    return "(" + "".join(format_.format(k=k) + ", " for k in range(count)) + ")"


# The clip of a ratio r that is a number, see :mod:`dpmc.rows.clipping`. A sum that is none tells
# that a ratio was none, and is done again without it: looking at each would cost a third of the
# time.
_CLIPPED = "-bound if r < -bound else (bound if r > bound else r)"
_MISSING = "total != total and bound < math.inf"


def _lines(numbers: Iterable[int], template: str, indent: int) -> str:
    return "\n".join(" " * indent + template.format(k=k) for k in numbers)


@functools.cache
def ratio_kernel(log_likelihood: Any, num_coefficients: int, num_features: int) -> Any:
    """Compile the sum of clipped log-likelihood ratios.

    Returns
    -------
    compiled function ``(features, old, new, bound, start, stop) -> (sum, number clipped)``
        `features` has shape (q, n), `old` and `new` shape (m,); the rows from `start` on
        and before `stop` count. The row function is
        evaluated at both, or, where `old` is empty, once at `new`: the difference of
        the coefficients of a model that is linear in them. A ratio that is not a number
        counts as zero and as clipped, unless the bound is infinite.
    """
    x = tuple_text("x{k}[j]", num_features)

    def loop(ratio: str) -> str:
        return f"""
        for j in range(x0.size):
            r = {ratio}
            total += {_CLIPPED}
            clipped += abs(r) > bound
        if {_MISSING}:
            total = 0.0
            clipped = 0
            for j in range(x0.size):
                r = {ratio}
                if r == r:
                    total += {_CLIPPED}
                clipped += not abs(r) <= bound"""

    source = f"""
def kernel(features, old, new, bound, start, stop):
    b = {tuple_text("new[{k}]", num_coefficients)}
{_lines(range(num_features), "x{k} = features[{k}, start:stop]", 4)}
    total = 0.0
    clipped = 0
    if old.size == 0:{loop(f"log_likelihood(b, {x})")}
    else:
        a = {tuple_text("old[{k}]", num_coefficients)}
{loop(f"log_likelihood(b, {x}) - log_likelihood(a, {x})")}
    return total, clipped
"""
    return compile_source(source, log_likelihood=compile_once(log_likelihood))


@functools.cache
def batch_ratio_kernel(log_likelihood: Any, num_coefficients: int, num_features: int) -> Any:
    """Compile the clipped log-likelihood ratios of a batch: their sum and their sum of squares.

    Returns
    -------
    compiled function ``(rows, batch, old, new, bound) -> (sum, sum of squares, number clipped)``
        `rows` has shape (n, q) and is read where it lies, `batch` shape (b,) of uint64,
        row numbers; `old`, `new` and `bound` as in :func:`ratio_kernel`. Both sums are of
        the clipped ratios.
    """
    one = "log_likelihood(b, x)"
    two = one + " - log_likelihood(a, x)"
    row = tuple_text("rows[i, {k}]", num_features)

    def loop(ratio: str) -> str:
        return f"""
        for j in range(batch.size):
{_ask_ahead(num_features, "j", 12)}
            i = batch[j]
            x = {row}
            r = {ratio}
            clipped += abs(r) > bound
            r = {_CLIPPED}
            total += r
            squares += r * r
        if {_MISSING}:
            total = 0.0
            squares = 0.0
            clipped = 0
            for j in range(batch.size):
                i = batch[j]
                x = {row}
                r = {ratio}
                clipped += not abs(r) <= bound
                if r == r:
                    r = {_CLIPPED}
                    total += r
                    squares += r * r"""

    source = f"""
def kernel(rows, batch, old, new, bound):
    b = {tuple_text("new[{k}]", num_coefficients)}
    last = batch.size - 1
    total = 0.0
    squares = 0.0
    clipped = 0
    if old.size == 0:{loop(one)}
    else:
        a = {tuple_text("old[{k}]", num_coefficients)}{loop(two)}
    return total, squares, clipped
"""
    return compile_source(source, log_likelihood=compile_once(log_likelihood), prefetch=prefetch)


def _squares(first: int, last: int) -> str:
    return " + ".join(f"g[{k}] * g[{k}]" for k in range(first, last))


@functools.cache
def gradient_kernel(gradient: Any, dim: int, num_coefficients: int, num_features: int) -> Any:
    """Compile the sum of row gradients, each clipped to a Euclidean norm.

    Returns
    -------
    compiled function ``(features, c, bound, start, stop) -> (tuple of d floats, number clipped)``
        The rows from `start` on and before `stop` count. A block of them without a clipped
        one costs no square root and no division: the first loop finds out, and the second
        is skipped. A block with a row whose squared norm is not finite is done again, row by
        row, by :func:`dpmc.rows.clipping.clip_vector`, unless the bound is infinite.
    """
    if dim > GROUP + 2:
        return _wide_gradient_kernel(gradient, dim, num_coefficients, num_features)
    norm = _squares(0, dim)
    row = f"gradient(c, {tuple_text('x{k}[j]', num_features)})"
    source = f"""
def kernel(features, coefficients, bound, start, stop):
    c = {tuple_text("coefficients[{k}]", num_coefficients)}
    squared = bound * bound
    clipped = 0
    clipping = False
{_lines(range(dim), "a{k} = 0.0", 4)}
    for first in range(start, stop, {BLOCK}):
        last = min(first + {BLOCK}, stop)
{_lines(range(num_features), "x{k} = features[{k}, first:last]", 8)}
        if not clipping:
            count = 0
{_lines(range(dim), "p{k} = 0.0", 12)}
            for j in range(x0.size):
                g = {row}
                count += {norm} > squared
{_lines(range(dim), "p{k} += g[{k}]", 16)}
            whole = {" + ".join(f"p{k}" for k in range(dim))}
            if count == 0 and whole == whole:
{_lines(range(dim), "a{k} += p{k}", 16)}
                continue
        count = 0
        odd = 0
{_lines(range(dim), "s{k} = a{k}", 8)}
        for j in range(x0.size):
            g = {row}
            length = {norm}
            over = not length <= squared
            w = bound / math.sqrt(length) if over else 1.0
            count += over
            odd += not length < math.inf
{_lines(range(dim), "a{k} += w * g[{k}]", 12)}
{_one_by_one(row, dim, "a{k} = s{k}")}
        clipping = count > 0
        clipped += count
    return {tuple_text("a{k}", dim)}, clipped
"""
    return compile_source(source, gradient=compile_once(gradient), **ONE_BY_ONE)


# What the lines of :func:`_one_by_one` use.
ONE_BY_ONE: dict[str, Any] = {"clip_vector": clip_vector, "np": np}


def _one_by_one(row: str, dim: int, undo: str) -> str:
    """Lines that add a block with odd rows to the accumulators, each row by itself."""
    return f"""
        if odd > 0 and bound < math.inf:
{_lines(range(dim), undo, 12)}
            count = 0
            one = np.empty({dim})
            for j in range(x0.size):
                g = {row}
{_lines(range(dim), "one[{k}] = g[{k}]", 16)}
                count += clip_vector(one, bound)
{_lines(range(dim), "a{k} += one[{k}]", 16)}
"""


def _wide_gradient_kernel(gradient: Any, dim: int, num_coefficients: int, num_features: int) -> Any:
    """Compile the same sum for many dimensions: norms first, then sums by groups of components.

    More than a dozen accumulators do not fit the registers. What a group does not use
    of the gradient, the compiler leaves out.
    """
    value = f"gradient(c, {tuple_text('x{k}[j]', num_features)})"
    row = f"g = {value}"
    sums = "".join(
        f"""
            for j in range(x0.size):
                {row}
                w = weights[j]
{_lines(range(low, min(low + GROUP, dim)), "a{k} += w * g[{k}]", 16)}
"""
        for low in range(0, dim, GROUP)
    )
    source = f"""
def kernel(features, coefficients, bound, start, stop):
    c = {tuple_text("coefficients[{k}]", num_coefficients)}
    weights = np.empty({WIDE_BLOCK})
    squared = bound * bound
    clipped = 0
{_lines(range(dim), "a{k} = 0.0", 4)}
    for first in range(start, stop, {WIDE_BLOCK}):
        last = min(first + {WIDE_BLOCK}, stop)
{_lines(range(num_features), "x{k} = features[{k}, first:last]", 8)}
        count = 0
        odd = 0
        for j in range(x0.size):
            {row}
            length = {_squares(0, dim)}
            over = not length <= squared
            weights[j] = bound / math.sqrt(length) if over else 1.0
            count += over
            odd += not length < math.inf
{_one_by_one(value, dim, "pass")}
        else:
{sums}
        clipped += count
    return {tuple_text("a{k}", dim)}, clipped
"""
    return compile_source(source, gradient=compile_once(gradient), **ONE_BY_ONE)


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
    last = batch.size - 1
    for r in range(batch.size):
{_ask_ahead(num_features, "r", 8)}
        x = rows[batch[r]]
{_lines(range(num_features), "o{k}[r] = x[{k}]", 8)}
"""
    return compile_source(source, prefetch=prefetch)


def _ask_ahead(num_features: int, index: str, indent: int) -> str:
    """Lines that ask for all cache lines of a row that is read later."""
    places = [*range(0, num_features, NUMBERS_PER_LINE)]
    if NUMBERS_PER_LINE % num_features:
        places.append(num_features - 1)  # a row may begin anywhere in a line
    template = f"prefetch(rows, batch[min({index} + {AHEAD}, last)], {{k}})"
    return _lines(places, template, indent)


@intrinsic
def prefetch(_: Any, rows: Any, row: Any, column: Any) -> Any:
    """Ask for the cache line that holds ``rows[row, column]``; no number depends on it.

    Rows drawn at random are slow to come from memory, and a loop that reads them in turn has
    a few of them under way at a time: asked for ahead, they come in a third of the time.
    `rows` is C-contiguous.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, value=args[0])
        stride = builder.extract_value(array.strides, 0)
        number, byte, flag = ir.IntType(64), ir.IntType(8), ir.IntType(32)
        place = builder.add(builder.mul(args[1], stride), builder.mul(args[2], number(8)))
        address = builder.add(builder.ptrtoint(array.data, number), place)
        kind = ir.FunctionType(ir.VoidType(), [byte.as_pointer(), flag, flag, flag])
        function = builder.module.declare_intrinsic("llvm.prefetch.p0", (), kind)
        pointer = builder.inttoptr(address, byte.as_pointer())
        # To be read, kept in all levels of the cache, data and no code.
        builder.call(function, [pointer, flag(0), flag(3), flag(1)])
        return context.get_dummy_value()

    return types.void(rows, types.uint64, types.int64), codegen
