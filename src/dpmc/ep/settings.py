"""Settings and orders of rows that the engines of mixtures and of networks share.

With theta the natural parameters of the approximation, theta_0 those of the prior, g the factor
of a row (what its tilted moments add to the cavity), s the step and N rows, one step is
[vinaroz2022dpsep, sections 2.3, 3 and 6]

=======  =========  ==================  ====================================
method   sites      cavity              theta becomes
=======  =========  ==================  ====================================
ADF      none       theta               theta + s g
EP       per_row    theta - theta_n     theta + s (g - theta_n), as does theta_n
SEP      shared     theta - theta_f     theta + s (clip(g) - theta_f)
DP-SEP   shared     theta - theta_f     theta + s (clip(g) - theta_f) + noise
=======  =========  ==================  ====================================

where theta_f = (theta - theta_0) / N is computed and not stored.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from dpmc import checks
from dpmc.privacy import clipped
from dpmc.privacy.schedules import ORDERS, Order
from dpmc.types import Budget, DpmcError

Sites = Literal["none", "per_row", "shared"]
Clip = Literal["none", "joint", "per_block"]
Diagnostics = Literal["none", "exact"]

SITES: tuple[Sites, ...] = ("none", "per_row", "shared")
CLIPS: tuple[Clip, ...] = ("none", "joint", "per_block")
DIAGNOSTICS: tuple[Diagnostics, ...] = ("none", "exact")


@dataclass(frozen=True, kw_only=True)
class UpdateSettings:
    """Settings of the updates of an engine.

    Parameters
    ----------
    sites : {"shared", "per_row", "none"}
        Which factor a step takes out before it puts the new one in: a share 1 / N of what all
        rows have added (SEP, DP-SEP), the one stored for the row (EP), or none (ADF).
    num_passes : int
        Passes T over the rows; each has as many steps as there are rows.
    step : float
        Step s in (0, 1], for EP its damping.
    order : {"permutation", "independent", "cyclic"}
        Row of each step: of a fresh permutation of each pass, drawn anew from all rows, or in
        turn. Only independent draws are what accountants call sampling.
    clip : {"none", "joint", "per_block"}
        Clip of a factor, for shared sites only: none, of the whole factor as one vector, or of
        each of its blocks.
    clip_bound : float, optional
        Largest norm C of a clipped vector; left out without a clip.
    noise_multiplier : float
        Standard deviation of the noise of a step over its sensitivity; 0 without noise. Noise
        needs shared sites and a clip.
    diagnostics : {"none", "exact"}
        Whether a private run returns counts that depend on rows. They have no noise and are
        outside of any guarantee. Runs without privacy return all counts.
    """

    sites: Sites = "shared"
    num_passes: int = 40
    step: float = 1.0
    order: Order = "permutation"
    clip: Clip = "none"
    clip_bound: float | None = None
    noise_multiplier: float = 0.0
    diagnostics: Diagnostics = "none"

    def __post_init__(self) -> None:
        checks.one_of("sites", self.sites, SITES)
        checks.at_least("num_passes", self.num_passes, 1)
        if not (isinstance(self.step, int | float) and 0 < self.step <= 1):
            raise DpmcError(f"`step` must be a number in (0, 1], got {self.step!r}")
        checks.one_of("order", self.order, ORDERS)
        checks.one_of("clip", self.clip, CLIPS)
        checks.one_of("diagnostics", self.diagnostics, DIAGNOSTICS)
        self._check_clip()
        self._check_noise()

    def _check_clip(self) -> None:
        checks.positive("clip_bound", self.clip_bound, optional=True)
        if self.clip == "none" and self.clip_bound is not None:
            raise DpmcError(f"`clip_bound` must be None with clip='none', got {self.clip_bound}")
        if self.clip != "none" and self.clip_bound is None:
            raise DpmcError(f"`clip_bound` must be a number with clip={self.clip!r}, got None")
        if self.clip != "none" and self.sites != "shared":
            raise DpmcError(f"`clip` must be 'none' with sites={self.sites!r}, got {self.clip!r}")

    def _check_noise(self) -> None:
        multiplier = self.noise_multiplier
        if not isinstance(multiplier, int | float) or not 0 <= multiplier < math.inf:
            raise DpmcError(f"`noise_multiplier` must be a finite number >= 0, got {multiplier!r}")
        if multiplier and self.sites != "shared":
            raise DpmcError(
                f"`noise_multiplier` must be 0 with sites={self.sites!r}, got {multiplier}"
            )
        if multiplier and self.clip == "none":
            raise DpmcError("`clip` must be 'joint' or 'per_block' with noise, got 'none'")

    @property
    def num_blocks(self) -> int:
        """Number of blocks of a factor that ``clip="per_block"`` clips, by default one."""
        return 1

    @property
    def private(self) -> bool:
        """Whether a guarantee rests on the noise: only noisy numbers may be seen then."""
        return self.noise_multiplier > 0

    @property
    def sensitivity(self) -> float:
        """Largest change of theta in one step by substitution of one row, given theta before it.

        The clipped factor moves by at most 2 C, twice the bound of each of b blocks by at most
        sqrt(b) times that, and theta by s times as much.
        """
        return self.row_clip.sensitivity

    @property
    def row_clip(self) -> clipped.Clip:
        """Clip of a factor, and the step that it is multiplied by."""
        blocks = self.num_blocks if self.clip == "per_block" else 1
        bound = math.inf if self.clip_bound is None else float(self.clip_bound)
        return clipped.Clip(bound, float(self.step), blocks)


def pass_orders(
    order: Order, num_rows: int, rng: np.random.Generator, block: int
) -> Iterator[npt.NDArray[np.int64]]:
    """Rows of the steps of one pass, at most `block` at a time.

    Parameters
    ----------
    order : {"permutation", "independent", "cyclic"}
        As in :class:`UpdateSettings`.
    num_rows : int
        Number N of rows, and of steps.
    rng : numpy.random.Generator
        Generator of permutations and independent draws, whose values do not depend on `block`.
    block : int
        Number of steps of all arrays but the last; independent draws and steps in turn take
        memory for as many.
    """
    starts = range(0, num_rows, block)
    if order == "permutation":
        permutation = rng.permutation(num_rows)
        for first in starts:
            yield permutation[first : first + block]
        return
    for first in starts:
        last = min(first + block, num_rows)
        if order == "cyclic":
            yield np.arange(first, last)
        else:
            yield rng.integers(num_rows, size=last - first)


def required(budget: Budget | None) -> Budget:
    """Budget of a private method, refusing none."""
    if budget is None:
        raise DpmcError("`budget` must be an epsilon and a delta for a private method, got None")
    checks.instance("budget", budget, Budget, "a dpmc.types.Budget")
    return budget
