"""Minibatch DP-penalty: the penalty method on a noisy ratio of a batch.

[raisa2021thesis, section 3.3 and Theorem 8]. Row ratios r of a batch of b rows are clipped
to c times the length of the move. With g = n T / b and the variance of the batch

    s_b^2 = g^2 (sum r^2 - (sum r)^2 / b),

the penalised ratio g sum r - s_b^2 / 2 is released with Gaussian noise of variance s^2, and
the acceptance corrected for that noise by another s^2 / 2.

The bound on how far one substituted row moves the penalised ratio, with D = g times the
clip bound, is 2 D + 2 (1 - 1/b) D^2: the row goes from one bound to the other while all
others are at the latter, and the two terms then add. [raisa2021thesis, Lemma 1] has 3 in
place of the second 2, which is valid but not attained.

The penalty with an estimated variance is approximate even for normally distributed batch
sums: the mean of exp(lambda - s_b^2 / 2) is too large by a factor of about
exp(s_b^4 / (4 b)), 1.03 for a variance of 10 and 2.8 for 65 with b = 1000; the odds of an
acceptance suffer less. The higher-order correction that statistics knows for it depends on
the rows and would change the sensitivity.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from dpmc import checks
from dpmc.mcmc import moves
from dpmc.mcmc.batch_ratios import BatchRatios, penalised_sensitivity
from dpmc.mcmc.chains import Info, Kernel, Sampler
from dpmc.mcmc.chains import sampler as chain_sampler
from dpmc.mcmc.clip_shares import ratio_share
from dpmc.mcmc.posterior import Posterior
from dpmc.mcmc.scale import BATCH_VARIANCE, DECISION, Scale
from dpmc.privacy.events import Releases, sampled_gaussian
from dpmc.privacy.ledger import Ledger
from dpmc.rng import Streams
from dpmc.types import Array

ROW_ORDER = "rows"


@dataclass(frozen=True)
class Params:
    """Settings of the minibatch penalty.

    Parameters
    ----------
    proposal_sd : float or sequence of float of length d
        Standard deviation of the proposal.
    batch_size : int
        Rows b of a batch, drawn without replacement at each iteration.
    ratio_noise_multiplier : float
        Noise standard deviation over the sensitivity of the penalised ratio: the square
        root of the tau of [raisa2021thesis, Theorem 8].
    ratio_clip_bound : float, optional
        Row ratios are clipped to this times the length of the move; by default the
        Lipschitz constant of the model, which clips nothing.
    variance_factor : {2, 3}
        Factor of the second term of the sensitivity: the exact 2, or the published 3.
    finite_population : bool
        Multiply the variance of the batch by (n - b) / (n - 1): it is drawn without
        replacement.
    one_component : bool
        Move one component, drawn uniformly, at a time.
    guided : bool
        Guided walk: keep the direction of a component until a rejection.
    """

    proposal_sd: float | Sequence[float]
    batch_size: int
    ratio_noise_multiplier: float = field(metadata={"key": "noise_multiplier"})
    ratio_clip_bound: float | None = field(default=None, metadata={"key": "clip_bound"})
    variance_factor: float = 2.0
    finite_population: bool = False
    one_component: bool = False
    guided: bool = False

    def __post_init__(self) -> None:
        checks.positive_scales("proposal_sd", self.proposal_sd)
        checks.at_least("batch_size", self.batch_size, 1)
        checks.positive("ratio_noise_multiplier", self.ratio_noise_multiplier)
        checks.positive("ratio_clip_bound", self.ratio_clip_bound, optional=True)
        checks.one_of("variance_factor", self.variance_factor, (2, 3))
        checks.one_of("finite_population", self.finite_population, (False, True))
        checks.one_of("one_component", self.one_component, (False, True))
        checks.one_of("guided", self.guided, (False, True))


EXAMPLE = Params(proposal_sd=0.1, batch_size=20, ratio_noise_multiplier=50.0, ratio_clip_bound=2.0)


class BatchState(NamedTuple):
    """Position, its log-prior, and the directions of the guided walk."""

    theta: Array
    log_prior: float
    direction: Array


def releases(params: Params, num_rows: int) -> Releases:
    """One Gaussian release of a sampled batch per iteration."""
    event = sampled_gaussian(params.ratio_noise_multiplier, params.batch_size, num_rows)
    return Releases((), ((event, 1),))


def population_factor(params: Params, num_rows: int) -> float:
    """Factor that the variance of a batch is multiplied by."""
    if not params.finite_population or num_rows == 1:
        return 1.0
    return (num_rows - params.batch_size) / (num_rows - 1)


def sampler(posterior: Posterior, params: Params) -> Sampler:
    """Sampler of `posterior`."""
    num_rows, noise_multiplier = posterior.num_rows, params.ratio_noise_multiplier
    ratios = BatchRatios(posterior, params.batch_size)
    proposal_sd = checks.scales("proposal_sd", params.proposal_sd, posterior.dim)
    walk = moves.Walk(proposal_sd, params.one_component, params.guided)
    clip_bound = posterior.clip_bound(params.ratio_clip_bound)
    variance_terms = params.variance_factor, population_factor(params, num_rows)
    sampled = (params.batch_size, num_rows)

    def init(theta: Array, num_iterations: int, ledger: Ledger, streams: Streams) -> BatchState:
        return BatchState(theta, posterior.log_prior(theta), walk.direction(streams.chain))

    def step(state: BatchState, ledger: Ledger, streams: Streams) -> tuple[BatchState, Info]:
        proposal, flipped = walk.propose(state.theta, state.direction, streams.chain)
        bound = clip_bound * math.dist(proposal, state.theta)
        penalised, clipped = ratios.penalised(
            state.theta, proposal, bound, *variance_terms, streams.batches
        )
        noisy = ledger.release(penalised, noise_multiplier, streams.noise, sampled)
        noise_std = penalised.sensitivity * noise_multiplier
        log_prior = posterior.log_prior(proposal)
        log_ratio = noisy + log_prior - state.log_prior
        if moves.accept(log_ratio - moves.penalty(noise_std), streams.chain):
            return BatchState(proposal, log_prior, state.direction), Info(True, clipped)
        return BatchState(state.theta, state.log_prior, flipped), Info(False, clipped)

    return chain_sampler(Kernel(init, step, params.batch_size))


def clip_shares(
    posterior: Posterior, params: Params, states: Array, rng: np.random.Generator
) -> dict[str, float]:
    """Share of all rows whose ratio is clipped, at fresh moves from released states."""
    proposal_sd = checks.scales("proposal_sd", params.proposal_sd, posterior.dim)
    walk = moves.Walk(proposal_sd, params.one_component, params.guided)
    clip_bound = posterior.clip_bound(params.ratio_clip_bound)
    proposals = [walk.propose(theta, walk.direction(rng), rng)[0] for theta in states]
    bounds = [clip_bound * math.dist(a, b) for a, b in zip(proposals, states, strict=True)]
    shares = ratio_share(posterior, states, np.stack(proposals), bounds)
    return {"ratio_clipped": shares}


def tuned(scale: Scale) -> dict[str, Any]:
    """Steps of DP-penalty, for as much of a budget.

    Of b of n rows the variance of the estimated ratio is n / b times the squared whitened length
    of the move; the batch is as large as keeps it small.
    """
    step, spread = scale.walk()
    length = scale.tempering * step**2 * len(scale.centre)
    batch = scale.batch(length / BATCH_VARIANCE)
    largest = scale.num_rows / batch * scale.tempering * scale.row_gradient * step * spread
    change = penalised_sensitivity(largest, batch)
    return {
        "proposal_sd": (step * scale.deviations).tolist(),
        "batch_size": batch,
        "ratio_noise_multiplier": DECISION / change,
        "ratio_clip_bound": scale.row_gradient,
        "finite_population": True,
    }
