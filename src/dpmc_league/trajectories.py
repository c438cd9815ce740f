"""Chains of DP-HMC in whitened coordinates, and all that they release.

[raisa2021thesis, Algorithm 4]: the noisy gradient at the end of an iteration begins the next, and a
rejection keeps the old one together with the old position.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpmc.mcmc import moves
from dpmc.privacy.ledger import Ledger
from dpmc.types import Array
from dpmc_league.footing import Ground, worth
from dpmc_league.theory import BEST_SPREAD, noisy_gradients

# Iterations for each exact draw that the budget is worth, where time does not bind.
PER_DRAW = 4
LEAST_STEPS, MOST_STEP = 200, 0.8


@dataclass(frozen=True, eq=False)
class Path:
    """A chain and the gradients that it released.

    Parameters
    ----------
    states : ndarray of shape (iterations, d)
    points, gradients : ndarray of shape (m, d)
        Where gradients were released, in order, and the gradients of the log-posterior with noise.
    gradient_sd : float
        Standard deviation of that noise.
    accepted : int
    """

    states: Array
    points: Array
    gradients: Array
    gradient_sd: float
    accepted: int


def settings(
    k: float, dim: int, max_passes: int, num_leapfrog_steps: int = 1
) -> tuple[int, float, float]:
    """Iterations, step size and the share of the budget on gradients, for k exact draws.

    From :mod:`dpmc_league.theory`: each iteration spends k / N, and the noise of a decision, of
    gradients and ratio together, is to be 2.38.
    """
    number = max(math.ceil(PER_DRAW * k), LEAST_STEPS)
    number = min(number, max_passes // (num_leapfrog_steps + 1))
    ratio = math.sqrt(noisy_gradients(num_leapfrog_steps) / 2)
    length = BEST_SPREAD * math.sqrt(k / (dim * number)) / (1 + ratio)
    return number, min(length / num_leapfrog_steps, MOST_STEP), ratio / (1 + ratio)


def run(ground: Ground, ledger: Ledger, max_passes: int, num_leapfrog_steps: int = 1) -> Path:
    """Run one chain of DP-HMC until the budget is spent."""
    k, dim = worth(ground), len(ground.start)
    number, eta, share = settings(k, dim, max_passes, num_leapfrog_steps)
    slack = (1 + 1e-12) / ground.mu
    for_gradients = math.sqrt((number * num_leapfrog_steps + 1) / share) * slack
    for_ratios = math.sqrt(number / (1 - share)) * slack
    return steps(ground, ledger, number, eta, for_gradients, for_ratios, num_leapfrog_steps)


def steps(
    ground: Ground,
    ledger: Ledger,
    number: int,
    eta: float,
    for_gradients: float,
    for_ratios: float,
    num_leapfrog_steps: int = 1,
) -> Path:
    """Run one chain of so many iterations of step size `eta`, with two noise multipliers.

    Gradients of `ground` may be noisy in any way that depends on the point alone.
    """
    z, rng = ground.start, ground.streams.chain
    dim = len(z)
    gradient = ground.gradient(z, ledger, for_gradients)
    states, points, gradients, accepted = np.empty((number, dim)), [z], [gradient], 0
    for k in range(number):
        momentum = rng.standard_normal(dim)
        proposal, momentum_new, gradient_new = z, momentum, gradient
        for _ in range(num_leapfrog_steps):
            half = momentum_new + 0.5 * eta * gradient_new
            proposal = proposal + eta * half
            gradient_new = ground.gradient(proposal, ledger, for_gradients)
            points.append(proposal)
            gradients.append(gradient_new)
            momentum_new = half + 0.5 * eta * gradient_new
        energy = 0.5 * float(momentum @ momentum - momentum_new @ momentum_new)
        log_ratio = ground.ratio(z, proposal, ledger, for_ratios) + energy
        noise = 2 * ground.bound * for_ratios * math.dist(z, proposal)
        if moves.accept(log_ratio - moves.penalty(noise), rng):
            z, gradient = proposal, gradient_new
            accepted += 1
        states[k] = z
    sd = 2 * ground.bound * for_gradients
    return Path(states, np.array(points), np.array(gradients), sd, accepted)
