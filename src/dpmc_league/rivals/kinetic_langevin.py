"""Langevin dynamics with momentum (BAOAB's splitting), its only noise that of privacy.

The noise comes with the gradient, so that kick, friction and noise stand between two half drifts:
``v = a v + h (1 + a) / 2 (gradient + noise)``, ``y = y + h v``, with noise of variance ``4 (1 - a)
/ (h^2 (1 + a))``. What is stored are the middles of drifts. On a normal posterior they have its
exact variance in every direction, whatever the step size below 2: successive points y have variance
1 / (1 - h^2 / 4) and correlation 1 - h^2 / 2, and their middles 1. Splittings are those of
[Leimkuhler and Matthews 2013]; which of them exactness at the middles belongs to follows from the
recursion, and is tested.
"""

from __future__ import annotations

import math

import numpy as np

from dpmc.privacy.ledger import Ledger
from dpmc.types import Array, NoParams
from dpmc_league.footing import Ground, find, worth
from dpmc_league.submission import Submission, Terms
from dpmc_league.task import Task

TITLE = "kinetic Langevin"
Params = NoParams
STEP = 0.7
# (1 - a) / (1 + a) where computing time does not bind, and its least: a = 1/3 and 0.94.
RATIO, LEAST_RATIO = 0.5, 0.03
LEAST_STEPS = 200


def refusal(task: Task) -> str:
    """Why the method cannot take part: it always can."""
    return ""


def settings(k: float, max_passes: int) -> tuple[int, float, float]:
    """Steps, h and a for a budget worth k exact draws.

    N steps with noise of variance N / k spend it: (1 - a) / (1 + a) = N h^2 / (4 k).
    """
    number = min(max(math.ceil(4 * RATIO * k / STEP**2), LEAST_STEPS), max_passes)
    h, ratio = STEP, number * STEP**2 / (4 * k)
    if ratio > RATIO:  # few effective draws: smaller steps make more of them, less independent
        h, ratio = math.sqrt(4 * k * RATIO / number), RATIO
    ratio = max(ratio, LEAST_RATIO)
    return number, h, (1 - ratio) / (1 + ratio)


def chain(ground: Ground, ledger: Ledger, max_passes: int) -> tuple[Array, Array]:
    """Middles of drifts and the points of gradients, each of shape (steps, d)."""
    number, h, a = settings(worth(ground), max_passes)
    sd = 2 / h * math.sqrt((1 - a) / (1 + a))
    multiplier = max(sd / (2 * ground.bound), math.sqrt(number) / ground.mu) * (1 + 1e-12)
    y = ground.start
    v = ground.streams.chain.standard_normal(len(y))
    middles, points = np.empty((number, len(y))), np.empty((number, len(y)))
    for k in range(number):
        points[k] = y
        v = a * v + 0.5 * h * (1 + a) * ground.gradient(y, ledger, multiplier)
        middles[k] = y + 0.5 * h * v
        y = y + h * v
    return middles, points


def run(task: Task, terms: Terms) -> Submission:
    """Run one chain."""
    found = find(task, terms, "kinetic_langevin")
    ledger = found.ledger()
    middles, _ = chain(found, ledger, terms.max_passes)
    return found.submission(middles, ledger)
