"""DP-HMC: leapfrog proposals from noisy clipped gradients, accepted by the penalty method.

[raisa2021dphmc, Algorithm 1; raisa2021thesis, Algorithm 4]. The kernel, and the two ways of
counting its gradients, are in :mod:`dpmc.mcmc.noisy_hmc`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpmc import checks
from dpmc.mcmc import moves, noisy_hmc
from dpmc.mcmc.chains import Sampler
from dpmc.mcmc.posterior import Posterior
from dpmc.mcmc.scale import Scale
from dpmc.privacy.events import Releases
from dpmc.types import Array

ROW_ORDER = "features"
# Leapfrog steps of a trajectory where they are left out.
STEPS = 5


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
    store : {"states", "points"}
        Store the state after each iteration, or every one of the L + 1 points of its
        trajectory, start first, for a picture of the paths; such draws are no sample.
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
    store: str = "states"

    def __post_init__(self) -> None:
        noisy_hmc.check(self)
        checks.at_least("num_leapfrog_steps", self.num_leapfrog_steps, 1)
        checks.one_of("store", self.store, ("states", "points"))


EXAMPLE = Params(
    step_size=0.1,
    num_leapfrog_steps=3,
    ratio_noise_multiplier=50.0,
    gradient_noise_multiplier=50.0,
    gradient_clip_bound=3.0,
    ratio_clip_bound=3.0,
)


def releases(params: Params, num_rows: int) -> Releases:
    """Gaussian releases: a ratio and L + 1 or L gradients per iteration."""
    return noisy_hmc.releases(params, params.num_leapfrog_steps)


def sampler(posterior: Posterior, params: Params) -> Sampler:
    """Sampler of `posterior`."""
    steps = params.num_leapfrog_steps

    def trajectory(
        theta: Array,
        momentum: Array,
        gradient: Array,
        log_density_gradient: noisy_hmc.Gradient,
        step_size: float,
        mass: moves.Mass,
    ) -> moves.Trajectory:
        return moves.leapfrog(
            theta, momentum, gradient, log_density_gradient, step_size, steps, mass
        )

    return noisy_hmc.sampler(posterior, params, trajectory, steps, params.store == "points")


def tuned(scale: Scale) -> dict[str, Any]:
    """Parameters of trajectories of a few steps."""
    return {"num_leapfrog_steps": STEPS, **noisy_hmc.tuned(scale, STEPS)}
