"""DP-SGLD: stochastic gradient Langevin dynamics whose noise gives privacy.

[Wang, Fienberg and Smola 2015; Li et al. 2019; compared in raisa2021dphmc, section 4.1].
There is no acceptance test, so the step size biases the result. The noise of a step of
length e has variance ``noise_scale * e``: Langevin dynamics for the posterior pi needs 2,
while the public code of [raisa2021dphmc] (DPBayes/DP-HMC-experiments at ff8b828) runs 1,
whose limit for small steps is pi squared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmc import checks
from dpmc.mcmc import stochastic_gradient
from dpmc.mcmc.chains import Sampler
from dpmc.mcmc.clip_shares import gradient_share
from dpmc.mcmc.posterior import Posterior
from dpmc.mcmc.scale import FEWEST, LARGEST_BATCH, Scale
from dpmc.numerics.compiled import njit
from dpmc.privacy.events import Releases
from dpmc.rows.batches import Batches
from dpmc.types import Array

ROW_ORDER = "rows"
# Step h in units of the smallest variance where it is left out: it widens the posterior by a share
# of h / 4.
DRIFT = 0.1


@dataclass(frozen=True)
class Params(stochastic_gradient.BatchParams):
    """Settings of DP-SGLD.

    Parameters
    ----------
    batch_size, gradient_clip_bound, step_size
        See :class:`dpmc.mcmc.stochastic_gradient.BatchParams`.
    noise_scale : float
        Variance of the noise of an update over e.
    max_stored : int
        Chains are thinned evenly to at most this many states.
    """

    noise_scale: float = 2.0
    max_stored: int = 5000

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.positive("noise_scale", self.noise_scale)
        checks.at_least("max_stored", self.max_stored, 1)


EXAMPLE = Params(batch_size=50, gradient_clip_bound=1.0, step_size=0.05)


def batches(params: Params, num_rows: int) -> Batches:
    """Settings of the updates."""
    return Batches(
        num_rows,
        params.batch_size,
        params.gradient_clip_bound,
        params.step_size,
        params.noise_scale,
        params.max_stored,
    )


def releases(params: Params, num_rows: int) -> Releases:
    """One Gaussian release of a sampled batch per iteration."""
    return batches(params, num_rows).releases()


@njit
def update(state: Any, prior_gradient: Any, drift: Any, step: float) -> None:
    """Move theta by a step."""
    for k in range(state.size):
        state[k] += step * prior_gradient[k] + drift[k]


def sampler(posterior: Posterior, params: Params) -> Sampler:
    """Sampler of `posterior`."""
    update_rule = batches(params, posterior.num_rows)

    def init(theta: Array, rng: np.random.Generator) -> Array:
        return theta

    return stochastic_gradient.sampler(posterior, update_rule, init, update)


def clip_shares(
    posterior: Posterior, params: Params, states: Array, rng: np.random.Generator
) -> dict[str, float]:
    """Share of all rows whose gradient is clipped at released states."""
    return {"gradient_clipped": gradient_share(posterior, states, params.gradient_clip_bound)}


def tuned(scale: Scale) -> dict[str, Any]:
    """Steps whose only noise is the privacy noise."""
    step = min(DRIFT * scale.smallest**2, scale.diffusion / FEWEST)
    return {
        "batch_size": scale.batch(LARGEST_BATCH),
        "gradient_clip_bound": scale.row_gradient,
        "step_size": step * scale.num_rows,
    }
