"""Unadjusted Langevin over all rows, its only noise that of privacy.

A step is ``z - h (gradient + noise)`` with noise of variance 2 / h: what the mechanism adds is what
the diffusion needs [Wang, Fienberg and Smola 2015, "Privacy for free"]. Of a budget worth k exact
draws it takes 2 k / h gradients, and the variance of a normal posterior comes out as 1 / (1 - h /
2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpmc import checks
from dpmc.privacy.ledger import Ledger
from dpmc.types import Array
from dpmc_league.footing import Ground, find, worth
from dpmc_league.submission import Submission, Terms
from dpmc_league.task import Task

TITLE = "unadjusted Langevin"
# Step sizes where computing time does not bind, and the largest.
STEP, MOST_STEP = 0.1, 0.5
LEAST_STEPS = 200


@dataclass(frozen=True)
class Params:
    """Settings of unadjusted Langevin.

    Parameters
    ----------
    clip_factor : float
        Times the clip bound that the search for the posterior has found.
    """

    clip_factor: float = 1.0

    def __post_init__(self) -> None:
        checks.positive("clip_factor", self.clip_factor)


AS_FOUND = Params()


def refusal(task: Task) -> str:
    """Why the method cannot take part: it always can."""
    return ""


def settings(k: float, max_passes: int) -> tuple[int, float]:
    """Number of steps and h for a budget worth so many exact draws.

    Where not even the largest step spends the budget within `max_passes`, less is spent.
    """
    number = min(max(math.ceil(2 * k / STEP), LEAST_STEPS), max_passes)
    return number, min(2 * k / number, MOST_STEP)


def chain(ground: Ground, ledger: Ledger, max_passes: int) -> Array:
    """Chain in whitened coordinates, shape (steps, d)."""
    number, h = settings(worth(ground), max_passes)
    # In units of the sensitivity: sqrt(2 / h) is the standard deviation that the step needs.
    multiplier = max(math.sqrt(2 / h) / (2 * ground.bound), math.sqrt(number) / ground.mu)
    multiplier *= 1 + 1e-12
    z = ground.start
    states = np.empty((number, len(z)))
    for k in range(number):
        z = z + h * ground.gradient(z, ledger, multiplier)
        states[k] = z
    return states


def run(task: Task, terms: Terms, params: Params = AS_FOUND) -> Submission:
    """Run one chain."""
    found = find(task, terms, "langevin")
    found = replace(found, bound=params.clip_factor * found.bound)
    ledger = found.ledger()
    return found.submission(chain(found, ledger, terms.max_passes), ledger)
