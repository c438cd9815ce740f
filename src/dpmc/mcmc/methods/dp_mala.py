"""DP-MALA: a Langevin proposal with a noisy clipped gradient, accepted by the penalty method.

DP-HMC with one leapfrog step [raisa2021dphmc, Algorithm 1; raisa2021thesis, Algorithm 4]:

    theta' = theta + (eta^2 / 2) M^-1 G + eta M^-1 p,    p ~ N(0, M),
    p' = p + (eta / 2) (G + G'),

with noisy gradients G at theta and G' at theta', and the kinetic energies of p and p' in
the acceptance.

The Metropolis-adjusted Langevin algorithm usually weighs a proposal by its density
q(theta' | theta), with the drift at theta worked out for the purpose. With noise in the
drift that is wrong. The density of theta' is then a mixture over the noise, which q with
the true gradient is not, nor q with the gradient of another release; and the ratio of the
mixtures would need the true gradients, which are private. What is right is to let G be
part of the state: the move back starts from G' and ends with G, its density is
q(theta | theta'; G'), and the ratio of q(theta | theta'; G') to q(theta' | theta; G) is
the difference of the kinetic energies of p and p'. So p' has to be carried, from the very
G that made the proposal and the very G' that the next proposal would start from.

With the gradient reused, k iterations release k + 1 gradients instead of 2 k, the largest
saving among all numbers of leapfrog steps; a rejection keeps G.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpmc.mcmc import moves, noisy_hmc
from dpmc.mcmc.chains import Sampler
from dpmc.mcmc.posterior import Posterior
from dpmc.mcmc.scale import Scale
from dpmc.privacy.events import Releases

ROW_ORDER = "features"


@dataclass(frozen=True)
class Params:
    """Settings of DP-MALA.

    Parameters
    ----------
    step_size : float
        Step size eta; the largest one where it is jittered.
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
    ratio_noise_multiplier: float
    gradient_noise_multiplier: float
    gradient_clip_bound: float
    ratio_clip_bound: float | None = None
    mass: Any = 1.0
    jitter: str = "none"
    reuse_gradient: bool = True

    def __post_init__(self) -> None:
        noisy_hmc.check(self)


EXAMPLE = Params(
    step_size=0.1,
    ratio_noise_multiplier=50.0,
    gradient_noise_multiplier=50.0,
    gradient_clip_bound=3.0,
    ratio_clip_bound=3.0,
)


def releases(params: Params, num_rows: int) -> Releases:
    """Gaussian releases: a ratio and one or two gradients per iteration."""
    return noisy_hmc.releases(params, 1)


def sampler(posterior: Posterior, params: Params) -> Sampler:
    """Sampler of `posterior`."""
    return noisy_hmc.sampler(posterior, params, moves.langevin, 1)


def tuned(scale: Scale) -> dict[str, Any]:
    """Parameters of DP-HMC with one step."""
    return noisy_hmc.tuned(scale, 1)
