"""DP-penalty by rule: noise of 2.38 at a decision, steps as small as computing time allows.

Random-walk Metropolis on a noisy log-ratio [Yildirim and Ermis 2019], in whitened coordinates. The
rule follows from :mod:`dpmc_league.theory`: N iterations with steps of length l and noise s at a
decision spend k = N l^2 / s^2, and effective draws are greatest where l^2 + s^2 = 2.38^2.
"""

from __future__ import annotations

import math

import numpy as np

from dpmc.mcmc import moves
from dpmc.privacy.ledger import Ledger
from dpmc.types import Array, NoParams
from dpmc_league.footing import Ground, find, worth
from dpmc_league.submission import Submission, Terms
from dpmc_league.task import Task
from dpmc_league.theory import BEST_SPREAD

TITLE = "DP-penalty by rule"
Params = NoParams
# Iterations for each exact draw that the budget is worth, where time does not bind.
PER_DRAW = 25
LEAST_STEPS = 200


def refusal(task: Task) -> str:
    """Why the method cannot take part: it always can."""
    return ""


def settings(k: float, max_passes: int) -> tuple[int, float]:
    """Iterations and the length of a step for a budget worth k exact draws."""
    number = min(max(math.ceil(PER_DRAW * k), LEAST_STEPS), max_passes)
    return number, BEST_SPREAD / math.sqrt(1 + number / k)


def chain(ground: Ground, ledger: Ledger, max_passes: int) -> Array:
    """Chain in whitened coordinates, shape (iterations, d)."""
    number, length = settings(worth(ground), max_passes)
    multiplier = math.sqrt(number) / ground.mu * (1 + 1e-12)
    z, rng = ground.start, ground.streams.chain
    scale = length / math.sqrt(len(z))
    states = np.empty((number, len(z)))
    for k in range(number):
        proposal = z + scale * rng.standard_normal(len(z))
        log_ratio = ground.ratio(z, proposal, ledger, multiplier)
        noise = 2 * ground.bound * multiplier * math.dist(z, proposal)
        if moves.accept(log_ratio - moves.penalty(noise), rng):
            z = proposal
        states[k] = z
    return states


def run(task: Task, terms: Terms) -> Submission:
    """Run one chain."""
    found = find(task, terms, "penalty")
    ledger = found.ledger()
    return found.submission(chain(found, ledger, terms.max_passes), ledger)
