"""DP-HMC: leapfrog proposals from noisy clipped gradients, accepted by the penalty method.

[raisa2021dphmc, Algorithm 1 and Theorems 3.3 and 3.5]. Two countings of the gradients:

- fresh: every iteration releases a new gradient at its start, so k iterations release
  k (L + 1) of them [raisa2021dphmc];
- reused: an iteration starts from the noisy gradient that the last one ended with, k L + 1
  releases [raisa2021thesis, Algorithm 4]. The pair of position and noisy gradient is
  then the state of the chain, and the target is left invariant provided that a
  rejection keeps the old gradient together with the old position: the path of noisy
  gradients read backwards has the same probability, so the acceptance is unchanged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy.typing as npt

from dpmc import checks, moves
from dpmc.chains import Info, Kernel, Sampler
from dpmc.chains import sampler as chain_sampler
from dpmc.posterior import Posterior
from dpmc.privacy.events import Releases, gaussian
from dpmc.privacy.mechanisms import Ledger
from dpmc.rng import Streams
from dpmc.types import Array

ROW_ORDER = "features"


@dataclass(frozen=True)
class Params:
    """Settings of DP-HMC.

    Parameters
    ----------
    step_size : float
        Step size eta; the largest one where it is jittered.
    num_leapfrog_steps : int
        Leapfrog steps L.
    ratio_noise_multiplier, gradient_noise_multiplier : float
        Noise standard deviation over the sensitivity of the ratio sum and of the
        gradient sum.
    gradient_clip_bound : float
        Row gradients are clipped to this norm.
    ratio_clip_bound : float, optional
        Row ratios are clipped to this times the length of the move; by default the
        Lipschitz constant of the model, which clips nothing.
    mass : float, sequence or nested sequence of float
        Mass matrix M: a number, a diagonal or a matrix.
    jitter : {"halton", "none"}
        How the step size varies between iterations.
    reuse_gradient : bool
        Start from the last noisy gradient instead of a fresh one.
    """

    step_size: float
    num_leapfrog_steps: int
    ratio_noise_multiplier: float
    gradient_noise_multiplier: float
    gradient_clip_bound: float
    ratio_clip_bound: float | None = None
    mass: Any = 1.0
    jitter: str = "halton"
    reuse_gradient: bool = False

    def __post_init__(self) -> None:
        checks.positive("step_size", self.step_size)
        checks.at_least("num_leapfrog_steps", self.num_leapfrog_steps, 1)
        checks.positive("ratio_noise_multiplier", self.ratio_noise_multiplier)
        checks.positive("gradient_noise_multiplier", self.gradient_noise_multiplier)
        checks.positive("gradient_clip_bound", self.gradient_clip_bound)
        checks.positive("ratio_clip_bound", self.ratio_clip_bound, optional=True)
        checks.one_of("jitter", self.jitter, ("halton", "none"))
        checks.one_of("reuse_gradient", self.reuse_gradient, (False, True))


class State(NamedTuple):
    """Position, its log-prior and noisy gradient, and the step sizes still to come."""

    theta: Array
    log_prior: float
    gradient: Array | None
    step_sizes: npt.NDArray[Any]
    iteration: int


def releases(params: Params, num_rows: int) -> Releases:
    """Return the Gaussian releases: a ratio and L + 1 or L gradients per iteration.

    [raisa2021dphmc, Theorem 3.5; raisa2021thesis, Theorem 11].
    """
    ratio = gaussian(params.ratio_noise_multiplier)
    gradient = gaussian(params.gradient_noise_multiplier)
    steps = params.num_leapfrog_steps
    if params.reuse_gradient:
        return Releases(((gradient, 1),), ((ratio, 1), (gradient, steps)))
    return Releases((), ((ratio, 1), (gradient, steps + 1)))


def sampler(posterior: Posterior, params: Params) -> Sampler:
    """Return the sampler of `posterior`.

    Raises
    ------
    DpmcError
        If the mass is not positive or does not fit the dimension, or there is no clip
        bound for the ratios.
    """
    mass = moves.Mass(params.mass, posterior.dim)
    ratio_bound = posterior.clip_bound(params.ratio_clip_bound)
    gradient_bound = params.gradient_clip_bound
    sums, tempering = posterior.sums, posterior.tempering
    clipped_rows = 0

    def gradient(theta: Array, ledger: Ledger, streams: Streams) -> Array:
        nonlocal clipped_rows
        total, clipped = sums.gradient(theta, gradient_bound)
        clipped_rows += clipped
        noisy = ledger.release(
            total, 2 * gradient_bound, params.gradient_noise_multiplier, streams.noise
        )
        tempered: Array = tempering * noisy + posterior.log_prior_gradient(theta)
        return tempered

    def init(theta: Array, num_iterations: int, ledger: Ledger, streams: Streams) -> State:
        sizes = moves.step_sizes(params.step_size, params.jitter, num_iterations, streams.chain)
        first = gradient(theta, ledger, streams) if params.reuse_gradient else None
        return State(theta, posterior.log_prior(theta), first, sizes, 0)

    def step(state: State, ledger: Ledger, streams: Streams) -> tuple[State, Info]:
        nonlocal clipped_rows
        clipped_rows = 0
        # A rejection keeps the gradient of the kept position: see the module docstring.
        rejected = state._replace(iteration=state.iteration + 1)
        first = state.gradient
        if first is None:
            first = gradient(state.theta, ledger, streams)
        momentum = mass.momentum(streams.chain)
        end = moves.leapfrog(
            state.theta,
            momentum,
            first,
            lambda theta: gradient(theta, ledger, streams),
            state.step_sizes[state.iteration],
            params.num_leapfrog_steps,
            mass,
        )
        if not end.finite:
            return rejected, Info(False, 0, True, clipped_rows)
        bound = ratio_bound * math.dist(end.theta, state.theta)
        ratio, clipped = sums.ratio(state.theta, end.theta, bound)
        noisy = ledger.release(ratio, 2 * bound, params.ratio_noise_multiplier, streams.noise)
        noise_std = tempering * 2 * bound * params.ratio_noise_multiplier
        log_prior = posterior.log_prior(end.theta)
        kinetic = mass.kinetic(momentum) - mass.kinetic(end.momentum)
        log_ratio = tempering * noisy + log_prior - state.log_prior + kinetic
        accepted = moves.accept(log_ratio - moves.penalty(noise_std), streams.chain)
        info = Info(accepted, clipped, False, clipped_rows)
        if not accepted:
            return rejected, info
        last = end.gradient if params.reuse_gradient else None
        return rejected._replace(theta=end.theta, log_prior=log_prior, gradient=last), info

    num_gradients = params.num_leapfrog_steps + (0 if params.reuse_gradient else 1)
    return chain_sampler(Kernel(init, step, posterior.num_rows, num_gradients))
