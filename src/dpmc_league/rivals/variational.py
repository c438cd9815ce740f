"""Variational inference, whose draws know nothing of the error of their mean."""

from __future__ import annotations

from dpmc.types import NoParams
from dpmc_league import gaussian_laws
from dpmc_league.submission import Submission, Terms
from dpmc_league.task import Task

TITLE = "variational inference"
Params = NoParams


def refusal(task: Task) -> str:
    """Why the method cannot take part: it always can."""
    return ""


def run(task: Task, terms: Terms) -> Submission:
    """Draws of the law that is found."""
    return gaussian_laws.run(task, terms, aware=False)
