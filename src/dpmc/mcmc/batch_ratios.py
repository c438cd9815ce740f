"""Log-likelihood ratios estimated from a fresh batch of rows, in one compiled call."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from dpmc.mcmc.posterior import Posterior
from dpmc.numerics.compiled import compile_once, compile_source, identity
from dpmc.privacy.clipped import BarkerRatio, Clipped
from dpmc.privacy.events import BarkerEvent
from dpmc.rows.batches import Draws, draw_distinct
from dpmc.rows.kernels import batch_ratio_kernel
from dpmc.types import Array, DpmcError


class Estimate(NamedTuple):
    """The tempered log-likelihood ratio of a move, estimated from a batch.

    Its variance over batches is estimated from the same batch, as that of b independent
    draws from the rows.
    """

    log_ratio: float
    variance: float
    clipped: int


class BatchRatios:
    """Draws batches without replacement and estimates log-likelihood ratios from them.

    Row ratios r are clipped to [-bound, bound]. With g = n T / b the estimate is g sum r
    over the batch, and its variance g^2 (sum r^2 - (sum r)^2 / b), which is (n T)^2 / b
    times the variance of the row ratios in the batch.

    Parameters
    ----------
    posterior : Posterior
        The model on its rows.
    batch_size : int
        Rows b of a batch.
    """

    def __init__(self, posterior: Posterior, batch_size: int) -> None:
        num_rows = posterior.num_rows
        if batch_size > num_rows:
            raise DpmcError(f"`batch_size` must be at most {num_rows} rows, got {batch_size}")
        model, self._rows = posterior.model, posterior.batch_rows
        coefficients = compile_once(model.coefficients or identity)
        count = len(coefficients(np.zeros(posterior.dim)))
        ratios = batch_ratio_kernel(model.log_likelihood, count, self._rows.shape[1])
        draws = Draws(num_rows, batch_size)
        self._sums = _fused(ratios, coefficients, model.linear, draws.bits)
        self._num_words, self._scratch = draws.words_per_batch, draws.scratch()
        self._batch_size, self._tempering = batch_size, posterior.tempering
        self.scale = num_rows * posterior.tempering / batch_size

    def sums(
        self, theta: Array, theta_new: Array, bound: float, rng: np.random.Generator
    ) -> tuple[float, float, int]:
        """Sum, sum of squares and clip count of the clipped row ratios of a new batch."""
        enough = False
        while not enough:
            # What `integers` gives for 64 bits of this generator, in a quarter of the time.
            words = rng.bit_generator.random_raw(self._num_words)
            enough, total, squares, clipped = self._sums(
                self._rows, theta, theta_new, bound, words, *self._scratch
            )
        return total, squares, clipped

    def estimate(
        self, theta: Array, theta_new: Array, bound: float, rng: np.random.Generator
    ) -> Estimate:
        """Estimate the log-likelihood ratio of `theta_new` to `theta` from a new batch.

        Parameters
        ----------
        theta, theta_new : ndarray of shape (d,)
            Where the move starts and ends.
        bound : float
            Row ratios, before tempering, are clipped to [-bound, bound].
        rng : numpy.random.Generator
            Draws the batch.

        Returns
        -------
        Estimate
            A row ratio that is not a number counts as zero.
        """
        total, squares, clipped = self.sums(theta, theta_new, bound, rng)
        variance = self.scale**2 * (squares - total * total / self._batch_size)
        # Rounding can make a variance negative.
        return Estimate(self.scale * total, max(0.0, variance), clipped)

    def penalised(
        self,
        theta: Array,
        theta_new: Array,
        bound: float,
        variance_factor: float,
        population: float,
        rng: np.random.Generator,
    ) -> tuple[Clipped[float], int]:
        """Estimate less half of its variance, and how many ratios were clipped.

        Parameters
        ----------
        theta, theta_new, bound, rng
            As of `estimate`.
        variance_factor, population
            As of `penalised_sensitivity`.
        """
        batch = self.estimate(theta, theta_new, bound, rng)
        largest = self.scale * bound
        change = penalised_sensitivity(largest, self._batch_size, variance_factor, population)
        return Clipped(batch.log_ratio - 0.5 * population * batch.variance, change), batch.clipped

    def barker(
        self, theta: Array, theta_new: Array, event: BarkerEvent, rng: np.random.Generator
    ) -> tuple[BarkerRatio, int]:
        """Estimate clipped as an event says, and how many ratios were clipped.

        Parameters
        ----------
        theta, theta_new, rng
            As of `estimate`.
        event : BarkerEvent
            Of batches as they are drawn here.
        """
        batch = self.estimate(theta, theta_new, self.barker_bound(event), rng)
        # Beyond the bound by rounding alone, and a ledger that refuses would reveal rows.
        variance = min(batch.variance, event.clip_scale**2)
        return BarkerRatio(batch.log_ratio, variance, event), batch.clipped

    def barker_bound(self, event: BarkerEvent) -> float:
        """Clip bound of row ratios that an event says."""
        if (event.batch_size, event.num_rows) != (self._batch_size, len(self._rows)):
            raise DpmcError(
                f"`event` must be of batches of {self._batch_size} of {len(self._rows)} rows, got "
                f"{event.batch_size} of {event.num_rows}"
            )
        bound = event.clip_scale * math.sqrt(event.batch_size)
        return bound / (event.num_rows * self._tempering)


def penalised_sensitivity(
    largest: float, batch_size: int, variance_factor: float = 2.0, population: float = 1.0
) -> float:
    """Sensitivity of the penalised ratio to one substituted row.

    Parameters
    ----------
    largest : float
        Largest contribution D of a row to the estimate: g times the clip bound.
    batch_size : int
        Rows b of a batch.
    variance_factor : float
        Factor of the second term, exactly 2.
    population : float
        What the variance of a batch is multiplied by.
    """
    return 2 * largest + variance_factor * (1 - 1 / batch_size) * population * largest**2


@functools.cache
def _fused(ratios: Any, coefficients: Any, linear: bool, bits: int) -> Any:
    """Compile the draw of a batch and its sums into one function."""
    source = f"""
def kernel(rows, theta, theta_new, bound, words, mask, candidates, batch):
    if not draw_distinct(words, {bits}, rows.shape[0], mask, candidates, batch):
        return False, 0.0, 0.0, 0
    old, new = coefficients(theta), coefficients(theta_new)
    if {linear}:
        new = new - old
        old = old[:0]
    total, squares, clipped = ratios(rows, batch, old, new, bound)
    return True, total, squares, clipped
"""
    names = {"coefficients": coefficients, "ratios": ratios, "draw_distinct": draw_distinct}
    return compile_source(source, False, **names)
