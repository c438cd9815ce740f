"""The posterior given everything that DP-HMC has released, its gradients above all.

Each gradient is a noisy equation for the mode: z + gradient is the mode with the noise of the
gradient, in coordinates where the curvature is the identity. The mean of all of them, weighed with
what the search for the posterior had found, costs nothing more. Draws are normal about it with the
noise of both added to the spread of the posterior. Ratios are not used: with such noise, a move
says next to nothing.
"""

from __future__ import annotations

import numpy as np

from dpmc.types import NoParams
from dpmc_league import footing, trajectories
from dpmc_league.submission import Submission, Terms
from dpmc_league.task import Task

TITLE = "what DP-HMC released"
Params = NoParams


def refusal(task: Task) -> str:
    """Why the method cannot take part: it always can."""
    return ""


def run(task: Task, terms: Terms) -> Submission:
    """Run the chain of DP-HMC by rule, and draw from what it released."""
    found = footing.find(task, terms, "hmc")
    ledger = found.ledger()
    path = trajectories.run(found, ledger, terms.max_passes)
    estimate = (path.points + path.gradients).mean(axis=0)
    variance = path.gradient_sd**2 / len(path.gradients)
    weight = found.mean_variance / (found.mean_variance + variance)
    mean = weight * estimate + (1 - weight) * found.mean
    spread = np.sqrt(1 + weight * variance)
    normal = found.streams.chain.standard_normal((terms.num_draws, len(mean)))
    records = footing.together(found.spent, ledger.records())
    thetas = found.thetas(mean + spread * normal)
    return Submission(thetas[:, None, :], records, found.outside)
