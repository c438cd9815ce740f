"""Hamiltonian Monte Carlo without privacy, with or without clipping.

The clipping experiments of [raisa2021dphmc, section 4.2; raisa2021thesis, section 6.2] run
it with clipped ratios and a large gradient clip bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy.typing as npt

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
    """Settings of Hamiltonian Monte Carlo.

    Parameters
    ----------
    step_size : float
        Step size eta; the largest one where it is jittered.
    num_leapfrog_steps : int
        Leapfrog steps L.
    ratio_clip_bound : float, optional
        Row ratios are clipped to this times the length of the move; none by default.
    gradient_clip_bound : float, optional
        Row gradients are clipped to this norm; none by default.
    mass : float, sequence or nested sequence of float
        Mass matrix M: a number, a diagonal or a matrix.
    jitter : {"halton", "none"}
        How the step size varies between iterations.
    move_length : {"euclidean", "component_sum"}
        What the length of a move is: its norm, or, as in the public code of the clipping
        study of [raisa2021thesis], the absolute value of the sum of its components.
    """

    step_size: float
    num_leapfrog_steps: int
    ratio_clip_bound: float | None = None
    gradient_clip_bound: float | None = None
    mass: Any = 1.0
    jitter: str = "none"
    move_length: str = "euclidean"

    def __post_init__(self) -> None:
        checks.positive("step_size", self.step_size)
        checks.at_least("num_leapfrog_steps", self.num_leapfrog_steps, 1)
        checks.positive("ratio_clip_bound", self.ratio_clip_bound, optional=True)
        checks.positive("gradient_clip_bound", self.gradient_clip_bound, optional=True)
        checks.one_of("jitter", self.jitter, ("halton", "none"))
        checks.one_of("move_length", self.move_length, tuple(moves.LENGTHS))


EXAMPLE = Params(step_size=0.01, num_leapfrog_steps=3)


class HMCState(NamedTuple):
    """Position, its log-prior and gradient, and the step sizes still to come."""

    theta: Array
    log_prior: float
    gradient: Array
    step_sizes: npt.NDArray[Any]
    iteration: int


def releases(params: Params, num_rows: int) -> None:
    """No release: nothing that this method computes is private."""
    return


def sampler(posterior: Posterior, params: Params) -> Sampler:
    """Sampler of `posterior`."""
    mass = moves.Mass(params.mass, posterior.dim)
    gradient_sum, ratio_sum = posterior.sums.gradient, posterior.sums.ratio
    tempering = posterior.tempering
    gradient_bound = params.gradient_clip_bound or math.inf
    length = moves.LENGTHS[params.move_length]
    clipped_rows = 0

    def gradient(theta: Array) -> Array:
        nonlocal clipped_rows
        total, clipped = gradient_sum(theta, gradient_bound)
        clipped_rows += clipped
        tempered: Array = tempering * total + posterior.log_prior_gradient(theta)
        return tempered

    def init(theta: Array, num_iterations: int, ledger: Ledger, streams: Streams) -> HMCState:
        sizes = moves.step_sizes(params.step_size, params.jitter, num_iterations, streams.chain)
        return HMCState(theta, posterior.log_prior(theta), gradient(theta), sizes, 0)

    def step(state: HMCState, ledger: Ledger, streams: Streams) -> tuple[HMCState, Info]:
        nonlocal clipped_rows
        clipped_rows = 0
        rejected = state._replace(iteration=state.iteration + 1)
        momentum = mass.momentum(streams.chain)
        end = moves.leapfrog(
            state.theta,
            momentum,
            state.gradient,
            gradient,
            state.step_sizes[state.iteration],
            params.num_leapfrog_steps,
            mass,
        )
        if not end.finite:
            return rejected, Info(False, 0, True, clipped_rows)
        bound = math.inf
        if params.ratio_clip_bound is not None:
            bound = params.ratio_clip_bound * length(end.theta, state.theta)
        ratio, clipped = ratio_sum(state.theta, end.theta, bound)
        log_prior = posterior.log_prior(end.theta)
        kinetic = mass.kinetic(momentum) - mass.kinetic(end.momentum)
        log_ratio = tempering * ratio + log_prior - state.log_prior + kinetic
        info = Info(moves.accept(log_ratio, streams.chain), clipped, False, clipped_rows)
        if not info.accepted:
            return rejected, info
        return rejected._replace(theta=end.theta, log_prior=log_prior, gradient=end.gradient), info

    return chain_sampler(Kernel(init, step, posterior.num_rows, params.num_leapfrog_steps))
