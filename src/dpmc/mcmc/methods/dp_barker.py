"""DP-Barker: a Barker test on a batch, whose own variance is a part of the noise.

[Heikkila et al. 2019; raisa2021thesis, section 3.2 and Algorithm 3]. Row ratios r of a
batch of b rows are clipped to kappa sqrt(b) / (n T). With

    lambda = (n T / b) sum r + ln p(theta') - ln p(theta),
    s_b^2 = (n T)^2 / b var(r),

lambda + N(0, C - s_b^2) is released, and the proposal accepted if this plus a draw from
the correction distribution is positive. By the central limit theorem the batch adds a
variance of about s_b^2, so that the noise on lambda is N(0, C) in all, which together with
the correction is nearly logistic (:mod:`dpmc.mcmc.barker_correction`).

The variance has to be that of lambda: Algorithm 3 prints the one of the row ratios, which
is smaller by (n T)^2 / b, next to nothing of it, and omits the tempering and the clipping.

A batch whose variance exceeds C would leave no room for noise, and stopping there would
reveal something of the rows. It cannot happen: numbers in [-c, c] have a variance of at most
c^2, hence s_b^2 <= kappa^2 whatever the rows are, and kappa^2 < C is demanded. A ratio that
is not a number counts as zero, and costs its release like any other.

Three errors remain besides clipping: of the correction, of the normal approximation, and of
s_b^2, which is an estimate for b independent draws, larger by the factor n / (n - b) than
without replacement.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dpmc import checks
from dpmc.mcmc import barker_correction, moves
from dpmc.mcmc.batch_ratios import BatchRatios
from dpmc.mcmc.chains import Info, Kernel, Sampler
from dpmc.mcmc.chains import sampler as chain_sampler
from dpmc.mcmc.clip_shares import ratio_share
from dpmc.mcmc.posterior import Posterior
from dpmc.mcmc.scale import (
    BATCH_VARIANCE,
    ITERATIONS,
    LARGEST_BATCH,
    LONGEST_STEP,
    SMALLEST_BATCH,
    Scale,
)
from dpmc.privacy import events
from dpmc.privacy.events import Releases
from dpmc.privacy.ledger import Ledger
from dpmc.rng import Streams
from dpmc.types import Array, DpmcError

ROW_ORDER = "rows"


@dataclass(frozen=True)
class Params:
    """Settings of DP-Barker.

    Parameters
    ----------
    proposal_sd : float or sequence of float of length d
        Standard deviation of the proposal.
    batch_size : int
        Rows b of a batch, drawn without replacement at each iteration.
    noise_variance : float
        Variance C of batch and noise together, below pi^2 / 3.
    clip_scale : float
        Row ratios are clipped to kappa sqrt(b) / (n T); kappa^2 < C.
    """

    proposal_sd: float | Sequence[float]
    batch_size: int
    noise_variance: float = 2.0
    clip_scale: float = 1.0

    def __post_init__(self) -> None:
        checks.positive_scales("proposal_sd", self.proposal_sd)
        checks.at_least("batch_size", self.batch_size, 1)
        barker_correction.check_noise_variance(self.noise_variance)
        checks.positive("clip_scale", self.clip_scale)
        if self.clip_scale**2 >= self.noise_variance:
            raise DpmcError(
                "`clip_scale` must be below sqrt(noise_variance) = "
                f"{math.sqrt(self.noise_variance):.4g}, got {self.clip_scale}"
            )


EXAMPLE = Params(proposal_sd=0.1, batch_size=20)


class BarkerState(NamedTuple):
    """Position and its log-prior."""

    theta: Array
    log_prior: float


def releases(params: Params, num_rows: int) -> Releases:
    """One noisy ratio of a batch per iteration [raisa2021thesis, Theorem 7]."""
    return Releases((), ((_event(params, num_rows), 1),))


def _event(params: Params, num_rows: int) -> events.BarkerEvent:
    return events.barker(params.noise_variance, params.clip_scale, params.batch_size, num_rows)


def sampler(posterior: Posterior, params: Params) -> Sampler:
    """Sampler of `posterior`."""
    event = _event(params, posterior.num_rows)
    proposal_sd = checks.scales("proposal_sd", params.proposal_sd, posterior.dim)
    ratios = BatchRatios(posterior, params.batch_size)
    correction = barker_correction.correction(float(params.noise_variance))

    def init(theta: Array, num_iterations: int, ledger: Ledger, streams: Streams) -> BarkerState:
        return BarkerState(theta, posterior.log_prior(theta))

    def step(state: BarkerState, ledger: Ledger, streams: Streams) -> tuple[BarkerState, Info]:
        proposal = moves.random_walk(state.theta, proposal_sd, streams.chain)
        ratio, clipped = ratios.barker(state.theta, proposal, event, streams.batches)
        noisy = ledger.release_barker(ratio, streams.noise)
        log_prior = posterior.log_prior(proposal)
        logistic = correction.draw(streams.chain)
        # NaN compares false: a rejection.
        if noisy + log_prior - state.log_prior + logistic > 0:
            return BarkerState(proposal, log_prior), Info(True, clipped)
        return state, Info(False, clipped)

    return chain_sampler(Kernel(init, step, params.batch_size))


def clip_shares(
    posterior: Posterior, params: Params, states: Array, rng: np.random.Generator
) -> dict[str, float]:
    """Share of all rows whose ratio is clipped, at fresh moves from released states."""
    proposal_sd = checks.scales("proposal_sd", params.proposal_sd, posterior.dim)
    proposals = np.stack([moves.random_walk(theta, proposal_sd, rng) for theta in states])
    ratios = BatchRatios(posterior, params.batch_size)
    bounds = [ratios.barker_bound(_event(params, posterior.num_rows))] * len(states)
    return {"ratio_clipped": ratio_share(posterior, states, proposals, bounds)}


def tuned(scale: Scale) -> dict[str, Any]:
    """Steps whose row ratios fit below the clip bound.

    Row ratios are clipped at sqrt(b) / n. Of a variance of 2 the batch may have 1, and at least 1
    is noise: an iteration costs 4 b / n^2 of mu^2. Few row ratios exceed 2 / sqrt(d) times clip
    bound and length of the move.
    """
    dim, rows = len(scale.centre), scale.num_rows
    ratio = scale.row_gradient * float(np.linalg.norm(scale.deviations))
    ratio *= scale.tempering * min(1.0, 2 / math.sqrt(dim))
    # The share of the rows that a step of 1 would take.
    share = max(scale.tempering * dim / BATCH_VARIANCE, rows * ratio**2)
    affordable = scale.mu**2 * rows / (4 * share * scale.num_chains * ITERATIONS)
    longest = LONGEST_STEP / math.sqrt(dim)
    step = min(longest, math.sqrt(min(affordable, LARGEST_BATCH / share)))
    return {
        "proposal_sd": (step * scale.deviations).tolist(),
        "batch_size": scale.batch(step**2 * share),
    }


def cheapest(num_rows: int) -> dict[str, Any]:
    """Batch at which an iteration costs least: its noise is bounded by the batch alone."""
    return {"batch_size": math.ceil(SMALLEST_BATCH * num_rows)}
