"""Variational inference: the normal law with independent components nearest to the posterior.

Each step draws a point of the present law and releases one noisy gradient there; mean and widths
follow its reparametrised gradient [Kucukelbir et al. 2017, section 2.5; with private gradients as
by Jälkö, Dikmen and Honkela 2017]. On a normal posterior the average of the means has the error of
the average of the gradients, noise of privacy and of the points, and the average of the squared
widths has no bias.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpmc.privacy.ledger import Ledger
from dpmc.types import Array
from dpmc_league.footing import Ground, find, together, worth
from dpmc_league.submission import Submission, Terms
from dpmc_league.task import Task

STEPS = 300
# Share of the steps before averages begin.
BEFORE = 0.25
# Largest step sizes of the mean and of the logarithms of widths, and least of the former times the
# number of steps.
MEAN_STEP, WIDTH_STEP, LEAST_TIME = 0.2, 0.05, 8.0
# Largest logarithm of a width, in those of the posterior as the search has it.
WIDEST = 3.0


class Law(NamedTuple):
    """A normal law with independent components, and what is not known of its mean.

    Parameters
    ----------
    mean, variances : ndarray of shape (d,)
    error : ndarray of shape (d,)
        Variance of the error of the mean, by noise of privacy and of the points.
    """

    mean: Array
    variances: Array
    error: Array


def approximate(ground: Ground, ledger: Ledger, max_passes: int) -> Law:
    """Law that noisy gradients lead to, in whitened coordinates."""
    number = min(STEPS, max_passes)
    multiplier = math.sqrt(number) / ground.mu * (1 + 1e-12)
    noise = number / worth(ground)  # variance in each entry of a gradient
    mean_step = min(MEAN_STEP, max(LEAST_TIME / number, 0.5 / noise))
    width_step = min(WIDTH_STEP, 0.25 * mean_step)
    mean, log_width = ground.start, np.zeros(len(ground.start))
    means, squares = [], []
    for step in range(number):
        width = np.exp(log_width)
        shift = width * ground.streams.chain.standard_normal(len(mean))
        slope = ground.gradient(mean + shift, ledger, multiplier)
        if step >= BEFORE * number:
            means.append(mean)
            squares.append(width**2)
        mean = mean + mean_step * slope
        # The entropy of the law grows by one with each logarithm.
        log_width = np.clip(log_width + width_step * (slope * shift + 1), -WIDEST, WIDEST)
    variances = np.mean(squares, axis=0)
    return Law(np.mean(means, axis=0), variances, (noise + variances) / len(means))


def run(task: Task, terms: Terms, aware: bool) -> Submission:
    """Draws of the law that is found, the error of its mean in its widths where `aware`."""
    found = find(task, terms, "variational")
    ledger = found.ledger()
    law = approximate(found, ledger, terms.max_passes)
    widths = np.sqrt(law.variances + law.error * aware)
    normal = found.streams.chain.standard_normal((terms.num_draws, len(law.mean)))
    thetas = found.thetas(law.mean + widths * normal)
    return Submission(thetas[:, None, :], together(found.spent, ledger.records()), found.outside)
