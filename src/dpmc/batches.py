"""Batches of rows: what is released of them, and how they are drawn without replacement."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from dpmc.privacy.events import Releases, sampled_gaussian
from dpmc.types import DpmcError


@dataclass(frozen=True)
class Batches:
    """How the gradient of a batch is formed and what is released of it.

    An update moves by e n / b times the clipped batch sum, whose sensitivity is 2 C, and
    has Gaussian noise of variance ``noise_scale * e``, with e = step_size / n.

    Parameters
    ----------
    num_rows : int
        Rows n of the data.
    batch_size : int
        Rows b of a batch, drawn without replacement at each iteration.
    clip_bound : float
        Row gradients are clipped to this norm C.
    step_size : float
        Step size eta.
    noise_scale : float
        Variance of the noise of an update over e.
    max_stored : int
        Chains are thinned evenly to at most this many states, the last among them.

    Raises
    ------
    DpmcError
        If the batch is larger than the data.
    """

    num_rows: int
    batch_size: int
    clip_bound: float
    step_size: float
    noise_scale: float
    max_stored: int

    def __post_init__(self) -> None:
        if self.batch_size > self.num_rows:
            raise DpmcError(f"batch_size: {self.batch_size}, allowed at most {self.num_rows} rows")

    @property
    def step(self) -> float:
        """The length e of an update."""
        return self.step_size / self.num_rows

    @property
    def scale(self) -> float:
        """What the batch sum is multiplied by in an update."""
        return self.step * self.num_rows / self.batch_size

    @property
    def sensitivity(self) -> float:
        """How far one substituted row can move an update."""
        return 2 * self.clip_bound * self.scale

    @property
    def noise_multiplier(self) -> float:
        """Noise standard deviation of an update over its sensitivity."""
        return math.sqrt(self.noise_scale * self.step) / self.sensitivity

    def releases(self) -> Releases:
        """Return one Gaussian release of a sampled batch per iteration."""
        event = sampled_gaussian(self.noise_multiplier, self.batch_size, self.num_rows)
        return Releases((), ((event, 1),))


def empty_mask(num_rows: int) -> npt.NDArray[np.uint64]:
    """Return the scratch of :func:`draw_distinct`: a bit for each row, and one beyond, set."""
    mask = np.zeros(num_rows // 64 + 1, dtype=np.uint64)
    mask[num_rows >> 6] = np.uint64(1) << np.uint64(num_rows & 63)
    return mask


@numba.njit(nogil=True)
def draw_distinct(
    words: Any, position: int, num_rows: int, mask: Any, candidates: Any, out: Any
) -> int:
    """Fill `out` with distinct row numbers, uniform without replacement.

    Each random word is mapped to a row by multiplication, with rejection so that no row
    is favoured (Lemire 2019); a rejected word becomes the row beyond the last, which
    always counts as taken. Rows that are taken are skipped. The cost is that of the
    batch: the other rows are not touched.

    Parameters
    ----------
    words : ndarray of uint32
        Random words.
    position : int
        The first word to use.
    num_rows : int
        Number of rows, below 2**32.
    mask : ndarray of uint64
        From :func:`empty_mask`; the same again afterwards.
    candidates : ndarray of uint64
        Scratch, as long as the words that may be used at most.
    out : ndarray of uint64 of shape (batch size,)
        Receives the rows.

    Returns
    -------
    int
        The position after the last word used, or -1 if the words did not suffice.
    """
    rows, low_half = np.uint64(num_rows), np.uint64(0xFFFFFFFF)
    threshold = (np.uint64(1 << 32) - rows) % rows
    used = words[position : position + candidates.size]
    for i in range(used.size):
        product = np.uint64(used[i]) * rows
        fair = (product & low_half) >= threshold
        candidates[i] = (product >> np.uint64(32)) if fair else rows
    # Without branches on the data: a taken row is written too, and overwritten by the next.
    found, i = np.uint64(0), 0
    while found < np.uint64(out.size) and i < used.size:
        row = candidates[i]
        slot, bit = row >> np.uint64(6), np.uint64(1) << (row & np.uint64(63))
        out[found] = row
        found += np.uint64((mask[slot] & bit) == np.uint64(0))
        mask[slot] |= bit
        i += 1
    for k in range(found):
        mask[out[k] >> np.uint64(6)] = np.uint64(0)
    mask[rows >> np.uint64(6)] |= np.uint64(1) << (rows & np.uint64(63))
    return position + i if found == np.uint64(out.size) else -1


def enough_words(n: int, batch_size: int) -> int:
    """Return how many random words suffice for a batch but for a chance below 1e-9.

    The i-th new row takes n / (n - i) words on average; the sum is six standard
    deviations below this. A batch that falls short all the same is drawn anew.
    """
    left = n - np.arange(batch_size)
    mean, variance = np.sum(n / left), np.sum(n * (n - left) / left**2)
    return int(mean + 6 * math.sqrt(variance) + 8)
