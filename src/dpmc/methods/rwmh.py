"""Random-walk Metropolis-Hastings without privacy, with or without clipped ratios.

The clipping experiment of [raisa2021dphmc, section 4.2] runs it to isolate what
clipping alone does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dpmc import checks, moves
from dpmc.chains import Info, Kernel, Sampler
from dpmc.chains import sampler as chain_sampler
from dpmc.posterior import Posterior
from dpmc.privacy.mechanisms import Ledger
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
    clip_bound : float, optional
        Row ratios are clipped to this times the length of the move; none by default.
    """

    proposal_sd: float | Sequence[float]
    clip_bound: float | None = None

    def __post_init__(self) -> None:
        checks.positive_scales("proposal_sd", self.proposal_sd)
        checks.positive("clip_bound", self.clip_bound, optional=True)


class State(NamedTuple):
    """Position and its log-prior."""

    theta: Array
    log_prior: float


def releases(params: Params, num_rows: int) -> None:
    """Return ``None``: nothing that this method computes is private."""
    return


def sampler(posterior: Posterior, params: Params) -> Sampler:
    """Return the sampler of `posterior`."""
    proposal_sd = checks.scales("proposal_sd", params.proposal_sd, posterior.dim)
    sums, tempering = posterior.sums, posterior.tempering

    def init(theta: Array, num_iterations: int, ledger: Ledger, streams: Streams) -> State:
        return State(theta, posterior.log_prior(theta))

    def step(state: State, ledger: Ledger, streams: Streams) -> tuple[State, Info]:
        proposal = moves.random_walk(state.theta, proposal_sd, streams.chain)
        distance = math.dist(proposal, state.theta)
        bound = math.inf if params.clip_bound is None else params.clip_bound * distance
        ratio, clipped = sums.ratio(state.theta, proposal, bound)
        log_prior = posterior.log_prior(proposal)
        log_ratio = tempering * ratio + log_prior - state.log_prior
        if moves.accept(log_ratio, streams.chain):
            return State(proposal, log_prior), Info(True, clipped)
        return state, Info(False, clipped)

    return chain_sampler(Kernel(init, step, posterior.num_rows))
