"""Lazy random walk: DP-penalty that moves half of the time, and pays for every iteration.

To copy to ``src/dpmc/mcmc/methods/<name>.py``, or into a package of your own, which offers it as an
entry point of the group ``dpmc.methods``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from dpmc import checks
from dpmc.mcmc import moves
from dpmc.mcmc.chains import Info, Kernel, Sampler
from dpmc.mcmc.chains import sampler as chain_sampler
from dpmc.mcmc.posterior import Posterior
from dpmc.privacy.events import Releases, gaussian
from dpmc.privacy.ledger import Ledger
from dpmc.rng import Streams
from dpmc.types import Array

# Passes over all rows; "rows" for batches of a few.
ROW_ORDER = "features"


@dataclass(frozen=True)
class Params:
    """Settings of the lazy walk.

    Parameters
    ----------
    step : float
        Standard deviation of the proposal.
    ratio_noise_multiplier : float
        Noise standard deviation over the sensitivity of the ratio sum.
    ratio_clip_bound : float
        Row ratios are clipped to this times the length of the move.
    """

    step: float
    ratio_noise_multiplier: float
    ratio_clip_bound: float

    def __post_init__(self) -> None:
        checks.positive("step", self.step)
        checks.positive("ratio_noise_multiplier", self.ratio_noise_multiplier)
        checks.positive("ratio_clip_bound", self.ratio_clip_bound)


# What the tests of all methods run it with.
EXAMPLE = Params(step=0.05, ratio_noise_multiplier=20.0, ratio_clip_bound=2.0)


class State(NamedTuple):
    """Position and its log-prior: what the next step needs."""

    theta: Array
    log_prior: float


def releases(params: Params, num_rows: int) -> Releases:
    """One Gaussian release per iteration, none before the first."""
    return Releases((), ((gaussian(params.ratio_noise_multiplier), 1),))


def sampler(posterior: Posterior, params: Params) -> Sampler:
    """Sampler of `posterior`."""

    def init(theta: Array, num_iterations: int, ledger: Ledger, streams: Streams) -> State:
        return State(theta, posterior.log_prior(theta))

    def step(state: State, ledger: Ledger, streams: Streams) -> tuple[State, Info]:
        move = params.step * streams.chain.standard_normal(posterior.dim)
        proposal = state.theta + move
        bound = params.ratio_clip_bound * math.dist(proposal, state.theta)
        ratio, clipped = posterior.sums.clipped_ratio(state.theta, proposal, bound)
        noisy = ledger.release(ratio, params.ratio_noise_multiplier, streams.noise)
        noise_std = posterior.tempering * ratio.sensitivity * params.ratio_noise_multiplier
        log_prior = posterior.log_prior(proposal)
        log_ratio = posterior.tempering * noisy + log_prior - state.log_prior
        accepted = moves.accept(log_ratio - moves.penalty(noise_std), streams.chain)
        if accepted and streams.chain.random() < 0.5:
            return State(proposal, log_prior), Info(True, clipped)
        return state, Info(False, clipped)

    return chain_sampler(Kernel(init, step, posterior.num_rows))
