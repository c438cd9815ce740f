"""The kernel of DP-HMC and DP-MALA: noisy clipped gradients propose, a noisy ratio decides.

[raisa2021dphmc, Algorithm 1 and Theorems 3.3 and 3.5]. Two countings of the gradients:

- fresh: every iteration releases a new gradient at its start, so k iterations of L steps
  release k (L + 1) of them [raisa2021dphmc];
- reused: an iteration starts from the noisy gradient that the last one ended with, k L + 1
  releases [raisa2021thesis, Algorithm 4]. The pair of position and noisy gradient is
  then the state of the chain, and the target is left invariant provided that a
  rejection keeps the old gradient together with the old position: the path of noisy
  gradients read backwards has the same probability, so the acceptance is unchanged.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from dpmc import checks
from dpmc.mcmc import moves
from dpmc.mcmc.chains import Info, Kernel, Sampler
from dpmc.mcmc.chains import sampler as chain_sampler
from dpmc.mcmc.posterior import Posterior
from dpmc.mcmc.scale import Scale
from dpmc.privacy.events import Releases, gaussian
from dpmc.privacy.ledger import Ledger
from dpmc.rng import Streams
from dpmc.rows import clipping
from dpmc.types import Array

Gradient = Callable[[Array], Array]
# Iterations of a chain that steps are made small for where they are left out.
TRAJECTORIES = 200
# Longest leapfrog step then, in posterior standard deviations.
LONGEST_LEAPFROG = 0.3
# Standard deviation that gradient noise gives the energy along a trajectory then.
ENERGY_NOISE = 1.0


class HMCSettings(Protocol):
    """Settings of both methods."""

    @property
    def step_size(self) -> float:
        """Step size eta; the largest one where it is jittered."""

    @property
    def ratio_noise_multiplier(self) -> float:
        """Noise standard deviation over the sensitivity of the ratio sum."""

    @property
    def gradient_noise_multiplier(self) -> float:
        """Noise standard deviation over the sensitivity of the gradient sum."""

    @property
    def gradient_clip_bound(self) -> float:
        """Row gradients are clipped to this norm."""

    @property
    def ratio_clip_bound(self) -> float | None:
        """Row ratios are clipped to this times the length of the move."""

    @property
    def mass(self) -> Any:
        """Mass matrix M."""

    @property
    def jitter(self) -> str:
        """Variation of the step size between iterations."""

    @property
    def reuse_gradient(self) -> bool:
        """Whether to start from the last noisy gradient instead of a fresh one."""


class Integrator(Protocol):
    """Moves a point and its momentum, asking for the gradient at each new point."""

    def __call__(
        self,
        theta: Array,
        momentum: Array,
        gradient: Array,
        log_density_gradient: Gradient,
        step_size: float,
        mass: moves.Mass,
    ) -> moves.Trajectory:
        """End of the trajectory."""
        ...


class NoisyHMCState(NamedTuple):
    """Position, its log-prior and noisy gradient, and the step sizes still to come.

    The points of the last trajectory are there only where they are to be stored.
    """

    theta: Array
    log_prior: float
    gradient: Array | None
    step_sizes: npt.NDArray[Any]
    iteration: int
    points: Array | None = None


def check(params: HMCSettings) -> None:
    """Refuse settings, among those that both methods have, that are out of range."""
    checks.positive("step_size", params.step_size)
    checks.positive("ratio_noise_multiplier", params.ratio_noise_multiplier)
    checks.positive("gradient_noise_multiplier", params.gradient_noise_multiplier)
    checks.positive("gradient_clip_bound", params.gradient_clip_bound)
    clipping.check_bound("gradient_clip_bound", params.gradient_clip_bound)
    checks.positive("ratio_clip_bound", params.ratio_clip_bound, optional=True)
    checks.one_of("jitter", params.jitter, ("halton", "none"))
    checks.one_of("reuse_gradient", params.reuse_gradient, (False, True))


def releases(params: HMCSettings, num_steps: int) -> Releases:
    """Gaussian releases: a ratio and L + 1 or L gradients per iteration.

    [raisa2021dphmc, Theorem 3.5; raisa2021thesis, Theorem 11].
    """
    ratio = gaussian(params.ratio_noise_multiplier)
    gradient = gaussian(params.gradient_noise_multiplier)
    if params.reuse_gradient:
        return Releases(((gradient, 1),), ((ratio, 1), (gradient, num_steps)))
    return Releases((), ((ratio, 1), (gradient, num_steps + 1)))


def sampler(
    posterior: Posterior,
    params: HMCSettings,
    trajectory: Integrator,
    num_steps: int,
    store_points: bool = False,
) -> Sampler:
    """Sampler of `posterior`.

    Parameters
    ----------
    posterior : Posterior
        The model on its rows.
    params : HMCSettings
        Step size, clip bounds, noise, mass and jitter.
    trajectory : callable
        Makes the proposal with `num_steps` gradients in addition to the one at its start.
    num_steps : int
        Leapfrog steps L.
    store_points : bool
        Store every one of the L + 1 points of each trajectory, start first, in place of
        the state after each iteration. A trajectory that diverges stays at its last point.
    """
    mass = moves.Mass(params.mass, posterior.dim)
    ratio_bound = posterior.clip_bound(params.ratio_clip_bound)
    gradient_bound = params.gradient_clip_bound
    gradient_sum, ratio_sum = posterior.sums.clipped_gradient, posterior.sums.clipped_ratio
    tempering = posterior.tempering
    clipped_rows = 0

    def gradient(theta: Array, ledger: Ledger, streams: Streams) -> Array:
        nonlocal clipped_rows
        total, clipped = gradient_sum(theta, gradient_bound)
        clipped_rows += clipped
        noisy = ledger.release(total, params.gradient_noise_multiplier, streams.noise)
        tempered: Array = tempering * noisy + posterior.log_prior_gradient(theta)
        return tempered

    def init(theta: Array, num_iterations: int, ledger: Ledger, streams: Streams) -> NoisyHMCState:
        sizes = moves.step_sizes(params.step_size, params.jitter, num_iterations, streams.chain)
        first = gradient(theta, ledger, streams) if params.reuse_gradient else None
        return NoisyHMCState(theta, posterior.log_prior(theta), first, sizes, 0)

    def step(state: NoisyHMCState, ledger: Ledger, streams: Streams) -> tuple[NoisyHMCState, Info]:
        nonlocal clipped_rows
        clipped_rows = 0
        points = [state.theta]

        def visit(theta: Array) -> Array:
            points.append(theta)
            return gradient(theta, ledger, streams)

        first = state.gradient
        if first is None:
            first = gradient(state.theta, ledger, streams)
        momentum = mass.momentum(streams.chain)
        size = state.step_sizes[state.iteration]
        end = trajectory(state.theta, momentum, first, visit, size, mass)
        # A rejection keeps the gradient of the kept position: see the module docstring.
        rejected = state._replace(iteration=state.iteration + 1)
        if store_points:
            path = points + points[-1:] * (num_steps + 1 - len(points))
            rejected = rejected._replace(points=np.stack(path))
        if not end.finite:
            return rejected, Info(False, 0, True, clipped_rows)
        bound = ratio_bound * math.dist(end.theta, state.theta)
        ratio, clipped = ratio_sum(state.theta, end.theta, bound)
        noisy = ledger.release(ratio, params.ratio_noise_multiplier, streams.noise)
        noise_std = tempering * ratio.sensitivity * params.ratio_noise_multiplier
        log_prior = posterior.log_prior(end.theta)
        kinetic = mass.kinetic(momentum) - mass.kinetic(end.momentum)
        log_ratio = tempering * noisy + log_prior - state.log_prior + kinetic
        accepted = moves.accept(log_ratio - moves.penalty(noise_std), streams.chain)
        info = Info(accepted, clipped, False, clipped_rows)
        if not accepted:
            return rejected, info
        last = end.gradient if params.reuse_gradient else None
        return rejected._replace(theta=end.theta, log_prior=log_prior, gradient=last), info

    num_gradients = num_steps + (0 if params.reuse_gradient else 1)
    num_points = num_steps + 1 if store_points else 1
    return chain_sampler(Kernel(init, step, posterior.num_rows, num_gradients, num_points))


def tuned(scale: Scale, num_steps: int) -> dict[str, Any]:
    """Parameters whose mass is the precision of the posterior, so that all scales are alike.

    Both multipliers are inverse to the step size, and the iterations to its square: it is as small
    as the budget asks for.
    """
    spread = float(np.linalg.norm(scale.deviations))
    # At a step size of 1: of a decision, and of gradients whose kicks move the energy by as much.
    ratio = scale.decision_multiplier(num_steps * spread)
    gradient = ENERGY_NOISE / math.sqrt(num_steps)
    gradient /= 2 * scale.row_gradient * spread * scale.tempering
    cost = (1 / ratio**2 + (num_steps + 1) / gradient**2) * scale.num_chains
    step = min(LONGEST_LEAPFROG, scale.mu / math.sqrt(cost * TRAJECTORIES))
    return {
        "step_size": step,
        "ratio_noise_multiplier": ratio / step,
        "gradient_noise_multiplier": gradient / step,
        "gradient_clip_bound": scale.row_gradient,
        "ratio_clip_bound": scale.row_gradient,
        "mass": np.linalg.inv(scale.covariance).tolist(),
    }
