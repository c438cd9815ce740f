"""Samplers that see a batch of rows at each iteration: one compiled loop for all of them.

A method says how its state moves, given the gradient of the batch; the loop draws the
batch, gathers its rows and adds up their clipped gradients. Privacy noise comes from
the ledger in blocks, ahead of the iterations that use it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from dpmc import checks
from dpmc.mcmc.chains import Run, Sampler
from dpmc.mcmc.posterior import Posterior
from dpmc.numerics.compiled import compile_once, identity, kept_loop, njit
from dpmc.privacy.grids import on_steps
from dpmc.privacy.ledger import Ledger
from dpmc.progress import Progress, silent
from dpmc.rng import Streams
from dpmc.rows import clipping
from dpmc.rows.batches import Batches, Draws, draw_distinct
from dpmc.rows.kernels import gather_kernel, gradient_kernel
from dpmc.rows.sums import compiled
from dpmc.types import Array, DpmcError

# Iterations whose noise and random words are drawn at once: few enough for the cache.
BLOCK = 128


@dataclass(frozen=True)
class BatchParams:
    """Settings that the methods of this kind share.

    Parameters
    ----------
    batch_size : int
        Rows b of a batch, drawn without replacement at each iteration.
    gradient_clip_bound : float
        Row gradients are clipped to this norm.
    step_size : float
        Step size eta; an update moves by e = eta / n times the gradient.
    """

    batch_size: int
    gradient_clip_bound: float = field(metadata={"key": "clip_bound"})
    step_size: float

    def __post_init__(self) -> None:
        checks.at_least("batch_size", self.batch_size, 1)
        checks.positive("gradient_clip_bound", self.gradient_clip_bound)
        clipping.check_bound("gradient_clip_bound", self.gradient_clip_bound)
        checks.positive("step_size", self.step_size)


@functools.cache
def _block(
    update: Callable[..., Any],
    prior_gradient: Any,
    coefficients: Any,
    kernel: Any,
    gather: Any,
    dim: int,
    bits: int,
) -> Any:
    """Loop over the iterations of one block, compiled once a process and kept.

    It closes over the functions of a model and a method, and over the bits of a draw, of which
    there are three kinds. What else differs between fits of one model, the rows and the
    settings, it is given as arguments.
    """

    @njit
    def block(
        rows: Any,
        state: Any,
        noise: Any,
        grid: float,
        words: Any,
        mask: Any,
        candidates: Any,
        batch: Any,
        gathered: Any,
        bound: float,
        scale: float,
        step: float,
        first: int,
        thin: int,
        stored: Any,
        clipped: Any,
    ) -> int:
        drift = np.empty(dim)
        for i in range(noise.shape[0]):
            if not draw_distinct(words[i], bits, rows.shape[0], mask, candidates, batch):
                return i
            gather(rows, batch, gathered)
            theta = state[:dim]
            total, count = kernel(gathered, coefficients(theta), bound, 0, gathered.shape[1])
            prior = prior_gradient(theta)
            for k in range(dim):
                summed = scale * total[k]
                if grid > 0:
                    summed = on_steps(summed, grid)
                drift[k] = summed + noise[i, k]
            update(state, prior, drift, step)
            slot = (first + i) // thin
            clipped[slot] += count
            if (first + i + 1) % thin == 0:
                for k in range(dim):
                    stored[slot, k] = state[k]
        return int(noise.shape[0])

    return kept_loop(block)


def sampler(
    posterior: Posterior,
    batches: Batches,
    init: Callable[[Array, np.random.Generator], Array],
    update: Callable[..., Any],
) -> Sampler:
    """Sampler whose state moves by the gradient of a batch.

    Parameters
    ----------
    posterior : Posterior
        The model on its rows.
    batches : Batches
        What is computed and released at each iteration.
    init : callable ``(theta, rng) -> ndarray``
        The first state; its first d entries are theta.
    update : compiled function ``(state, prior_gradient, drift, step)``
        Moves the state in place; `drift` is the scaled noisy batch sum, `step` the e of the
        batches. A function of a module: one made anew for each fit would be compiled anew.
    """
    num_rows, dim = posterior.num_rows, posterior.dim
    if posterior.tempering != 1:
        raise DpmcError(f"`tempering` must be 1 with batches of rows, got {posterior.tempering}")
    rows = posterior.batch_rows
    probe = np.zeros(dim)
    coefficients = compile_once(posterior.model.coefficients or identity)
    kernel = gradient_kernel(posterior.model.gradient, dim, len(coefficients(probe)), rows.shape[1])
    draws = Draws(num_rows, batches.batch_size)
    gather = gather_kernel(rows.shape[1])
    block = _block(
        update, posterior.log_prior_gradient, coefficients, kernel, gather, dim, draws.bits
    )
    width, gathered = draws.words_per_batch, np.empty((rows.shape[1], batches.batch_size))
    scratch = (*draws.scratch(), gathered)
    clip = batches.clip
    settings = clip.bound, clip.scale, float(batches.step)
    nothing = np.empty((0, dim)), 0.0, np.empty((0, width), dtype=np.uint64)
    counted = np.empty(0, dtype=np.int64)
    compiled(
        posterior.model, rows.shape[1], block, rows, probe.copy(), *nothing, *scratch, *settings,
        0, 1, np.empty((0, dim)), counted,
    )  # fmt: skip

    def chain(
        theta: Array, num_iterations: int, streams: Streams, ledger: Ledger, report: Progress
    ) -> tuple[Array, npt.NDArray[np.int64], int]:
        """Run one chain; the last entry is the number of iterations that were finite."""
        thin = max(1, math.ceil(num_iterations / batches.max_stored))
        skipped = -num_iterations % thin
        num_stored = (num_iterations + skipped) // thin
        stored, clipped = np.empty((num_stored, dim)), np.zeros(num_stored, dtype=np.int64)
        state = init(theta, streams.chain)
        grid = ledger.grid(clip, batches.noise_multiplier)
        done = 0
        while done < num_iterations:
            size = min(BLOCK, num_iterations - done)
            noise = ledger.noise_block(
                size,
                dim,
                clip,
                batches.noise_multiplier,
                streams.noise,
                batches.batch_size,
                num_rows,
                grid,
            )
            used = 0
            while used < size:
                words = streams.batches.integers(0, 2**64, (size - used, width), dtype=np.uint64)
                first = skipped + done + used
                used += block(
                    rows,
                    state,
                    noise[used:],
                    grid,
                    words,
                    *scratch,
                    *settings,
                    first,
                    thin,
                    stored,
                    clipped,
                )
            done += size
            if not np.isfinite(state).all():
                return stored, clipped, done - size
            report(done, num_iterations, "")
        return stored, clipped, num_iterations

    def run(
        start: Array,
        num_iterations: int,
        streams: Sequence[Streams],
        ledger: Ledger,
        progress: Progress = silent,
    ) -> Run:
        def report(chain_index: int) -> Progress:
            offset = chain_index * num_iterations
            return lambda done, total, info: progress(offset + done, len(start) * total, info)

        chains = [
            chain(start[c].copy(), num_iterations, streams[c], ledger, report(c))
            for c in range(len(start))
        ]
        return _collect(chains, num_iterations, batches)

    return run


def _collect(
    chains: Sequence[tuple[Array, npt.NDArray[np.int64], int]],
    num_iterations: int,
    batches: Batches,
) -> Run:
    """Put chains side by side; where one left the finite numbers, stop all before it."""
    thin = max(1, math.ceil(num_iterations / batches.max_stored))
    finite = [done for _, _, done in chains]
    length = len(chains[0][0])
    status = "complete"
    if min(finite) < num_iterations:
        which = finite.index(min(finite))
        status = f"chain {which} left the finite numbers after iteration {min(finite)}"
        length = min(finite) // thin
    counts = np.array([clipped.sum() for _, clipped, _ in chains])
    return Run(
        np.stack([stored[:length] for stored, _, _ in chains], axis=1) if length else None,
        {"gradient_clipped": np.stack([clipped[:length] for _, clipped, _ in chains], axis=1)},
        {
            "num_iterations": np.array(finite),
            "gradient_clipped": counts,
            "gradient_rows": np.array(finite) * batches.batch_size,
        },
        status,
    )
