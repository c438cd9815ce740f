"""Variational inference whose draws know of the noise: the same law, widened.

To each variance comes that of the error of the mean, by the noise that the ledger has: what is
known of the noise costs no privacy.
"""

from __future__ import annotations

from dpmc.types import NoParams
from dpmc_league import gaussian_laws
from dpmc_league.submission import Submission, Terms
from dpmc_league.task import Task

TITLE = "variational, noise-aware"
Params = NoParams


def refusal(task: Task) -> str:
    """Why the method cannot take part: it always can."""
    return ""


def run(task: Task, terms: Terms) -> Submission:
    """Draws of the law that is found, with the error of its mean."""
    return gaussian_laws.run(task, terms, aware=True)
