"""Parameters that a user leaves out, chosen from what a search under the same budget released.

A share of the budget finds centre and shape of the posterior, as :mod:`dpmc.automatic` does; the
chains begin at the centre with steps on that scale, and have the rest. The search goes through a
ledger that is a filter, so that however it went, it costs no more than one Gaussian release of its
share: that release is in the plan of the chains, whose accountant adds up all of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any

import numpy as np

from dpmc.automatic.centre import Centre, locate
from dpmc.automatic.noise_aware import NoiseAware
from dpmc.automatic.prior import Prior, starting_point
from dpmc.automatic.purse import Purse
from dpmc.automatic.whitened import WhitenedRows
from dpmc.mcmc.fit import Search
from dpmc.privacy import events
from dpmc.privacy.budgets import GaussianBudget
from dpmc.privacy.ledger import Ledger, Noise
from dpmc.rng import Streams
from dpmc.rows import model_checks, row_functions
from dpmc.types import Array, Dataset, Model

# Of mu^2, for the search.
SHARE = 0.25
# Standard deviation of the noise in a decision, at which a walk of small steps is most efficient:
# an accepted share of 2 Phi(-s / 2), at 1 / s^2 of the budget a decision, has its largest product
# with s^2 at 2.38.
DECISION = 2.38
# Iterations of a chain that steps are made small for, and the longest step of a walk, in posterior
# standard deviations over sqrt(d).
ITERATIONS, LONGEST_STEP = 2000, 1.0
# Of Hamiltonian dynamics: the same, steps of a trajectory, and the standard deviation that gradient
# noise gives the energy along one.
TRAJECTORIES, LONGEST_LEAPFROG, LEAPFROG_STEPS, ENERGY_NOISE = 200, 0.3, 5, 1.0


@dataclass(frozen=True)
class Scale:
    """What chains are scaled by, all of it released or public.

    Parameters
    ----------
    centre : ndarray of shape (d,)
        Where they begin.
    covariance : ndarray of shape (d, d)
        Of the posterior without privacy noise.
    row_gradient : float
        Length that gradients of few rows exceed: the Lipschitz constant, or less.
    mu, num_chains : float, int
        Gaussian budget and number of the chains.
    tempering : float
        Of the model.
    """

    centre: Array
    covariance: Array
    row_gradient: float
    mu: float
    num_chains: int
    tempering: float

    @property
    def deviations(self) -> Array:
        """Posterior standard deviations of the components."""
        deviations: Array = np.sqrt(np.diag(self.covariance))
        return deviations

    def decision_multiplier(self, length: float) -> float:
        """Return the noise multiplier of a decision on a move of a length."""
        return DECISION / (2 * self.row_gradient * length * self.tempering)


def penalty(scale: Scale) -> dict[str, Any]:
    """Return parameters of DP-penalty: small steps, each decision as noisy as pays best."""
    spread = float(np.linalg.norm(scale.deviations))
    at_one = scale.mu**2 * scale.decision_multiplier(spread) ** 2 / scale.num_chains
    step = min(LONGEST_STEP / math.sqrt(len(scale.centre)), math.sqrt(at_one / ITERATIONS))
    return {
        "proposal_sd": (step * scale.deviations).tolist(),
        "noise_multiplier": scale.decision_multiplier(step * spread),
        "clip_bound": scale.row_gradient,
    }


def hamiltonian(scale: Scale, num_steps: int = LEAPFROG_STEPS) -> dict[str, Any]:
    """Return parameters of DP-HMC: the mass is the precision, so that all scales are alike.

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
        "num_leapfrog_steps": num_steps,
        "ratio_noise_multiplier": ratio / step,
        "gradient_noise_multiplier": gradient / step,
        "gradient_clip_bound": scale.row_gradient,
        "ratio_clip_bound": scale.row_gradient,
        "mass": np.linalg.inv(scale.covariance).tolist(),
    }


def langevin(scale: Scale) -> dict[str, Any]:
    """Return parameters of DP-MALA: those of DP-HMC with one step."""
    one = hamiltonian(scale, 1)
    del one["num_leapfrog_steps"]
    return one


RULES: Mapping[str, Callable[[Scale], dict[str, Any]]] = {
    "dp_penalty": penalty,
    "dp_hmc": hamiltonian,
    "dp_mala": langevin,
}


def lacks(module: Any, params: Mapping[str, Any]) -> bool:
    """Return whether a method that has rules is left without a parameter that it needs."""
    if module.__name__.rpartition(".")[2] not in RULES:
        return False
    needed = [one.name for one in fields(module.Params) if one.default is MISSING]
    return any(name not in params for name in needed)


def tuned(
    method: str,
    params: Mapping[str, Any],
    model: Model,
    dataset: Dataset,
    epsilon: float,
    delta: float,
    *,
    num_chains: int,
    start: Array | None,
    seed: int | None,
    noise: Noise,
) -> tuple[dict[str, Any], Search]:
    """Return all parameters of a method, and the search that told those that were left out.

    Parameters
    ----------
    method : str
        One of `RULES`.
    params : mapping
        Parameters that are given; they stay as they are.
    model, dataset, epsilon, delta, num_chains, start, seed, noise
        As of `dpmc.fit`; the search begins at `start`.

    Raises
    ------
    DpmcError
        If the budget or the model is refused, before any row is used.
    """
    whole = GaussianBudget.of(epsilon, delta)
    part = GaussianBudget(math.sqrt(SHARE) * whole.mu)
    checked = row_functions.without_errors(model)
    model_checks.check(checked, dataset.x.shape[1], dataset.bounds, dataset.invalid_rows == "zero")
    prior = Prior.of(checked)
    ledger, streams = Ledger(part, noise), Streams.of(seed, f"search for {method}", 0)
    point = starting_point(checked, prior, start)
    centre = locate(WhitenedRows(checked, dataset), prior, Purse(ledger, streams.noise), point)
    mu = math.sqrt(1 - SHARE) * whole.mu
    scale = _scale(centre, prior, checked, mu, num_chains)
    chosen = {**RULES[method](scale), **params}
    search = Search(scale.centre, events.gaussian(1 / part.mu), ledger.records())
    return chosen, search


def _scale(centre: Centre, prior: Prior, model: Model, mu: float, num_chains: int) -> Scale:
    step, _ = NoiseAware.of(centre, prior).approximation()
    theta = centre.theta + centre.basis @ step
    precision = centre.curvature.for_steps() + (
        centre.basis.T @ prior.precision(theta) @ centre.basis
    )
    inverse = np.linalg.pinv(precision, rcond=1e-12, hermitian=True)
    covariance = centre.basis @ inverse @ centre.basis.T
    # Whitened gradients are basis.T @ gradient.
    bound = centre.gradient_bound / float(np.linalg.svd(centre.basis, compute_uv=False)[-1])
    if model.lipschitz is not None:
        bound = min(bound, model.lipschitz)
    return Scale(theta, covariance, bound, mu, num_chains, model.tempering)
