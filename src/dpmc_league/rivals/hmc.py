"""DP-HMC by rule: its last gradient kept; with one leapfrog step 41 % of mu^2 is for gradients."""

from __future__ import annotations

from dataclasses import dataclass

from dpmc import checks
from dpmc_league import footing, trajectories
from dpmc_league.submission import Submission, Terms
from dpmc_league.task import Task

TITLE = "DP-HMC by rule"


@dataclass(frozen=True)
class Params:
    """Length of trajectories.

    Parameters
    ----------
    num_leapfrog_steps : int
    """

    num_leapfrog_steps: int = 1

    def __post_init__(self) -> None:
        checks.at_least("num_leapfrog_steps", self.num_leapfrog_steps, 1)


AS_SET = Params()


def refusal(task: Task) -> str:
    """Why the method cannot take part: it always can."""
    return ""


def run(task: Task, terms: Terms, params: Params = AS_SET) -> Submission:
    """Run one chain."""
    found = footing.find(task, terms, "hmc")
    ledger = found.ledger()
    path = trajectories.run(found, ledger, terms.max_passes, params.num_leapfrog_steps)
    return found.submission(path.states, ledger)
