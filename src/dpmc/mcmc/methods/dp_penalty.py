"""DP-penalty: Metropolis-Hastings on a noisy log-likelihood ratio.

Each iteration releases one clipped sum of row ratios with Gaussian noise and corrects
the acceptance for that noise [Yildirim and Ermis 2019; raisa2021dphmc, section 3;
raisa2021thesis, section 3.1]. It is exact where no ratio is clipped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dpmc import checks
from dpmc.mcmc import moves
from dpmc.mcmc.chains import Info, Kernel, Sampler
from dpmc.mcmc.chains import sampler as chain_sampler
from dpmc.mcmc.posterior import Posterior
from dpmc.mcmc.scale import Scale
from dpmc.privacy.events import Releases, gaussian
from dpmc.privacy.ledger import Ledger
from dpmc.rng import Streams
from dpmc.types import Array

ROW_ORDER = "features"


@dataclass(frozen=True)
class Params:
    """Settings of DP-penalty.

    Parameters
    ----------
    proposal_sd : float or sequence of float of length d
        Standard deviation of the proposal.
    ratio_noise_multiplier : float
        Noise standard deviation over the sensitivity of the ratio sum.
    ratio_clip_bound : float, optional
        Row ratios are clipped to this times the length of the move; by default the
        Lipschitz constant of the model, which clips nothing.
    one_component : bool
        Move one component, drawn uniformly, at a time.
    guided : bool
        Guided walk: keep the direction of a component until a rejection.
    """

    proposal_sd: float | Sequence[float]
    ratio_noise_multiplier: float = field(metadata={"key": "noise_multiplier"})
    ratio_clip_bound: float | None = field(default=None, metadata={"key": "clip_bound"})
    one_component: bool = False
    guided: bool = False

    def __post_init__(self) -> None:
        checks.positive_scales("proposal_sd", self.proposal_sd)
        checks.positive("ratio_noise_multiplier", self.ratio_noise_multiplier)
        checks.positive("ratio_clip_bound", self.ratio_clip_bound, optional=True)
        checks.one_of("one_component", self.one_component, (False, True))
        checks.one_of("guided", self.guided, (False, True))


EXAMPLE = Params(proposal_sd=0.05, ratio_noise_multiplier=20.0, ratio_clip_bound=2.0)


class PenaltyState(NamedTuple):
    """Position, its log-prior, and the directions of the guided walk."""

    theta: Array
    log_prior: float
    direction: Array


def releases(params: Params, num_rows: int) -> Releases:
    """One Gaussian release per iteration [raisa2021thesis, Theorems 5 and 6]."""
    return Releases((), ((gaussian(params.ratio_noise_multiplier), 1),))


def sampler(posterior: Posterior, params: Params) -> Sampler:
    """Sampler of `posterior`."""
    proposal_sd = checks.scales("proposal_sd", params.proposal_sd, posterior.dim)
    walk = moves.Walk(proposal_sd, params.one_component, params.guided)
    clip_bound = posterior.clip_bound(params.ratio_clip_bound)
    ratio_sum, tempering = posterior.sums.clipped_ratio, posterior.tempering
    noise_multiplier = params.ratio_noise_multiplier

    def init(theta: Array, num_iterations: int, ledger: Ledger, streams: Streams) -> PenaltyState:
        return PenaltyState(theta, posterior.log_prior(theta), walk.direction(streams.chain))

    def step(state: PenaltyState, ledger: Ledger, streams: Streams) -> tuple[PenaltyState, Info]:
        proposal, flipped = walk.propose(state.theta, state.direction, streams.chain)
        bound = clip_bound * math.dist(proposal, state.theta)
        ratio, clipped = ratio_sum(state.theta, proposal, bound)
        noisy = ledger.release(ratio, noise_multiplier, streams.noise)
        noise_std = tempering * ratio.sensitivity * noise_multiplier
        log_prior = posterior.log_prior(proposal)
        log_ratio = tempering * noisy + log_prior - state.log_prior
        if moves.accept(log_ratio - moves.penalty(noise_std), streams.chain):
            return PenaltyState(proposal, log_prior, state.direction), Info(True, clipped)
        return PenaltyState(state.theta, state.log_prior, flipped), Info(False, clipped)

    return chain_sampler(Kernel(init, step, posterior.num_rows))


def tuned(scale: Scale) -> dict[str, Any]:
    """Small steps, each decision as noisy as pays best."""
    step, spread = scale.walk()
    return {
        "proposal_sd": (step * scale.deviations).tolist(),
        "ratio_noise_multiplier": scale.decision_multiplier(step * spread),
        "ratio_clip_bound": scale.row_gradient,
    }
