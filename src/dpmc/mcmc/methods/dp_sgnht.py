"""DP-SGNHT: the stochastic gradient Nose-Hoover thermostat whose noise gives privacy.

[Ding et al. 2014; Wang, Fienberg and Smola 2015; compared in raisa2021dphmc, section 4.1].
A friction that adapts itself absorbs noise of unknown strength in the gradient. There
is no acceptance test. As in the public code of [raisa2021dphmc]
(DPBayes/DP-HMC-experiments at ff8b828), a position moves by the momentum from before
the update.
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
# Step in units of the smallest standard deviation where it is left out.
SPIN = 0.05


@dataclass(frozen=True)
class Params(stochastic_gradient.BatchParams):
    """Settings of DP-SGNHT.

    Parameters
    ----------
    batch_size, gradient_clip_bound, step_size
        See :class:`dpmc.mcmc.stochastic_gradient.BatchParams`.
    friction : float
        Diffusion constant A: the noise of an update has variance 2 A e.
    max_stored : int
        Chains are thinned evenly to at most this many states.
    """

    friction: float
    max_stored: int = 5000

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.positive("friction", self.friction)
        checks.at_least("max_stored", self.max_stored, 1)


EXAMPLE = Params(batch_size=50, gradient_clip_bound=1.0, step_size=0.05, friction=1.0)


def batches(params: Params, num_rows: int) -> Batches:
    """Settings of the updates."""
    return Batches(
        num_rows,
        params.batch_size,
        params.gradient_clip_bound,
        params.step_size,
        2 * params.friction,
        params.max_stored,
    )


def releases(params: Params, num_rows: int) -> Releases:
    """One Gaussian release of a sampled batch per iteration."""
    return batches(params, num_rows).releases()


@njit
def update(state: Any, prior_gradient: Any, drift: Any, step: float) -> None:
    """Move theta (d), momentum (d) and thermostat, which are the state, by a step."""
    dim = state.size // 2
    friction = state[2 * dim]
    energy = 0.0
    for k in range(dim):
        momentum = state[dim + k]
        energy += momentum * momentum
        state[k] += step * momentum
        state[dim + k] = momentum - friction * step * momentum + step * prior_gradient[k] + drift[k]
    state[2 * dim] = friction + step * (energy / dim - 1.0)


def sampler(posterior: Posterior, params: Params) -> Sampler:
    """Sampler of `posterior`."""
    update_rule = batches(params, posterior.num_rows)

    def init(theta: Array, rng: np.random.Generator) -> Array:
        momentum = rng.standard_normal(theta.size)
        return np.concatenate([theta, momentum, [params.friction]])

    return stochastic_gradient.sampler(posterior, update_rule, init, update)


def clip_shares(
    posterior: Posterior, params: Params, states: Array, rng: np.random.Generator
) -> dict[str, float]:
    """Share of all rows whose gradient is clipped at released states."""
    return {"gradient_clipped": gradient_share(posterior, states, params.gradient_clip_bound)}


def tuned(scale: Scale) -> dict[str, Any]:
    """Critical damping in the widest direction.

    With friction A a step e costs 2 e c^2 / A of mu^2.
    """
    friction = max(2 / scale.largest, 2 * SPIN / scale.smallest)
    step = min(SPIN * scale.smallest, friction * scale.diffusion / FEWEST)
    return {
        "batch_size": scale.batch(LARGEST_BATCH),
        "gradient_clip_bound": scale.row_gradient,
        "step_size": step * scale.num_rows,
        "friction": friction,
    }
