"""Normal numbers for compiled loops that take thousands of them at every step.

Eight xoshiro256++ generators side by side [Blackman and Vigna 2021], each started by 256 bits of
a NumPy generator, and the transformation of [Box and Muller 1958] on their upper 53 bits. Up to
the rounding of float64 each number is an independent standard normal one; the largest possible
is 8.57, which more than one number in 1e17 exceeds in theory. A guarantee of differential
privacy takes such numbers for exact, as it does with any other implementation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dpmc.numerics.compiled import njit
from dpmc.numerics.simd import (
    WIDTH,
    circle,
    inlined,
    load_words,
    logarithm,
    root,
    store,
    store_words,
    to_numbers,
)

# Numbers come in groups of two for each lane.
GROUP = 2 * WIDTH
UNIT = 2.0**-53
DROPPED = 11


def source(rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """State of eight generators, shape (4 * 8,), from 2048 random bits."""
    limits = np.iinfo(np.int64)
    return rng.integers(limits.min, limits.max, 4 * WIDTH, dtype=np.int64, endpoint=True)


@inlined
def _turned(words: Any, bits: int) -> Any:
    """Words rotated to the left."""
    return (words << bits) | (words >> (64 - bits))


@inlined
def _next(a: Any, b: Any, c: Any, d: Any) -> Any:
    """Next random words, and the state after them."""
    word = _turned(a + d, 23) + a
    shifted = b << 17
    c = c ^ a
    d = d ^ b
    b = b ^ c
    a = a ^ d
    c = c ^ shifted
    return word, a, b, c, _turned(d, 45)


@njit
def fill(state: Any, out: Any) -> None:
    """Fill an array with standard normal numbers and move the generators on.

    Parameters
    ----------
    state : ndarray of int64 of shape (32,)
        From `source`.
    out : ndarray of shape (m,)
        m is a multiple of 16.
    """
    a, b = load_words(state, 0), load_words(state, WIDTH)
    c, d = load_words(state, 2 * WIDTH), load_words(state, 3 * WIDTH)
    for k in range(0, out.size, GROUP):
        first, a, b, c, d = _next(a, b, c, d)
        second, a, b, c, d = _next(a, b, c, d)
        # The first uniform number is in (0, 1], the second symmetric about zero.
        inside = (to_numbers(first >> DROPPED) + 1.0) * UNIT
        around = (to_numbers(second >> DROPPED) + 0.5) * UNIT - 0.5
        radius = root(-2.0 * logarithm(inside))
        cosine, sine = circle(around)
        store(out, k, radius * cosine)
        store(out, k + WIDTH, radius * sine)
    store_words(state, 0, a)
    store_words(state, WIDTH, b)
    store_words(state, 2 * WIDTH, c)
    store_words(state, 3 * WIDTH, d)
