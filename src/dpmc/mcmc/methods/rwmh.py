"""Random-walk Metropolis-Hastings without privacy, with or without clipped ratios.

The clipping experiments of [raisa2021dphmc, section 4.2; raisa2021thesis, section 6.2] run
it to isolate what clipping alone does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dpmc import checks
from dpmc.mcmc import moves
from dpmc.mcmc.chains import Info, Kernel, Sampler
from dpmc.mcmc.chains import sampler as chain_sampler
from dpmc.mcmc.posterior import Posterior
from dpmc.privacy.ledger import Ledger
from dpmc.rng import Streams
from dpmc.types import Array

ROW_ORDER = "features"


@dataclass(frozen=True)
class Params:
    """Settings of random-walk Metropolis-Hastings.

    Parameters
    ----------
    proposal_sd : float or sequence of float of length d
        Standard deviation of the proposal.
    ratio_clip_bound : float, optional
        Row ratios are clipped to this times the length of the move; none by default.
    move_length : {"euclidean", "component_sum"}
        What the length of a move is: its norm, or, as in the public code of the clipping
        study of [raisa2021thesis], the absolute value of the sum of its components.
    """

    proposal_sd: float | Sequence[float]
    ratio_clip_bound: float | None = field(default=None, metadata={"key": "clip_bound"})
    move_length: str = "euclidean"

    def __post_init__(self) -> None:
        checks.positive_scales("proposal_sd", self.proposal_sd)
        checks.positive("ratio_clip_bound", self.ratio_clip_bound, optional=True)
        checks.one_of("move_length", self.move_length, tuple(moves.LENGTHS))


EXAMPLE = Params(proposal_sd=0.05)


class WalkState(NamedTuple):
    """Position and its log-prior."""

    theta: Array
    log_prior: float


def releases(params: Params, num_rows: int) -> None:
    """No release: nothing that this method computes is private."""
    return


def sampler(posterior: Posterior, params: Params) -> Sampler:
    """Sampler of `posterior`."""
    proposal_sd = checks.scales("proposal_sd", params.proposal_sd, posterior.dim)
    ratio_sum, tempering = posterior.sums.ratio, posterior.tempering
    length = moves.LENGTHS[params.move_length]

    def init(theta: Array, num_iterations: int, ledger: Ledger, streams: Streams) -> WalkState:
        return WalkState(theta, posterior.log_prior(theta))

    def step(state: WalkState, ledger: Ledger, streams: Streams) -> tuple[WalkState, Info]:
        proposal = moves.random_walk(state.theta, proposal_sd, streams.chain)
        bound = math.inf
        if params.ratio_clip_bound is not None:
            bound = params.ratio_clip_bound * length(proposal, state.theta)
        ratio, clipped = ratio_sum(state.theta, proposal, bound)
        log_prior = posterior.log_prior(proposal)
        log_ratio = tempering * ratio + log_prior - state.log_prior
        if moves.accept(log_ratio, streams.chain):
            return WalkState(proposal, log_prior), Info(True, clipped)
        return state, Info(False, clipped)

    return chain_sampler(Kernel(init, step, posterior.num_rows))
