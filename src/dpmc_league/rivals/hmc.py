"""DP-HMC by rule: one leapfrog step, its last gradient kept, 41 % of the budget on gradients."""

from __future__ import annotations

from dpmc.types import NoParams
from dpmc_league import footing, trajectories
from dpmc_league.submission import Submission, Terms
from dpmc_league.task import Task

TITLE = "DP-HMC by rule"
Params = NoParams


def refusal(task: Task) -> str:
    """Why the method cannot take part: it always can."""
    return ""


def run(task: Task, terms: Terms) -> Submission:
    """Run one chain."""
    found = footing.find(task, terms, "hmc")
    ledger = found.ledger()
    path = trajectories.run(found, ledger, terms.max_passes)
    return found.submission(path.states, ledger)
