"""The automatic method of `dpmc.fit`: noisy Newton steps and a noise-aware posterior."""

from __future__ import annotations

import numpy as np

from dpmc.automatic import run as method
from dpmc.types import NoParams, swapped
from dpmc_league.footing import OUTSIDE_SEED
from dpmc_league.submission import Submission, Terms
from dpmc_league.task import Task

TITLE = "automatic (noisy Newton)"
Params = NoParams
NUM_CHAINS = 4


def refusal(task: Task) -> str:
    """Why the method cannot take part: it always can."""
    return ""


def run(task: Task, terms: Terms) -> Submission:
    """Fit with the whole budget."""
    fitted = method.fit(
        task.model,
        task.dataset,
        terms.epsilon,
        terms.delta,
        num_chains=NUM_CHAINS,
        num_draws=-(-terms.num_draws // NUM_CHAINS),
        start=np.asarray(task.start, dtype=np.float64),
        seed=terms.seed,
    )
    assert fitted.draws is not None
    outside = () if terms.seed is None else (OUTSIDE_SEED,)
    return Submission(swapped(fitted.draws), fitted.ledger, outside)
