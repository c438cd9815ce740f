"""Batches of rows: what is released of them, and how they are drawn without replacement."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpmc.numerics.compiled import njit
from dpmc.privacy.clipped import Clip
from dpmc.privacy.events import Releases, sampled_gaussian
from dpmc.types import DpmcError


@dataclass(frozen=True)
class Batches:
    """Settings of the gradient of a batch, and its release.

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
    """

    num_rows: int
    batch_size: int
    clip_bound: float
    step_size: float
    noise_scale: float
    max_stored: int

    def __post_init__(self) -> None:
        if self.batch_size > self.num_rows:
            raise DpmcError(
                f"`batch_size` must be at most {self.num_rows} rows, got {self.batch_size}"
            )

    @property
    def step(self) -> float:
        """The length e of an update."""
        return self.step_size / self.num_rows

    @property
    def scale(self) -> float:
        """Factor of the batch sum in an update."""
        return self.step * self.num_rows / self.batch_size

    @property
    def clip(self) -> Clip:
        """Clip of a row gradient, and its factor in an update."""
        return Clip(self.clip_bound, self.scale)

    @property
    def sensitivity(self) -> float:
        """Sensitivity of an update to one substituted row."""
        return self.clip.sensitivity

    @property
    def noise_multiplier(self) -> float:
        """Noise standard deviation of an update over its sensitivity."""
        return math.sqrt(self.noise_scale * self.step) / self.sensitivity

    def releases(self) -> Releases:
        """One Gaussian release of a sampled batch per iteration."""
        event = sampled_gaussian(self.noise_multiplier, self.batch_size, self.num_rows)
        return Releases((), ((event, 1),))


@dataclass(frozen=True)
class Draws:
    """Draws of rows from random words.

    Parameters
    ----------
    num_rows : int
        Rows n, below 2**32.
    batch_size : int
        Rows b of a batch.
    """

    num_rows: int
    batch_size: int

    @property
    def bits(self) -> int:
        """Bits of a word that make one draw: one in 16 at most is rejected, up to 2**28 rows."""
        for bits in (16, 21):
            if self.num_rows <= 2 ** (bits - 4):
                return bits
        return 32

    @property
    def words_per_batch(self) -> int:
        """64-bit words that suffice for a batch but for a chance below 1e-9.

        The i-th new row takes 1 / q draws on average, with q = (1 - rejected) (n - i) / n;
        the sum is six standard deviations below this. A batch that falls short all the
        same is drawn anew.
        """
        fair = 1 - (2**self.bits % self.num_rows) / 2**self.bits
        q = fair * (self.num_rows - np.arange(self.batch_size)) / self.num_rows
        draws = np.sum(1 / q) + 6 * math.sqrt(np.sum((1 - q) / q**2)) + 8
        return int(np.ceil(draws / (64 // self.bits)))

    def scratch(self) -> tuple[npt.NDArray[np.uint64], ...]:
        """Scratch of :func:`draw_distinct`: mask, candidates and batch.

        The mask has one bit for each row, and one beyond them, which is set.
        """
        mask = np.zeros(self.num_rows // 64 + 1, dtype=np.uint64)
        mask[self.num_rows >> 6] = np.uint64(1) << np.uint64(self.num_rows & 63)
        candidates = np.empty(self.words_per_batch * (64 // self.bits), dtype=np.uint64)
        return mask, candidates, np.empty(self.batch_size, dtype=np.uint64)


@njit
def draw_distinct(
    words: Any, bits: int, num_rows: int, mask: Any, candidates: Any, batch: Any
) -> bool:
    """Fill `batch` with distinct row numbers, uniform without replacement.

    A few bits of each random word are mapped to a row by multiplication, with rejection
    so that no row is favoured (Lemire 2019); what is rejected becomes the row beyond the
    last, which always counts as taken. Rows that are taken are skipped. The cost is that
    of the batch: the other rows are not touched.

    Parameters
    ----------
    words : ndarray of uint64 of shape (words_per_batch,)
        Random words.
    bits : int
        Bits of a word that make one draw.
    num_rows : int
        Number of rows n.
    mask, candidates, batch : ndarray of uint64
        From :meth:`Draws.scratch`; the mask is the same again afterwards.

    Returns
    -------
    bool
        Whether the words sufficed.
    """
    rows, width = np.uint64(num_rows), np.uint64(bits)
    low = (np.uint64(1) << width) - np.uint64(1)
    threshold = (low + np.uint64(1)) % rows
    for lane in range(64 // bits):
        part = candidates[lane * words.size : (lane + 1) * words.size]
        shift = np.uint64(lane * bits)
        for i in range(words.size):
            product = ((words[i] >> shift) & low) * rows
            fair = (product & low) >= threshold
            part[i] = (product >> width) if fair else rows
    # Without branches on the data: a taken row is written too, and overwritten by the next.
    found, i = np.uint64(0), 0
    while found < np.uint64(batch.size) and i < candidates.size:
        row = candidates[i]
        slot, bit = row >> np.uint64(6), np.uint64(1) << (row & np.uint64(63))
        batch[found] = row
        found += np.uint64((mask[slot] & bit) == np.uint64(0))
        mask[slot] |= bit
        i += 1
    for k in range(found):
        mask[batch[k] >> np.uint64(6)] = np.uint64(0)
    mask[rows >> np.uint64(6)] |= np.uint64(1) << (rows & np.uint64(63))
    return bool(found == np.uint64(batch.size))
