"""The counter-based generator Threefry-2x32 [Salmon et al. 2011], as JAX uses it.

Experiments that ran on JAX drew their rows from it. With the same key these functions
give the same numbers, so that a published figure can be regenerated from the very rows
that it was made from.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import erfinv

from dpmc.types import Array

Words = npt.NDArray[np.uint32]

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = np.uint32(0x1BD11BDA)
# Bits of the fraction of a float, by its width.
FRACTION_BITS = {32: 23, 64: 52}


def seed_key(seed: int) -> Words:
    """Key of a seed: its high and its low 32 bits."""
    return np.array([(seed >> 32) & 0xFFFFFFFF, seed & 0xFFFFFFFF], dtype=np.uint32)


def hash_pairs(key: Words, first: Words, second: Words) -> tuple[Words, Words]:
    """20 rounds of Threefry-2x32 on pairs of counters, each of shape (m,)."""
    schedule = (key[0], key[1], key[0] ^ key[1] ^ PARITY)
    a, b = first + schedule[0], second + schedule[1]
    for group in range(5):
        for rotation in ROTATIONS[group % 2]:
            a = a + b
            b = (b << np.uint32(rotation)) | (b >> np.uint32(32 - rotation))
            b = a ^ b
        a = a + schedule[(group + 1) % 3]
        b = b + schedule[(group + 2) % 3] + np.uint32(group + 1)
    return a, b


def bits(key: Words, count: int) -> Words:
    """Return `count` random words: the counters in two halves, hashed; zero fills an odd half."""
    half = (count + 1) // 2
    counters = np.zeros(2 * half, dtype=np.uint32)
    counters[:count] = np.arange(count, dtype=np.uint32)
    return np.concatenate(hash_pairs(key, counters[:half], counters[half:]))[:count]


def split(key: Words, num: int) -> Words:
    """Return `num` new keys, shape (num, 2)."""
    return bits(key, 2 * num).reshape(num, 2)


def normal(key: Words, shape: tuple[int, ...], width: int = 64) -> Array:
    """Standard normal numbers, by inversion of a uniform on (-1, 1).

    Parameters
    ----------
    key : array of shape (2,)
        The key.
    shape : tuple of int
        Shape of the result.
    width : {64, 32}
        Bits of a float. JAX has 32 unless it is told to have 64, and a key then gives other
        numbers, not the same ones rounded.
    """
    uniform = _uniform_double(key, shape) if width == 64 else _uniform_single(key, shape)
    drawn: Array = (np.sqrt(uniform.dtype.type(2)) * erfinv(uniform)).astype(np.float64)
    return drawn


def _uniform_double(key: Words, shape: tuple[int, ...]) -> Array:
    count = int(np.prod(shape))
    high, low = np.split(bits(key, 2 * count).astype(np.uint64), 2)
    fraction = ((high << np.uint64(32)) | low) >> np.uint64(64 - FRACTION_BITS[64])
    unit = (fraction | np.uint64(0x3FF0000000000000)).view(np.float64) - 1.0
    low_end = np.nextafter(-1.0, 0.0)
    drawn: Array = np.maximum(low_end, unit * (1.0 - low_end) + low_end).reshape(shape)
    return drawn


def _uniform_single(key: Words, shape: tuple[int, ...]) -> npt.NDArray[np.float32]:
    one = np.float32(1)
    fraction = bits(key, int(np.prod(shape))) >> np.uint32(32 - FRACTION_BITS[32])
    unit = (fraction | np.uint32(0x3F800000)).view(np.float32) - one
    low_end = np.nextafter(-one, np.float32(0))
    drawn: npt.NDArray[np.float32] = np.maximum(low_end, unit * (one - low_end) + low_end)
    return drawn.reshape(shape)
